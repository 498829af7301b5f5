"""Replicas that train on their own examples and exchange the changes of their weights.

A round of DiLoCo (Douillard et al. 2023): each replica takes local steps from the shared weights
by an inner method whose state it keeps; the mean change serves as the gradient of an outer step.
In the sparse form (Sarfi et al. 2025) each replica adds its change to what it has not sent yet,
and sends the largest entries of the sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.engine.clients import Batches
from lib.messages.exchanges import compress
from lib.methods import METHODS
from lib.methods.method import Method

MOMENTUM, KEPT = 0.9, 0.9  # of the outer step; share of unsent changes kept per round


@dataclass
class Replicas:
    """Replicas of T trials at once, and their rounds.

    Attributes:
        inner: the method of local steps.
        gradients: function of weights and a batch that returns losses and gradients.
        layers: the network's parameters.
        w: the shared weights [T, P].
        drawn: hyperparameters [T, 1] of the inner method.
        batches: a stream for each replica.
        outer_rate: [T, 1].
        momentum: of the outer Nesterov step, if density is None.
        density: share of the entries that a replica sends, with plain SGD outside; None: all.
        kept: factor on an entry after each round in which it was not sent.
        rounds: done so far.
    """

    inner: Method
    gradients: Callable
    layers: tuple
    w: Tensor
    drawn: dict[str, Tensor]
    batches: list[Batches]
    outer_rate: Tensor
    momentum: float = MOMENTUM
    density: float | None = None
    kept: float = KEPT
    rounds: int = 0

    def __post_init__(self):
        self.w = self.w.clone()
        self.states = [self.inner.begin(self.w.clone(), self.layers) for _ in self.batches]
        self.outer = METHODS["nesterov" if self.density is None else "sgd"]
        self.outer_state = self.outer.begin(self.w.double(), self.layers)
        self.unsent = [torch.zeros_like(self.w, dtype=torch.float64) for _ in self.batches]

    def round(self, steps: int) -> Tensor:
        """The shared weights [T, P] after a round in which every replica takes `steps` local steps."""
        changes = [self._change(replica, steps) for replica in range(len(self.batches))]
        # In double precision, one replica's outer step at rate one gives its weights exactly
        w, rate = self.w.double(), self.outer_rate.double()
        drawn = {"learning_rate": rate, "momentum": torch.full_like(rate, self.momentum)}
        self.rounds += 1
        mean = sum(changes) / len(changes)
        self.outer.step(w, mean, self.outer_state, drawn, self.rounds, self.layers)
        self.w = w.to(self.w.dtype)
        return self.w

    def _change(self, replica: int, steps: int) -> Tensor:
        """What a replica sends [T, P]: the shared weights minus its own after its local steps."""
        w, first = self.w.clone(), self.rounds * steps + 1
        for k, (x, y) in enumerate(itertools.islice(self.batches[replica], steps), first):
            g = self.gradients(w, x, y)[1]
            self.inner.step(w, g, self.states[replica], dict(self.drawn), k, self.layers)
        change = self.w.double() - w.double()
        if self.density is None:
            return change
        # Diverged trials stay where they are
        total = self.unsent[replica].mul_(self.kept).add_(change.nan_to_num(0, 0, 0))
        random = np.random.default_rng(0)  # unused by Top-k
        sent = torch.where(compress("top-k", total.float(), self.density, random), total, 0)
        total.sub_(sent)
        return sent
