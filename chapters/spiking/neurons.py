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
    """The same input at every time step: [..., features] -> [..., time, features]."""

    def __init__(self, time: int):
        super().__init__()
        self.time = time

    def forward(self, h: Tensor) -> Tensor:
        return h[..., None, :].expand(*h.shape[:-1], self.time, h.shape[-1])


class Spiking(nn.Module):
    """Neurons: inputs [..., time, units] -> spikes, 0 or 1, of the same shape."""

    def __init__(self, leak: float = LEAK, resets: bool = True):
        super().__init__()
        self.leak = leak
        self.resets = resets

    def forward(self, h: Tensor) -> Tensor:
        return _Fire.apply(h, self.leak, self.resets)


class Rates(nn.Module):
    """Spikes [..., time, units] -> their means over time [..., units]."""

    def forward(self, h: Tensor) -> Tensor:
        return h.mean(-2)


def _plain(run: batched.Pass, layer: nn.Module, h: Tensor) -> Tensor:
    return layer(h)


batched.RULES |= dict.fromkeys((Steady, Spiking, Rates), _plain)


def network(time: int, leak: float = LEAK, resets: bool = True) -> nn.Sequential:
    """Two hidden layers: [B, 1, 8, 8] -> [B, 10]; time: steps of spiking neurons, 0 for ReLU.

    The first layer's inputs are steady currents; the last layer reads the second's rates.
    """
    sizes = [nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)]
    first, second, last = sizes
    if not time:
        return nn.Sequential(nn.Flatten(), first, nn.ReLU(), second, nn.ReLU(), last)
    fire = Spiking(leak, resets)
    parts = (nn.Flatten(), first, Steady(time), fire, second, Spiking(leak, resets), Rates(), last)
    return nn.Sequential(*parts)


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
            on.append((h > 0).float().flatten(0, -2))
    means = [layer.mean(0) for layer in on]
    both = torch.cat(means)
    return float(both.mean()), float((both == 0).float().mean()), float(means[0].mean())
