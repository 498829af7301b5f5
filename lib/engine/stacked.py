"""All trials of a small network at once, as batched matrix products [trials, ...]."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.engine import example_norms
from lib.engine.flattening import cast, head, unflatten
from lib.workloads.tasks import TASKS, Task


class _Affine(torch.autograd.Function):
    """h [T, N, in], weight [parts, T, out, in], bias [parts, T, out] -> [T, N, out], all parts
    being the same.

    Their gradients differ: every part's is that of its own stretch of the N rows.  No transposed
    copies are needed.
    """

    @staticmethod
    def forward(ctx, h, weight, bias):
        ctx.save_for_backward(h, weight)
        return torch.baddbmm(bias[0][:, None], h, weight[0].transpose(1, 2))

    @staticmethod
    def backward(ctx, d):
        h, weight = ctx.saved_tensors
        shares, parts = (d, h), len(weight)
        if parts > 1:  # [parts x T, N / parts, ...]
            shares = [m.unflatten(1, (parts, -1)).transpose(0, 1).flatten(0, 1) for m in shares]
        g = shares[0].transpose(1, 2).bmm(shares[1])
        shape = (parts, len(d))
        return (
            d.bmm(weight[0]) if ctx.needs_input_grad[0] else None,
            g.unflatten(0, shape),
            shares[0].sum(1).unflatten(0, shape),
        )


class Stack:
    """All trials at once through an `nn.Sequential` of linear, convolution, max-pool, ReLU, tanh
    and flatten layers.

    dtype, device, smoothing, task: as of `Loop`.  Raises ValueError for a module of other layers.
    """

    normalised = False  # by batch normalisation

    # Whether a unit that is off has no gradient
    def __init__(
        self,
        module: nn.Module,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        smoothing: float = 0,
        task: Task = TASKS["classification"],
    ):
        known = (nn.Linear, nn.Conv2d, nn.MaxPool2d, nn.ReLU, nn.Tanh, nn.Flatten)
        if not isinstance(module, nn.Sequential) or not all(isinstance(m, known) for m in module):
            raise ValueError(f"model: {type(module).__name__} cannot be stacked; use Loop")
        self.module, self.dtype, self.device, self.classes = (
            module.to(device),
            dtype,
            device,
            head(module).out_features,
        )
        self.smoothing, self.task = smoothing, task
        self.switches = not any(isinstance(m, nn.Tanh) for m in module)

    def inputs(self, x: Tensor) -> Tensor:
        """As `Loop.inputs`."""
        return cast(x, self.dtype).to(self.device)

    def _forward(
        self, views: list[Tensor], x: Tensor, seen: list | None = None
    ) -> tuple[Tensor, Tensor]:
        """x [B, C, H, W], views [parts, T, ...] -> logits [T, B, classes], features (the last
        layer's inputs) [T, B, F].

        seen: takes every layer that has weights, its inputs, the (H, W, C) that they are flattened
        of, if so, and its outputs.
        """
        h = x.movedim(1, -1)[None]  # [1 or T, B, H, W, C]: the data are shared by all trials
        at, shape = 0, ()
        for layer in self.module:
            if isinstance(layer, (nn.Linear, nn.Conv2d)):
                weight, bias = views[at], views[at + 1]
                at += 2
                features, flattened = h, () if isinstance(layer, nn.Conv2d) else shape
                if isinstance(layer, nn.Conv2d):
                    h = self._convolved(h, weight, bias, layer)
                else:
                    if shape:
                        # The module flattens channel, row, column: its weights are turned, which
                        # are fewer than the values.
                        weight, shape = (
                            weight.unflatten(3, (shape[2], *shape[:2])).movedim(3, -1).flatten(3),
                            (),
                        )
                    h = _Affine.apply(h.expand(weight.shape[1], -1, -1), weight, bias)
                if seen is not None:
                    seen.append((layer, features, flattened, h))
            elif isinstance(layer, nn.MaxPool2d):
                h = self._pooled(h, layer)
            elif isinstance(layer, nn.ReLU):
                h = torch.relu(h)
            elif isinstance(layer, nn.Tanh):
                h = torch.tanh(h)
            else:
                shape = tuple(h.shape[2:])
                h = h.flatten(2)
        return h, features

    def _convolved(self, h: Tensor, kernel: Tensor, bias: Tensor, layer: nn.Conv2d) -> Tensor:
        """h [1 or T, B, H, W, C], kernel [parts, T, O, C, k, k], bias [parts, T, O] -> [T, B, H',
        W', O].
        """
        rows, weight, bias, shape = _as_products(h, kernel.movedim(-3, -1), bias, layer)
        out = _Affine.apply(rows.expand(weight.shape[1], -1, -1), weight, bias)
        return out.view(len(out), h.shape[1], *shape)

    def _pooled(self, h: Tensor, layer: nn.MaxPool2d) -> Tensor:
        return _pool(h, layer.kernel_size)

    def gradients(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `Loop.gradients`."""
        losses, g, alive = self.shares(w, x, y, 1)
        return losses[0], g[0] if mask is None else g[0].mul_(mask), alive[0]

    def shares(self, w: Tensor, x: Tensor, y: Tensor, parts: int) -> tuple[Tensor, Tensor, Tensor]:
        """As `Loop.shares`, in one pass over the whole batch."""
        return self._backward(w, x, y, parts)[:3]

    def gradients_with_norms(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As `Loop.gradients_with_norms`, in the same pass."""
        losses, g, alive, layers = self.signals(w, x, y)
        sizes = [p.numel() for p in self.module.parameters()]
        kept = [None] * len(sizes) if mask is None else mask.split(sizes, 1)
        found = []
        for n, (inputs, deltas) in enumerate(layers):
            weights = (
                kept[2 * n] if mask is None else kept[2 * n].unflatten(1, (deltas.shape[3], -1))
            )
            found += example_norms.of_layer(inputs, deltas, weights, kept[2 * n + 1])
        norms = torch.stack(
            [norm.sum(1) for norm in found], 1
        ).float()  # sums, since the deltas are shares of a mean
        return losses, g if mask is None else g.mul_(mask), alive, norms

    def watched(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None, look: Callable
    ) -> tuple[Tensor, Tensor, Tensor, dict]:
        """As `Loop.watched`; inputs that all trials share, the data, are looked at once."""
        losses, g, alive, layers = self.signals(w, x, y)
        names = [
            f"{name}.weight"
            for name, m in self.module.named_children()
            if isinstance(m, (nn.Linear, nn.Conv2d))
        ]
        looks = {
            name: look(h.flatten(1, 2), d.flatten(1, 2))
            for name, (h, d) in zip(names, layers, strict=True)
        }
        return losses, g if mask is None else g.mul_(mask), alive, looks

    def signals(
        self, w: Tensor, x: Tensor, y: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
        """As `gradients` without a mask, and for every layer with weights what its gradient is made
        of, place by place.

        That is its inputs [1 or T, B, S, K], of the data for all trials, and the mean loss's
        derivatives by its outputs [T, B, S, O]; S = 1 for a linear layer, H' W' for a convolution,
        whose inputs are patches.  Their products over B and S are the gradient of the weights [T,
        O, K], in the order of `lib.methods.method.Layer`; the bias's have no inputs.
        """
        losses, gradients, alive, layers = self._backward(w, x, y, 1, layered=True)
        return losses[0], gradients[0], alive[0], layers

    def _backward(
        self, w: Tensor, x: Tensor, y: Tensor, parts: int, layered: bool = False
    ) -> tuple:
        """`shares`, and if layered the layers of `signals`."""
        seen = [] if layered else None
        views = [
            v.detach().to(self.dtype)[None].expand(parts, *v.shape)
            for v in unflatten(w, self.module)
        ]
        leaves = [v.requires_grad_() for v in views]
        logits, features = self._forward(leaves, x, seen)
        losses, error = self.task.derivative(logits.detach(), y, self.smoothing, parts)
        found = torch.autograd.grad(
            logits, [*leaves, *(out for *_, out in seen or ())], error.to(logits.dtype)
        )
        gradients, at = w.new_empty(parts, *w.shape, dtype=torch.float32), 0
        for g in found[: len(leaves)]:
            part = _memory_order_stacked(g).flatten(2)
            gradients[:, :, at : at + part.shape[2]] = part
            at += part.shape[2]
        alive = (features.detach().abs().unflatten(1, (parts, -1)).amax((2, 3)) > 0) | (
            not self.switches
        )
        layers = [
            (_places(*one), d.flatten(2, -2) if d.dim() > 3 else d[:, :, None])
            for (*one, _), d in zip(seen or (), found[len(leaves) :], strict=True)
        ]
        return losses, gradients, alive.T, layers

    @torch.no_grad()
    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        """As `Loop.logits`."""
        return self._forward([v.to(self.dtype) for v in unflatten(w[None], self.module)], x)[
            0
        ].float()

    @torch.no_grad()
    def all_off(self, w: Tensor, x: Tensor) -> bool:
        """As `Loop.all_off`."""
        views = unflatten(w[None, None].to(self.dtype), self.module)
        return not any(self._forward(views, part)[1].any() for part in x.split(1024))


def _memory_order_stacked(g: Tensor) -> Tensor:
    return g.movedim(-3, -1) if g.dim() == 6 else g


class _Spread(torch.autograd.Function):
    """Kernels [parts, T, O, k, k, C], all parts being the same, to the matrices [parts, T, H'W'O,
    HWC] of their convolutions.
    """

    @staticmethod
    def forward(ctx, kernel, image, stride):
        _, trials, channels, k, _, inputs = kernel.shape
        rows, columns = ((side - k) // stride + 1 for side in image)
        ctx.sizes, ctx.stride, ctx.k = (rows, columns, channels, *image, inputs), stride, k
        whole = kernel.new_zeros(trials, *ctx.sizes)
        for place in _Spread.places(ctx, whole):
            place.copy_(kernel[0])
        return whole.flatten(4).flatten(1, 3).expand(len(kernel), -1, -1, -1)

    @staticmethod
    def places(ctx, whole):
        """Where the kernel stands in whole [..., H', W', O, H, W, C]."""
        (rows, columns), s, k = ctx.sizes[:2], ctx.stride, ctx.k
        for i, j in itertools.product(range(rows), range(columns)):
            yield whole[..., i, j, :, i * s : i * s + k, j * s : j * s + k, :]

    @staticmethod
    def backward(ctx, d):
        return (
            sum(_Spread.places(ctx, d.unflatten(3, ctx.sizes[3:]).unflatten(2, ctx.sizes[:3]))),
            None,
            None,
        )


def _as_products(
    h: Tensor, kernel: Tensor, bias: Tensor, layer: nn.Conv2d
) -> tuple[Tensor, Tensor, Tensor, tuple]:
    """A convolution of h [T, B, H, W, C] with kernel [parts, T, O, k, k, C] as inputs, weights,
    biases of `_Affine`.

    Fourth, the shape (H', W', O) of an example's result.  Rows are patches; or whole examples, if
    the image is so small that the zeros of the larger matrix cost less than to cut patches and to
    sum their gradients.
    """
    (k, _), (s, _), (p, _) = layer.kernel_size, layer.stride, layer.padding
    h = F.pad(h, (0, 0, p, p, p, p)) if p else h
    batch, *image = h.shape[1:4]
    shape = (*((side - k) // s + 1 for side in image), len(layer.bias))
    if math.prod(image) <= 2 * k * k and batch >= 64:
        return (
            h.flatten(2),
            _Spread.apply(kernel, image, s),
            bias.repeat(1, 1, math.prod(shape[:2])),
            shape,
        )
    windows = h.unfold(2, k, s).unfold(3, k, s).movedim(4, -1)  # [T, B, H', W', k, k, C]
    return windows.reshape(len(h), batch * shape[0] * shape[1], -1), kernel.flatten(3), bias, shape


def _places(layer: nn.Linear | nn.Conv2d, h: Tensor, flattened: tuple[int, ...]) -> Tensor:
    """A layer's inputs h as `Stack.signals` has them: [1 or T, B, S, K]."""
    h = h.detach()
    if isinstance(layer, nn.Conv2d):
        (k, _), (s, _), (p, _) = layer.kernel_size, layer.stride, layer.padding
        # [T, B, H', W', k, k, C]
        windows = F.pad(h, (0, 0, p, p, p, p)).unfold(2, k, s).unfold(3, k, s).movedim(4, -1)
        return windows.flatten(4).flatten(2, 3)
    if flattened:  # as the module does: channel, row, column
        h = h.unflatten(2, flattened).movedim(-1, 2).flatten(2)
    return h[:, :, None]


def _pool(h: Tensor, k: int) -> Tensor:
    """Maximum over k x k cells of h [T, B, H, W, C]; rows and columns left over are dropped."""
    rows, columns = h.shape[2] // k * k, h.shape[3] // k * k
    cells = [h[:, :, i:rows:k, j:columns:k] for i in range(k) for j in range(k)]
    best = cells[0]
    for cell in cells[1:]:
        best = torch.maximum(best, cell)
    return best
