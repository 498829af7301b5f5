"""Trains the trials of one search in lock step to a goal: exactly the steps to result of an
exhaustive search, at a fraction of its cost.

The published protocol (Shallue et al. 2019, section 3; Lee et al. 2021) runs every trial to the
goal or to its budget and then takes the minimum.  Here all trials take step k before any takes step
k + 1, so the first check at which some trial meets the goal already is that minimum.  The search
stops once `hits` trials have met it, since these first order statistics give the distribution of
the best of k < n trials.

A race goes further: it drops trials that have fallen behind the first, and does not validate those
whose training loss is far above what the goal takes.  Its rungs are the goals, or also training
losses, which fall long before any goal is met.  It saves most of the trial-steps and checks, but
now and then loses the trial that would have won; `race`, beside the chapter steps_to_result, says
how often.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from lib import BookError, require
from lib.engine.checkpoint import NO_CHECKPOINT, Checkpoint, OutOfTime
from lib.engine.flattening import Executor
from lib.engine.training_state import Outcome, State, Trials
from lib.engine.validation import Validation
from lib.engine.vocabulary import LOSSES, last_check, next_check
from lib.messages.exchanges import Exchange
from lib.methods.method import Method
from lib.own import raised
from lib.workloads.datasets import Split

LOG = logging.getLogger("lib.training")  # progress of a search, which its bar shows

RECENT = 128  # examples over which a trial's training loss is averaged, exponentially


def batches(examples: int, batch_size: int, seed: int) -> Iterator[Tensor]:
    """Endless batches of indices [batch_size], reshuffled every epoch, without replacement; a batch
    may straddle two epochs.

    Raises ValueError if the batch is larger than the training set.
    """
    fits = 1 <= batch_size <= examples
    require(fits, "batch_size", batch_size, f"from 1 to the training set's {examples} examples")
    random = torch.Generator().manual_seed(seed)
    queue = torch.empty(0, dtype=torch.int64)
    while True:
        while len(queue) < batch_size:
            queue = torch.cat([queue, torch.randperm(examples, generator=random)])
        yield queue[:batch_size]
        queue = queue[batch_size:]


class TrialError(RuntimeError):
    """Training a network raised an exception; the message names the step and the exception."""


@contextlib.contextmanager
def naming(where: str) -> Iterator[None]:
    """Within the block, turn exceptions into TrialError or BookError that begins with `where`."""
    try:
        yield
    except OutOfTime:
        raise
    except BookError as error:
        raise type(error)(f"{where}: {error}") from error
    except Exception as error:
        raise TrialError(f"{where}: {raised(error)}") from error


@torch.no_grad()
def cannot_move_again(
    method: Method, w: Tensor, buffers: dict[str, Tensor], drawn: dict[str, Tensor], bias: int
) -> Tensor:
    """Which trials [T] have weights that can no longer change by a bit while gradients are zero.

    True where all drift left in the method's buffers is lost in rounding.  The last `bias` weights,
    the last layer's biases, are left out: they alone have a gradient when every unit is off, and
    they cannot switch one on.
    """
    return (w + method.drift(buffers, drawn) == w)[:, :-bias].all(1)


def train(
    executor: Executor,
    trials: Trials,
    training: Split,
    validation: Split,
    *,
    method: Method,
    batch_size: int,
    goals: tuple[float, ...],
    max_steps: int,
    order_seed: int = 0,
    hits: int = 5,
    stop: str = "goal",
    race: float | None = None,
    rungs: str = "goals",
    checks: str = "geometric",
    test: Split | None = None,
    exchange: Exchange | None = None,
    drop_dead: bool = True,
    whole_at_end: bool = False,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Outcome:
    """Train all trials in lock step and record when each first met each goal.

    Args:
        goals: the hardest first.
        hits: how many trials must meet the hardest goal to end a search with stop "goal".
        stop: "goal", or "budget", which runs every trial for max_steps and completes every check;
            weights that are the best so far are then evaluated on `test`, too.
        race: the factor of early stopping, at least 1, with stop "goal"; None: no trial is
            abandoned.  If some trial first met a goal at step k, those that have not met it by the
            first check at or after race x k are.  Checks skip a trial as long as its training loss
            exceeds `Task.hopeless` of the loosest goal that it has not met.
        rungs: of a race, "goals"; or "losses", where each of `vocabulary.LOSSES` is a rung, too,
            with the factor race x (1 + loss), since ranks change early on.
        checks: as for `vocabulary.next_check`.
        exchange: what the workers send each other, if the batch is shared among several
            (`lib.messages.exchanges`).
        drop_dead: may be switched off where a silent network may wake up.
        whole_at_end: complete the last check before max_steps for every trial, so that `best_error`
            says what a search reached that met no goal.
        checkpoint: keeps the state in a file; if there is one, the search continues from it and
            ends as if it had never been interrupted.

    Raises OSError naming a file that cannot be written.
    """
    x = executor.inputs(training.x)
    y = training.y.to(trials.w.device)
    to_budget = stop == "budget"
    judges = [Validation(executor, validation, goals)]
    if to_budget and test is not None:
        judges.append(Validation(executor, test))
    levels = LOSSES if race is not None and rungs == "losses" else ()
    budgets = tuple(2**j for j in range(max_steps.bit_length())) if to_budget else ()
    out = Outcome(len(trials.w), len(goals), budgets, len(levels))
    patience = 1 + len(y) // (8 * batch_size)
    started = method, executor, trials, exchange
    now = State(*started, outcome=out, patience=patience, judges=judges)
    if saved := checkpoint.load():
        now.restore(saved)
    order = itertools.islice(batches(len(y), batch_size, order_seed), out.steps, None)
    check = next_check(last_check(out.steps, checks), checks)

    if now.trials.mask is not None:  # an empty mask marks a trial that could not be pruned
        now.leave(~now.trials.mask.any(1), "infeasible", "unpruned")
    while len(now.ids) and out.steps < max_steps and out.goes_on(hits):
        pick = next(order).to(y.device)
        out.steps += 1
        with naming(f"step {out.steps}"):
            losses, alive = now.advance(out.steps, (x[pick], y[pick]))
        _take_in(now, losses, alive, len(pick))
        if drop_dead:
            _leave_dead(now, x)
        if out.steps == check:
            check = next_check(out.steps, checks)
            at_end = whole_at_end and check > max_steps
            rows = np.ones(len(now.ids), bool)
            if race is not None and not method.evaluated and not at_end:
                loosest = out.loosest(now.ids, goals, 0)
                rows = now.recent.cpu().numpy() <= executor.task.hopeless(loosest)
            if rows.any():
                _check(now, rows, to_budget or at_end)
            best = np.nanmin(out.best_error, initial=np.inf)
            error = f"error {best:.3f}" if best < np.inf else "no error yet"
            LOG.info("step %d, %d alive, %s", out.steps, len(now.ids), error)
            if out.steps * batch_size >= RECENT:  # a mean over fewer says little
                low = now.recent.cpu().numpy()[:, None] <= np.array(levels)
                out.fell[now.ids] = np.fmin(out.fell[now.ids], np.where(low, out.steps, np.nan))
            if not to_budget:
                now.leave(~np.isnan(out.first[now.ids, 0]), "complete")
            if race is not None and out.goes_on(hits):
                _leave_behind(now, race, levels)
        checkpoint.save(now.parts)

    out.end(max_steps)
    if to_budget:
        out.status[~np.isnan(out.first[:, 0])] = "complete"
    return out


def _take_in(now: State, losses: Tensor, alive: Tensor, examples: int) -> None:
    """Take in a step's losses [T], dropping trials whose loss is not finite, and who is alive."""
    out = now.outcome
    out.trial_steps += len(now.ids)
    share = max(min(1.0, examples / RECENT), 1 / out.steps)
    now.recent.lerp_(losses.to(now.recent.dtype), share)
    now.silent = torch.where(alive, 0, now.silent + 1)
    now.leave(~losses.isfinite(), "infeasible", "diverged")


