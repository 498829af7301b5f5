"""All trials of a small network at once, as batched matrix products [trials, ...].

Each type of layer has a rule.  `torch.func.vmap` over the plain network would need none, but takes
2 to 8 times as long on batches of up to 64 examples, where searches spend most of their time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib import require
from lib.engine.flattening import Executor, layers, masked
from lib.engine.sequential import Gradients, LayerStats
from lib.methods.method import Layer
from lib.workloads.models import EPSILON, HEAD, Attention, Decoder, DecoderBlock

# Images, or places in sequences, over all trials of one pass, so that they stay in cache
MAX_PLACES_PER_PASS = 8192
MAX_GRADIENT_ENTRIES = 2**18  # of per-example gradients computed at once


@dataclass
class Use:
    """One use of a layer in a pass, and what the gradient of its parameters is made of.

    Attributes:
        weight: a matrix [outputs, inputs], a table [symbols, width], or gains [width].
        bias: [outputs], or None.
        inputs: [1 or T, N, inputs]: N counts the examples and, within each, its places; for gains,
            what they multiply; for a table, symbols [1, N].
        outputs: [T, N, outputs].
        deltas: derivatives of the loss with respect to outputs, once computed.
    """

    weight: Layer
    bias: Layer | None
    inputs: Tensor
    outputs: Tensor
    deltas: Tensor | None = None

    def gradients(self, workers: int) -> list[tuple[Layer, Tensor]]:
        """Each parameter with its gradient [workers, T, ...]; each worker takes a contiguous part
        of the N rows.
        """
        inputs, deltas = (_by_worker(rows, workers) for rows in (self.inputs, self.deltas))
        if self.weight.kind:
            slope = deltas.mT @ inputs
        elif len(self.weight.shape) == 1:
            slope = (deltas * inputs).sum(2)
        else:
            slope = F.one_hot(inputs, self.weight.shape[0]).to(deltas.dtype).mT @ deltas
        bias = [] if self.bias is None else [(self.bias, deltas.sum(2))]
        return [(self.weight, slope), *bias]


def _by_worker(rows: Tensor, workers: int) -> Tensor:
    """[T, N, ...] as [workers, T, N / workers, ...]."""
    return rows[None] if workers == 1 else rows.unflatten(1, (workers, -1)).transpose(0, 1)


@dataclass
class Pass:
    """A forward pass with the weights of many trials, and the layers it has gone through.

    Activations are [T, B, ..., channels], or [1, B, ...] while all trials share them.

    Attributes:
        slots: where the network's parameters lie in w.
        w: [T, P].
        products: the dtype in which activations are multiplied by matrices.
        uses: of layers, in order, if gradients are enabled.
    """

    slots: dict[nn.Parameter, Layer]
    w: Tensor
    products: torch.dtype
    uses: list[Use] = field(default_factory=list)

    def __call__(self, layer: nn.Module, h: Tensor) -> Tensor:
        return RULES[type(layer)](self, layer, h)

    def parameter(self, p: nn.Parameter) -> Tensor:
        """A parameter of the network, for all trials: [T, *shape]."""
        slot = self.slots[p]
        return self.w[:, slot.where].unflatten(1, slot.shape)

    def product(self, layer: nn.Linear | nn.Conv2d, h: Tensor) -> Tensor:
        """Inputs [1 or T, N, inputs] times the layer's matrix, plus its bias: [T, N, outputs]."""
        matrix = self.parameter(layer.weight).flatten(2).to(self.products)
        inputs = h.to(self.products)
        rows = inputs.expand(len(matrix), -1, -1)
        if layer.bias is None:
            outputs = rows.bmm(matrix.mT)
        else:
            bias = self.parameter(layer.bias).to(self.products)
            outputs = torch.baddbmm(bias[:, None], rows, matrix.mT)
        return self.used(layer, inputs, outputs).to(h.dtype)

    def used(self, layer: nn.Module, inputs: Tensor, outputs: Tensor) -> Tensor:
        """The same outputs [T, N, outputs], recorded so that a loss can be differentiated."""
        if torch.is_grad_enabled():
            outputs.requires_grad_()
            bias = self.slots.get(getattr(layer, "bias", None))
            self.uses.append(Use(self.slots[layer.weight], bias, inputs.detach(), outputs))
        return outputs


def _linear(run: Pass, layer: nn.Linear, h: Tensor) -> Tensor:
    return run.product(layer, h.flatten(1, -2)).unflatten(1, h.shape[1:-1])


def _windows(h: Tensor, k: int, stride: int) -> Tensor:
    """Views of the k x k windows of images [T, B, H, W, C]: [T, B, H', W', k, k, C]."""
    return h.unfold(2, k, stride).unfold(3, k, stride).movedim(4, -1)


