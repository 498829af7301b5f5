"""Claims on messages that reveal less, and the rules that judge them."""

from chapters.leakage import findings
from lib.analysis import replicates, scaling
from lib.claims.claim import claim, interval, ratio, unmeasured
from lib.claims.names import title

SIZE, ALPHA = 128, 3.0


def penalised(goal):
    """The name of every network and estimator, with its searches and those without a penalty."""
    for (network, unbiased, *point), *both in findings.with_penalty(findings.measured(), goal):
        if point == [ALPHA, SIZE]:
            yield f"{title(network)}, {findings.ESTIMATORS[unbiased]}", *both


@claim(
    "N1",
    "A penalty on distance correlation hides the images",
    chapter="leakage",
    paper="Lowering the distance correlation of activations with the data makes them resist "
    "reconstruction.",
    source="Vepakomma et al. 2020, abstract, in our words",
    rule="With α = 3 and batches of 128, a decoder leaves over 1.25 times the squared error that "
    "it leaves without a penalty, at the goal of 6 %.",
    above=1.25,
    since="2026-11-27",
    fixed=True,
)
def hidden():
    rows = {name: replicates.over(*both, "lost") for name, *both in penalised(findings.GOAL)}
    return [ratio(name, one) if one else unmeasured(name) for name, one in rows.items()]


@claim(
    "N2",
    "The penalty keeps the accuracy",
    chapter="leakage",
    paper="Less leakage leaves the accuracy of the task as it is.",
    source="Vepakomma et al. 2020, abstract, in our words",
    rule="With α = 3 and batches of 128, more than half of searches meet the hardest goal, which "
    "they all meet without a penalty.",
    above=0.5,
    scale="share",
    since="2026-11-27",
    fixed=True,
)
def kept():
    met = {name: own.steps.notna() for name, own, _ in penalised(findings.HARDEST)}
    shares = {name: scaling.share(int(one.sum()), len(one)) for name, one in met.items()}
    return [interval(name, *shares[name], len(one)) for name, one in met.items()]
