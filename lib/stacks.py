"""Many trials of one network as a matrix of weights [trials, P], and their losses, gradients and outputs.

Two executors with one interface.  `Loop` runs any module, one trial after another, and suits networks that fill a
core by themselves.  `Stack` runs all trials at once as batched matrix products and suits small ones, whose single
steps are all overhead.  Row t of the matrix is trial t's parameters in the module's order; convolution kernels lie
with their input channel last, the layout in which convolutions are fastest.
"""

from __future__ import annotations

import contextlib
import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call


def _memory_order(p: Tensor) -> Tensor:
    return p.permute(0, 2, 3, 1) if p.dim() == 4 else p


def flatten(module: nn.Module) -> Tensor:
    """The module's parameters as one vector [P] (a copy)."""
    return torch.cat([_memory_order(p.detach()).reshape(-1) for p in module.parameters()])


def unflatten(w: Tensor, module: nn.Module) -> list[Tensor]:
    """Views of w [..., P] with the shapes of the module's parameters: a list of [..., *shape]."""
    views, at = [], 0
    for p in module.parameters():
        shape = _memory_order(p).shape
        view = w[..., at : at + p.numel()].unflatten(-1, shape)
        views.append(view.movedim(-1, -3) if p.dim() == 4 else view)
        at += p.numel()
    return views


def outputs(module: nn.Module, w: Tensor, x: Tensor) -> Tensor:
    """Outputs [B, classes] of the module with parameters w [P] in its own arithmetic, differentiable to any order."""
    names = [name for name, _ in module.named_parameters()]
    return functional_call(module, dict(zip(names, unflatten(w, module), strict=True)), x)


def head(module: nn.Module) -> nn.Linear:
    """The last linear layer.  Raises ValueError if the network has none."""
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    if not linear:
        raise ValueError(f"model: {type(module).__name__} has no linear layer; the last layer must be one")
    return linear[-1]


class RowError(RuntimeError):
    """A network raised in the trial of row `row`; the cause is its exception."""

    def __init__(self, row: int, cause: Exception):
        super().__init__(f"row {row}: {type(cause).__name__}: {cause}")
        self.row = row


@contextlib.contextmanager
def _naming(row: int):
    try:
        yield
    except Exception as error:
        raise RowError(row, error) from error


