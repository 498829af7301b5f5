"""Cells: the unit that is trained, cached and resumed."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from lib import require, require_number, require_whole
from lib.engine.vocabulary import METHODS, RUNGS
from lib.messages.settings import Messages
from lib.methods import late, method, spaces
from lib.own import TRAINING
from lib.workloads import datasets
from lib.workloads.catalogue import Workload, workload

SPLITS = 9999  # the largest number of a replicate and of a split
ONE_OF = {
    "pruning": METHODS,
    "stop": ("goal", "budget"),
    "checks": ("geometric", "every-100"),
    "precision": (None, "float32", "bfloat16"),
    "delays": late.DELAYS,
    "rungs": RUNGS,
}
# What is trained one trial after the other has of these fields
ALONE = {
    "sparsity": 0.0,
    "label_smoothing": 0.0,
    "messages": None,
    "staleness": 0,
    "stop": "goal",
    "race": None,
}


def one_by_one(work: Workload, algorithm: str) -> bool:
    """Whether trials are trained one after the other, by `lib.engine.sequential`."""
    return work.task == TRAINING or method(algorithm).optimiser is not None


@dataclass(frozen=True)
class Cell:
    """The unit that is run, cached and resumed.  Raises ValueError naming the field, its value and
    what is allowed.

    stop, hits: see `lib.engine.lockstep`; checks: see `lib.engine.check_steps`.  precision,
    max_steps and space: None for the workload's own; a space may also be one point
    (`lib.methods.spaces.point`), which every trial then shares. label_smoothing: the share of the
    target spread evenly over all classes.  messages: how the batch is shared among workers, if it
    is; a dictionary will do.  split: which draw of training and validation examples
    (`lib.workloads.datasets.load`).  race: None, or at how many times the steps in which the first
    trial met a goal of the ladder the others that have not are abandoned (`lib.engine.lockstep`;
    with stop "goal" alone).  rungs: of a race, "goals", or "losses" if training losses are rungs,
    too.  staleness, delays: how many steps old the weights are, or may be, at which gradients are
    taken (`lib.methods.late`).
    """

    workload: str
    batch_size: int
    algorithm: str = "momentum"
    sparsity: float = 0.0
    pruning: str = "connection-sensitivity"
    trials: int = 100
    replicate: int = 0
    stop: str = "goal"
    checks: str = "geometric"
    hits: int = 5
    precision: str | None = None
    max_steps: int | None = None
    space: str | None = None
    label_smoothing: float = 0.0
    messages: Messages | None = None
    split: int = 0
    race: float | None = None
    staleness: int = 0
    delays: str = "fixed"
    rungs: str = "goals"

    def __post_init__(self):
        work = workload(self.workload)
        object.__setattr__(self, "workload", work.name)
        object.__setattr__(self, "algorithm", method(self.algorithm).name)
        examples = work.train_size
        if isinstance(self.messages, dict):  # as records hold it
            known = [f.name for f in dataclasses.fields(Messages)]
            require(
                set(self.messages) <= set(known),
                "messages",
                self.messages,
                "of the fields " + ", ".join(known),
            )
            object.__setattr__(self, "messages", Messages(**self.messages))
        require(
            isinstance(self.messages, Messages | None),
            "messages",
            self.messages,
            "None, a Messages or its fields",
        )
        for field, allowed in ONE_OF.items():
            require(getattr(self, field) in allowed, field, getattr(self, field), allowed)
        for field in ("sparsity", "label_smoothing"):
            require_number(
                field, getattr(self, field), lambda share: 0 <= share < 1, "a number in [0, 1)"
            )
        require_whole(
            "batch_size",
            self.batch_size,
            1,
            examples,
            f" ({self.workload} has {examples} training examples)",
        )
        for field, most in (("trials", 4096), ("hits", 4096), ("max_steps", 10**8)):
            if field != "max_steps" or self.max_steps is not None:
                require_whole(field, getattr(self, field), 1, most)
        if self.messages:
            workers = self.messages.workers
            shared = self.batch_size % workers == 0
            require(
                shared, "batch_size", self.batch_size, f"a multiple of messages.workers ({workers})"
            )
            whole_net = not self.messages.by_layer or self.sparsity == 0
            require(whole_net, "messages.by_layer", True, "False for a sparse network")
            here = method(self.algorithm).gradient is None
            require(
                here,
                "messages",
                self.messages,
                f"None with {self.algorithm}, which takes gradients of its own",
            )
        require_whole("staleness", self.staleness, 0, late.MOST)
        if self.staleness:
            here = method(self.algorithm).gradient is None
            require(
                here,
                "staleness",
                self.staleness,
                f"0 with {self.algorithm}, which takes gradients of its own",
            )
            require(
                self.messages is None,
                "messages",
                self.messages,
                f"None with staleness {self.staleness}",
            )
        told = self.staleness > 0 or self.delays == "fixed"
        require(told, "delays", self.delays, "'fixed' with staleness 0")
        if self.space is not None:
            spaces.parse(self.space, self.algorithm, work.decay)
        for field in ("replicate", "split"):
            require_whole(field, getattr(self, field), 0, SPLITS)
        if self.race is not None:
            require_number(
                "race", self.race, lambda a: 1 <= a < math.inf, "None or a number from 1"
            )
            object.__setattr__(self, "race", float(self.race))
            require(
                self.stop == "goal",
                "race",
                self.race,
                f"None with stop {self.stop!r}, where every trial goes on",
            )
        require(
            self.race is not None or self.rungs == "goals",
            "rungs",
            self.rungs,
            "'goals' without a race",
        )
        self._check_alone(work)
        mine = self.split == 0 or not work.source
        require(
            mine,
            "split",
            self.split,
            "0 for a workload of your own, which says itself what it is validated on",
        )
        theirs = self.split == 0 or work.dataset not in datasets.IMAGES_OF
        require(
            theirs,
            "split",
            self.split,
            f"0 for {self.workload}, whose data set has one split, its authors'",
        )

    def _check_alone(self, work: Workload) -> None:
        """Whatever is trained one trial after the other is dense, whole and trained to its goal."""
        if not one_by_one(work, self.algorithm):
            return
        trained = method(self.algorithm)
        why = f"of a lib.own.Training or a class of torch.optim, as {self.workload} with "
        why += f"{self.algorithm} is"
        for field, usual in ALONE.items():
            value = getattr(self, field)
            require(value == usual, field, value, f"{usual!r} {why}")
        plain = trained.gradient is None and trained.evaluated is None
        allowed = (
            f"one that steps from plain gradients, such as momentum or torch.optim:AdamW, {why}"
        )
        require(plain, "algorithm", self.algorithm, allowed)

    @property
    def alone(self) -> bool:
        """Whether its trials are trained one after the other (`lib.engine.sequential`)."""
        return one_by_one(self.work, self.algorithm)

    @property
    def work(self) -> Workload:
        """The workload; not kept, since a reader's own is whatever its file says now."""
        return workload(self.workload)

    def draw(self) -> dict[str, np.ndarray]:
        """The hyperparameters of all trials: name -> [trials]."""
        space = self.space or self.work.space
        return spaces.draw(
            space, self.algorithm, self.trials, decay=self.work.decay, replicate=self.replicate
        )

    @property
    def arithmetic(self) -> str:
        """Its own precision, or else the workload's."""
        return self.precision or self.work.precision

    def definition(self) -> dict:
        """What the digest depends on besides the fields: the workload's, so that changing one mixes
        nothing.
        """
        work = self.work
        parts = ("dataset", "model", "goals", "decay", "max_steps", "precision", "space")
        # With what they were before there were others
        added = {
            "source": "",
            "examples": None,
            "task": "classification",
        }
        found = {
            k: getattr(work, k)
            for k in (*parts, *(k for k, usual in added.items() if getattr(work, k) != usual))
        }
        source = method(self.algorithm).source
        return {**found, "method": source} if source else found
