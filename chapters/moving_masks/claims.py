"""Claims on masks that move, and the rules that judge them. The page says what was predicted before
the records.
"""

from chapters.moving_masks import findings
from chapters.moving_masks.experiments import Search
from lib.analysis import scaling
from lib.claims.claim import claim, ratio
from lib.claims.names import title


def over(*rows):
    """A row for the name of a mask, and two masks: the steps of the first over those of the second,
    the mean over batch sizes.
    """
    known = findings.curves(findings.measured())
    return [
        ratio(f"{name}, {title(Search.workload)}", scaling.mean_steps_ratio(known[a], known[b]))
        for name, a, b in rows
        if {a, b} <= known.keys()
    ]


@claim(
    "V1",
    "Average density decides, whether it falls or not",
    chapter="moving_masks",
    paper="The average number of parameters over training predicts the loss, of sparse and dense "
    "training alike. (Here: steps at equal average density.)",
    source="Jin et al. 2025, abstract, in our words",
    rule="Gradual pruning takes within a factor of 1.25 of the steps of a mask that stays, both "
    "with 10 % of the weights on average, in the mean over batch sizes; three searches.",
    within=1.25,
    since="2026-11-27",
    fixed=True,
)
def average_density():
    return over((findings.NAMES["thinned"], "thinned", "static"))


@claim(
    "V2",
    "Rewiring a sparse network saves steps",
    chapter="moving_masks",
    paper="Changing which weights are there needs less arithmetic for an accuracy than earlier "
    "techniques. (Here: fewer steps than a mask that stays.)",
    source="Evci et al. 2020, abstract, in our words",
    rule="A mask that stays takes over 1.25 times the steps of one that is rewired, both with 10 % "
    "of the weights, in the mean over batch sizes; three searches.",
    above=1.25,
    since="2026-11-27",
    fixed=True,
)
def rewiring():
    return over(*((findings.NAMES[mask], "static", mask) for mask in ("steps", "examples")))