class Loop:
    """One trial after another through `module`, in `dtype` arithmetic with float32 weights outside.

    smoothing: the share of the target that label smoothing spreads evenly over all classes.
    """

    def __init__(
        self, module: nn.Module, dtype: torch.dtype = torch.float32, device: str = "cpu", smoothing: float = 0
    ):
        module = module.to(device=device, memory_format=torch.channels_last)
        self.module, self.dtype, self.classes, self.smoothing = module, dtype, head(module).out_features, smoothing
        self.normalised = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules())
        self.w = flatten(module).to(device=device, dtype=dtype)
        self.g = torch.zeros_like(self.w)
        for p, w, g in zip(module.parameters(), unflatten(self.w, module), unflatten(self.g, module), strict=True):
            p.data = w
            p.grad = g
        head(module).register_forward_pre_hook(self._keep_features)

    def _keep_features(self, _, inputs):
        self.features = inputs[0].detach()

    def inputs(self, x: Tensor) -> Tensor:
        """x as the network takes it; convert a data set once."""
        x = x.to(device=self.w.device, dtype=self.dtype)
        return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x

    def gradients(self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Mean cross-entropy, its gradient, and which trials are alive, for w [T, P], x [B, ...], y [B].

        Returns losses [T], gradients [T, P], alive [T] (False where the last layer's inputs are zero on the batch:
        then nothing but its bias has a gradient, and the backward pass is spared).
        mask [T, P]: gradients are zero where it is; a weight must be, too.
        """
        losses, gradients = w.new_empty(len(w)), torch.zeros_like(w)
        alive = torch.ones(len(w), dtype=torch.bool, device=w.device)
        for t, row in enumerate(w):
            self.w.copy_(row)
            with _naming(t):
                logits = self.module(x).float()
            if self.features.any():
                loss = F.cross_entropy(logits, y, label_smoothing=self.smoothing)
                self.g.zero_()
                loss.backward()
                gradients[t] = self.g
            else:
                logits = logits.detach()
                loss = F.cross_entropy(logits, y, label_smoothing=self.smoothing)
                target = _smooth(F.one_hot(y, self.classes), self.smoothing)
                gradients[t, -self.classes :] = (logits.softmax(1) - target).mean(0)
                alive[t] = False
            losses[t] = loss.detach()
        return losses, gradients if mask is None else gradients.mul_(mask), alive

    def shares(self, w: Tensor, x: Tensor, y: Tensor, parts: int) -> tuple[Tensor, Tensor, Tensor]:
        """The same for every part of a batch that is shared out evenly: losses [parts, T], gradients [parts, T, P], alive."""
        found = [self.gradients(w, *part) for part in zip(x.chunk(parts), y.chunk(parts), strict=True)]
        return tuple(torch.stack(each) for each in zip(*found, strict=True))

    @torch.no_grad()
    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        """Outputs [T, B, classes] in float32."""
        out = []
        for t, row in enumerate(w):
            self.w.copy_(row)
            with _naming(t):
                out.append(self.module(x).float())
        return torch.stack(out)

    @torch.no_grad()
    def all_off(self, w: Tensor, x: Tensor) -> bool:
        """Whether the last layer's inputs are zero for every example of x [N, ...] at the weights w [P]."""
        self.w.copy_(w)
        for part in x.split(1024):
            self.module(part)
            if self.features.any():
                return False
        return True


class _Affine(torch.autograd.Function):
    """h [T, N, in], weight [parts, T, out, in], bias [parts, T, out] -> [T, N, out], all parts being the same.

    Their gradients differ: every part's is that of its own stretch of the N rows.  No transposed copies are needed.
    """

    @staticmethod
    def forward(ctx, h, weight, bias):
        ctx.save_for_backward(h, weight)
        return torch.baddbmm(bias[0][:, None], h, weight[0].transpose(1, 2))

    @staticmethod
    def backward(ctx, d):
        h, weight = ctx.saved_tensors
        own, parts = (d, h), len(weight)
        if parts > 1:
            own = [
                m.unflatten(1, (parts, -1)).transpose(0, 1).flatten(0, 1) for m in own
            ]  # [parts x T, N / parts, ...]
        g = own[0].transpose(1, 2).bmm(own[1])
        shape = (parts, len(d))
        return (
            d.bmm(weight[0]) if ctx.needs_input_grad[0] else None,
            g.unflatten(0, shape),
            own[0].sum(1).unflatten(0, shape),
        )


def _smooth(one_hot: Tensor, smoothing: float) -> Tensor:
    """Targets [B, classes] of which a share is spread evenly over all classes."""
    return one_hot * (1 - smoothing) + smoothing / one_hot.shape[1] if smoothing else one_hot


def cross_entropy(logits: Tensor, y: Tensor, smoothing: float, parts: int = 1) -> tuple[Tensor, Tensor]:
    """Means over each part of the batch [parts, T] for logits [T, B, classes], y [B], and their derivatives [T, B, classes].

    By hand: on rows this short the library's kernels cost a fifth of a step.
    """
    shifted = logits.float()
    shifted = shifted - shifted.amax(2, keepdim=True)
    powers = shifted.exp()
    total = powers.sum(2, keepdim=True)
    target = _smooth(F.one_hot(y, logits.shape[2]), smoothing)
    right = (shifted * target).sum(2) if smoothing else shifted[:, torch.arange(len(y), device=y.device), y]
    losses = (total.log()[..., 0] - right).unflatten(1, (parts, -1)).mean(2)
    return losses.T, powers.div_(total).sub_(target).div_(len(y) // parts)


class Stack:
    """All trials at once through an `nn.Sequential` of linear, convolution, max-pool, ReLU and flatten layers."""

    normalised = False  # by batch normalisation

    def __init__(
        self, module: nn.Module, dtype: torch.dtype = torch.float32, device: str = "cpu", smoothing: float = 0
    ):
        known = (nn.Linear, nn.Conv2d, nn.MaxPool2d, nn.ReLU, nn.Flatten)
        if not isinstance(module, nn.Sequential) or not all(isinstance(m, known) for m in module):
            raise ValueError(f"model: {type(module).__name__} cannot be stacked; use Loop")
        self.module, self.dtype, self.device, self.smoothing = module.to(device), dtype, device, smoothing
        self.classes = head(module).out_features

    def inputs(self, x: Tensor) -> Tensor:
        return x.to(device=self.device, dtype=self.dtype)

    def _forward(self, views: list[Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, C, H, W], views [parts, T, ...] -> logits [T, B, classes], features (the last layer's inputs) [T, B, F]."""
        h = x.movedim(1, -1)[None]  # [1 or T, B, H, W, C]: the data are shared by all trials
        at, shape = 0, ()
        for layer in self.module:
            if isinstance(layer, (nn.Linear, nn.Conv2d)):
                weight, bias = views[at], views[at + 1]
                at += 2
                features = h
                if isinstance(layer, nn.Conv2d):
                    h, weight, bias, shape = _as_products(h, weight.movedim(-3, -1), bias, layer)
                elif shape:
                    # The module flattens channel, row, column: its weights are turned, which are fewer than the values.
                    weight, shape = weight.unflatten(3, (shape[2], *shape[:2])).movedim(3, -1).flatten(3), ()
                h = _Affine.apply(h.expand(weight.shape[1], -1, -1), weight, bias)
                if isinstance(layer, nn.Conv2d):
                    h = h.view(len(h), x.shape[0], *shape)
            elif isinstance(layer, nn.MaxPool2d):
                h = _pool(h, layer.kernel_size)
            elif isinstance(layer, nn.ReLU):
                h = torch.relu(h)
            else:
                shape = tuple(h.shape[2:])
                h = h.flatten(2)
        return h, features

    def gradients(self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """As `Loop.gradients`."""
        losses, g, alive = self.shares(w, x, y, 1)
        return losses[0], g[0] if mask is None else g[0].mul_(mask), alive[0]

    def shares(self, w: Tensor, x: Tensor, y: Tensor, parts: int) -> tuple[Tensor, Tensor, Tensor]:
        """As `Loop.shares`, in one pass over the whole batch."""
        views = [v.detach()[None].expand(parts, *v.shape) for v in unflatten(w.to(self.dtype), self.module)]
        leaves = [v.requires_grad_() for v in views]
        logits, features = self._forward(leaves, x)
        losses, error = cross_entropy(logits.detach(), y, self.smoothing, parts)
        found = torch.autograd.grad(logits, leaves, error.to(logits.dtype))
        gradients = torch.cat([_memory_order_stacked(g).flatten(2) for g in found], 2).float()
        alive = features.detach().abs().unflatten(1, (parts, -1)).amax((2, 3)) > 0
        return losses, gradients, alive.T

    @torch.no_grad()
    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        return self._forward(unflatten(w[None].to(self.dtype), self.module), x)[0].float()

    @torch.no_grad()
    def all_off(self, w: Tensor, x: Tensor) -> bool:
        """As `Loop.all_off`."""
        views = unflatten(w[None, None].to(self.dtype), self.module)
        return not any(self._forward(views, part)[1].any() for part in x.split(1024))


def _memory_order_stacked(g: Tensor) -> Tensor:
    return g.movedim(-3, -1) if g.dim() == 6 else g


class _Spread(torch.autograd.Function):
    """Kernels [parts, T, O, k, k, C], all parts being the same, to the matrices [parts, T, H'W'O, HWC] of their convolutions."""

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
        return sum(_Spread.places(ctx, d.unflatten(3, ctx.sizes[3:]).unflatten(2, ctx.sizes[:3]))), None, None


def _as_products(h: Tensor, kernel: Tensor, bias: Tensor, layer: nn.Conv2d) -> tuple[Tensor, Tensor, Tensor, tuple]:
    """A convolution of h [T, B, H, W, C] with kernel [parts, T, O, k, k, C] as inputs, weights, biases of `_Affine`.

    Fourth, the shape (H', W', O) of an example's result.  Rows are patches; or whole examples, if the image is so small
    that the zeros of the larger matrix cost less than to cut patches and to sum their gradients.
    """
    (k, _), (s, _), (p, _) = layer.kernel_size, layer.stride, layer.padding
    h = F.pad(h, (0, 0, p, p, p, p)) if p else h
    batch, *image = h.shape[1:4]
    shape = (*((side - k) // s + 1 for side in image), len(layer.bias))
    if math.prod(image) <= 2 * k * k and batch >= 64:
        return h.flatten(2), _Spread.apply(kernel, image, s), bias.repeat(1, 1, math.prod(shape[:2])), shape
    windows = h.unfold(2, k, s).unfold(3, k, s).movedim(4, -1)  # [T, B, H', W', k, k, C]
    return windows.reshape(len(h), batch * shape[0] * shape[1], -1), kernel.flatten(3), bias, shape


def _pool(h: Tensor, k: int) -> Tensor:
    """Maximum over k x k cells of h [T, B, H, W, C]; rows and columns left over are dropped."""
    rows, columns = h.shape[2] // k * k, h.shape[3] // k * k
    cells = [h[:, :, i:rows:k, j:columns:k] for i in range(k) for j in range(k)]
    best = cells[0]
    for cell in cells[1:]:
        best = torch.maximum(best, cell)
    return best
