"""The fastest trials of recorded searches, trained again, and the gradient in every norm at a few
points of their paths to the goal.  The page tells what was predicted before the records.
"""

from __future__ import annotations

import operator

import pandas as pd

from lib.fields import Count, Whole, spec
from lib.measuring.experiment import Collection, WithCell
from lib.methods import MethodName
from lib.probes import tracks
from lib.studies import plans
from lib.studies.cells import Cell
from lib.workloads.catalogue import WorkloadName

METHODS = ("sgd", "momentum", "nesterov", "adam", "adam-fixed", "muon")
# The study that searched a network with all of these; a batch size near the critical ones, and
# searches of it; how many examples tell the spread (0: all)
PLANNED = {
    "digits-mlp": ("digits-which", 64, (3, 4, 5, 6, 7), 0),
    "digits-cnn": ("digits-which", 64, (3, 4, 5, 6, 7), 0),
    "mnist-fc-128x3-easier": ("mnist-fc-which", 256, (1, 2, 3), 1350),
}
POINT = operator.attrgetter("workload", "algorithm", "batch_size", "replicate")


@spec
class Path(WithCell):
    """The fastest trial of one search, looked at in so many points between start and goal.

    examples: that tell the spread of their gradients (0: all).  chunk: how many of them at once.
    Raises ValueError naming the field, its value and what is allowed.
    """

    workload: WorkloadName
    algorithm: MethodName
    batch_size: Count(65_536)
    replicate: Whole(0, 9999)
    points: Count(1000) = 8
    examples: Whole(0, 10**6) = 0
    chunk: Count(4096) = 50

    @property
    def cell(self) -> Cell:
        """The search on record."""
        cells = plans.study(PLANNED[self.workload][0]).cells
        return next(one for one in cells if POINT(one) == POINT(self) and not one.sparsity)

    def measure(self) -> pd.DataFrame:
        """A row per point: step (the update about to be made), last (that which met the goal),
        trial, and what `gradient_norms.parts` says of the gradient.
        """
        from chapters.disputed import gradient_norms  # brings PyTorch, which is slow to import
        from lib.measuring.rerun import Rerun
        from lib.probes.noise_scale import Chunks

        steps = tracks.steps_to_goal(self.cell)
        trial, last = int(steps.index[0]), int(steps.iloc[0])
        rerun, chunks, rows = Rerun(self.cell, [trial]), Chunks(self), []
        at = middles(last, self.points)
        for step in range(1, max(at) + 1):
            if step in at:
                found = gradient_norms.look(chunks, rerun.w[0].float(), rerun.layers)
                rows.append({"step": step, "last": last, "trial": trial, **found})
            rerun.update()
        return pd.DataFrame(rows)


def middles(last: int, points: int) -> list[int]:
    """The middle steps of so many equal parts of a path of `last` steps; fewer of a shorter one."""
    return sorted({1 + int((part + 0.5) * last / points) for part in range(points)})


def planned() -> tuple[Path, ...]:
    """Every network and method, search by search."""
    return tuple(
        Path(work, method, size, n, examples=examples)
        for work, (_, size, replicates, examples) in PLANNED.items()
        for n in replicates
        for method in METHODS
    )


ABOUT = "Measure gradient noise in three norms on several methods' paths, into data/norms/."
PATHS = Collection(
    "norms",
    "paths",
    "{0.workload}/{0.algorithm}-batch-{0.batch_size}".format,
    planned,
    ABOUT,
    precision="float32",
)
EXPERIMENTS = {"noise-in-norms": PATHS}
