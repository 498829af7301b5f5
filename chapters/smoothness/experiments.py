"""What this chapter measures besides searches: smoothness of a sparse or dense network's winners
trained as the other, and how winners' gradients point to where their paths end.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import pandas as pd

from lib.fields import Count, spec
from lib.measuring.experiment import Collection
from lib.probes import tracks
from lib.probes.tracks import Again, Track
from lib.records import store
from lib.studies import plans
from lib.studies.search import Search
from lib.workloads.catalogue import WorkloadName


def planned() -> list[Track]:
    """Trials followed only dense or only pruned, repeated as the other: the same hyperparameters,
    initialisation before pruning, and number of steps.

    On digits, dense networks trained with momentum, at every sparsity; for Simple-CNN, winners
    with gradients on a part of the images (on all, each would take an hour), unless the other
    network's trial won, too.
    """
    dense = [t for t in tracks.digits() if t.sparsity == 0 and t.algorithm == "momentum"]
    twins = [(track, sparsity) for sparsity in plans.LEVELS[1:] for track in dense]
    mnist = tracks.TRACKS["mnist"].planned()
    followed = [track for track in mnist if track.smoothness and track.examples]
    pair = sum(plans.DENSE_AND_SPARSE)
    twins += [
        (track, pair - track.sparsity)
        for track in followed
        if replace(track, sparsity=pair - track.sparsity) not in followed
    ]
    return [
        replace(track, sparsity=sparsity, steps=tracks.last_step(track))
        for track, sparsity in twins
    ]


TWINS = tracks.experiment("twins", planned)


# --- where gradients point ------------------------------------------------------------------------

SIZES = (4, 16, 64, 256, 1024)
SEARCHES = range(3, 9)  # of "digits-searches", each on a split of its own
METHODS = ("sgd", "momentum")


@spec
class Walk(Again):
    """One trial of a recorded search, trained again up to the step at which it met the goal, where
    its weights are w*.

    points: number of steps to examine, evenly spaced.
    examples: of the training set, for the gradient that represents all of it (0: all of them).
    chunk: examples per gradient; from these, that gradient and the noise scale are computed.
    """

    workload: WorkloadName
    batch_size: int
    algorithm: str
    sparsity: float
    trials: int
    trial: int
    hits: int
    replicate: int = 0
    split: int = 0
    points: Count(10**6) = 40
    examples: int = 0
    chunk: int = 50

    def measure(self) -> pd.DataFrame:
        from chapters.smoothness import walking  # imports PyTorch, which is slow

        return walking.measured(self)


@functools.cache  # it looks up the winners in hundreds of records
def winners() -> tuple[Walk, ...]:
    """The winners of searches on digits, one search after another, so that a part of them covers
    all settings; and of a few searches on images, with a thirtieth of the training set.
    """
    digits = [
        Search(name, size, algorithm, sparsity, replicate=search, split=search, hits=1)
        for search in SEARCHES
        for name in plans.DIGITS
        for algorithm in METHODS
        for size in SIZES
        for sparsity in plans.DENSE_AND_SPARSE
    ]
    images = [
        cell
        for cell in plans.study("mnist").searches
        if (cell.workload, cell.algorithm, cell.sparsity) == ("mnist-simple-cnn", "momentum", 0)
        and cell.batch_size in (64, 256)
    ]
    fields = [{}] * len(digits) + [{"points": 20, "examples": 2000}] * len(images)
    cells = zip(digits + images, fields)
    return tuple(walk for cell, more in cells for walk in tracks.fastest(Walk, cell, 1, **more))


WALKS = Collection(
    "paths",
    "trajectories",
    store.beginning,
    winners,
    "Train the fastest trials again and record where their gradients point, into data/paths/.",
)
EXPERIMENTS = {"noise-along-twins": TWINS, "trajectories": WALKS}
