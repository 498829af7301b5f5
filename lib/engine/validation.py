"""Validation errors of many trials, read no further than a decision needs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lib.engine.looped import Loop
from lib.engine.stacked import Stack
from lib.workloads.datasets import Split

SPARE = 32  # examples asked beyond the mistakes that reject a trial, in the first chunk of a check
FORGET = 0.9  # per check: what earlier trials got wrong says less and less


class Validation:
    """Decides "error <= goal" for many trials, and stops reading a trial's answers once the decision is certain.

    Examples that earlier checks found hardest are asked first, so that poor trials are rejected after a few hundred.
    The order cannot change a decision: a check that passes has counted every example.  A network with batch
    normalisation, whose answers depend on who is asked together, is asked everything at once.
    """

    def __init__(self, executor: Loop | Stack, split: Split):
        self.executor, self.x, self.y = executor, executor.inputs(split.x), split.y.to(executor.inputs(split.x).device)
        self.missed = torch.zeros(len(split), device=self.y.device)
        self.order = torch.arange(len(split), device=self.y.device)

    def mistakes(self, w: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
        """Mistakes counted [T], and whether the count is whole [T], for w [T, P] and allowed mistakes [T].

        A trial whose count is not whole has more mistakes than allowed.
        """
        count = torch.zeros(len(w), dtype=torch.int64, device=w.device)
        whole = torch.zeros(len(w), dtype=torch.bool, device=w.device)
        for limit in allowed.unique():
            rows, at = (allowed == limit).nonzero()[:, 0], 0
            chunk = int(limit) * 6 // 5 + SPARE  # enough to reject a trial that is mostly wrong
            chunk = len(self.order) if self.executor.normalised else chunk
            while at < len(self.order) and len(rows):
                ask = self.order[at : at + chunk]
                wrong = self.executor.logits(w[rows], self.x[ask]).argmax(2) != self.y[ask]
                count[rows] += wrong.sum(1)
                self.missed[ask] += wrong.float().sum(0)
                chunk = chunk // 2 if at == 0 else chunk * 3 // 2
                at += len(ask)
                if at < len(self.order):
                    rows = rows[count[rows] <= limit]
            whole[rows] = True
        self.missed *= FORGET
        self.order = self.order if self.executor.normalised else self.missed.argsort(descending=True, stable=True)
        return count, whole


def allowed_mistakes(goal: float, examples: int) -> int:
    """The most mistakes with error <= goal: floor(goal x examples), safe against rounding of the product."""
    return math.floor(goal * examples + 1e-9)
