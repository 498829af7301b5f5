"""Claims on noise scales in a method's own norm, and the rules that judge them.

Of this paper the abstract was at hand, not the text.
"""

from chapters.noise_in_norms import experiments, predicted
from lib.claims.claim import claim, interval, ratio
from lib.claims.names import curve_title

SOURCE = "Naganuma et al. 2026, abstract, in our words"


def compared():
    """`predicted.beside` of all on record."""
    points = experiments.PATHS.results()
    both = (predicted.scales(points), predicted.criticals()) if len(points) else (points, {})
    return predicted.beside(*both)


@claim(
    "Q1",
    "The noise scale in a method’s own norm goes with its critical batch size",
    chapter="noise_in_norms",
    paper="The Euclidean noise scale mismatches methods with other norms; theirs is the scale to "
    "set batches by. (Here: whether it goes with critical batch sizes over methods and networks.)",
    source=SOURCE,
    rule="Over all methods and networks, the logarithm of the critical batch size over the noise "
    "scale in the method’s own norm has under 0.8 times the standard deviation that it has with "
    "the Euclidean one.",
    below=0.8,
    since="2026-11-27",
    fixed=True,
)
def spread():
    missed = predicted.misses(compared())
    found = predicted.spread(missed)
    name = f"{len(missed)} curves of {len(missed.index.unique('workload'))} networks"
    return [interval(name, *found, len(missed), log=True)] if found else []


@claim(
    "Q2",
    "The noise scale in their own norm is the critical batch size of Adam and Muon",
    chapter="noise_in_norms",
    paper="Batches set by the noise scale in the norm of sign and spectral methods save steps "
    "without loss. (Here: whether that scale is the critical batch size of Adam and Muon.)",
    source=SOURCE,
    rule="On a network, the critical batch size is within a factor of two of the noise scale in "
    "the method’s own norm, in the geometric mean along the fastest trials.",
    within=2.0,
    since="2026-11-27",
    fixed=True,
)
def level():
    rows = compared()
    own = rows[(rows.norm == predicted.OWN) & rows.algorithm.isin(predicted.OTHERS)]
    return [ratio(curve_title((row.workload, row.algorithm)), row.over) for row in own.itertuples()]
