"""Which training images networks get wrong that have not seen them: how hard any draw of validation
images would be.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from lib.fields import Count, Whole, spec
from lib.measuring.experiment import Collection
from lib.methods import spaces
from lib.records import store
from lib.records.store import DATA
from lib.studies.cells import NUMBER, Cell
from lib.workloads import datasets
from lib.workloads.catalogue import WorkloadName, workload

ASKED = 1000  # images at once


@spec
class Folds:
    """So many networks, trained on all folds of a training set but one and asked about that one,
    fold after fold.

    The networks of a fold start from weights of their own and see the images in one order; another
    fold's are other networks.  All take the same steps of momentum at one learning rate.  seed: of
    the draw of the folds.
    """

    workload: WorkloadName
    networks: Count(100) = 8
    steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 0.01
    momentum: float = 0.9
    folds: Whole(2, 1000) = 10
    seed: NUMBER = 0

    def cell(self, fold: int) -> Cell:
        """How the networks of a fold are trained, on images of its own."""
        space = spaces.point(learning_rate=self.learning_rate, momentum=self.momentum)
        return Cell(
            self.workload,
            self.batch_size,
            trials=self.networks,
            replicate=fold,
            stop="budget",
            max_steps=self.steps,
            space=space,
        )

    def definition(self) -> dict:
        return self.cell(0).definition()


def parts(what: Folds, images: int) -> list[np.ndarray]:
    """The images of every fold, as places in the training set: each in one fold, whose sizes differ
    by one at most.
    """
    return np.array_split(np.random.default_rng(what.seed).permutation(images), what.folds)


def ask(what: Folds) -> pd.DataFrame:
    """A row per image that some network got wrong: image (place in the canonical training set),
    wrong (networks that did).
    """
    from lib.measuring.rerun import Rerun  # brings PyTorch, and most chapters only read records

    whole = datasets.whole(workload(what.workload).dataset)

    def part(rows: np.ndarray) -> datasets.Split:
        return datasets.Split(whole.x[rows], whole.y[rows])

    wrong = np.zeros(len(whole), int)
    for fold, asked in enumerate(parts(what, len(whole))):
        others = np.setdiff1d(np.arange(len(whole)), asked)
        rerun = Rerun(what.cell(fold), training=part(others))
        for _ in range(what.steps):
            rerun.update()
        for some in np.split(asked, range(ASKED, len(asked), ASKED)):
            wrong[some] = rerun.costs(part(some)).sum(0).numpy()
    (missed,) = wrong.nonzero()
    return pd.DataFrame({"image": missed, "wrong": wrong[missed]})


# As good as the trials that meet the hardest goals of these workloads, and no better.
PLANNED = (Folds("mnist-fc-128x3"), Folds("mnist-simple-cnn", networks=2, steps=1250))


def _place(what: Folds, folder: Path) -> Path:
    return folder / f"{what.workload}-{store.digest(what)}.csv"


FOLDS = Collection(
    "folds",
    "set",
    DATA / "folds",
    _place,
    lambda: PLANNED,
    ask,
    lambda what: what.cell(0).arithmetic,
)
