"""Trials of any module, one after the other in rounds: the same steps to result as in lock step.

A round takes every trial that still trains to the same step, and the next round goes further by
GROWTH; hence those that never meet the goal cost about as many steps as the best takes.  Once
`hits` trials have met the hardest goal, the others are taken to the step of the last of them, and
the outcome is read as of that step: it does not depend on the rounds.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lib.engine import flattening, lockstep
from lib.engine.checkpoint import NO_CHECKPOINT, Checkpoint
from lib.engine.training_state import Outcome
from lib.engine.vocabulary import last_check, next_check
from lib.methods.method import Method
from lib.own import Training, raised
from lib.workloads import batches, kinds, own_network
from lib.workloads.kinds import arithmetic

FIRST = 20  # steps of the first round
GROWTH = 1.5  # how much further each round goes than the last
EXACT = 1e-12  # by which an error may exceed the goal that it meets


@dataclass(frozen=True)
class Job:
    """What the trials of a cell share.

    Attributes:
        own: what is trained.
        method: of training.
        limit: steps.
        goals: errors on record, the hardest first.
        batch_size, order_seed, device, precision, checks: as of a cell.
    """

    own: Training
    method: Method
    batch_size: int
    limit: int
    goals: tuple[float, ...]
    order_seed: int = 0
    device: str = "cpu"
    precision: str = "float32"
    checks: str = "geometric"

    @functools.cached_property
    def data(self) -> object:
        """What is trained on: tensors on the device, a Dataset or a function as they are."""
        data = self.own.train
        return data if callable(data) else batches.to(data, self.device)


class MethodOptimiser:
    """A training method of the book for one module, in the place of a torch.optim.Optimizer.

    Its trainable parameters are views of one vector w [1, P].
    """

    def __init__(self, method: Method, module: nn.Module, drawn: dict[str, float]):
        trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.method = method
        self.parameters = list(trained.values())
        self.layers = flattening.laid_out(module, trained)
        self.w = torch.cat([p.detach().reshape(-1) for p in self.parameters])[None]
        nn.utils.vector_to_parameters(self.w[0], self.parameters)
        self.buffers = method.begin(self.w.clone(), self.layers)
        self.drawn = {name: self.w.new_full((1, 1), value) for name, value in drawn.items()}
        self.k = 0

    @torch.no_grad()
    def step(self) -> None:
        """An update from the gradients that the parameters hold."""
        self.k += 1
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        g = torch.cat([grad.reshape(-1) for grad in grads])[None]
        self.method.step(self.w, g, self.buffers, dict(self.drawn), self.k, self.layers)

    def state_dict(self) -> dict:
        return {"buffers": self.buffers, "k": self.k}

    def load_state_dict(self, state: dict) -> None:
        for name, buffer in self.buffers.items():
            buffer.copy_(state["buffers"][name])
        self.k = state["k"]


class Trial:
    """A trial's module, optimiser, batches and random numbers, each its own.

    Attributes:
        steps: taken.
        errors: found at its checks, by step.
        diverged: the step at which its loss was not finite.
        done: whether it trains no more: it met the hardest goal, or diverged.
    """

    KNOWN = ("steps", "errors", "diverged", "done")

    def __init__(self, job: Job, seed: int, drawn: dict[str, float]):
        self.job = job
        self.drawn = drawn
        self.steps = 0
        self.errors: dict[int, float] = {}
        self.diverged = math.inf
        self.done = False
        self.passes = None
        if callable(job.data):
            self.passes = batches.Passes(job.data, job.batch_size, 10_000 * job.order_seed)
        with own_network.alone(seed):
            self.module = own_network.made(job.own).to(job.device)
            self.optimiser = self._optimiser()
            self.random = batches.randomness()

    def _optimiser(self) -> MethodOptimiser | torch.optim.Optimizer:
        made = self.job.method.optimiser
        if made is None:
            return MethodOptimiser(self.job.method, self.module, self.drawn)
        own = {"lr" if n == "learning_rate" else n: v for n, v in self.drawn.items()}
        own.pop("batch_size")
        return made.made([p for p in self.module.parameters() if p.requires_grad], own)

    def met(self, goal: float) -> float:
        """The first check that met a goal; inf where none did."""
        return next((at for at, e in self.errors.items() if e <= goal + EXACT), math.inf)

    def run(self, until: int, tick: Callable[[], None]) -> None:
        """Train to this step, or until it is done; tick is called after every step."""
        job = self.job
        with own_network.alone():
            batches.go_on(self.random)
            given = self.passes or self._batches()
            check = next_check(last_check(self.steps, job.checks), job.checks)
            while self.steps < until and not self.done:
                loss = self._step(next(given))
                if not math.isfinite(loss):
                    self.diverged = self.steps
                    self.done = True
                elif self.steps == check:
                    check = next_check(check, job.checks)
                    self._check()
                self.random = None
                tick()
            self.random = batches.randomness()

    def _batches(self) -> Iterator:
        """The batches of tensors or of a Dataset from here on."""
        job = self.job
        order = lockstep.batches(batches.examples(job.data), job.batch_size, job.order_seed)
        for pick in itertools.islice(order, self.steps, None):
            yield batches.chosen(job.data, pick)

    def _step(self, batch: object) -> float:
        """The next update; the loss before it.  Where that is not finite, there is no update."""
        job = self.job
        total = 0.0
        batch = batches.to(batch, job.device)
        self.steps += 1
        self.module.zero_grad()
        examples = max(1, batches.size(batch))
        for part in batches.cut(batch, job.own.at_once):
            with arithmetic(job.device, job.precision):
                loss = kinds.loss(job.own, self.module, part)
            share = batches.size(part) / examples
            (loss if share == 1 else loss * share).backward()
            total += float(loss.detach()) * share
        if math.isfinite(total):
            self._update()
        return total

    def _update(self) -> None:
        job = self.job
        made = job.method.optimiser
        if made and made.clip:
            nn.utils.clip_grad_norm_(self.module.parameters(), made.clip)
        if made and made.schedule:
            factor = made.schedule.factor(self.steps, job.limit)
            for group in self.optimiser.param_groups:
                group["lr"] = self.drawn["learning_rate"] * factor
        self.optimiser.step()

    def _check(self) -> None:
        """Its error on the whole validation set."""
        job = self.job
        error, _ = kinds.error(job.own, self.module, job.device, job.precision)
        self.errors[self.steps] = error
        self.done = error <= job.goals[0] + EXACT

    def state(self) -> dict:
        """All of it that changes, of tensors, numbers and texts."""
        return {
            "known": {name: getattr(self, name) for name in self.KNOWN},
            "tensors": self._tensors(),
            "optimiser": self.optimiser.state_dict(),
            "passes": self.passes.at if self.passes else None,
            "random": self.random or batches.randomness(),
        }

    def _tensors(self) -> dict[str, Tensor]:
        return {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}

    @torch.no_grad()
    def take_up(self, state: dict) -> None:
        """Go on from a `state`."""
        for name, tensor in self._tensors().items():
            tensor.copy_(state["tensors"][name])
        self.optimiser.load_state_dict(state["optimiser"])
        vars(self).update(state["known"])
        if self.passes:
            with own_network.alone():
                self.passes.go_to(*state["passes"])
        self.random = state["random"]


@contextlib.contextmanager
def _name_trial(n: int, trial: Trial | None = None) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        step = trial.steps if trial else 0
        raise lockstep.TrialError(f"trial {n}, step {step}: {raised(error)}") from error


def _end(trials: list[Trial], job: Job, hits: int) -> int:
    """The step at which the search ends, as far as is known by now."""
    met = sorted(trial.met(job.goals[0]) for trial in trials)
    return min([job.limit, *met[hits - 1 : hits]])


def _outcome(trials: list[Trial], job: Job, end: int) -> Outcome:
    """What is known at the step at which the search ended."""
    out = Outcome(len(trials), len(job.goals))
    for n, trial in enumerate(trials):
        known = [(e, at) for at, e in trial.errors.items() if at <= end and e == e]
        out.best_error[n], out.best_step[n] = min(known, default=(math.nan, math.nan))
        met = [trial.met(goal) for goal in job.goals]
        out.first[n] = [at if at <= end else math.nan for at in met]
        out.last_step[n] = min(end, met[0], trial.diverged)
        out.status[n] = "budget" if end == job.limit else "stopped"
        if met[0] <= end:
            out.status[n] = "complete"
        elif trial.diverged <= end:
            out.status[n] = "infeasible"
            out.cause[n] = "diverged"
    out.steps = int(out.last_step.max(initial=0))
    out.trial_steps = sum(trial.steps for trial in trials)
    return out


def train(
    job: Job,
    seeds: list[int],
    drawn: dict[str, np.ndarray],
    hits: int,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Outcome:
    """Train trials of these seeds and hyperparameters until `hits` met the hardest goal.

    checkpoint: as of `lockstep.train`.  Raises `lockstep.TrialError` for what the reader's code
    raises, and OSError naming a file that cannot be written.
    """
    drawn = {**drawn, "batch_size": np.full(len(seeds), float(job.batch_size))}
    rows = [{name: float(v[n]) for name, v in drawn.items()} for n in range(len(seeds))]
    trials = []
    for n, row in enumerate(rows):
        with _name_trial(n):
            trials.append(Trial(job, seeds[n], row))
    began = time.perf_counter()
    if saved := checkpoint.load():
        began -= saved["wall_s"]
        for trial, parts in zip(trials, saved["trials"], strict=True):
            trial.take_up(parts)

    def state() -> dict:
        seconds = time.perf_counter() - began
        return {"wall_s": seconds, "trials": [trial.state() for trial in trials]}

    far = FIRST
    while any(not t.done and t.steps < _end(trials, job, hits) for t in trials):
        for n, trial in enumerate(trials):
            if not trial.done:
                with _name_trial(n, trial):
                    trial.run(min(far, _end(trials, job, hits)), lambda: checkpoint.save(state))
                lockstep.LOG.info("trial %d of %d, step %d", n + 1, len(trials), trial.steps)
        far = math.ceil(far * GROWTH)
    out = _outcome(trials, job, _end(trials, job, hits))
    out.wall_s = time.perf_counter() - began
    return out
