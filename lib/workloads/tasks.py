"""Tasks: what a network is asked for, and what its answers cost; a new one is an entry in `TASKS`.

PyTorch is slow to import, and most chapters only read records: functions import it themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


@dataclass(frozen=True)
class Task:
    """What the engine, own workloads and pages know of a task; trained by cross-entropy, in nats.

    Logits are [T, B, classes] for T trials and B examples, targets [B]; or [T, B, L, classes] and
    [B, L] where an example asks for L answers, such as the next token at each of its places.

    Attributes:
        measure: the mean cost of the validation examples, in words, as tables and axes name it.
        cost(logits, targets): what each example costs, [T, B], never below zero: goals are set for
            its mean over the validation set.
        constant(targets): the least mean cost of an answer that is the same for all examples, whose
            targets [N] these are: a goal that it meets asks for nothing.
        counted: whether costs are mistakes, whole numbers, which are then counted exactly.
        shown: how a sentence has a goal that is none of mistakes, as whoever sets goals gives it.
        hopeless(goals): training losses above which nobody meets these goals, for races: found on
            record, not proved.
        objective(outputs, targets): a scalar that is minimised instead, of a `lib.own.Training`.
        highest: as of `lib.own.Metric`.
    """

    measure: str
    cost: Callable[[Tensor, Tensor], Tensor] | None = None
    constant: Callable[[Tensor], float] | None = None
    counted: bool = False
    shown: Callable[[float], str] = "{:g}".format
    hopeless: Callable[[np.ndarray], np.ndarray] | None = None
    objective: Callable[[Tensor, Tensor], Tensor] | None = None
    highest: float | None = None

    def written(self, goal: float) -> str:
        """A goal on record as a sentence has it."""
        return f"{100 * goal:g} %" if self.counted else self.shown(self.given(goal))

    def given(self, error: float) -> float:
        """The value of the metric that is on record as this error, and the other way round."""
        return error if self.highest is None else float(f"{self.highest - error:.12g}")

    def loss(self, logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """What training minimises: the mean over a batch, a scalar for autograd, for the logits of
        one trial [B, ..., classes].

        smoothing: the share of the target spread evenly over all classes.
        """
        from torch.nn import functional

        scores = logits.flatten(0, -2)
        return functional.cross_entropy(scores, targets.flatten(), label_smoothing=smoothing)

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
        means = nats.unflatten(1, (parts, -1)).mean(2).T
        return means, derivative.view(logits.shape)


def _mistakes(logits: Tensor, targets: Tensor) -> Tensor:
    """1 for a mistake, else 0: bool [T, B]."""
    return logits.argmax(-1) != targets


def _rarer(targets: Tensor) -> float:
    """The share of the examples that are not of the most frequent class."""
    return 1 - int(targets.flatten().bincount().max()) / targets.numel()


def _nats(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy, of an example's answers the mean: float64 [T, B]."""
    log = logits.double().log_softmax(-1)
    nats = -log.gather(-1, targets.expand(log.shape[:-1])[..., None])[..., 0]
    return nats.flatten(2).mean(2) if targets.dim() > 1 else nats


def _entropy(targets: Tensor) -> float:
    """The entropy of the classes' shares, in nats."""
    counts = targets.flatten().bincount().double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())


TASKS = {
    # At a goal, a loss is 2 to 5 nats per unit of error, and beyond 14 in trials alone that had
    # all but diverged before
    "classification": Task(
        "validation error", _mistakes, _rarer, counted=True, hopeless=lambda goals: 16 * goals
    ),
    # A network is seldom better at new examples than at those that it trains on
    "cross-entropy": Task(
        "validation cross-entropy, nats",
        _nats,
        _entropy,
        shown="{:g} nats".format,
        hopeless=lambda goals: goals + 0.5,
    ),
}
