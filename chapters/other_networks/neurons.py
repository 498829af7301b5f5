"""Leaky integrate-and-fire neurons, as layers that the engine trains for all trials at once; the
page has their equations.

As in snnTorch, the surrogate derivative of a spike is a fast sigmoid's, 1 / (1 + SLOPE |u -
THRESHOLD|)², and no gradient passes the reset.  Neurons in a layer are not connected, so a layer
is computed for all time steps before the next layer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lib.engine import batched

LEAK, THRESHOLD, RESET = 0.9, 1.0, 1.0  # a spike lowers the potential by RESET
SLOPE = 25.0  # as in snnTorch
INPUTS, WIDTH, CLASSES, CHANNELS = 64, 64, 10, (8, 16)


class Fire(torch.autograd.Function):
    """Inputs [..., time, units] -> spikes of the same shape."""

    @staticmethod
    def forward(ctx, inputs: Tensor) -> Tensor:
        u = spike = torch.zeros_like(inputs[..., 0, :])
        above, spikes = [], []
        for current in inputs.unbind(-2):
            u = LEAK * u + current - RESET * spike
            spike = (u > THRESHOLD).to(u.dtype)
            above.append(u - THRESHOLD)
            spikes.append(spike)
        ctx.save_for_backward(torch.stack(above, -2))
        return torch.stack(spikes, -2)

    @staticmethod
    def backward(ctx, d: Tensor) -> Tensor:
        (above,) = ctx.saved_tensors
        slopes = d / (1 + SLOPE * above.abs()) ** 2
        for t in reversed(range(slopes.shape[-2] - 1)):
            slopes[..., t, :] += LEAK * slopes[..., t + 1, :]
        return slopes


class InTime(nn.Module):
    """A layer that knows how many time steps an example has; these are consecutive in a batch
    [B * time, ...], so that all other layers treat them as examples.
    """

    def __init__(self, time: int):
        super().__init__()
        self.time = time


class Steady(InTime):
    """The same input at every time step: [B, ...] -> [B * time, ...]."""

    def forward(self, h: Tensor) -> Tensor:
        return h[:, None].expand(-1, self.time, *h.shape[1:]).flatten(0, 1)


class Spiking(InTime):
    """Neurons: inputs [B * time, ...] -> spikes, 0 or 1, of the same shape."""

    def forward(self, h: Tensor) -> Tensor:
        inputs = h.unflatten(0, (-1, self.time)).flatten(2)
        return Fire.apply(inputs).reshape(h.shape)


class Rates(InTime):
    """Spikes [B * time, ...] -> their means over time [B, ...]."""

    def forward(self, h: Tensor) -> Tensor:
        return h.unflatten(0, (-1, self.time)).mean(1)


def _in_time(run: batched.Pass, layer: InTime, h: Tensor) -> Tensor:
    """Apply the layer to all trials, the first dimension of h."""
    return layer(h.flatten(0, 1)).unflatten(0, (len(h), -1))


batched.RULES |= dict.fromkeys((Steady, Spiking, Rates), _in_time)


def network(time: int, model: str = "mlp") -> nn.Sequential:
    """Two hidden layers: [B, 1, 8, 8] -> [B, 10]; the last layer reads spike rates.

    Args:
        time: steps of spiking neurons; 0 for ReLU.
        model: "mlp", or "cnn" of CHANNELS, 3 x 3 kernels and 128 and 64 units.
    """
    if model == "mlp":
        first, second = [nn.Flatten(), nn.Linear(INPUTS, WIDTH)], nn.Linear(WIDTH, WIDTH)
    else:
        first = [nn.Conv2d(1, CHANNELS[0], 3, stride=2, padding=1)]
        second = nn.Conv2d(*CHANNELS, 3)
    last = nn.Flatten(), nn.Linear(WIDTH, CLASSES)
    if not time:
        return nn.Sequential(*first, nn.ReLU(), second, nn.ReLU(), *last)
    hidden = Steady(time), Spiking(time), second, Spiking(time), Rates(time)
    return nn.Sequential(*first, *hidden, *last)


@torch.no_grad()
def activity(module: nn.Sequential, x: Tensor) -> dict[str, float]:
    """Activity of one network's hidden layers on examples x [N, 1, 8, 8]: rate, the mean number of
    spikes per unit and time step, or the share of rectifiers that are on; silent, the share of
    units that no example activates; first, the rate of the first layer, which drives the second.
    """
    h, on = x, []
    for layer in module:
        h = layer(h)
        if isinstance(layer, Spiking | nn.ReLU):
            on.append((h.flatten(1) > 0).float().mean(0))
    units = torch.cat(on)
    shares = units.mean(), (units == 0).float().mean(), on[0].mean()
    return dict(zip(("rate", "silent", "first"), map(float, shares)))
