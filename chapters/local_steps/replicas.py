"""Replicas that exchange what they changed.

A round of DiLoCo (Douillard et al. 2023): each replica takes local steps from the shared weights
by an inner method whose state it keeps; the mean change is the gradient of an outer step.  In the
sparse form (Sarfi et al. 2025) each replica adds its change to what it has not sent yet, and sends
the largest entries of the sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.engine.clients import Batches
from lib.messages.exchanges import compress
from lib.methods import METHODS
from lib.methods.method import Method


@dataclass
class Replicas:
    """Replicas of T trials at once, and their rounds.

    Attributes:
        inner: the method of local steps, and drawn: its hyperparameters [T, 1].
        gradients: losses and gradients of weights and a batch.
        w: the shared weights [T, P]; layers: the network's parameters.
        own: a replica's batches each.
        outer_rate: [T, 1].
        momentum: of the outer step by Nesterov, if density is None.
        density: share of the entries that a replica sends, without momentum; None: all of them.
        kept: what is left of an entry after a round in which it was not sent.
    """

    inner: Method
    gradients: Callable
    layers: tuple
    w: Tensor
    drawn: dict[str, Tensor]
    own: list[Batches]
    outer_rate: Tensor
    momentum: float = 0.9
    density: float | None = None
    kept: float = 0.9

    def __post_init__(self):
        self.w = self.w.clone()
        self.rounds = 0
        self.states = [self.inner.begin(self.w.clone(), self.layers) for _ in self.own]
        rate = self.outer_rate.double()
        self.outer_drawn = {"learning_rate": rate, "momentum": torch.full_like(rate, self.momentum)}
        self.outer = METHODS["nesterov" if self.density is None else "sgd"]
        self.outer_state = self.outer.begin(self.w.double(), self.layers)
        self.unsent = [torch.zeros_like(self.w, dtype=torch.float64) for _ in self.own]

    def round(self, steps: int) -> Tensor:
        """The weights [T, P] after a round of so many local steps of every replica."""
        count = len(self.own)
        changes = [self._change(replica, steps) for replica in range(count)]
        # In double precision a step at rate one is back at the replica's weights, to the bit
        w = self.w.double()
        self.rounds += 1
        mean = sum(changes) / count
        state, drawn = self.outer_state, self.outer_drawn
        self.outer.step(w, mean, state, drawn, self.rounds, self.layers)
        self.w = w.float()
        return self.w

    def _change(self, replica: int, steps: int) -> Tensor:
        """What a replica sends [T, P]: the shared weights minus its own after its local steps."""
        local = self.w.clone()
        begun = self.rounds * steps
        for k, (x, y) in enumerate(itertools.islice(self.own[replica], steps), begun + 1):
            g = self.gradients(local, x, y)[1]
            self.inner.step(local, g, self.states[replica], dict(self.drawn), k, self.layers)
        change = self.w.double() - local.double()
        return change if self.density is None else self._sent(replica, change)

    def _sent(self, replica: int, change: Tensor) -> Tensor:
        """The largest entries of what has not been sent yet; the others are kept."""
        # A trial that has diverged stays where it is
        total = self.unsent[replica].mul_(self.kept).add_(change.nan_to_num(0, 0, 0))
        chosen = compress("top-k", total.float(), self.density, None)
        sent = torch.where(chosen, total, 0)
        total.sub_(sent)
        return sent
