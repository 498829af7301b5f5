"""Claims on messages that reveal less, and what is measured of them."""

from chapters.leakage import findings
from lib.analysis import replicates, scaling
from lib.claims.claim import finding, interval, ratio, unmeasured
from lib.claims.names import title

SIZE, ALPHA = 128, 3.0


def penalised(goal):
    """The name of every network and estimator, with its searches and those without a penalty."""
    for (network, unbiased, *point), *both in findings.with_penalty(findings.measured(), goal):
        if point == [ALPHA, SIZE]:
            yield f"{title(network)}, {findings.ESTIMATORS[unbiased]}", *both


@finding(
    "N1",
    "A penalty on distance correlation hides the images",
    chapter="leakage",
    paper="Lowering the distance correlation of activations with the data makes them resist "
    "reconstruction.",
    source="Vepakomma et al. 2020, abstract, in our words",
    shown="With α = 3 and batches of 128, the squared error that a decoder leaves over "
    "that without a penalty, at the goal of 6 %.",
)
def hidden():
    rows = {name: replicates.over(*both, "lost") for name, *both in penalised(findings.GOAL)}
    return [ratio(name, one) if one else unmeasured(name) for name, one in rows.items()]


@finding(
    "N2",
    "The penalty keeps the accuracy",
    chapter="leakage",
    paper="Less leakage leaves the accuracy of the task as it is.",
    source="Vepakomma et al. 2020, abstract, in our words",
    scale="share",
    shown="Share of searches, with α = 3 and batches of 128, that meet the hardest goal, "
    "which all meet without a penalty.",
)
def kept():
    met = {name: own.steps.notna() for name, own, _ in penalised(findings.HARDEST)}
    shares = {name: scaling.share(int(one.sum()), len(one)) for name, one in met.items()}
    return [interval(name, *shares[name], len(one)) for name, one in met.items()]
