"""All trials of a convolutional network of few channels at once, their channels side by side.

Kernels of six channels leave most of a processor's vectors empty, and so does pooling six of them.
Side by side the trials' fill these: the first layer, whose images all trials share, is one
convolution, and every later one has a group a trial. Results are those of `lib.engine.looped.Loop`
up to rounding.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.engine import stacked
from lib.engine.flattening import unflatten

TOGETHER = (
    256  # examples of all trials that are asked at once: what they compute fits a core's cache
)


def fits(module: nn.Module) -> bool:
    """Whether it is a sequence of layers that pools: then images are large, and `Stack` would cut
    many patches.
    """
    return isinstance(module, nn.Sequential) and any(
        isinstance(layer, nn.MaxPool2d) for layer in module
    )


class SideBySide(stacked.Stack):
    """As `Stack`, where values [T, B, H, W, C] lie in memory as [B, H, W, T, C].  Raises ValueError
    as that does.
    """

    def shares(self, w: Tensor, x: Tensor, y: Tensor, parts: int) -> tuple[Tensor, Tensor, Tensor]:
        """As `Loop.shares`, part by part."""
        each = [
            self._backward(w, *part, 1)[:3]
            for part in zip(x.chunk(parts), y.chunk(parts), strict=True)
        ]
        return tuple(map(torch.cat, zip(*each, strict=True)))

    @torch.no_grad()
    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        """As `Loop.logits`."""
        views = [v.to(self.dtype) for v in unflatten(w[None], self.module)]
        parts = x.split(max(1, TOGETHER // len(w)))
        return torch.cat([self._forward(views, part)[0].float() for part in parts], 1)

    def _convolved(self, h: Tensor, kernel: Tensor, bias: Tensor, layer: nn.Conv2d) -> Tensor:
        # [T O, C, k, k], input channels last in memory
        side = kernel[0].movedim(2, -1).flatten(0, 1).movedim(-1, 1)
        out = F.conv2d(
            _channels(h), side, bias[0].flatten(), layer.stride, layer.padding, groups=len(h)
        )
        return _trials(out, kernel.shape[1])

    def _pooled(self, h: Tensor, layer: nn.MaxPool2d) -> Tensor:
        return _trials(layer(_channels(h)), len(h))


def _channels(h: Tensor) -> Tensor:
    """[T, B, H, W, C] as [B, T C, H, W], without a copy."""
    return h.permute(1, 0, 4, 2, 3).flatten(1, 2)


def _trials(h: Tensor, trials: int) -> Tensor:
    """[B, T C, H, W] as [T, B, H, W, C]."""
    return h.unflatten(1, (trials, -1)).permute(1, 0, 3, 4, 2)
