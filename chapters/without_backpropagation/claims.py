"""Claims on training without backpropagation, and the rules that judge them.

Of these papers the abstracts were at hand, not the texts.
"""

from chapters.without_backpropagation import without_backpropagation as without
from chapters.without_backpropagation.experiments import READOUTS
from lib.claims.claim import Change, claim, difference, ratio
from lib.claims.names import title
from lib.methods.local_alignment import THEIRS
from lib.records import results
from lib.studies import plans

BOUND = "no effect has to stay within the bound that an effect has to exceed"


@claim(
    "B1",
    "Local representation alignment generalises as well as backpropagation",
    chapter="without_backpropagation",
    paper="Local representation alignment generalises as well as backpropagation. (Theirs: a recursive variant on residual "
    f"networks; here: the basic rule on a small MLP. Their code of that rule sets β = {THEIRS:g}.)",
    source="Ororbia et al. 2020, abstract",
    rule="With a β, its test error, at the lowest validation error of a search, exceeds that of backpropagation by less than one "
    "point.",
    below=1.0,
    scale="points",
    since="2026-11-24",
)
def test_error():
    study = plans.study("digits-local-budget")
    network = title(study.cells[0].workload)
    found = without.lost(results.read(study))
    return [
        difference(f"{without.ARMS[arm]}, {network}", effect) for arm, effect in found.items()
    ]


@claim(
    "B3",
    "Boolean weights, flipped one by one, converge exponentially",
    chapter="without_backpropagation",
    paper="Coordinate descent on Boolean weights converges exponentially. (Theirs: reservoirs; here: readouts of digits.)",
    source="Andreoli et al. 2023, abstract",
    rule="As the error nears its floor, its third e-fold takes as long as its first within a factor of 1.25.",
    within=1.25,
    history=[
        Change(
            "2026-11-26",
            "within a factor of 1.5, in the median over numbers of features",
            BOUND,
        )
    ],
)
def straightness():
    found = without.convergence(READOUTS.results())
    return [ratio(f"{row.features:,} {row.kind}", row.slower) for row in found.itertuples()]
