"""Tasks: what networks are trained for, and what their answers cost; add a new one to `TASKS`.

PyTorch is slow to import, and most chapters only read records, so functions import it themselves.
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
    """A task as the engine, own workloads and pages use it; trained by cross-entropy, in nats.

    Logits are [T, B, classes] for T trials and B examples, targets [B]; or [T, B, L, classes] and
    [B, L] if an example has L answers, such as the next token at each of its places.

    Attributes:
        measure: the mean cost of the validation examples, in words, for tables and axes.
        cost(logits, targets): the cost of each example, [T, B], never negative: goals are set for
            its mean over the validation set.
        constant(targets): the least mean cost of an answer that is the same for all examples with
            these targets [N]: a goal that it meets is trivial.
        counted: whether costs are mistakes, whole numbers, which are then counted exactly.
        shown: formats a goal that does not count mistakes, in the units in which goals are set.
        hopeless(goals): training losses above which no trial meets these goals, for races: seen in
            records, not proved.
        objective(outputs, targets): a scalar to minimise instead, for a `lib.own.Training`.
        highest: as in `lib.own.Metric`.
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
        """A recorded goal, as written in a sentence."""
        return f"{100 * goal:g} %" if self.counted else self.shown(self.convert(goal))

    def convert(self, error: float) -> float:
        """The value of the metric that is recorded as this error, and vice versa."""
        return error if self.highest is None else float(f"{self.highest - error:.12g}")

    def loss(self, logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """The loss that training minimises: the mean over a batch, a scalar for autograd, for the
        logits of one trial [B, ..., classes].

        smoothing: the share of the target spread evenly over all classes.
        """
        from torch.nn import functional

        scores = logits.flatten(0, -2)
        return functional.cross_entropy(scores, targets.flatten(), label_smoothing=smoothing)

    def derivative(
        self, logits: Tensor, targets: Tensor, smoothing: float = 0.0, parts: int = 1
    ) -> tuple[Tensor, Tensor]:
        """`loss` and its derivative by hand, for many trials: means over each part of a batch
        [parts, T], and their derivatives by the logits, in the logits' shape.

        On rows this short, the library's kernels would take a fifth of a step.
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
    """The share of examples that are not of the most frequent class."""
    return 1 - int(targets.flatten().bincount().max()) / targets.numel()


def _nats(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy, averaged over each example's answers: float64 [T, B]."""
    log = logits.double().log_softmax(-1)
    nats = -log.gather(-1, targets.expand(log.shape[:-1])[..., None])[..., 0]
    return nats.flatten(2).mean(2) if targets.dim() > 1 else nats


def _entropy(targets: Tensor) -> float:
    """The entropy of the classes' shares, in nats."""
    counts = targets.flatten().bincount().double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())


TASKS = {
    # When a goal is met, the loss is 2 to 5 nats per unit of error, and above 14 only in trials
    # that had almost diverged before
    "classification": Task(
        "validation error", _mistakes, _rarer, counted=True, hopeless=lambda goals: 16 * goals
    ),
    # A network is seldom better on new examples than on its training examples
    "cross-entropy": Task(
        "validation cross-entropy, nats",
        _nats,
        _entropy,
        shown="{:g} nats".format,
        hopeless=lambda goals: goals + 0.5,
    ),
}