def _leave_dead(now: State, x: Tensor) -> None:
    """Drop trials that are provably dead: every unit is off for all inputs x, and no weight that
    could change this moves.

    Nothing can be proved for a method that computes gradients elsewhere than at the weights, or
    has no drift.
    """
    method, executor = now.method, now.executor
    suspects = now.silent >= now.patience
    if not suspects.any() or method.drift is None or method.gradient is not None:
        return
    # A trial that stays is examined again when silent for a quarter longer
    now.patience += suspects * (now.patience // 4 + 1)
    drawn = now.trials.hparams(now.outcome.steps)
    dead = suspects & cannot_move_again(method, now.w, now.buffers, drawn, executor.classes)
    for row in dead.nonzero()[:, 0]:
        dead[row] = executor.all_off(now.w[row], x)
    now.leave(dead, "infeasible", "dead")


def _leave_behind(now: State, race: float, levels: tuple[float, ...]) -> None:
    """Abandon trials that are `race` times as late at a rung as the first that reached it."""
    out = now.outcome
    reached = np.concatenate([out.fell, out.first], axis=1)  # [T, rungs]
    earliest = np.nanmin(reached, 0, initial=np.inf)
    patience = race * (1 + np.array(levels + (0.0,) * out.first.shape[1]))
    behind = np.isnan(reached[now.ids]) & (out.steps >= patience * earliest)
    now.leave(behind.any(1), "abandoned")


def _check(now: State, rows: np.ndarray, read_all: bool) -> None:
    """Record which goals the trials in `rows` (a boolean mask) meet, their errors, and test errors
    of those that improved.

    An error is a mean cost: a share of mistakes, or whatever else the task counts.

    read_all: evaluate every trial on all examples.
    """
    out = now.outcome
    judge, *others = now.judges
    ids = now.ids[rows]
    chosen = torch.from_numpy(rows).to(now.w.device)
    w = now.evaluated()[chosen]
    limits = judge.limits.cpu().numpy()
    loosest = out.loosest(ids, limits, -1)
    loosest = torch.from_numpy(loosest).to(judge.limits)
    with naming(f"step {out.steps}"):
        sums = judge.costs(w, None if read_all else loosest)
    costs, exact = (tensor.cpu().numpy() for tensor in sums)
    errors = np.where(exact, costs / len(judge.y), np.nan)
    met = exact[:, None] & (costs[:, None] <= limits)
    better = out.check(ids, errors, met)
    if now.exchange:
        out.sent[ids] = now.exchange.sent.numpy()[rows]
        out.note(out.sent_within, ids, out.sent[ids])
    for test in others if better.any() else ():
        chosen = torch.from_numpy(better).to(w.device)
        costs, _ = test.costs(w[chosen])
        errors = costs.cpu().numpy() / len(test.y)
        out.note(out.test_within, ids[better], errors)
