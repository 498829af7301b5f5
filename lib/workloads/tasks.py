"""Tasks: what a network is asked for, and what its answers cost.  A new kind of workload is one
class and a line in `TASKS`.

PyTorch is slow to import, and most chapters only read records: functions import it themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


class Task:
    """What the engine, own workloads and pages know of a task; trained by cross-entropy, in nats.

    Logits are [T, B, classes] for T trials and B examples, targets [B]; or [T, B, L, classes] and
    [B, L] where an example asks for L answers, such as the next token at each of its places.

    Attributes:
        measure: the mean cost of the validation examples, in words, as tables and axes name it.
        counted: whether costs are whole numbers, which are then counted exactly.
        cost(logits, targets): what each example costs, [T, B], never below zero: goals are set for
            its mean over the validation set.
        constant(targets): the least mean cost of an answer that is the same for all examples, whose
            targets [N] these are: a goal that it meets asks for nothing.
        hopeless(goals): training losses above which nobody meets these goals, for races: found on
            record, not proved.
        written(goal): a goal as a sentence has it.
    """

    measure: str
    counted: bool
    cost: Callable[[Tensor, Tensor], Tensor]
    constant: Callable[[Tensor], float]
    hopeless: Callable[[np.ndarray], np.ndarray]
    written: Callable[[float], str]

    def given(self, error: float) -> float:
        """A cost as whoever sets goals gives it: as it is (`lib.workloads.kinds.Kind`)."""
        return error

    def loss(self, logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """What training minimises: the mean over a batch, a scalar for autograd, for the logits of
        one trial [B, ..., classes].

        smoothing: the share of the target spread evenly over all classes.
        """
        from torch.nn import functional

        logits = logits.flatten(0, -2)
        targets = targets.flatten()
        return functional.cross_entropy(logits, targets, label_smoothing=smoothing)

    def derivative(
        self, logits: Tensor, targets: Tensor, smoothing: float = 0.0, parts: int = 1
    ) -> tuple[Tensor, Tensor]:
        """The same by hand for many trials: means over each part of a batch [parts, T], and their
        derivatives by the logits, in their shape.

        On rows this short the library's kernels cost a fifth of a step.
        """
        import torch
        from torch.nn import functional

        classes = logits.shape[-1]
        y = targets.flatten()
        shifted = logits.float().flatten(1, -2)
        shifted = shifted - shifted.amax(2, keepdim=True)
        powers = shifted.exp()
        total = powers.sum(2, keepdim=True)
        wanted = functional.one_hot(y, classes)
        if smoothing:
            wanted = wanted * (1 - smoothing) + smoothing / classes
            right = (shifted * wanted).sum(2)
        else:
            right = shifted[:, torch.arange(len(y), device=y.device), y]
        nats = total.log()[..., 0] - right
        derivative = powers.div_(total).sub_(wanted).div_(len(y) // parts)
        return nats.unflatten(1, (parts, -1)).mean(2).T, derivative.view(logits.shape)


class Classification(Task):
    """One class an example; goals are shares of mistakes."""

    measure = "validation error"
    counted = True

    def cost(self, logits: Tensor, targets: Tensor) -> Tensor:
        """1 for a mistake, else 0: bool [T, B]."""
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


class CrossEntropy(Task):
    """One class an answer; goals are nats of cross-entropy, of an example's answers the mean."""

    measure = "validation cross-entropy, nats"
    counted = False

    def cost(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Nats, float64 [T, B]."""
        log = logits.double().log_softmax(-1)
        nats = -log.gather(-1, targets.expand(log.shape[:-1])[..., None])[..., 0]
        return nats.flatten(2).mean(2) if targets.dim() > 1 else nats

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
