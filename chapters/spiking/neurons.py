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


class Fire(torch.autograd.Function):
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


class InTime(nn.Module):
    """A layer that knows how many time steps an example has; they follow each other in a batch
    [B * time, ...], so that all other layers take them for examples.
    """

    def __init__(self, time: int, leak: float = LEAK, resets: bool = True):
        super().__init__()
        self.time = time
        self.neuron = leak, resets


class Steady(InTime):
    """The same input at every time step: [B, ...] -> [B * time, ...]."""

    def forward(self, h: Tensor) -> Tensor:
        return h[:, None].expand(-1, self.time, *h.shape[1:]).flatten(0, 1)


class Spiking(InTime):
    """Neurons: inputs [B * time, ...] -> spikes, 0 or 1, of the same shape."""

    def forward(self, h: Tensor) -> Tensor:
        given = h.unflatten(0, (-1, self.time)).flatten(2)
        return Fire.apply(given, *self.neuron).reshape(h.shape)


class Rates(InTime):
    """Spikes [B * time, ...] -> their means over time [B, ...]."""

    def forward(self, h: Tensor) -> Tensor:
        return h.unflatten(0, (-1, self.time)).mean(1)


def _in_time(run: batched.Pass, layer: InTime, h: Tensor) -> Tensor:
    """The layer for all trials, which come before the examples."""
    return layer(h.flatten(0, 1)).unflatten(0, (len(h), -1))


batched.RULES |= dict.fromkeys((Steady, Spiking, Rates), _in_time)


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
        before, after = [nn.Flatten()], []
    else:
        one, two = CHANNELS
        first, second = nn.Conv2d(1, one, 3, stride=2, padding=1), nn.Conv2d(one, two, 3)
        before, after = [], [nn.Flatten()]
    last = nn.Linear(WIDTH, CLASSES)
    if not time:
        return nn.Sequential(*before, first, nn.ReLU(), second, nn.ReLU(), *after, last)
    fire, again = (Spiking(time, leak, resets) for _ in range(2))
    hidden = first, Steady(time), fire, second, again, Rates(time)
    return nn.Sequential(*before, *hidden, *after, last)


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
            on.append((h.flatten(1) > 0).float())
    means = [layer.mean(0) for layer in on]
    both = torch.cat(means)
    return float(both.mean()), float((both == 0).float().mean()), float(means[0].mean())
