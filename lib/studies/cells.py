"""Cells: the unit that is trained, cached and resumed."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator

from lib import require
from lib.engine.vocabulary import CHECKS, METHODS, RUNGS
from lib.fields import PART, Count, Number, Whole, spec
from lib.messages.settings import Messages
from lib.methods import MethodName, late, method, spaces
from lib.own import TRAINING
from lib.workloads import datasets
from lib.workloads.catalogue import Workload, WorkloadName, workload

SPLITS = 9999  # the largest number of a replicate and of a split
TRIALS = Count(4096)
NUMBER = Whole(0, SPLITS)
RACE = Number("[1, inf)", "a number from 1")
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
    """Whether trials are trained one after the other, by `lib.engine.trainings`."""
    return work.task == TRAINING or method(algorithm).optimiser is not None


def _messages(given: object) -> object:
    """Messages, of the fields that records hold."""
    return Messages(**given) if isinstance(given, dict) else given


@spec
class Cell:
    """The unit that is run, cached and resumed.  Raises ValueError naming the field, its value and
    what is allowed.

    stop, hits: see `lib.engine.lockstep`; checks: see `lib.engine.vocabulary`.  precision,
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

    workload: WorkloadName
    batch_size: int
    algorithm: MethodName = "momentum"
    sparsity: PART = 0.0
    pruning: Literal[*METHODS] = "connection-sensitivity"
    trials: TRIALS = 100
    replicate: NUMBER = 0
    stop: Literal["goal", "budget"] = "goal"
    checks: Literal[*CHECKS] = "geometric"
    hits: TRIALS = 5
    precision: Literal[None, "float32", "bfloat16"] = None
    max_steps: Count(10**8) | None = None
    space: str | None = None
    label_smoothing: PART = 0.0
    messages: Annotated[
        Messages | None, BeforeValidator(_messages), "None, a Messages or its fields"
    ] = None
    split: NUMBER = 0
    race: RACE | None = None
    staleness: Whole(0, late.MOST) = 0
    delays: Literal[*late.DELAYS] = "fixed"
    rungs: Literal[*RUNGS] = "goals"

    def __post_init__(self):
        for field, fine, allowed in self._rules():
            require(fine, field, getattr(self, field), allowed)
        self._check_alone(self.work)
        if self.space is not None:
            spaces.parse(self.space, self.algorithm, self.work.decay)

    def _rules(self) -> tuple[tuple[str, bool, str], ...]:
        """What depends on several fields: a field, whether it fits the others, and what would."""
        work, size, late_by = self.work, self.batch_size, self.staleness
        messages, workers = self.messages, self.messages.workers if self.messages else 1
        most = work.train_size
        own = method(self.algorithm).gradient is not None
        here = f"with {self.algorithm}, which takes gradients of its own"
        examples = f"({self.workload} has {most} training examples)"
        drawn, one_split = not self.split, work.dataset in datasets.IMAGES_OF
        return (
            ("batch_size", 1 <= size <= most, f"a whole number from 1 to {most} {examples}"),
            ("batch_size", size % workers == 0, f"a multiple of messages.workers ({workers})"),
            (
                "messages",
                not (messages and messages.by_layer and self.sparsity),
                "without by_layer for a sparse network",
            ),
            ("messages", not (messages and own), f"None {here}"),
            ("staleness", not (late_by and own), f"0 {here}"),
            ("messages", not (messages and late_by), f"None with staleness {late_by}"),
            ("delays", late_by > 0 or self.delays == "fixed", "'fixed' with staleness 0"),
            (
                "race",
                self.race is None or self.stop == "goal",
                f"None with stop {self.stop!r}, where every trial goes on",
            ),
            ("rungs", self.race is not None or self.rungs == "goals", "'goals' without a race"),
            (
                "split",
                drawn or not work.source,
                "0 for a workload of your own, which says itself what it is validated on",
            ),
            (
                "split",
                drawn or not one_split,
                f"0 for {self.workload}, whose data set has one split, its authors'",
            ),
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
        """Whether its trials are trained one after the other (`lib.engine.trainings`)."""
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
