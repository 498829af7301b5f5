"""All that changes while a cell trains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.messages.exchanges import Exchange


@dataclass
class Trials:
    """What a cell starts from: one row a trial.

    w: initial weights [T, P], already masked; mask: [T, P] of zeros and ones, or None for dense networks; rate:
    learning rates [T, 1]; momentum: [T, 1] (zeros for SGD); decay_steps, end_factor: [T, 1], or None for a constant rate.
    """

    w: Tensor
    mask: Tensor | None
    rate: Tensor
    momentum: Tensor
    decay_steps: Tensor | None = None
    end_factor: Tensor | None = None

    def to(self, device: str) -> Trials:
        """The trials on another device."""
        return Trials(*(None if v is None else v.to(device) for v in vars(self).values()))

    def keep(self, rows: Tensor) -> Trials:
        """The trials in `rows` (indices or a boolean mask)."""
        return Trials(*(None if v is None else v[rows] for v in vars(self).values()))


@dataclass
class Outcome:
    """What a cell measured, numpy arrays with one entry a trial; NaN where there is nothing to tell.

    status: "complete" met the hardest goal, "stopped" the cell ended first, "infeasible" cannot meet it, "budget" ran
    all its steps.  cause, for infeasible trials: "diverged" (a loss that is not finite) or "dead" (the last layer's
    inputs are zero on the whole training set, and the weights before it no longer move).
    first [T, goals]: the check, in training steps, at which each goal was first met.  last_step: steps known about (an
    infeasible trial never meets a goal).  best_error, best_step: the lowest validation error among checks carried
    through, and when; checks that early rejection ended are not among them.
    silent: steps in a row, up to the last, at which the last layer's inputs were zero on the whole batch.
    budgets: the powers of two up to max_steps if the cell ran to its budget, else none.  best_within [T, budgets]: the
    lowest validation error among checks up to that step; test_within: the test error at that check.  sent, sent_within:
    elements that a worker had sent by the last check, and by the last within each budget, if there is an exchange.
    steps: training steps of the cell.  trial_steps: updates computed, over all trials.
    """

    status: np.ndarray
    cause: np.ndarray
    first: np.ndarray
    last_step: np.ndarray
    best_error: np.ndarray
    best_step: np.ndarray
    silent: np.ndarray
    budgets: tuple[int, ...]
    best_within: np.ndarray
    test_within: np.ndarray
    sent: np.ndarray
    sent_within: np.ndarray
    steps: int = 0
    trial_steps: int = 0
    wall_s: float = 0.0

    @staticmethod
    def blank(n: int, goals: int, budgets: tuple[int, ...]) -> Outcome:
        """That of n trials before their first step."""
        names, counts, nothing = (lambda: np.full(n, "", dtype=object)), (lambda: np.zeros(n, np.int64)), np.nan
        one, each = (lambda: np.full(n, nothing)), (lambda: np.full((n, len(budgets)), nothing))
        first = np.full((n, goals), nothing)
        return Outcome(names(), names(), first, counts(), one(), one(), counts(), budgets, each(), each(), one(), each())


@dataclass
class State:
    """All that changes while a cell trains, hence all that is kept of one that is interrupted.

    outcome: what is known of all trials so far.  The rest has a row for each trial that still trains: ids [T] (numpy), its
    number; trials, what it started from; w, v [T, P], weights and momentum buffers; silent [T], steps in a row without any
    unit on; patience [T], such steps before a look at all data.  exchange: what the workers send each other, if any.
    """

    outcome: Outcome
    ids: np.ndarray
    trials: Trials
    w: Tensor
    v: Tensor
    silent: Tensor
    patience: Tensor
    exchange: Exchange | None

    @staticmethod
    def first(outcome: Outcome, trials: Trials, patience: int, exchange: Exchange | None) -> State:
        """That before the first step."""
        silent = torch.zeros(len(trials.w), dtype=torch.int64, device=trials.w.device)
        start = trials.w.clone(), torch.zeros_like(trials.w), silent, torch.full_like(silent, patience)
        return State(outcome, np.arange(len(trials.w)), trials, *start, exchange)

    def leave(self, rows: Tensor, how: str, why: str = "") -> None:
        """Take rows (a boolean mask) out of the training."""
        if not rows.any():
            return
        gone, out = rows.cpu().numpy(), self.outcome
        left = self.ids[gone]
        out.status[left], out.cause[left], out.last_step[left] = how, why, out.steps
        out.silent[left] = self.silent[rows].cpu().numpy()
        self.ids, self.trials, self.w, self.v = self.ids[~gone], self.trials.keep(~rows), self.w[~rows], self.v[~rows]
        self.silent, self.patience = self.silent[~rows], self.patience[~rows]
        if self.exchange:
            self.exchange.keep(~rows)
