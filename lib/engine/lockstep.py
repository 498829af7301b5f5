"""Trials of one cell in lock step until the goal: exactly the steps to result of an exhaustive search, for far less.

The published protocol (Shallue et al. 2019, section 3; Lee et al. 2021) runs every trial to the goal or to its budget
and then takes the minimum.  Here all trials take step k before any takes step k + 1, so the first check at which some
trial meets the goal already is that minimum.  The cell goes on until `hits` trials have met it, since those first
order statistics give the distribution of the best of k < n trials, then stops.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lib.engine import looped
from lib.engine.check_steps import last_check, next_check
from lib.engine.looped import Loop
from lib.engine.stacked import Stack
from lib.engine.training_state import Outcome, State, Trials
from lib.engine.unfinished import SAVE_EVERY, identity_of, resumed, save
from lib.engine.validation import Validation
from lib.messages.exchanges import Exchange
from lib.methods import updates
from lib.workloads.datasets import Split


def batches(examples: int, batch_size: int, seed: int) -> Iterator[Tensor]:
    """Endless batches of indices [batch_size]: every epoch reshuffled without replacement; a batch may straddle two.

    Raises ValueError if the batch is larger than the training set.
    """
    if not 1 <= batch_size <= examples:
        raise ValueError(f"batch_size: {batch_size} is not allowed; the training set has {examples} examples")
    random = torch.Generator().manual_seed(seed)
    rest = torch.empty(0, dtype=torch.int64)
    while True:
        while len(rest) < batch_size:
            rest = torch.cat([rest, torch.randperm(examples, generator=random)])
        yield rest[:batch_size]
        rest = rest[batch_size:]


class TrialError(RuntimeError):
    """A network raised while it was trained; the message names the trial, the step and the exception."""


@contextlib.contextmanager
def _telling(ids: np.ndarray, step: int) -> Iterator[None]:
    try:
        yield
    except looped.RowError as error:
        cause = error.__cause__
        raise TrialError(f"trial {ids[error.row]}, step {step}: {type(cause).__name__}: {cause}") from cause


@torch.no_grad()
def settled(algorithm: str, w: Tensor, v: Tensor, rate: Tensor, momentum: Tensor, bias: int) -> Tensor:
    """Which trials [T] have weights that no longer move, bit by bit, as long as their gradients are zero.

    True where all the drift that momentum still holds is lost in rounding.  The last `bias` weights, the last layer's
    biases, are left out: they alone have a gradient when every unit is off, and they cannot switch one on.
    """
    return (w + updates.drift(algorithm, v, rate, momentum) == w)[:, :-bias].all(1)


def train(
    executor: Loop | Stack,
    trials: Trials,
    training: Split,
    validation: Split,
    *,
    algorithm: str,
    batch_size: int,
    goals: tuple[float, ...],
    max_steps: int,
    order_seed: int = 0,
    hits: int = 5,
    stop: str = "goal",
    checks: str = "geometric",
    test: Split | None = None,
    exchange: Exchange | None = None,
    reject_early: bool = True,
    drop_dead: bool = True,
    progress: Callable[[int, int, float], None] = lambda step, alive, best: None,
    unfinished: Path | None = None,
    whose: str = "",
) -> Outcome:
    """Train all trials in lock step and say when each first met each goal (the hardest goal first in `goals`).

    stop: "goal" ends the cell once `hits` trials met the hardest goal; "budget" runs every trial for max_steps and
    reads every check to the end; `test` is then looked at wherever a trial's validation error falls.  reject_early and
    drop_dead may be switched off to test that they change nothing.
    exchange: what the workers send each other, if the batch is shared among several (`lib.messages.compressors`).
    progress is called after every check with the step, the number of trials still training and the lowest error seen.
    unfinished: a file that keeps the state every `SAVE_EVERY` seconds; if it is there, the cell goes on from it, and ends
    as if it had never been interrupted.  whose: what tells the cell from any other.  A file that is damaged or of another
    cell is named in a warning and renamed, and the cell begins anew.  Raises OSError naming a file that cannot be written.
    """
    device = trials.w.device
    x, y = executor.inputs(training.x), training.y.to(device)
    judges = [Validation(executor, validation, goals)]
    if stop == "budget" and test is not None:
        judges.append(Validation(executor, test))
    n, patience = len(trials.w), 1 + len(y) // (8 * batch_size)
    budgets = tuple(2**j for j in range(max_steps.bit_length())) if stop == "budget" else ()
    now = State.first(Outcome.blank(n, len(goals), budgets), trials, patience, exchange)
    if unfinished:
        identity = identity_of(whose, trials)
        now = resumed(unfinished, now, judges, identity, max_steps)
    out = now.outcome
    began = time.perf_counter() - out.wall_s
    saved = time.perf_counter()
    order = itertools.islice(batches(len(y), batch_size, order_seed), out.steps, None)
    check = next_check(last_check(out.steps, checks), checks)

    while len(now.ids) and out.steps < max_steps:
        pick = next(order).to(device)
        with _telling(now.ids, out.steps + 1):
            if now.exchange:  # which knows the weights that are left
                losses, g, alive = now.exchange.gradients(executor, now.w, x[pick], y[pick])
            else:
                losses, g, alive = executor.gradients(now.w, x[pick], y[pick], now.trials.mask)
        rate = updates.decayed(now.trials.rate, out.steps, now.trials.decay_steps, now.trials.end_factor)
        updates.update(algorithm, now.w, now.v, g, rate, now.trials.momentum)
        out.steps, out.trial_steps = out.steps + 1, out.trial_steps + len(now.ids)

        finite = losses.isfinite()
        now.silent = torch.where(alive, 0, now.silent + 1)
        if not finite.all():
            now.leave(~finite, "infeasible", "diverged")
        suspects = (now.silent >= now.patience).nonzero()[:, 0]
        if drop_dead and len(suspects):
            now.patience[suspects] += now.patience[suspects] // 4 + 1  # looked at again a quarter later, if it stays
            rate = rate[finite] if len(rate) > len(now.ids) else rate
            moving = (m[suspects] for m in (now.w, now.v, rate, now.trials.momentum))
            dead = torch.zeros(len(now.ids), dtype=torch.bool, device=device)
            for row in suspects[settled(algorithm, *moving, executor.classes)]:
                dead[row] = executor.all_off(now.w[row], x)
            if dead.any():
                now.leave(dead, "infeasible", "dead")

        if out.steps == check:
            check = next_check(out.steps, checks)
            _look(now, judges, whole_set=stop == "budget" or not reject_early)
            progress(out.steps, len(now.ids), np.nanmin(out.best_error, initial=np.inf))
            if stop == "goal":
                now.leave(torch.from_numpy(~np.isnan(out.first[now.ids, 0])).to(device), "complete")
                if np.sum(out.status == "complete") >= hits:
                    break
        if unfinished and time.perf_counter() - saved >= SAVE_EVERY:
            saved = time.perf_counter()
            out.wall_s = saved - began
            save(unfinished, now, judges, identity)
    now.leave(torch.ones(len(now.ids), dtype=torch.bool, device=device), "budget" if out.steps == max_steps else "stopped")
    if stop == "budget":
        out.status[~np.isnan(out.first[:, 0])] = "complete"
    out.wall_s = time.perf_counter() - began
    return out


def _look(now: State, judges: list[Validation], whole_set: bool) -> None:
    """A check: which trials meet which goals, their errors, and the test errors of the better.

    An error is a mean cost: a share of mistakes, or what else the task counts.

    whole_set: read every trial's answers to the end.
    """
    out, ids, step = now.outcome, now.ids, now.outcome.steps
    limits = judges[0].limits
    met, every = ~np.isnan(out.first[ids]), len(judges[0].y)  # [rows, goals]
    loosest = torch.from_numpy(np.where(met, -1, limits.cpu().numpy()).max(1, initial=-1)).to(limits.device)
    with _telling(ids, step):
        count, whole = judges[0].costs(now.w, None if whole_set else loosest)
    reached = (whole[:, None] & (count[:, None] <= limits)).cpu().numpy()
    out.first[ids] = np.where(reached & ~met, step, out.first[ids])
    error = np.where(whole.cpu().numpy(), count.cpu().numpy() / every, np.nan)
    better = ~(error >= out.best_error[ids]) & ~np.isnan(error)
    risen, later = ids[better], np.array(out.budgets) >= step
    out.best_error[risen], out.best_step[risen] = error[better], step
    out.best_within[np.ix_(risen, later)] = error[better, None]
    if len(judges) > 1 and len(risen):
        rows = torch.from_numpy(better).to(limits.device)
        cost, _ = judges[1].costs(now.w[rows])
        out.test_within[np.ix_(risen, later)] = cost.cpu().numpy()[:, None] / len(judges[1].y)
    if now.exchange:
        out.sent[ids] = now.exchange.sent.numpy()
        out.sent_within[np.ix_(ids, later)] = out.sent[ids, None]
