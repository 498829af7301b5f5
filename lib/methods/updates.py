"""Update rules and learning-rate schedules for a stack of trials, one row each."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.no_grad()
def update(algorithm: str, w: Tensor, v: Tensor, g: Tensor, rate: Tensor, momentum: Tensor) -> None:
    """One step in place (Lee et al. 2021, Shallue et al. 2019; TensorFlow's and PyTorch's common form).

    w, v, g: weights, velocities, gradients [trials, P]; rate, momentum: [trials, 1].
    SGD: w -= rate g.  Momentum: v = momentum v + g; w -= rate v.  Nesterov: v as before; w -= rate (g + momentum v).
    """
    if algorithm == "sgd":
        w.addcmul_(g, rate, value=-1)
        return
    torch.addcmul(g, v, momentum, out=v)
    w.addcmul_(v if algorithm == "momentum" else torch.addcmul(g, v, momentum), rate, value=-1)


def drift(algorithm: str, v: Tensor, rate: Tensor, momentum: Tensor) -> Tensor:
    """Where the weights will have moved in the limit if every later gradient is zero: [trials, P].

    The way there is a straight line walked in one direction, since v only shrinks by its factor.
    """
    if algorithm == "sgd":
        return torch.zeros_like(v)
    ahead = momentum / (1 - momentum) * (1 if algorithm == "momentum" else momentum)
    return -rate * ahead * v


def decayed(rate: Tensor, step: int, decay_steps: Tensor | None, end_factor: Tensor | None) -> Tensor:
    """Learning rate before update number `step` (from 0): linear down to end_factor x rate, then flat; or constant.

    rate, decay_steps, end_factor: [trials, 1] (Shallue et al. 2019, section 4; Lee et al. 2021, CIFAR-10).
    """
    if decay_steps is None:
        return rate
    return rate * (1 - (1 - end_factor) * (step / decay_steps).clamp(max=1))