class _Patches(torch.autograd.Function):
    """A copy of `_windows`, whose derivative by autograd would take several times as long."""

    @staticmethod
    def forward(ctx, h: Tensor, *sizes: int) -> Tensor:
        ctx.shape = h.shape
        ctx.sizes = sizes
        return _windows(h, *sizes).contiguous()

    @staticmethod
    def backward(ctx, d: Tensor) -> tuple[Tensor, None, None]:
        total = d.new_zeros(ctx.shape)
        windows = _windows(total, *ctx.sizes)
        # A row of a patch is contiguous; a loop over the kernel's elements would break it up
        for i, j in itertools.product(*(reversed(range(side)) for side in d.shape[2:4])):
            windows[:, :, i, j].add_(d[:, :, i, j])
        return total, None, None


def _convolution(run: Pass, layer: nn.Conv2d, h: Tensor) -> Tensor:
    """[1 or T, B, H, W, C] -> [T, B, H', W', O], as a product of patches."""
    (k, _), (stride, _), (p, _) = layer.kernel_size, layer.stride, layer.padding
    h = F.pad(h, (0, 0, p, p, p, p)) if p else h
    patches = _Patches.apply(h, k, stride)
    places = patches.shape[1:4]
    return run.product(layer, patches.flatten(4).flatten(1, 3)).unflatten(1, places)


def _flatten(run: Pass, layer: nn.Flatten, h: Tensor) -> Tensor:
    """In the module's order: channel, row, column."""
    return h.movedim(-1, 2).flatten(2)


def _normalisation(run: Pass, layer: nn.RMSNorm, h: Tensor) -> Tensor:
    normal = F.rms_norm(h, h.shape[-1:], eps=EPSILON).flatten(1, -2)
    gained = normal * run.parameter(layer.weight)[:, None]
    return run.used(layer, normal, gained).view_as(h)


def _embedding(run: Pass, layer: nn.Embedding, x: Tensor) -> Tensor:
    """Symbols [...] -> [T, ..., width]."""
    table = run.parameter(layer.weight)
    rows = table.index_select(1, x.flatten())
    return run.used(layer, x.reshape(1, -1), rows).unflatten(1, x.shape)


def _attention(run: Pass, layer: Attention, h: Tensor) -> Tensor:
    heads = [
        run(part, h).flatten(0, 1).unflatten(-1, (-1, HEAD)).transpose(1, 2)
        for part in (layer.query, layer.key, layer.value)
    ]
    heard = F.scaled_dot_product_attention(*heads, is_causal=True)
    return run(layer.out, heard.transpose(1, 2).reshape(h.shape))


def _block(run: Pass, block: DecoderBlock, h: Tensor) -> Tensor:
    h = h + run(block.attention, run(block.norm1, h))
    hidden = torch.relu(run(block.up, run(block.norm2, h)))
    return h + run(block.down, hidden)


def _decoder(run: Pass, decoder: Decoder, x: Tensor) -> Tensor:
    places = torch.arange(x.shape[1], device=x.device).expand_as(x)
    h = run(decoder.symbol, x) + run(decoder.place, places)
    return run(decoder.head, run(decoder.norm, run(decoder.blocks, h)))


def _sequence(run: Pass, network: nn.Sequential, h: Tensor) -> Tensor:
    for layer in network:
        h = run(layer, h)
    return h


# By type of layer: functions of a pass, a layer and its inputs that return its activations
RULES = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.RMSNorm: _normalisation,
    nn.Embedding: _embedding,
    nn.ReLU: lambda run, layer, h: torch.relu(h),
    nn.Tanh: lambda run, layer, h: torch.tanh(h),
    nn.Flatten: _flatten,
    nn.Sequential: _sequence,
    Attention: _attention,
    DecoderBlock: _block,
    Decoder: _decoder,
}


def fits(module: nn.Module) -> bool:
    """Whether there is a rule for every layer of the network."""
    return all(type(layer) in RULES for layer in module.modules())


