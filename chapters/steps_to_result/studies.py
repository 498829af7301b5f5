"""What this chapter's searches are: exact ones by which races are judged, and the split of Lee et al.
(2021).
"""

from __future__ import annotations

from collections.abc import Iterable

from lib.studies.cells import Cell
from lib.studies.study import DENSE_AND_SPARSE, DIGITS, WATCHED, Study, grid, powers, races
from lib.workloads.catalogue import EASIER

FC, FASHION_FC = f"mnist-fc-128x3{EASIER}", f"fashion-mnist-fc-128x3{EASIER}"
CNN, FASHION_CNN = "mnist-simple-cnn", "fashion-mnist-simple-cnn"


def _watched() -> Iterable[Cell]:
    """Exact searches that tell what races on training losses would have changed, of networks on 28
    x 28 images and on digits.
    """

    def watched(trials: int = 32, **fields) -> Iterable[Cell]:
        return grid(trials=trials, hits=1, race=WATCHED, rungs="losses", **fields)

    both, easier = ("momentum", "sgd"), CNN + EASIER
    for method in both:
        for name in (FC, FASHION_FC):
            one = {"workload": name, "algorithm": method}
            yield from watched(search=(1, 2), batch_size=(64, 1024, 16, 256), **one)
            yield from watched(search=1, batch_size=(256, 64, 1024), sparsity=0.9, **one)
        yield from watched(workload=easier, search=1, batch_size=(64, 256, 16), algorithm=method)
    yield from watched(workload=easier, search=1, batch_size=(256, 64), sparsity=0.9)
    yield from watched(workload=(CNN, FASHION_CNN), batch_size=64)
    others = ("adam", "muon", "lars", "kfac", "nesterov")
    yield from watched(workload=FC, algorithm=others, search=1, batch_size=(64, 1024, 256, 16))
    yield from watched(
        trials=100,
        algorithm=both,
        sparsity=DENSE_AND_SPARSE,
        search=(3, 4),
        batch_size=powers(0, 10, 2),
        workload=DIGITS,
    )


STUDIES = (
    Study("races", "Exact searches to judge races by", _watched(), apart=True),
    # Dense networks first, since they are cheap; their counterparts on our split are of other
    # studies
    Study(
        "mnist-split",
        "MNIST: Simple-CNN on the split of Lee et al.",
        races(
            workload=f"{CNN}-lee2021",
            sparsity=DENSE_AND_SPARSE,
            algorithm=("momentum", "sgd"),
            batch_size=(64, 256, 16, 1024),
        ),
        apart=True,
    ),
    # The same trials on both; one search after the other
    Study(
        "mnist-split-fc",
        "MNIST: a cheap network on the split of Lee et al. and on ours",
        grid(
            replicate=range(3),
            batch_size=(256, 64, 1024),
            workload=("mnist-fc-128x3", "mnist-fc-128x3-lee2021"),
            trials=32,
            hits=1,
        ),
        apart=True,
    ),
)
