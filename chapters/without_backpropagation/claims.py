"""Claims on training without backpropagation, and what is measured of them.

Of these papers the abstracts were at hand, not the texts.
"""

from chapters.without_backpropagation import without_backpropagation as without
from chapters.without_backpropagation.experiments import READOUTS
from lib.claims.claim import difference, finding, ratio
from lib.claims.names import title
from lib.methods.local_alignment import THEIRS
from lib.records import results
from lib.studies import plans


@finding(
    "B1",
    "Local representation alignment generalises as well as backpropagation",
    chapter="without_backpropagation",
    paper="Local representation alignment generalises as well as backpropagation. (Theirs: a recursive variant on residual "
    f"networks; here: the basic rule on a small MLP. Their code of that rule sets β = {THEIRS:g}.)",
    source="Ororbia et al. 2020, abstract",
    scale="points",
    shown="Test error, at the lowest validation error of a search, less that of "
    "backpropagation, in points.",
)
def test_error():
    study = plans.study("digits-local-budget")
    network = title(study.searches[0].workload)
    found = without.lost(results.read(study))
    return [
        difference(f"{without.ARMS[arm]}, {network}", effect) for arm, effect in found.items()
    ]


@finding(
    "B3",
    "Boolean weights, flipped one by one, converge exponentially",
    chapter="without_backpropagation",
    paper="Coordinate descent on Boolean weights converges exponentially. (Theirs: reservoirs; here: readouts of digits.)",
    source="Andreoli et al. 2023, abstract",
    shown="How long the third e-fold of the error above its floor takes, over the first.",
)
def straightness():
    found = without.convergence(READOUTS.results())
    return [ratio(f"{row.features:,} {row.kind}", row.slower) for row in found.itertuples()]
