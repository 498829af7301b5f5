"""Errors on unseen images: of winners of searches, trained again to the step at which they met the
goal; and of networks on held-out training images, which show how hard any draw of validation images
would be.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from lib.fields import Count, Whole, spec
from lib.measuring.experiment import Collection, WithSearch
from lib.methods import spaces
from lib.probes import tracks
from lib.records import store
from lib.records.store import DATA
from lib.studies import plans
from lib.studies.search import NUMBER, Search
from lib.workloads import datasets
from lib.workloads.catalogue import WorkloadName, workload


@spec
class Winners:
    """The fastest trial of every search in a study with one network, one method and one sparsity.

    study: a name in `lib.studies.plans`.
    goal: the validation error at which steps are compared, one of the workload's goals.
    last: the largest replicate number included.
    smallest: the smallest batch size.
    """

    study: str
    workload: str
    sparsity: float
    goal: float
    algorithm: str = "momentum"
    last: NUMBER = 12
    smallest: int = 1

    @property
    def cell(self) -> Search:
        """One of its searches on record; all have the same arithmetic."""
        return self.cells()[0]

    def cells(self, data: Path = DATA) -> list[Search]:
        """Its searches that are on record under `data`."""
        key = (self.workload, self.algorithm, self.sparsity, "connection-sensitivity", "goal")
        return [
            c
            for c in plans.study(self.study).searches
            if (c.workload, c.algorithm, c.sparsity, c.pruning, c.stop) == key
            and c.replicate <= self.last
            and c.batch_size >= self.smallest
            and store.exists(store.record(c, data))
        ]

    def measure(self, data: Path = DATA) -> pd.DataFrame:
        """A row per search whose goal was met: batch_size, replicate, split, trial, steps, and the
        winner's errors.

        validation, test: shares of wrong answers when the search met the goal.  Up to rounding, the
        first is at most the goal.
        """
        rows = []
        for cell in self.cells(data):
            fastest = tracks.steps_to_goal(cell, data, self.goal)[:1]
            for trial, steps in fastest.astype(int).items():
                wrong = errors(cell, trial, steps)
                search = cell.batch_size, cell.replicate, cell.split
                rows.append((*search, trial, steps, *wrong))
        columns = ["batch_size", "replicate", "split", "trial", "steps", "validation", "test"]
        return pd.DataFrame(rows, columns=columns)


def errors(cell: Search, trial: int, steps: int) -> list[float]:
    """Validation and test error of one of a search's trials after `steps` steps."""
    from lib.measuring.rerun import Rerun  # imports PyTorch; most chapters only read

    rerun = Rerun(cell, [trial])
    for _ in range(steps):
        rerun.update()
    test = cell.work.data(cell.split).test
    costs = map(rerun.costs, (rerun.validation, test))
    return [cost.float().mean().item() for cost in costs]


PLANNED = tuple(
    Winners(study, name, level, goal, smallest=smallest)
    for study, name, goal, smallest in (
        ("digits-searches", "digits-mlp", 0.05, 1),
        ("digits-searches", "digits-cnn", 0.05, 1),
        ("mnist-searches", "mnist-simple-cnn-easier", 0.04, 64),
        ("fc-searches", "mnist-fc-128x3-easier", 0.05, 64),
        ("fc-searches", "fashion-mnist-fc-128x3-easier", 0.14, 64),
    )
    for level in (0.0, 0.9)
)


UNSEEN = Collection(
    "unseen",
    "sets of winners",
    lambda what: f"{workload(what.workload).folder}/{what.algorithm}-{what.sparsity:g}",
    lambda: PLANNED,
    "Train winners again and record their errors on unseen images, into data/unseen/.",
)


# --- folds ----------------------------------------------------------------------------------------

AT_ONCE = 1000  # images


@spec
class Folds(WithSearch):
    """Cross-validation: for each fold of a training set, several networks are trained on all other
    folds and tested on this one.

    The networks of a fold start from different weights and see the images in the same order; each
    fold has different networks.  All train by momentum with the same steps and learning rate.
    seed: for drawing the folds.
    """

    workload: WorkloadName
    networks: Count(100) = 8
    steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 0.01
    momentum: float = 0.9
    folds: Whole(2, 1000) = 10
    seed: NUMBER = 0

    @property
    def cell(self) -> Search:
        """The search that trains the networks of the first fold, except for its images."""
        space = spaces.point(learning_rate=self.learning_rate, momentum=self.momentum)
        budget = {"stop": "budget", "max_steps": self.steps, "space": space}
        return Search(self.workload, self.batch_size, trials=self.networks, **budget)

    def parts(self, images: int) -> list[np.ndarray]:
        """The images of every fold, as indices into the training set: each in one fold; the sizes
        of folds differ by one at most.
        """
        return np.array_split(np.random.default_rng(self.seed).permutation(images), self.folds)

    def measure(self) -> pd.DataFrame:
        """A row per image that some network got wrong: image (index in the canonical training set),
        wrong (number of networks that did).
        """
        from lib.measuring.rerun import Rerun  # imports PyTorch; most chapters only read

        images, _ = datasets.canonical(workload(self.workload).dataset)

        def part(rows: np.ndarray) -> datasets.Split:
            return datasets.Split(images.x[rows], images.y[rows])

        wrong = np.zeros(len(images), int)
        for number, fold in enumerate(self.parts(len(images))):
            training = part(np.setdiff1d(np.arange(len(images)), fold))
            rerun = Rerun(replace(self.cell, replicate=number), training=training)
            for _ in range(self.steps):
                rerun.update()
            for rows in np.split(fold, range(AT_ONCE, len(fold), AT_ONCE)):
                wrong[rows] = rerun.costs(part(rows)).sum(0).numpy()
        (missed,) = wrong.nonzero()
        return pd.DataFrame({"image": missed, "wrong": wrong[missed]})


# Just as good as the trials that meet the hardest goals of these workloads.
PLANNED_FOLDS = (Folds("mnist-fc-128x3"), Folds("mnist-simple-cnn", networks=2, steps=1250))


FOLDS = Collection(
    "folds",
    "sets",
    "{0.workload}".format,
    lambda: PLANNED_FOLDS,
    "Record which training images networks get wrong without training on them, into data/folds/.",
)

DRAWS = 10_000


def shares(rows: pd.DataFrame, name: str) -> np.ndarray:
    """The share of networks that got each image of the training set wrong [N], from one workload's
    rows of FOLDS.
    """
    rows = rows[rows.workload == name]
    share = np.zeros(datasets.whole_size(workload(name).dataset))
    share[rows.image] = rows.wrong / rows.networks
    return share


def drawn(share: np.ndarray) -> np.ndarray:
    """The errors on random draws of a tenth of the images [DRAWS]; share [N]: as from `shares`.

    How many images of each share a draw holds is multivariate hypergeometric, so no images need to
    be drawn.
    """
    levels, counts = np.unique(share, return_counts=True)
    size, random = len(share) // 10, np.random.default_rng(0)
    draws = random.multivariate_hypergeometric(counts, size, DRAWS, method="marginals")
    return draws @ levels / size
