"""Validation errors of many trials, read no further than a decision needs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lib.engine.flattening import Executor
from lib.workloads.datasets import Split

# Examples asked beyond the mistakes that reject a trial, in the first chunk of a check
SPARE = 32
FORGET = 0.9  # per check: what earlier trials got wrong says less and less
# Of the network's arithmetic, relative: more than which examples are asked together changes a sum
ROUNDINGS = 1000
MOST_SLACK = 0.1  # of a limit, where arithmetic is coarse


class Validation:
    """Decides "mean cost <= goal" for many trials, and stops reading a trial's answers once the
    decision is certain.

    Costs are never below zero, so a trial whose sum exceeds goal x examples misses the goal
    whatever else it answers. Examples that earlier checks found hardest are asked first, so that
    poor trials are rejected after a few hundred. The order cannot change a decision: a check that
    passes has counted every example.  A network with batch normalisation, whose answers depend on
    who is asked together, is asked everything at once.

    Mistakes are counted, in whole numbers.  Sums of other costs depend in their last digits on the
    order, and on who is asked together.  So a trial is rejected only if its sum exceeds the limit
    by more (`slack`), and one that ends as near to a limit as that is decided by asking it alone,
    every example in the order of the data: one sum for one vector of weights.

    Attributes:
        limits: [goals], the largest sums of costs that meet the goals.
    """

    def __init__(self, executor: Executor, split: Split, goals: tuple[float, ...] = ()):
        self.executor = executor
        self.task = executor.task
        self.x = executor.inputs(split.x)
        self.y = split.y.to(self.x.device)
        precision = torch.finfo(executor.dtype).eps
        self.slack = 0 if self.task.counted else min(ROUNDINGS * precision, MOST_SLACK)
        # Safe against rounding of the product
        limits = [goal * len(split) + 1e-9 for goal in goals]
        self.limits = torch.tensor(limits, dtype=torch.float64, device=self.y.device)
        self.missed = torch.zeros(len(split), device=self.y.device)

    def costs(self, w: Tensor, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Sums of costs [T], and whether every example is in the sum [T], for w [T, P].

        allowed: sums [T] beyond which a trial need not be read on; None: all are read to the end.
        """
        total = torch.zeros(len(w), dtype=torch.float64, device=w.device)
        complete = torch.zeros_like(total, dtype=torch.bool)
        if allowed is None:
            allowed = torch.full_like(total, math.inf)
        rounded = w.to(self.executor.dtype)  # once, and not for every chunk
        # Asked together, in the order of the data, examples are of one order at every check
        hardest = self.missed * (not self.executor.normalised)
        order = hardest.argsort(descending=True, stable=True)
        for limit in allowed.unique():
            rows = (allowed == limit).nonzero()[:, 0]
            complete[self._read(rounded, rows, limit, total, order)] = True
        self.missed *= FORGET
        if self.slack:
            near = ((total[:, None] - self.limits).abs() <= self.slack * self.limits).any(1)
            for row in (complete & near).nonzero()[:, 0]:
                total[row] = self.alone(w[row])
        return total, complete

    def _read(
        self, w: Tensor, rows: Tensor, limit: Tensor, total: Tensor, order: Tensor
    ) -> Tensor:
        """Add to the total [T] what the rows' answers cost, in this order of the examples, until it
        exceeds the limit; rows that were read to the end.
        """
        w = w.index_select(0, rows)  # six times as fast as w[rows]
        examples = len(order)
        start = 0
        chunk = self._first_chunk(limit)
        while start < examples and len(rows):
            pick = order[start : start + chunk]
            cost = self.task.cost(self.executor.logits(w, self.x[pick]), self.y[pick])
            total[rows] += cost.sum(1)
            # Any other cost is brought into [0, 1], as a mistake is: one trial that diverges is no
            # judge of examples
            hard = cost if self.task.counted else (1 - (-cost).exp()).nan_to_num(1)
            self.missed[pick] += hard.float().sum(0)
            chunk = chunk // 2 if start == 0 else chunk * 3 // 2
            start += len(pick)
            left = (total[rows] <= limit * (1 + self.slack)).nonzero()[:, 0]
            if start < examples and len(left) < len(rows):
                rows, w = rows[left], w.index_select(0, left)
        return rows

    def _first_chunk(self, limit: Tensor) -> int:
        """Examples that are enough to reject a trial that is mostly wrong."""
        examples = len(self.y)
        if self.executor.normalised:
            return examples
        chunk = int(min(limit, examples)) * 6 // 5 + SPARE
        if self.task.counted or limit == math.inf:
            return chunk
        # An answer may cost more than a mistake, and limits be larger
        return min(chunk, examples // 2 + SPARE)

    def alone(self, w: Tensor) -> Tensor:
        """A trial's sum of costs at w [P], all examples asked at once in the order of the data."""
        return self.task.cost(self.executor.logits(w[None], self.x), self.y).sum()
