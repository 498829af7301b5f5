"""Everything that changes while a search trains."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.engine.flattening import Executor, layers
from lib.engine.validation import Validation
from lib.messages.exchanges import Exchange
from lib.methods.method import Method


@dataclass
class Trials:
    """What a search starts from, one row per trial.

    Attributes:
        w: initial weights [T, P], already masked.
        mask: [T, P] of zeros and ones, or None for dense networks; all zeros for a trial that could
            not be pruned.
        drawn: the hyperparameters [T, 1] by name, with decay_steps and end_factor if the learning
            rate decays.
    """

    w: Tensor
    mask: Tensor | None
    drawn: dict[str, Tensor]

    def keep(self, rows: Tensor) -> Trials:
        """The trials in `rows` (indices or a boolean mask)."""
        mask = None if self.mask is None else self.mask[rows]
        return Trials(self.w[rows], mask, {name: v[rows] for name, v in self.drawn.items()})

    def hparams(self, step: int) -> dict[str, Tensor]:
        """The method's hyperparameters for update number `step` (from 1).

        The learning rate falls linearly to end_factor times its initial value in decay_steps, then
        stays; or is constant (Shallue et al. 2019, section 4; Lee et al. 2021, CIFAR-10).
        """
        drawn = dict(self.drawn)
        decay_steps = drawn.pop("decay_steps", None)
        end_factor = drawn.pop("end_factor", None)
        if decay_steps is not None:
            progress = ((step - 1) / decay_steps).clamp(max=1)
            drawn["learning_rate"] = drawn["learning_rate"] * (1 - (1 - end_factor) * progress)
        return drawn


class Outcome:
    """What a search measured: numpy arrays with one entry per trial, NaN where nothing is known.

    Attributes:
        status: "complete" met the hardest goal, "stopped" the search ended first, "infeasible"
            cannot meet it, "budget" ran all its steps, "abandoned" fell behind in a race; "" while
            it trains.
        cause: of infeasible trials: "diverged" (a loss that is not finite), "dead" (the last
            layer's inputs are zero on the whole training set, and the weights before it no longer
            move) or "unpruned" (its mask keeps nothing: the scores did not say what to keep).
        first: [T, goals], the training step of the check at which each goal was first met.
        fell: [T, losses], the step of the check at which the training loss had first fallen to each
            of `vocabulary.LOSSES`, in a race on losses.
        last_step: the last step of each trial (an infeasible one never meets a goal).
        best_error, best_step: the lowest validation error among completed checks, and its step;
            checks cut short by early rejection do not count.
        budgets: the powers of two up to max_steps if the search ran to its budget, else none.
        best_within: [T, budgets], the lowest validation error among checks up to that step.
        test_within: [T, budgets], the test error at that check.
        sent, sent_within: elements that a worker had sent by the last check, and by the last one
            within each budget, if there is an exchange.
        steps: training steps of the search.
        trial_steps: updates computed, over all trials.
        wall_s: seconds that the search took; until it ends, the negative of its starting time.
    """

    def __init__(self, n: int, goals: int, budgets: tuple[int, ...] = (), losses: int = 0):
        """The outcome of n trials before their first step."""
        self.status, self.cause = np.full((2, n), "", object)
        self.first = np.full((n, goals), np.nan)
        self.fell = np.full((n, losses), np.nan)
        self.last_step = np.zeros(n, np.int64)
        self.best_error, self.best_step, self.sent = np.full((3, n), np.nan)
        self.budgets = budgets
        within = np.full((3, n, len(budgets)), np.nan)
        self.best_within, self.test_within, self.sent_within = within
        self.steps = self.trial_steps = 0
        self.wall_s = -time.perf_counter()

    def leave(self, ids: np.ndarray, status: str, cause: str = "") -> None:
        """End these trials at the current step."""
        self.status[ids] = status
        self.cause[ids] = cause
        self.last_step[ids] = self.steps

    def check(self, ids: np.ndarray, errors: np.ndarray, met: np.ndarray) -> np.ndarray:
        """Take in a check of n trials; returns which [n] have improved on their lowest error.

        errors: [n], NaN where unknown.  met: which goals they meet, [n, goals].
        """
        self.first[ids] = np.fmin(self.first[ids], np.where(met, self.steps, np.nan))
        better = ~(errors >= self.best_error[ids]) & ~np.isnan(errors)
        improved = ids[better]
        self.best_error[improved] = errors[better]
        self.best_step[improved] = self.steps
        self.note(self.best_within, improved, errors[better])
        return better

    def note(self, within: np.ndarray, ids: np.ndarray, values: np.ndarray) -> None:
        """Write values [n] of trials into an array [T, budgets], for budgets not yet exceeded."""
        within[np.ix_(ids, np.array(self.budgets) >= self.steps)] = values[:, None]

    def loosest(self, ids: np.ndarray, limits: np.ndarray | tuple, none: float) -> np.ndarray:
        """The largest of the limits [goals] that each trial has not met, else `none`: [n]."""
        return np.where(np.isnan(self.first[ids]), limits, none).max(1, initial=none)

    def goes_on(self, hits: int) -> bool:
        """Whether fewer than `hits` trials have ended by meeting the hardest goal."""
        return (self.status == "complete").sum() < hits

    def end(self, limit: int) -> None:
        """End the search for all trials that still train; limit: its maximum of steps."""
        self.leave(self.status == "", "budget" if self.steps == limit else "stopped")
        self.wall_s += time.perf_counter()

    def parts(self) -> dict:
        """The whole outcome as numbers, strings, and lists of them."""
        parts = {name: getattr(v, "tolist", lambda v=v: v)() for name, v in vars(self).items()}
        return parts | {"wall_s": self.wall_s + time.perf_counter()}

    def restore(self, parts: dict) -> None:
        """Restore the outcome from `parts`."""
        for name, value in parts.items():
            kind = getattr(vars(self)[name], "dtype", None)
            setattr(self, name, value if kind is None else np.array(value, kind))
        self.wall_s -= time.perf_counter()


class Descent:
    """Trials in training, a row for each.

    Attributes:
        method, executor: what updates their weights, and what computes their gradients.
        layers: the network's parameters.
        trials: what they started from.
        w: weights [T, P].
        buffers: of the method, by name, [T, ...].
        exchange: what the workers send each other, if there are several.
    """

    def __init__(
        self,
        method: Method,
        executor: Executor,
        trials: Trials,
        exchange: Exchange | None = None,
    ):
        """The trials before their first step."""
        self.method = method
        self.executor = executor
        self.layers = layers(executor.module)
        self.trials = trials
        self.w = trials.w.clone()
        self.buffers = method.begin(trials.w.clone(), self.layers)
        self.exchange = exchange

    def advance(self, k: int, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Take update number k (from 1) in place; losses before it [T], and who is alive [T]."""
        w, mask = self.w, self.trials.mask
        if self.exchange:  # it knows which weights are kept
            losses, g, alive = self.exchange.gradients(self.executor, w, *batch)
        elif self.method.gradient:
            losses, g, alive = self.method.gradient(self.executor, w, batch, mask, self.buffers)
        else:
            losses, g, alive = self.executor.gradients(w, *batch, mask)
        with torch.no_grad():
            self.method.step(w, g, self.buffers, self.trials.hparams(k), k, self.layers)
        return losses, alive

    def evaluated(self) -> Tensor:
        """The weights [T, P] to validate: w, or those that the method evaluates."""
        evaluated = self.method.evaluated
        return evaluated(self.w, self.buffers) if evaluated else self.w


