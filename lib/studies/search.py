"""Searches: the unit that is trained, cached and resumed."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator

from lib import require
from lib.engine.vocabulary import CHECKS, OF_ANY, PRUNINGS, RUNGS
from lib.fields import PART, Count, Number, Whole, spec
from lib.messages import Messages
from lib.methods import MethodName, method, spaces, variants
from lib.methods.method import Method
from lib.workloads.catalogue import Workload, WorkloadName, workload

SPLITS = 9999  # the largest number of a replicate and of a split
TRIALS = Count(4096)
NUMBER = Whole(0, SPLITS)
# Also accepts a dictionary of fields, as records hold it
MESSAGES = Annotated[
    Messages | None, BeforeValidator(lambda v: Messages(**v) if isinstance(v, dict) else v)
]
# Must be at their defaults if trials are trained one after another
ALONE = "label_smoothing messages staleness stop race"
# Fields in which searches of the book's curves differ; all others are usually at their defaults
VARIED = {
    *"workload batch_size algorithm sparsity trials replicate split hits race rungs".split()
}


@spec
class Search:
    """The unit that is run, cached and resumed.  Raises ValueError naming the field, its value and
    what is allowed.

    Attributes:
        stop, hits: as in `lib.engine.lockstep`.
        checks: as in `lib.engine.vocabulary`.
        precision, max_steps, space: None for the workload's; a space may also be a single point
            (`lib.methods.spaces.point`), which every trial then shares.
        label_smoothing: the share of the target spread evenly over all classes.
        messages: how workers share the batch, if they do.
        split: which draw of training and validation examples (`lib.workloads.datasets.load`).
        race: None, or the factor of early stopping, with stop "goal": trials that take so many
            times the steps of the first to a goal are abandoned (`lib.engine.lockstep`).
        rungs: of a race, "goals", or "losses" if training losses are rungs, too.
        staleness, delays: how old, in steps, the weights are, or may be, at which gradients are
            taken (`lib.methods.variants`).
    """

    workload: WorkloadName
    batch_size: int
    algorithm: MethodName = "momentum"
    sparsity: PART = 0.0
    pruning: Literal[*PRUNINGS] = "connection-sensitivity"
    trials: TRIALS = 100
    replicate: NUMBER = 0
    stop: Literal["goal", "budget"] = "goal"
    checks: Literal[*CHECKS] = "geometric"
    hits: TRIALS = 5
    precision: Literal[None, "float32", "bfloat16"] = None
    max_steps: Count(10**8) | None = None
    space: str | None = None
    label_smoothing: PART = 0.0
    messages: MESSAGES = None
    split: NUMBER = 0
    race: Number("[1, inf)") | None = None
    staleness: Whole(0, variants.MOST) = 0
    delays: Literal[*variants.DELAYS] = "fixed"
    rungs: Literal[*RUNGS] = "goals"

    def __post_init__(self):
        size, most = self.batch_size, self.work.train_size
        workers = self.messages.workers if self.messages else 1
        allowed = f"from 1 to {most} ({self.workload} has {most} training examples)"
        require(1 <= size <= most, "batch_size", size, f"a whole number {allowed}")
        allowed = f"a multiple of messages.workers ({workers})"
        require(size % workers == 0, "batch_size", size, allowed)
        for holds, names, why in self._bound():
            for name in names.split() if holds else ():
                value, default = getattr(self, name), self.__dataclass_fields__[name].default
                require(value == default, name, value, f"{default!r} {why}")
        plain = self.method.gradient is None and self.method.evaluated is None
        allowed = "one that uses plain gradients, such as momentum or torch.optim:AdamW"
        require(plain or not self.alone, "algorithm", self.algorithm, allowed)
        decays = self.alone and self.work.decay
        require(not decays, "algorithm", self.algorithm, "of the book where rates decay")
        if self.space is not None:
            spaces.intervals(self.space, self.algorithm, self.work.decay)

    def __getstate__(self) -> dict:
        """Only its fields: methods hold functions, so another process resolves them anew."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def work(self) -> Workload:
        """The workload; a reader's own is as its file was when the search was created."""
        return workload(self.workload)

    @cached_property
    def method(self) -> Method:
        """The training method; a reader's own likewise."""
        return method(self.algorithm)

    def _bound(self) -> tuple[tuple[object, str, str], ...]:
        """Fields that others force to their defaults: whether, which, and why."""
        name = f"{self.workload} with {self.algorithm}"
        own_gradients = f"for {name}, which computes gradients itself"
        split_once = f"for {self.workload}, whose examples have only one split"
        by_itself = f"for {name}, whose trials are trained one by one"
        to_budget = f"with stop {self.stop!r}, which ends no trial early"
        return (
            (self.messages and self.messages.by_layer, "sparsity", "with messages by layer"),
            (self.method.gradient, "messages staleness", own_gradients),
            (self.staleness, "messages", f"with staleness {self.staleness}"),
            (not self.staleness, "delays", "with staleness 0"),
            (self.stop != "goal", "race", to_budget),
            (self.race is None, "rungs", "without a race"),
            (not self.work.has_splits, "split", split_once),
            (self.alone, ALONE, by_itself),
            (self.alone and self.pruning not in OF_ANY, "pruning", by_itself),
        )

    def is_usual(self, *free: str) -> bool:
        """Whether all fields but VARIED and `free` are at their defaults; a limit of steps above
        the workload's counts as its default.
        """
        beyond = {"max_steps"} if (self.max_steps or 0) > self.work.max_steps else set()
        others = self.__dataclass_fields__.keys() - VARIED - {*free} - beyond
        return all(getattr(self, n) == self.__dataclass_fields__[n].default for n in others)

    @property
    def alone(self) -> bool:
        """Whether its trials are trained one after another (`lib.engine.trainings`)."""
        return self.work.alone or self.method.optimiser is not None

    def draw(self) -> dict[str, np.ndarray]:
        """The hyperparameters of all trials: name -> [trials]."""
        space, decay = self.space or self.work.space, self.work.decay
        return spaces.draw(
            space, self.algorithm, self.trials, decay=decay, replicate=self.replicate
        )

    @property
    def arithmetic(self) -> str:
        """Its own precision, or else the workload's."""
        return self.precision or self.work.precision

    def definition(self) -> dict:
        """What the digest depends on besides the fields: the workload's fields, so that records
        from before and after a change of the workload never mix.
        """
        names = "dataset model goals decay max_steps precision space".split()
        # With the values they had before others were introduced
        added = {"source": "", "examples": None, "task": "classification"}
        names += [name for name, first in added.items() if getattr(self.work, name) != first]
        source = {"method": self.method.source} if self.method.source else {}
        return source | {name: getattr(self.work, name) for name in names}
