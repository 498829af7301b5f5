"""Validation errors of many trials, read no further than a decision needs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lib.engine.batched import BatchedExecutor
from lib.engine.sequential import SequentialExecutor
from lib.workloads.datasets import Split

SPARE = 32  # examples asked beyond the mistakes that reject a trial, in the first chunk of a check
FORGET = 0.9  # per check: what earlier trials got wrong says less and less
# of the network's arithmetic, relative: more than which examples are asked together changes a sum
# of costs
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

    limits [goals]: the largest sums of costs that meet the goals.
    """

    def __init__(
        self,
        executor: SequentialExecutor | BatchedExecutor,
        split: Split,
        goals: tuple[float, ...] = (),
    ):
        self.executor, self.task, self.x = executor, executor.task, executor.inputs(split.x)
        self.y = split.y.to(self.x.device)
        self.kind = torch.int64 if self.task.counted else torch.float64
        self.slack = (
            0 if self.task.counted else min(ROUNDINGS * torch.finfo(executor.dtype).eps, MOST_SLACK)
        )
        limits = [largest_sum(goal, len(split), self.task.counted) for goal in goals]
        self.limits = torch.tensor(limits, dtype=self.kind, device=self.y.device)
        self.missed = torch.zeros(len(split), device=self.y.device)
        self.order = torch.arange(len(split), device=self.y.device)

    def costs(self, w: Tensor, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Sums of costs [T], and whether every example is in the sum [T], for w [T, P] and allowed
        sums [T].

        A trial whose sum is not whole costs more than allowed.  allowed: None reads every trial's
        answers to the end.
        """
        count = torch.zeros(len(w), dtype=self.kind, device=w.device)
        whole = torch.zeros(len(w), dtype=torch.bool, device=w.device)
        allowed = (
            torch.full_like(count, len(self.order) if self.task.counted else math.inf)
            if allowed is None
            else allowed
        )
        own = w.to(self.executor.dtype)  # once, and not for every chunk
        for limit in allowed.unique():
            rows, at = (allowed == limit).nonzero()[:, 0], 0
            # Six times as fast as own[rows]
            asked = own if len(rows) == len(w) else own.index_select(0, rows)
            # Enough to reject a trial that is mostly wrong
            chunk = int(min(limit, len(self.order))) * 6 // 5 + SPARE
            if (
                not self.task.counted and limit < math.inf
            ):  # an answer may cost more than a mistake, and limits be larger
                chunk = min(chunk, len(self.order) // 2 + SPARE)
            chunk = len(self.order) if self.executor.normalised else chunk
            while at < len(self.order) and len(rows):
                ask = self.order[at : at + chunk]
                cost = self.task.cost(self.executor.logits(asked, self.x[ask]), self.y[ask])
                count[rows] += cost.sum(1)
                # Any other cost is brought into [0, 1], as a mistake is: one trial that diverges is
                # no judge of examples.
                hard = (
                    cost.float() if self.task.counted else (1 - (-cost).exp()).nan_to_num(1).float()
                )
                self.missed[ask] += hard.sum(0)
                chunk = chunk // 2 if at == 0 else chunk * 3 // 2
                at += len(ask)
                if at < len(self.order):
                    left = (count[rows] <= limit + self.slack * limit).nonzero()[:, 0]
                    if len(left) < len(rows):
                        rows, asked = rows[left], asked.index_select(0, left)
            whole[rows] = True
        self.missed *= FORGET
        self.order = (
            self.order
            if self.executor.normalised
            else self.missed.argsort(descending=True, stable=True)
        )
        if self.slack:
            near = ((count[:, None] - self.limits).abs() <= self.slack * self.limits).any(1)
            for row in (whole & near).nonzero()[:, 0]:
                count[row] = self.alone(w[row])
        return count, whole

    def alone(self, w: Tensor) -> Tensor:
        """The sum of costs (a scalar) of one trial's weights w [P], every example asked at once in
        the order of the data.
        """
        return self.task.cost(self.executor.logits(w[None], self.x), self.y).sum()


def largest_sum(goal: float, examples: int, counted: bool) -> float:
    """The largest sum of costs with mean <= goal: goal x examples, safe against rounding of the
    product; whole if counted.
    """
    largest = goal * examples + 1e-9
    return math.floor(largest) if counted else largest
