"""Trials beside each other on a graphics processor, whose kernels are recorded once and then
launched together.

A small network keeps such a processor busy for microseconds a kernel, less than it takes to launch
one from Python, and fills a part of it.  Results are those of
`lib.engine.sequential.SequentialExecutor` up to rounding.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from lib.engine.flattening import masked
from lib.engine.sequential import Gradients, SequentialExecutor

WARM_UPS = 3  # passes before one is recorded, in which libraries choose their kernels
# examples of all trials that are computed at once: their activations stay far below a card's memory
MAX_EXAMPLES_PER_PASS = 8192


class CapturedExecutor(SequentialExecutor):
    """As `SequentialExecutor`, for modules that never look at their values in Python; a pass is
    recorded once for every shape of a batch.
    """

    def __init__(self, module: nn.Module, *settings, **named):
        self.untouched = copy.deepcopy(module)
        super().__init__(module, *settings, **named)
        self.settings = self.dtype, self.device, self.smoothing, self.task
        # What computes each trial beside the others, and its stream
        self.lanes: list[tuple[SequentialExecutor, torch.cuda.Stream]] = []
        # Of each shape: what a pass reads (w [T, P], x, y), what it writes, and its kernels
        self.passes: dict[tuple, tuple[Gradients, Gradients, torch.cuda.CUDAGraph]] = {}
        self.pool = None  # of memory that all passes share, since one runs at a time

    def gradients(self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None) -> Gradients:
        """As `SequentialExecutor.gradients`."""
        together = max(1, MAX_EXAMPLES_PER_PASS // len(x))
        found = [self._replay(rows, x, y) for rows in w.split(together)]
        losses, g, alive = map(torch.cat, zip(*found, strict=True))
        return losses, masked(g, mask), alive

    def _replay(self, w: Tensor, x: Tensor, y: Tensor) -> Gradients:
        shape = (len(w), *x.shape)
        if shape not in self.passes:
            self.passes[shape] = self._record(w.clone(), self.inputs(x).clone(), y.clone())
        read, written, graph = self.passes[shape]
        for tensor, given in zip(read, (w, x, y), strict=True):
            tensor.copy_(given)
        graph.replay()
        return tuple(tensor.clone() for tensor in written)

    def _record(self, *read: Tensor) -> tuple[Gradients, Gradients, torch.cuda.CUDAGraph]:
        w = read[0]
        while len(self.lanes) < len(w):
            lane = SequentialExecutor(copy.deepcopy(self.untouched), *self.settings)
            self.lanes.append((lane, torch.cuda.Stream()))
        losses = w.new_empty(len(w))
        written = losses, torch.empty_like(w), torch.empty_like(losses, dtype=torch.bool)
        graph = torch.cuda.CUDAGraph()
        for _ in range(WARM_UPS):
            self._pass(read, written)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, pool=self.pool):
            self._pass(read, written)
        self.pool = graph.pool()
        return read, written, graph

    def _pass(self, read: Gradients, written: Gradients) -> None:
        """All trials forward and backward, each on its stream."""
        ahead = torch.cuda.current_stream()
        w, *batch = read
        beside = self.lanes[: len(w)]
        for t, (lane, stream) in enumerate(beside):
            stream.wait_stream(ahead)
            with torch.cuda.stream(stream):
                for tensor, found in zip(written, lane._derive(w[t], *batch), strict=True):
                    tensor[t] = found
        for _, stream in beside:
            ahead.wait_stream(stream)
