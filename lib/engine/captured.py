"""Trials beside each other on a graphics processor, whose kernels are recorded once and then
launched together.

A small network keeps such a processor busy for microseconds a kernel, less than it takes to launch
one from Python, and fills a part of it.  Results are those of
`lib.engine.sequential.SequentialExecutor` up to rounding.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lib.engine.flattening import masked
from lib.engine.sequential import Gradients, SequentialExecutor, name_row

WARM_UPS = 3  # passes before one is recorded, in which libraries choose their kernels
# examples of all trials that are computed at once: their activations stay far below a card's memory
MAX_EXAMPLES_PER_PASS = 8192


@dataclass
class _Pass:
    """A recorded pass of some trials forward and backward: what it reads (w [T, P], x, y), and what
    it writes.
    """

    w: Tensor
    x: Tensor
    y: Tensor
    losses: Tensor
    gradients: Tensor
    alive: Tensor
    graph: torch.cuda.CUDAGraph


class CapturedExecutor(SequentialExecutor):
    """As `SequentialExecutor`, for modules that never look at their values in Python; a pass is
    recorded once for every shape of a batch.
    """

    def __init__(self, module: nn.Module, *settings, **named):
        self.untouched = copy.deepcopy(module)
        super().__init__(module, *settings, **named)
        self.settings = self.dtype, self.device, self.smoothing, self.task
        # A module and a stream for each trial beside the others
        self.lanes: list[SequentialExecutor] = []
        self.streams: list[torch.cuda.Stream] = []
        self.passes: dict[tuple, _Pass] = {}
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
            self.passes[shape] = self._record(w, x, y)
        known = self.passes[shape]
        for given, read in ((w, known.w), (x, known.x), (y, known.y)):
            read.copy_(given)
        known.graph.replay()
        return known.losses.clone(), known.gradients.clone(), known.alive.clone()

    def _record(self, w: Tensor, x: Tensor, y: Tensor) -> _Pass:
        while len(self.lanes) < len(w):
            self.lanes.append(SequentialExecutor(copy.deepcopy(self.untouched), *self.settings))
            self.streams.append(torch.cuda.Stream())
        losses = w.new_empty(len(w))
        written = losses, torch.empty_like(w), torch.empty_like(losses, dtype=torch.bool)
        new = _Pass(w.clone(), self.inputs(x).clone(), y.clone(), *written, torch.cuda.CUDAGraph())
        with name_row(0):
            for _ in range(WARM_UPS):
                self._pass(new)
            torch.cuda.synchronize()
            with torch.cuda.graph(new.graph, pool=self.pool):
                self._pass(new)
        self.pool = new.graph.pool()
        return new

    def _pass(self, through: _Pass) -> None:
        """All trials forward and backward, each on its stream."""
        ahead = torch.cuda.current_stream()
        beside = list(zip(self.lanes, self.streams, strict=True))[: len(through.w)]
        for t, (lane, stream) in enumerate(beside):
            stream.wait_stream(ahead)
            with torch.cuda.stream(stream):
                lane.w.copy_(through.w[t])
                lane.g.zero_()
                loss = lane.task.loss(lane.module(through.x).float(), through.y, lane.smoothing)
                loss.backward()
                through.losses[t], through.gradients[t] = loss.detach(), lane.g
                through.alive[t] = lane.features.any()
        for _, stream in beside:
            ahead.wait_stream(stream)
