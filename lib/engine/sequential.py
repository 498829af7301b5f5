"""Any module, one trial after another, for networks large enough to keep a core busy."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib import require
from lib.engine.flattening import Executor, flatten, head, layers, masked, outputs, unflatten

MAX_GRADIENT_ENTRIES = 2**24  # of per-example gradients computed at once
WARM_UPS = 3  # passes before recording, in which libraries choose their kernels
Gradients = tuple[Tensor, Tensor, Tensor]  # losses, gradients, and which trials are alive
LayerStats = dict[str, tuple[Tensor, ...]]  # by the names of weights


@contextlib.contextmanager
def _record_rows(module: nn.Module, weights: list[str]):
    """Within the block, collect for each weight's layer pairs of its inputs [N, inputs] and the
    derivatives by its outputs [N, outputs], a pair for each use in a forward and backward pass.
    """
    pairs = {name: [] for name in weights}

    def hook(name: str, layer: nn.Module, inputs: tuple, out: Tensor) -> None:
        out.register_hook(lambda d: pairs[name].append(_rows(layer, inputs[0].detach(), d)))

    with contextlib.ExitStack() as handles:
        for name in weights:
            layer = module.get_submodule(name.removesuffix("weight").removesuffix("."))
            handles.enter_context(layer.register_forward_hook(functools.partial(hook, name)))
        yield pairs


def _rows(layer: nn.Module, h: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """A layer's inputs and the derivatives by its outputs as rows [N, ...] of a matrix product."""
    if isinstance(layer, nn.Linear):
        return h.flatten(0, -2), d.flatten(0, -2)
    patches = F.unfold(h, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    by_channel = patches.unflatten(1, (h.shape[1], -1))  # [B, C, element, place]
    rows = by_channel.permute(0, 3, 2, 1).flatten(2)
    return rows.flatten(0, 1), d.movedim(1, -1).flatten(0, -2)


class SequentialExecutor(Executor):
    """One trial after another through one module, whose parameters become views of one vector."""

    def __init__(self, module: nn.Module, *settings, **named):
        super().__init__(module.to(memory_format=torch.channels_last), *settings, **named)
        self.w = flatten(module).to(device=self.device, dtype=self.dtype)
        self.g = torch.zeros_like(self.w)
        views, slopes = unflatten(self.w, module), unflatten(self.g, module)
        for p, view, slope in zip(module.parameters(), views, slopes, strict=True):
            p.data = view
            p.grad = slope
        head(module).register_forward_pre_hook(self._keep_features)

    def _keep_features(self, _, inputs):
        self.features = inputs[0].detach()

    def inputs(self, x: Tensor) -> Tensor:
        """As `Executor.inputs`; images in channels-last format."""
        x = super().inputs(x)
        return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x

    def _derive(self, w: Tensor, x: Tensor, y: Tensor) -> Gradients:
        """The mean loss at weights w [P], its gradient [P], and whether the trial is alive."""
        self.w.copy_(w)
        self.g.zero_()
        loss = self.task.loss(self.module(x).float(), y, self.smoothing)
        loss.backward()
        alive = self.features.any() | self.g[: -self.classes].any()
        return loss.detach().to(w.dtype), self.g.to(w.dtype, copy=True), alive

    def gradients(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> Gradients:
        """The task's mean loss and its gradient, for each trial.

        Args:
            w: weights [T, P].
            x, y: a batch's inputs [B, ...], as from `inputs`, and targets [B, ...].
            mask: [T, P], zero where gradients shall be zero; weights must be zero there, too.

        Returns:
            losses [T], gradients [T, P], alive [T]: False if the last layer's inputs are zero on
            the whole batch and only its bias has a gradient.
        """
        derived = [self._derive(row, x, y) for row in w]
        losses, g, alive = map(torch.stack, zip(*derived, strict=True))
        return losses, masked(g, mask), alive

    def gradients_by_worker(self, w: Tensor, x: Tensor, y: Tensor, workers: int) -> Gradients:
        """As `gradients`, for each worker's equal share of a batch: with a first axis [workers]."""
        parts = zip(x.chunk(workers), y.chunk(workers), strict=True)
        derived = [self.gradients(w, *part) for part in parts]
        return tuple(map(torch.stack, zip(*derived, strict=True)))

    def gradients_with_layer_stats(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None, stats: Callable
    ) -> tuple[*Gradients, LayerStats]:
        """As `gradients`, and fourth, statistics of layers by the names of their weights.

        stats: called with each layer's inputs [trials, N, inputs] and the derivatives of the mean
            loss by its outputs [trials, N, outputs]; returns a tuple of tensors with a row per
            trial.  N counts examples and, within each, the places of a convolution, whose inputs
            are patches in the kernel's order in w.  Only linear layers and convolutions of one
            group have statistics (`Layer.kind`).
        """
        derived = []
        rows = {layer.name: [] for layer in layers(self.module) if layer.kind}
        for trial in w:
            with _record_rows(
                self.module, [*rows]
            ) as pairs:  # hooks do not run in replayed kernels
                derived.append(SequentialExecutor._derive(self, trial, x, y))
            for name, uses in pairs.items():
                inputs, deltas = (torch.cat(parts)[None] for parts in zip(*uses, strict=True))
                rows[name].append(stats(inputs, deltas))
        losses, g, alive = map(torch.stack, zip(*derived, strict=True))
        joined = {name: tuple(map(torch.cat, zip(*parts))) for name, parts in rows.items()}
        return losses, masked(g, mask), alive, joined

    def gradients_with_norms(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> tuple[*Gradients, Tensor]:
        """As `gradients`, and fourth, norms of per-example gradients, averaged over the batch:
        [T, parameter tensors].

        Raises ValueError for a network with batch normalisation, where a single example has no
        gradient.
        """
        allowed = "one without batch normalisation for gradients of single examples"
        require(not self.normalised, "model", type(self.module).__name__, allowed)
        masks = [None] * len(w) if mask is None else mask
        norms = [self._mean_norms(*row, x, y) for row in zip(w, masks, strict=True)]
        return *self.gradients(w, x, y, mask), torch.stack(norms).to(w)

    def _mean_norms(self, w: Tensor, mask: Tensor | None, x: Tensor, y: Tensor) -> Tensor:
        """Norms of a trial's per-example gradients, averaged: [parameter tensors]; w, mask [P]."""

        def loss(w: Tensor, example: Tensor, target: Tensor) -> Tensor:
            logits = outputs(self.module, w, example[None]).float()
            return self.task.loss(logits, target[None], self.smoothing)

        gradient = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
        sizes = [p.numel() for p in self.module.parameters()]
        examples = max(1, MAX_GRADIENT_ENTRIES // len(w))
        total = w.new_zeros(len(sizes))
        for batch in zip(x.split(examples), y.split(examples), strict=True):
            g = gradient(w.to(self.dtype), *batch).float()
            parts = masked(g, mask).split(sizes, 1)
            total += torch.stack([part.norm(dim=1).sum() for part in parts])
        return total / len(y)

    @torch.no_grad()
    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        """Outputs [T, B, ..., classes] in float32, for weights w [T, P] and inputs x [B, ...]."""
        rows = []
        for row in w:
            self.w.copy_(row)
            rows.append(self.module(x).float())
        return torch.stack(rows)

    def _features(self, w: Tensor, x: Tensor) -> Tensor:
        """The last layer's inputs."""
        self.w.copy_(w)
        self.module(x)
        return self.features


class CapturedExecutor(SequentialExecutor):
    """`SequentialExecutor` up to rounding, on a GPU, for modules that never inspect values in
    Python.

    A small network's kernels take microseconds each, less than launching one from Python does.  So
    a trial's pass is recorded once per batch shape, and its kernels are then launched together (a
    CUDA graph).
    """

    def __init__(self, module: nn.Module, *settings, **named):
        super().__init__(module, *settings, **named)
        # By batch shape: what a pass reads (w [P], x, y), what it writes, and its graph
        self.passes = {}

    def _derive(self, w: Tensor, x: Tensor, y: Tensor) -> Gradients:
        if x.shape not in self.passes:
            self.passes[x.shape] = self._record(w.clone(), self.inputs(x).clone(), y.clone())
        read, written, graph = self.passes[x.shape]
        for tensor, value in zip(read, (w, x, y), strict=True):
            tensor.copy_(value)
        graph.replay()
        return tuple(tensor.clone() for tensor in written)

    def _record(self, *read: Tensor) -> tuple[Gradients, Gradients, torch.cuda.CUDAGraph]:
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(WARM_UPS):
                super()._derive(*read)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            written = super()._derive(*read)
        return read, written, graph
