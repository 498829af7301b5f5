"""All that changes while a cell trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.messages.exchanges import Exchange


@dataclass
class Trials:
    """What a cell starts from: one row a trial.

    w: initial weights [T, P], already masked; mask: [T, P] of zeros and ones, or None for dense
    networks, all zeros for a trial that could not be pruned; drawn: the hyperparameters [T, 1] by
    name, with decay_steps and end_factor where the learning rate decays.
    """

    w: Tensor
    mask: Tensor | None
    drawn: dict[str, Tensor]

    def to(self, device: str) -> Trials:
        """The trials on another device."""
        return self._each(lambda tensor: tensor.to(device))

    def keep(self, rows: Tensor) -> Trials:
        """The trials in `rows` (indices or a boolean mask)."""
        return self._each(lambda tensor: tensor[rows])

    def _each(self, change: Callable[[Tensor], Tensor]) -> Trials:
        mask = None if self.mask is None else change(self.mask)
        return Trials(
            change(self.w), mask, {name: change(values) for name, values in self.drawn.items()}
        )

    def at(self, step: int) -> dict[str, Tensor]:
        """The method's hyperparameters for update number `step` (from 1).

        The learning rate falls linearly to end_factor of itself in decay_steps, then stays; or is
        constant (Shallue et al. 2019, section 4; Lee et al. 2021, CIFAR-10).
        """
        own = dict(self.drawn)
        steps, end = own.pop("decay_steps", None), own.pop("end_factor", None)
        if steps is not None:
            own["learning_rate"] = own["learning_rate"] * (
                1 - (1 - end) * ((step - 1) / steps).clamp(max=1)
            )
        return own


@dataclass
class Outcome:
    """What a cell measured, numpy arrays with one entry a trial; NaN where there is nothing to
    tell.

    status: "complete" met the hardest goal, "stopped" the cell ended first, "infeasible" cannot
    meet it, "budget" ran all its steps, "abandoned" fell behind in a race.  cause, for infeasible
    trials: "diverged" (a loss that is not finite), "dead" (the last layer's inputs are zero on the
    whole training set, and the weights before it no longer move) or "unpruned" (its mask keeps
    nothing: the scores did not say what to keep). first [T, goals]: the check, in training steps,
    at which each goal was first met.  last_step: steps known about (an infeasible trial never meets
    a goal).  best_error, best_step: the lowest validation error among checks carried through, and
    when; checks that early rejection ended are not among them. fell [T, losses]: the check at which
    the training loss was first as low as each of `vocabulary.LOSSES`, if a race asks. silent: steps
    in a row, up to the last, at which the last layer's inputs were zero on the whole batch.
    budgets: the powers of two up to max_steps if the cell ran to its budget, else none.
    best_within [T, budgets]: the lowest validation error among checks up to that step; test_within:
    the test error at that check.  sent, sent_within: elements that a worker had sent by the last
    check, and by the last within each budget, if there is an exchange. steps: training steps of the
    cell.  trial_steps: updates computed, over all trials.
    """

    status: np.ndarray
    cause: np.ndarray
    first: np.ndarray
    fell: np.ndarray
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
    def blank(n: int, goals: int, budgets: tuple[int, ...], losses: int = 0) -> Outcome:
        """That of n trials before their first step."""

        def unknown(*shape: int) -> np.ndarray:
            return np.full(shape, np.nan)

        return Outcome(
            status=np.full(n, "", dtype=object),
            cause=np.full(n, "", dtype=object),
            first=unknown(n, goals),
            fell=unknown(n, losses),
            last_step=np.zeros(n, np.int64),
            best_error=unknown(n),
            best_step=unknown(n),
            silent=np.zeros(n, np.int64),
            budgets=budgets,
            best_within=unknown(n, len(budgets)),
            test_within=unknown(n, len(budgets)),
            sent=unknown(n),
            sent_within=unknown(n, len(budgets)),
        )


@dataclass
class PendingTestEval:
    """Each trial's best weights so far, whose test error is computed once a budget, not at every
    improvement.

    Attributes:
        w: weights [T, P] at the check with the lowest validation error, of all trials of the cell,
            whether they still train or not; zeros before the first.
        waiting: which of them [T] have no test error yet.
    """

    w: Tensor
    waiting: Tensor

    @staticmethod
    def first(w: Tensor) -> PendingTestEval:
        """That of trials with weights like w [T, P] before their first check."""
        return PendingTestEval(
            torch.zeros_like(w), torch.zeros(len(w), dtype=torch.bool, device=w.device)
        )

    def put(self, ids: np.ndarray, w: Tensor) -> None:
        """The trials `ids` [n] have their best weights w [n, P] now."""
        at = torch.from_numpy(ids).to(self.w.device)
        self.w[at], self.waiting[at] = w, True


@dataclass
class State:
    """All that changes while a cell trains, hence all that is kept of one that is interrupted.

    outcome: what is known of all trials so far.  The rest has a row for each trial that still
    trains: ids [T] (numpy), its number; trials, what it started from; w [T, P], weights; buffers,
    the method's, by name, [T, ...]; silent [T], steps in a row without any unit on; patience [T],
    such steps before a look at all data; recent [T], training loss over the last batches. exchange:
    what the workers send each other, if any.  pending: of all trials, if test errors are asked
    for.
    """

    outcome: Outcome
    ids: np.ndarray
    trials: Trials
    w: Tensor
    buffers: dict[str, Tensor]
    silent: Tensor
    patience: Tensor
    recent: Tensor
    exchange: Exchange | None
    pending: PendingTestEval | None = None

    @staticmethod
    def first(
        outcome: Outcome,
        trials: Trials,
        buffers: dict[str, Tensor],
        patience: int,
        exchange: Exchange | None,
        tested: bool = False,
    ) -> State:
        """That before the first step."""
        silent = torch.zeros(len(trials.w), dtype=torch.int64, device=trials.w.device)
        start = (
            trials.w.clone(),
            buffers,
            silent,
            torch.full_like(silent, patience),
            silent.double(),
        )
        return State(
            outcome,
            np.arange(len(trials.w)),
            trials,
            *start,
            exchange,
            PendingTestEval.first(trials.w) if tested else None,
        )

    def leave(self, rows: Tensor, how: str, why: str = "") -> None:
        """Take rows (a boolean mask) out of the training."""
        if not rows.any():
            return
        gone, out = rows.cpu().numpy(), self.outcome
        left = self.ids[gone]
        out.status[left], out.cause[left], out.last_step[left] = how, why, out.steps
        out.silent[left] = self.silent[rows].cpu().numpy()
        self.keep(~rows)

    def keep(self, rows: Tensor) -> None:
        """Go on with the trials in `rows` (a boolean mask) alone."""
        self.ids = self.ids[rows.cpu().numpy()]
        self.trials, self.w = self.trials.keep(rows), self.w[rows]
        self.buffers = {name: buffer[rows] for name, buffer in self.buffers.items()}
        self.silent, self.patience = self.silent[rows], self.patience[rows]
        self.recent = self.recent[rows]
        if self.exchange:
            self.exchange.keep(rows)
