"""All trials of a small language model at once, as batched matrix products [trials, ...], and
backwards by hand.

Trials go in groups, and their batches in pieces, so that what the backward pass needs stays in a
core's cache.  The gains of a normalisation are multiplied into the weights that follow it, which
are fewer than the activations.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.engine.flattening import layers
from lib.workloads.decoder import EPSILON, HEAD, Decoder
from lib.workloads.tasks import TASKS, Task

TOGETHER = 2048  # places of all trials and sequences that are computed at once


class Part:
    """Parameters [T, ...] of the trials and their gradient of the same shape, both views into all
    of them.
    """

    def __init__(self, weight: Tensor, slope: Tensor):
        self.weight, self.slope = weight, slope


class Product:
    """A linear layer, on inputs that gains, if any, are multiplied into: matrices [T, outputs,
    inputs], gains [T, inputs].

    dtype: of the products, and hence of what they return.
    """

    def __init__(self, dtype: torch.dtype, linear: Part, gain: Part | None = None):
        self.linear, self.gain = linear, gain
        folded = linear.weight if gain is None else linear.weight * gain.weight[:, None]
        self.matrix = folded.to(dtype)

    def forward(self, h: Tensor) -> Tensor:
        """Inputs [T, N, inputs] -> outputs [T, N, outputs]."""
        return h.to(self.matrix.dtype).bmm(self.matrix.mT)

    def backward(self, h: Tensor, d: Tensor) -> Tensor:
        """Derivatives by the inputs for those by the outputs; the parameters' own are added to
        their gradients.
        """
        d = d.to(self.matrix.dtype)
        slope = d.mT.bmm(h.to(d.dtype)).to(self.linear.slope.dtype)
        if self.gain is not None:
            self.gain.slope += (slope * self.linear.weight).sum(1)
            slope.mul_(self.gain.weight[:, None])
        self.linear.slope += slope
        return d.bmm(self.matrix)


class Norm:
    """Activations x [T, N, width] over the root of their mean square, without gains."""

    def __init__(self, x: Tensor):
        self.scale = x.square().mean(2, keepdim=True).add_(EPSILON).rsqrt_()
        self.out = x * self.scale

    def backward(self, d: Tensor) -> Tensor:
        """Derivatives by x for those by `out`, which are overwritten."""
        along = (d * self.out).mean(2, keepdim=True)
        return d.addcmul_(self.out, along, value=-1).mul_(self.scale)


def attend(qkv: Tensor) -> Tensor:
    """Causal attention [N, L, width] for queries, keys and values [N, L, 3 width]."""
    q, k, v = (part.transpose(1, 2) for part in qkv.unflatten(2, (3, -1, HEAD)).unbind(2))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


class Weights:
    """Weights w [T, P] of some trials as a decoder's layers, and their gradient g [T, P], if asked
    for, which is added to.

    dtype: of matrix products; all else is computed in that of w.
    """

    def __init__(self, module: Decoder, dtype: torch.dtype, w: Tensor, g: Tensor | None = None):
        known = {layer.name: layer for layer in layers(module)}

        def part(first: str, last: str = "") -> Part:
            """Of the parameters from `first` to `last`, which lie side by side, one matrix above
            the other.
            """
            where = slice(known[first].where.start, known[last or first].where.stop)
            return Part(
                *(
                    each[:, where].unflatten(1, (-1, *known[first].shape[1:]))
                    for each in (w, w if g is None else g)
                )
            )

        self.symbol, self.place = part("symbol.weight"), part("place.weight")
        self.blocks = []
        for n in range(len(module.blocks)):
            own = f"blocks.{n}."
            qkv = part(f"{own}attention.query.weight", f"{own}attention.value.weight")
            self.blocks.append(
                (
                    Product(dtype, qkv, part(f"{own}norm1.weight")),
                    Product(dtype, part(f"{own}attention.out.weight")),
                    Product(dtype, part(f"{own}up.weight"), part(f"{own}norm2.weight")),
                    Product(dtype, part(f"{own}down.weight")),
                )
            )
        self.head = Product(dtype, part("head.weight"), part("norm.weight"))

    def forward(self, x: Tensor, kept: list | None = None) -> Tensor:
        """Sequences [B, L] -> logits [T, B L, symbols].  kept: takes what `backward` needs."""
        shape = (-1, x.shape[1])
        h = self.symbol.weight.index_select(1, x.flatten())
        h.unflatten(1, shape).add_(self.place.weight[:, None, : x.shape[1]])
        for qkv, out, up, down in self.blocks:
            first = Norm(h)
            joined = qkv.forward(first.out).to(h.dtype).flatten(0, 1).unflatten(0, shape)
            with torch.set_grad_enabled(kept is not None):
                heard = attend(joined.requires_grad_(kept is not None))
            seen = heard.detach().view_as(h)
            h += out.forward(seen)
            second = Norm(h)
            hidden = up.forward(second.out).relu_()
            h += down.forward(hidden)
            if kept is not None:
                kept.append((first, joined, heard, seen, second, hidden))
        last = Norm(h)
        if kept is not None:
            kept.append(last)
        return self.head.forward(last.out).to(h.dtype)

    def backward(self, x: Tensor, d: Tensor, kept: list) -> None:
        """Adds to the gradient for derivatives d [T, B L, symbols] by the logits."""
        last = kept.pop()
        d = last.backward(self.head.backward(last.out, d).to(d.dtype))
        for qkv, out, up, down in reversed(self.blocks):
            first, joined, heard, seen, second, hidden = kept.pop()
            slope = torch.ops.aten.threshold_backward(down.backward(hidden, d), hidden, 0)
            d += second.backward(up.backward(second.out, slope).to(d.dtype))
            slope = out.backward(seen, d).to(d.dtype).view_as(heard)
            (slope,) = torch.autograd.grad(heard, joined, slope)
            d += first.backward(qkv.backward(first.out, slope.view(*d.shape[:2], -1)).to(d.dtype))
        which = F.one_hot(x.flatten(), self.symbol.weight.shape[1]).T.to(d.dtype)
        self.symbol.slope += which @ d
        self.place.slope[:, : x.shape[1]] += d.unflatten(1, (-1, x.shape[1])).sum(1)


class StackedDecoder:
    """All trials at once through a `lib.workloads.decoder.Decoder`.  device, smoothing, task: as of
    `Loop`.

    dtype: of the products with weights that make gradients, if bfloat16; attention, sums and
    normalisation, and all of `logits`, are then in float32.  Any other is that of everything.
    Raises ValueError for any other module.
    """

    normalised = False  # by batch normalisation

    def __init__(
        self,
        module: nn.Module,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        smoothing: float = 0,
        task: Task = TASKS["cross-entropy"],
    ):
        if not self.fits(module):
            raise ValueError(
                f"model: {type(module).__name__} is not allowed; it must be a Decoder, or use Loop"
            )
        self.module, self.device, self.classes = module.to(device), device, module.head.out_features
        self.products, self.dtype = dtype, torch.float32 if dtype == torch.bfloat16 else dtype
        self.smoothing, self.task = smoothing, task

    @staticmethod
    def fits(module: nn.Module) -> bool:
        """Whether it is a network of this kind."""
        return isinstance(module, Decoder)

    def inputs(self, x: Tensor) -> Tensor:
        """As `Loop.inputs`: indices stay what they are."""
        return x.to(self.device)

    def _groups(self, trials: int, x: Tensor) -> tuple[list[slice], list[slice]]:
        """Which trials are computed at once, and which of the sequences x [B, L]."""
        sequences = max(1, TOGETHER // x.shape[1])
        rows = max(1, sequences // len(x))
        return _slices(trials, rows), _slices(len(x), sequences)

    @torch.no_grad()
    def gradients(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `Loop.gradients`; every trial is alive, since normalised activations are never all
        off.
        """
        losses, g = w.new_zeros(len(w)), torch.zeros_like(w)
        groups, pieces = self._groups(len(w), x)
        for rows in groups:
            weights = Weights(self.module, self.products, w[rows].to(self.dtype), g[rows])
            for piece in pieces:
                part, targets, kept = x[piece], y[piece], []
                logits = weights.forward(part, kept).unflatten(1, targets.shape)
                means, error = self.task.derivative(logits, targets, self.smoothing)
                share = len(part) / len(x)
                losses[rows] += share * means[0]
                weights.backward(part, error.mul_(share).flatten(1, 2).to(self.dtype), kept)
        return losses, g if mask is None else g.mul_(mask), w.new_ones(len(w), dtype=torch.bool)

    def shares(self, w: Tensor, x: Tensor, y: Tensor, parts: int) -> tuple[Tensor, Tensor, Tensor]:
        """As `Loop.shares`."""
        found = [
            self.gradients(w, *part) for part in zip(x.chunk(parts), y.chunk(parts), strict=True)
        ]
        return tuple(torch.stack(each) for each in zip(*found, strict=True))

    def gradients_with_norms(self, *_) -> tuple:
        """Raises ValueError: the examples' own gradients are not computed here."""
        raise ValueError(
            "model: a stacked decoder is not allowed where examples' own gradients are asked for; use Loop"
        )

    def watched(self, *_) -> tuple:
        """Raises ValueError: what a method asks of layers' inputs and derivatives is not computed
        here.
        """
        raise ValueError(
            "model: a stacked decoder is not allowed where layers are looked at; use Loop"
        )

    @torch.no_grad()
    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        """As `Loop.logits`: [T, B, L, symbols]."""
        found = w.new_empty(len(w), *x.shape, self.classes, dtype=torch.float32)
        groups, pieces = self._groups(len(w), x)
        for rows in groups:
            weights = Weights(self.module, self.dtype, w[rows].to(self.dtype))
            for piece in pieces:
                found[rows, piece] = weights.forward(x[piece]).unflatten(1, x[piece].shape)
        return found

    def all_off(self, w: Tensor, x: Tensor) -> bool:
        """As `Loop.all_off`: never."""
        return False


def _slices(length: int, size: int) -> list[slice]:
    return [slice(at, at + size) for at in range(0, length, size)]