class BatchedExecutor(Executor):
    """All trials at once through one network.

    Of a decoder in bfloat16, only the matrix products of training use bfloat16: normalisation,
    attention and all of `logits` are computed in float32.
    """

    def __init__(self, module: nn.Module, *settings, **named):
        """As `Executor`.  Raises ValueError for a network that does not fit."""
        allowed = f"made of {', '.join(kind.__name__ for kind in RULES)} to be batched"
        require(fits(module), "model", type(module).__name__, allowed)
        super().__init__(module, *settings, **named)
        self.slots = dict(zip(module.parameters(), layers(module), strict=True))
        self.reads_text = isinstance(module, Decoder)
        self.products = self.dtype
        if self.reads_text and self.dtype == torch.bfloat16:
            self.dtype = torch.float32
        # Whether all units of a layer can be off, leaving everything below without a gradient
        smooth = (nn.Tanh, nn.RMSNorm)
        self.can_die = not any(isinstance(layer, smooth) for layer in module.modules())

    def _run(self, w: Tensor, x: Tensor, products: torch.dtype) -> tuple[Tensor, Pass]:
        """Logits [T, B, ..., classes], and the pass through the network at weights w [T, P]."""
        run = Pass(self.slots, w.to(self.dtype), products)
        return run(self.module, x if self.reads_text else x.movedim(1, -1)[None]), run

    def _groups(self, w: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        """Weights w [T, P], split into trials that pass at once, for a batch x [B, ...]."""
        places = x.numel() if self.reads_text else len(x)
        return w.split(max(1, MAX_PLACES_PER_PASS // places))

    def gradients(
        self,
        w: Tensor,
        x: Tensor,
        y: Tensor,
        mask: Tensor | None = None,
        workers: int = 0,
        uses: list[Use] | None = None,
    ) -> Gradients:
        """As `SequentialExecutor.gradients`.

        workers: as for `gradients_by_worker`; 0: the batch is not shared.
        uses: a list to which the uses of layers are added, in a single pass.
        """
        looked_at = uses is not None
        allowed = "run one trial at a time to record the uses of layers"
        require(not (looked_at and self.reads_text), "model", "Decoder", allowed)
        parts = max(workers, 1)
        groups = []
        for group in (w,) if looked_at else self._groups(w, x):
            logits, run = self._run(group.detach(), x, self.products)
            losses, error = self.task.derivative(logits.detach(), y, self.smoothing, parts)
            outputs = [use.outputs for use in run.uses]
            deltas = torch.autograd.grad(logits, outputs, error.to(logits.dtype))
            g = w.new_empty(parts, *group.shape, dtype=torch.float32)
            for use, use.deltas in zip(run.uses, deltas, strict=True):
                for slot, slope in use.gradients(parts):
                    g[:, :, slot.where] = slope.flatten(2)
            features = _by_worker(run.uses[-1].inputs, parts).abs().amax((2, 3))
            alive = (features > 0).expand(parts, len(group)) | (not self.can_die)
            groups.append((losses, g, alive))
            if looked_at:
                uses += run.uses
        losses, g, alive = (torch.cat(tensors, 1) for tensors in zip(*groups, strict=True))
        return (losses, g, alive) if workers else (losses[0], masked(g[0], mask), alive[0])

    def gradients_by_worker(self, w: Tensor, x: Tensor, y: Tensor, workers: int) -> Gradients:
        """As `SequentialExecutor.gradients_by_worker`, in one pass over the whole batch."""
        return self.gradients(w, x, y, workers=workers)

    def gradients_with_layer_stats(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None, stats: Callable
    ) -> tuple[*Gradients, LayerStats]:
        """As `SequentialExecutor.gradients_with_layer_stats`; inputs shared by all trials (the
        data) have one row.
        """
        uses = []
        gradients = self.gradients(w, x, y, mask, uses=uses)
        return *gradients, {use.weight.name: stats(use.inputs, use.deltas) for use in uses}

    def gradients_with_norms(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[*Gradients, Tensor]:
        """As `SequentialExecutor.gradients_with_norms`, in the same pass."""
        uses, norms = [], []
        gradients = self.gradients(w, x, y, mask, uses=uses)
        for use in uses:
            inputs, deltas = (_by_example(rows, len(y)) for rows in (use.inputs, use.deltas))
            matrix = None if mask is None else use.weight.matrix(mask)
            bias = None if mask is None else mask[:, None, use.bias.where]
            # Sums, since the deltas are already divided by the batch size
            norms.append(example_norms(inputs, deltas, matrix).sum(1))
            norms.append(masked(deltas.sum(2), bias).norm(dim=2).sum(1))
        return *gradients, torch.stack(norms, 1).float()

    @torch.no_grad()
    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        """As `SequentialExecutor.logits`."""
        groups = self._groups(w, x)
        return torch.cat([self._run(group, x, self.dtype)[0] for group in groups]).float()

    @torch.enable_grad()
    def _features(self, w: Tensor, x: Tensor) -> Tensor:
        """The last layer's inputs."""
        return self._run(w[None], x, self.dtype)[1].uses[-1].inputs


def _by_example(rows: Tensor, examples: int) -> Tensor:
    """[T, N, ...] as [T, B, places, ...], in at least single precision."""
    precise = torch.promote_types(rows.dtype, torch.float32)
    return rows.to(precise).unflatten(1, (examples, -1))


def example_norms(inputs: Tensor, deltas: Tensor, mask: Tensor | None) -> Tensor:
    """Norms [T, B] of the gradients of each example's loss with respect to a matrix.

    inputs: [1 or T, B, places, inputs].
    deltas: [T, B, places, outputs], derivatives with respect to the layer's outputs.
    mask: [T, outputs, inputs], zero for removed weights, which do not count; or None.
    """
    if deltas.shape[2] == 1:  # an outer product, whose squares need not be written out
        h = inputs[:, :, 0].square()
        d = deltas[:, :, 0].square()
        squares = h.sum(2) * d.sum(2) if mask is None else ((d @ mask) * h).sum(2)
        return squares.sqrt()
    size = max(1, MAX_GRADIENT_ENTRIES // (deltas.shape[3] * inputs.shape[3]))
    norms = []
    inputs = inputs.expand(len(deltas), -1, -1, -1)
    for t, (d, h) in enumerate(zip(deltas, inputs, strict=True)):
        kept = None if mask is None else mask[t]
        for part_d, part_h in zip(d.split(size), h.split(size), strict=True):
            g = masked(part_d.mT @ part_h, kept)
            norms.append(g.flatten(1).norm(dim=1))
    return torch.cat(norms).view(deltas.shape[:2])
