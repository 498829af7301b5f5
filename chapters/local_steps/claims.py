"""Claims on local steps with an outer step, and the rules that judge them."""

from chapters.local_steps import findings
from chapters.local_steps.experiments import DILOCO, INNER, SPARSE
from lib.claims.claim import Change, claim

BELOW_ONE = Change(
    "2026-11-28",
    "the same, under 1 times",
    "a bound of one has no stricter and no laxer one, by which a verdict could be called fragile",
)


@claim(
    "D1",
    "One replica with an outer step beats its inner method",
    chapter="local_steps",
    paper="With a single replica, DiLoCo reaches a lower loss than data parallelism at every size of "
    "the model.",
    source="Charles et al. 2025, in our words",
    read="text",
    rule="With one replica and rounds of 5 or of 30 steps, DiLoCo takes under 0.8 times the steps of "
    "Adam that is looked at as often, to 5 % error; a search that misses it counts as its last "
    "step, which is a bound.",
    below=0.8,
    since="2026-11-27",
    history=[BELOW_ONE],
    fixed=True,
)
def alone():
    points = [(1, steps, size, 1.0) for steps in (5, 30) for size in (16, 64, 256)]
    return findings.groups([((DILOCO, *one), (INNER, *one)) for one in points])


@claim(
    "D2",
    "Sparse changes train better than whole ones",
    chapter="local_steps",
    paper="Changes of which 1 to 3 % are sent, with error feedback, outperform DiLoCo's whole ones.",
    source="Sarfi et al. 2025, abstract",
    rule="With eight replicas and rounds of 30 steps at batch size 64, the sparse form with 1 % or "
    "3 % takes under 0.8 times the steps of DiLoCo, to 5 % error; a search that misses it counts as "
    "its last step, which is a bound.",
    below=0.8,
    since="2026-11-27",
    history=[BELOW_ONE],
    fixed=True,
)
def sparse():
    dense = (DILOCO, 8, 30, 64, 1.0)
    return findings.groups([((SPARSE, 8, 30, 64, k), dense) for k in (0.01, 0.03)])
