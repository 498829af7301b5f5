"""Claims on local steps with an outer step, and the rules that judge them."""

from chapters.local_steps import findings
from chapters.local_steps.experiments import DILOCO, INNER, SPARSE
from lib.claims.claim import claim


@claim(
    "D1",
    "One replica with an outer step beats its inner method",
    chapter="local_steps",
    paper="With a single replica, DiLoCo reaches a lower loss than data parallelism at every size of "
    "the model.",
    source="Charles et al. 2025, in our words",
    read="text",
    rule="With one replica and rounds of 5 or of 30 steps, DiLoCo takes under 1 times the steps of "
    "Adam that is looked at as often, to 5 % error; a search that misses it counts as its last "
    "step.",
    below=1.0,
    since="2026-11-27",
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
    "3 % takes under 1 times the steps of DiLoCo, to 5 % error; a search that misses it counts as "
    "its last step.",
    below=1.0,
    since="2026-11-27",
    fixed=True,
)
def sparse():
    dense = (DILOCO, 8, 30, 64, 1.0)
    return findings.groups([((SPARSE, 8, 30, 64, k), dense) for k in (0.01, 0.03)])
