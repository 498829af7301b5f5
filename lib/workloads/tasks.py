"""Tasks: what a network is asked for, and what its answers cost.  A new kind of workload is one
class and a line in `TASKS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


class Task(Protocol):
    """What the engine, own workloads and pages know of a task.

    Logits are [T, B, classes] for T trials and B examples, targets [B]; or [T, B, L, classes] and
    [B, L] where an example asks for L answers, such as the next token at each of its places. unit:
    of a cost.  measure: the mean cost of the validation examples, in words, as tables and axes name
    it. counted: whether costs are whole numbers, which are then counted exactly.  below: goals are
    in [0, below).
    """

    unit: str
    measure: str
    counted: bool
    below: float

    def loss(self, logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """What training minimises: the mean over a batch, a scalar for autograd, for the logits of
        one trial [B, ...].

        smoothing: the share of the target spread evenly over all classes.
        """

    def derivative(
        self, logits: Tensor, targets: Tensor, smoothing: float = 0.0, parts: int = 1
    ) -> tuple[Tensor, Tensor]:
        """The same by hand for many trials: means over each part of a batch [parts, T], and their
        derivatives by the logits.
        """

    def cost(self, logits: Tensor, targets: Tensor) -> Tensor:
        """What each example costs, [T, B], never below zero: goals are set for its mean over the
        validation set.
        """

    def constant(self, targets: Tensor) -> float:
        """The least mean cost of an answer that is the same for all examples, whose targets [N]
        these are: a goal that it meets asks for nothing.
        """

    def hopeless(self, goals: np.ndarray) -> np.ndarray:
        """Training losses above which nobody meets these goals, for races: found on record, not
        proved.
        """

    def written(self, goal: float) -> str:
        """A goal as a sentence has it."""


class _Softmax:
    """The training loss of tasks that ask for one of several classes: cross-entropy."""

    def loss(self, logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        # Brings PyTorch, which is slow to import, and most chapters only read records
        from lib.workloads import (
            losses,
        )

        return losses.mean_cross_entropy(logits, targets, smoothing)

    def derivative(
        self, logits: Tensor, targets: Tensor, smoothing: float = 0.0, parts: int = 1
    ) -> tuple[Tensor, Tensor]:
        from lib.workloads import losses

        return losses.cross_entropy(logits, targets, smoothing, parts)


class Classification(_Softmax):
    """One class an example; goals are shares of mistakes."""

    unit = "mistakes"
    measure = "validation error"
    counted = True
    below = 1.0

    def cost(self, logits: Tensor, targets: Tensor) -> Tensor:
        """1 for a mistake, else 0: bool [T, B] for logits [T, B, classes], targets [B]."""
        return logits.argmax(-1) != targets

    def constant(self, targets: Tensor) -> float:
        """The share of the examples that are not of the most frequent class."""
        return 1 - int(targets.flatten().bincount().max()) / targets.numel()

    def hopeless(self, goals: np.ndarray) -> np.ndarray:
        """16 nats per unit of error: at a goal it is 2 to 5, and beyond 14 in trials alone that had
        all but diverged before.
        """
        return 16 * goals

    def written(self, goal: float) -> str:
        return f"{100 * goal:g} %"


class CrossEntropy(_Softmax):
    """One class an answer; goals are nats of cross-entropy, of an example's answers the mean."""

    unit = "nats"
    measure = "validation cross-entropy, nats"
    counted = False
    below = float("inf")

    def cost(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Nats, float64 [T, B]."""
        from lib.workloads import losses

        each = losses.nats(logits, targets)
        return each.flatten(2).mean(2) if targets.dim() > 1 else each

    def constant(self, targets: Tensor) -> float:
        """The entropy of the classes' shares, in nats."""
        counts = targets.flatten().bincount().double()
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * shares.log()).sum())

    def hopeless(self, goals: np.ndarray) -> np.ndarray:
        """Half a nat above them: a network is seldom better at new examples than at those that it
        trains on.
        """
        return goals + 0.5

    def written(self, goal: float) -> str:
        return f"{goal:g} nats"


TASKS: dict[str, Task] = {"classification": Classification(), "cross-entropy": CrossEntropy()}
