"""Validation errors of many trials, on no more examples than a decision needs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lib.engine.flattening import Executor
from lib.workloads.datasets import Split

# Examples in the first chunk of a check beyond the mistakes that reject a trial
SPARE = 32
FORGET = 0.9  # factor per check: what earlier trials got wrong matters less and less
# In machine epsilons: more than a sum changes with the grouping of examples into chunks
ROUNDINGS = 1000
MOST_SLACK = 0.1  # relative to a limit, for coarse arithmetic


class Validation:
    """Decides "mean cost <= goal" for many trials, evaluating each only until the decision is
    certain.

    Costs are never negative, so a trial whose sum exceeds goal x examples misses the goal whatever
    its other answers.  The examples that were hardest in earlier checks come first, so that poor
    trials are rejected after a few hundred.  The order cannot change a decision, since a check that
    passes has counted every example.  A network with batch normalisation, whose outputs depend on
    the whole batch, is evaluated on all examples at once.

    Mistakes are whole numbers, counted exactly.  Sums of other costs depend, in their last digits,
    on the order and on the grouping of examples.  So a trial is rejected only if its sum exceeds
    the limit by more than that (`slack`), and one that ends closer to a limit is evaluated again,
    alone and on all examples in the order of the data: one sum for one vector of weights.

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

        allowed: sums [T] beyond which a trial is evaluated no further; None: on all examples.
        """
        total = torch.zeros(len(w), dtype=torch.float64, device=w.device)
        complete = torch.zeros_like(total, dtype=torch.bool)
        if allowed is None:
            allowed = torch.full_like(total, math.inf)
        rounded = w.to(self.executor.dtype)  # once, not for every chunk
        # A normalised network takes all examples at once, always in the order of the data
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
        """Add the costs of these rows to the total [T], in this order of the examples, until it
        exceeds the limit; returns the rows evaluated on all examples.
        """
        w = w.index_select(0, rows)  # six times as fast as w[rows]
        examples = len(order)
        start = 0
        chunk = self._first_chunk(limit)
        while start < examples and len(rows):
            pick = order[start : start + chunk]
            cost = self.task.cost(self.executor.logits(w, self.x[pick]), self.y[pick])
            total[rows] += cost.sum(1)
            # Other costs are mapped into [0, 1], as mistakes are, so that no diverging trial
            # alone decides which examples are hard
            hard = cost if self.task.counted else (1 - (-cost).exp()).nan_to_num(1)
            self.missed[pick] += hard.float().sum(0)
            chunk = chunk // 2 if start == 0 else chunk * 3 // 2
            start += len(pick)
            left = (total[rows] <= limit * (1 + self.slack)).nonzero()[:, 0]
            if start < examples and len(left) < len(rows):
                rows, w = rows[left], w.index_select(0, left)
        return rows

    def _first_chunk(self, limit: Tensor) -> int:
        """Number of examples that suffices to reject a trial that is mostly wrong."""
        examples = len(self.y)
        if self.executor.normalised:
            return examples
        chunk = int(min(limit, examples)) * 6 // 5 + SPARE
        if self.task.counted or limit == math.inf:
            return chunk
        # An answer may cost more than a mistake, and limits may be larger
        return min(chunk, examples // 2 + SPARE)

    def alone(self, w: Tensor) -> Tensor:
        """A trial's sum of costs at w [P], on all examples at once, in the order of the data."""
        return self.task.cost(self.executor.logits(w[None], self.x), self.y).sum()