class State(Descent):
    """Everything that changes while a search trains, and so is saved when it is interrupted.

    Attributes, with a row for each trial that still trains:
        ids: [T] (numpy), its number.
        silent: [T], consecutive steps without any unit on.
        patience: [T], such steps before all data are examined.
        recent: [T], training loss, averaged over the last batches.
    And for all trials:
        outcome: the results so far.
        judges: for the validation set, and for the test set if test errors are measured.
    """

    def __init__(self, *descent, outcome: Outcome, patience: int, judges: list[Validation]):
        """descent: arguments of `Descent`; patience: the initial one, of every trial."""
        super().__init__(*descent)
        self.outcome = outcome
        self.judges = judges
        count = len(self.w)
        self.ids = np.arange(count)
        self.silent = torch.zeros(count, dtype=torch.int64, device=self.w.device)
        self.patience = torch.full_like(self.silent, patience)
        self.recent = self.silent.double()

    def leave(self, rows: Tensor | np.ndarray, status: str, cause: str = "") -> None:
        """End the trials in `rows` (a boolean mask) and train on without them."""
        rows = torch.as_tensor(rows, device=self.w.device)
        if rows.any():
            self.outcome.leave(self.ids[rows.cpu().numpy()], status, cause)
            self.keep(~rows)

    def keep(self, rows: Tensor) -> None:
        """Continue with only the trials in `rows` (a boolean mask)."""
        self.ids = self.ids[rows.cpu().numpy()]
        self.trials = self.trials.keep(rows)
        self.buffers = {name: buffer[rows] for name, buffer in self.buffers.items()}
        for name in ("w", "silent", "patience", "recent"):
            setattr(self, name, getattr(self, name)[rows])
        if self.exchange:
            self.exchange.keep(rows)

    def parts(self) -> dict:
        """The whole state, and what its judges have learned: lists of tensors, numbers, strings."""
        return {
            "ids": self.ids.tolist(),
            "tensors": self._tensors(),
            "outcome": self.outcome.parts(),
            "exchange": self.exchange and self.exchange.parts(),
        }

    def _tensors(self) -> list[Tensor]:
        """All tensors of the state and its judges; writing into them changes the state."""
        tensors = [self.w, self.silent, self.patience, self.recent, *self.buffers.values()]
        return tensors + [judge.missed for judge in self.judges]

    def restore(self, parts: dict) -> None:
        """Restore the state before the first step, and its judges, from `parts`."""
        rows = torch.from_numpy(np.isin(self.ids, parts["ids"]))
        self.keep(rows.to(self.w.device))
        for tensor, saved in zip(self._tensors(), parts["tensors"], strict=True):
            tensor.copy_(saved)
        self.outcome.restore(parts["outcome"])
        if self.exchange:
            self.exchange.restore(parts["exchange"])
