"""Claims on noise scales in a method's own norm, and the rules that judge them.

Of this paper the abstract was at hand, not the text.
"""

from chapters.noise_in_norms import experiments, findings
from lib.claims.claim import claim, interval, ratio
from lib.claims.names import curve_title

SOURCE = "Naganuma et al. 2026, abstract, in our words"


def compared():
    """`findings.beside` of all on record, if there is any."""
    points = experiments.PATHS.results()
    return findings.beside(findings.scales(points), findings.criticals()) if len(points) else points


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
    rows = compared()
    if rows.empty:
        return []
    missed = findings.misses(rows)
    name = f"{len(missed)} curves of {rows.workload.nunique()} networks"
    return [interval(name, *findings.spread(missed), len(missed), log=True)]


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
    if rows.empty:
        return []
    own = rows[(rows.norm == findings.OWN) & rows.algorithm.isin(findings.OTHERS)]
    return [ratio(curve_title((row.workload, row.algorithm)), row.over) for row in own.itertuples()]
