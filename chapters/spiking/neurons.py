"""Leaky integrate-and-fire neurons, as layers that the engine trains for all trials at once.

A neuron's potential leaks, takes up its input and, a step after a spike, is lowered by the
threshold:

    u[t] = leak u[t - 1] + input[t] - threshold s[t - 1],    s[t] = 1 if u[t] > threshold else 0.

Gradients pass a spike by the derivative of a fast sigmoid, 1 / (1 + slope |u - threshold|)², and
the reset not at all, as in snnTorch.  Neurons of a layer do not see each other, so a layer is
computed for all time steps before the next one.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lib.engine import batched

LEAK, THRESHOLD, SLOPE = 0.9, 1.0, 25.0  # the last as in snnTorch
INPUTS, WIDTH, CLASSES = 64, 64, 10
CHANNELS = (8, 16)


class _Fire(torch.autograd.Function):
    """Inputs [..., time, units] -> spikes of the same shape."""

    @staticmethod
    def forward(ctx, given: Tensor, leak: float, resets: bool) -> Tensor:
        above, spikes = torch.empty_like(given), torch.empty_like(given)
        u = torch.zeros_like(given[..., 0, :])
        spike = torch.zeros_like(u)
        for t in range(given.shape[-2]):
            u = leak * u + given[..., t, :]
            u = u - THRESHOLD * spike if resets else u
            above[..., t, :] = u - THRESHOLD
            spike = (u > THRESHOLD).to(u.dtype)
            spikes[..., t, :] = spike
        ctx.save_for_backward(above)
        ctx.leak = leak
        return spikes

    @staticmethod
    def backward(ctx, d: Tensor) -> tuple[Tensor, None, None]:
        (above,) = ctx.saved_tensors
        found = d / (1 + SLOPE * above.abs()) ** 2
        for t in reversed(range(found.shape[-2] - 1)):
            found[..., t, :] += ctx.leak * found[..., t + 1, :]
        return found, None, None


class Steady(nn.Module):
    """The same input at every time step: [B, ...] -> [B, time, ...]."""

    def __init__(self, time: int):
        super().__init__()
        self.time = time

    def forward(self, h: Tensor, at: int = 1) -> Tensor:
        """at: where the time steps go."""
        return h.unsqueeze(at).expand(*h.shape[:at], self.time, *h.shape[at:])


class Spiking(nn.Module):
    """Neurons: inputs [B, time, ...] -> spikes, 0 or 1, of the same shape."""

    def __init__(self, leak: float = LEAK, resets: bool = True):
        super().__init__()
        self.leak = leak
        self.resets = resets

    def forward(self, h: Tensor, at: int = 1) -> Tensor:
        """at: where the time steps are."""
        return _Fire.apply(h.flatten(at + 1), self.leak, self.resets).reshape(h.shape)


class Rates(nn.Module):
    """Spikes [B, time, ...] -> their means over time [B, ...]."""

    def forward(self, h: Tensor, at: int = 1) -> Tensor:
        """at: where the time steps are."""
        return h.mean(at)


class EachStep(nn.Module):
    """A layer of images at every time step: [B, time, ...] -> [B, time, ...]."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, h: Tensor) -> Tensor:
        return self.layer(h.flatten(0, 1)).unflatten(0, h.shape[:2])


def _each_step(run: batched.Pass, each: EachStep, h: Tensor) -> Tensor:
    return run(each.layer, h.flatten(1, 2)).unflatten(1, h.shape[1:3])


# Trials come first there, then examples
batched.RULES |= dict.fromkeys((Steady, Spiking, Rates), lambda run, layer, h: layer(h, at=2))
batched.RULES[EachStep] = _each_step


def network(
    time: int, model: str = "mlp", leak: float = LEAK, resets: bool = True
) -> nn.Sequential:
    """Two hidden layers: [B, 1, 8, 8] -> [B, 10].

    The first layer's inputs are steady currents; the last layer reads the second's rates.

    Args:
        time: steps of spiking neurons, 0 for ReLU.
        model: "mlp", or "cnn" of CHANNELS, 3 x 3 kernels and 128 and 64 units.
        leak, resets: of the neurons.
    """
    if model == "mlp":
        first, second = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH)
        before, after, each = [nn.Flatten()], [], second
    else:
        one, two = CHANNELS
        first, second = nn.Conv2d(1, one, 3, stride=2, padding=1), nn.Conv2d(one, two, 3)
        before, after, each = [], [nn.Flatten()], EachStep(second)
    last = nn.Linear(WIDTH, CLASSES)
    if not time:
        return nn.Sequential(*before, first, nn.ReLU(), second, nn.ReLU(), *after, last)
    fire, again = Spiking(leak, resets), Spiking(leak, resets)
    return nn.Sequential(*before, first, Steady(time), fire, each, again, Rates(), *after, last)


@torch.no_grad()
def activity(module: nn.Sequential, x: Tensor) -> tuple[float, float, float]:
    """What the hidden layers of one network do on examples x [N, 1, 8, 8].

    Returns:
        rate: the mean of a unit's spikes a time step, or the share of rectifiers that are on.
        silent: the share of units that no example of x excites.
        second: the first layer's rate alone, which drives the second.
    """
    h, on = x, []
    for layer in module:
        h = layer(h)
        if isinstance(layer, Spiking | nn.ReLU):
            units = h.flatten(2) if isinstance(layer, Spiking) else h.flatten(1)
            on.append((units > 0).float().flatten(0, -2))
    means = [layer.mean(0) for layer in on]
    both = torch.cat(means)
    return float(both.mean()), float((both == 0).float().mean()), float(means[0].mean())
