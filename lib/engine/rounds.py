"""Trials of any module, one after the other in rounds: the same steps to result as in lock step.

A round takes every trial that still trains to the same step, and the next round goes further by
GROWTH; hence those that never meet the goal cost about as many steps as the best takes.  Once
`hits` trials have met the hardest goal, the others are taken to the step of the last of them, and
the outcome is read as of that step: it does not depend on the rounds.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from lib.engine import flattening, lockstep
from lib.engine.checkpoint import SAVE_EVERY, Checkpoint
from lib.engine.training_state import Outcome
from lib.engine.vocabulary import last_check, next_check
from lib.methods.method import Method
from lib.methods.optimisers import Optimiser
from lib.own import Training, raised
from lib.workloads import batches, kinds, own_network
from lib.workloads.kinds import Judge, arithmetic

FIRST = 20  # steps of the first round
GROWTH = 1.5  # how much further each round goes than the last
SELDOM = 32  # steps between two reports, which others slow down
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
        values: of the validation set (`Judge`).
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
    values: int = 0

    @functools.cached_property
    def judge(self) -> Judge:
        """What reads the validation set."""
        return Judge(self.own, self.device, self.precision, self.values)

    @functools.cached_property
    def data(self) -> object:
        """What is trained on: tensors on the device, a Dataset or a function as they are."""
        data = self.own.train
        held = not callable(data) and not isinstance(data, torch.utils.data.Dataset)
        return batches.to(data, self.device) if held else data


class MethodOptimiser:
    """A training method of the book for one module, in the place of a torch.optim.Optimizer.

    Its trainable parameters are views of one vector w [1, P].
    """

    def __init__(self, method: Method, module: nn.Module, drawn: dict[str, float]):
        trained = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        self.method = method
        self.k = 0
        self.parameters = [p for _, p in trained]
        self.w = torch.cat([p.detach().reshape(-1) for p in self.parameters])[None]
        self.layers = ()
        at = 0
        for name, p in trained:
            where = slice(at, at + p.numel())
            kind = flattening.kind_of(module, name)
            self.layers += (flattening.Layer(name, where, tuple(p.shape), kind),)
            p.data = self.w[0, where].view(p.shape)
            at = where.stop
        self.buffers = method.begin(self.w.clone(), self.layers)
        self.drawn = {name: self.w.new_full((1, 1), value) for name, value in drawn.items()}

    @torch.no_grad()
    def step(self) -> None:
        """An update from the gradients that the parameters hold."""
        self.k += 1
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        g = torch.cat([grad.reshape(-1) for grad in grads])[None]
        self.method.step(self.w, g, self.buffers, dict(self.drawn), self.k, self.layers)

    def zero_grad(self) -> None:
        for p in self.parameters:
            p.grad = None

    def state_dict(self) -> dict:
        return {"buffers": self.buffers, "k": self.k}

    def load_state_dict(self, state: dict) -> None:
        for name, buffer in self.buffers.items():
            buffer.copy_(state["buffers"][name])
        self.k = state["k"]


@dataclass
class History:
    """What is known of a trial.

    Attributes:
        steps: taken.
        checked, errors: the checks and what they found, NaN where it was above what a goal allows.
        diverged: the step at which its loss was not finite.
    """

    steps: int = 0
    checked: list[int] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    diverged: float = math.inf

    def met(self, goals: tuple[float, ...]) -> list[float]:
        """The first check that met each goal; inf where none did."""
        pairs = list(zip(self.checked, self.errors, strict=True))
        return [next((at for at, e in pairs if e <= goal + EXACT), math.inf) for goal in goals]

    def done(self, goals: tuple[float, ...]) -> bool:
        """Whether it trains no more: it met the hardest goal, or diverged."""
        return self.diverged < math.inf or any(e <= goals[0] + EXACT for e in self.errors[-1:])


class Trial:
    """A trial's module, optimiser, batches and random numbers, each its own.

    history: `History`.
    """

    def __init__(self, job: Job, seed: int, drawn: dict[str, float]):
        self.job = job
        self.history = History()
        self.drawn = drawn
        self.passes = None
        if batches.is_function(job.data):
            self.passes = batches.Passes(job.data, job.batch_size, 10_000 * job.order_seed)
        with own_network.alone(seed):
            self.module = own_network.made(job.own).to(job.device)
            self.modes = [(part, part.training) for part in self.module.modules()]
            self.optimiser = self._optimiser()
            self.random = batches.randomness()

    def _optimiser(self) -> MethodOptimiser | torch.optim.Optimizer:
        made: Optimiser | None = self.job.method.optimiser
        if made is None:
            return MethodOptimiser(self.job.method, self.module, self.drawn)
        own = {"lr" if n == "learning_rate" else n: v for n, v in self.drawn.items()}
        own.pop("batch_size")
        return made.made([p for p in self.module.parameters() if p.requires_grad], own)

    def run(self, until: int, tick: Callable[[], None]) -> None:
        """Train to this step, or until it is done; tick is called after every step."""
        job = self.job
        history = self.history
        with own_network.alone():
            batches.go_on(self.random)
            given = self._batches()
            check = next_check(last_check(history.steps, job.checks), job.checks)
            while history.steps < until and not history.done(job.goals):
                batch = next(given)
                loss = self._step(batch, history.steps + 1)
                if not math.isfinite(loss):
                    history.diverged = history.steps
                elif history.steps == check:
                    check = next_check(check, job.checks)
                    self._check(last=check > job.limit)
                self.random = None
                tick()
            self.random = batches.randomness()

    def _batches(self) -> Iterator:
        """The batches from here on."""
        job = self.job
        while self.passes:
            yield next(self.passes)
        count = batches.examples(job.data)
        order = lockstep.batches(count, job.batch_size, job.order_seed)
        for pick in itertools.islice(order, self.history.steps, None):
            yield batches.chosen(job.data, pick)

    def _step(self, batch: object, k: int) -> float:
        """Update number k; the loss before it.  Where that is not finite, there is no update."""
        job = self.job
        total = 0.0
        batch = batches.to(batch, job.device)
        self.history.steps = k
        self.optimiser.zero_grad()
        examples = max(1, batches.size(batch))
        for part in batches.cut(batch, job.own.at_once):
            with arithmetic(job.device, job.precision):
                loss = kinds.loss(job.own, self.module, part)
            share = batches.size(part) / examples
            (loss if share == 1 else loss * share).backward()
            total += float(loss.detach()) * share
        if math.isfinite(total):
            self._update(k)
        return total

    def _update(self, k: int) -> None:
        job = self.job
        made = job.method.optimiser
        if made and made.clip:
            nn.utils.clip_grad_norm_(self.module.parameters(), made.clip)
        if made and made.schedule:
            factor = made.schedule.factor(k, job.batch_size, job.limit)
            rate = self.drawn["learning_rate"] * factor
            for group in self.optimiser.param_groups:
                group["lr"] = rate
        self.optimiser.step()

    def _check(self, last: bool) -> None:
        """Its error, read to the end if this is the last check."""
        job = self.job
        history = self.history
        goals = zip(job.goals, history.met(job.goals), strict=True)
        unmet = [goal for goal, at in goals if at == math.inf]
        history.checked.append(history.steps)
        allowed = math.inf if last else max(unmet, default=math.inf)
        history.errors.append(job.judge.error(self.module, allowed))

    def state(self) -> dict:
        """All of it that changes, of tensors, numbers and texts."""
        return {
            "history": vars(self.history),
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
        own = self._tensors()
        if own.keys() != state["tensors"].keys():
            raise ValueError("of a module with other parameters or buffers")
        for name, tensor in own.items():
            tensor.copy_(state["tensors"][name])
        self.optimiser.load_state_dict(state["optimiser"])
        self.history = History(**state["history"])
        if self.passes:
            with own_network.alone():
                self.passes.go_to(*state["passes"])
        self.random = state["random"]


class Search:
    """The trials of a cell in rounds, kept in a file while they are under way."""

    def __init__(self, job: Job, seeds: list[int], drawn: list[dict[str, float]], hits: int):
        self.job = job
        self.hits = hits
        self.wall_s = 0.0
        self.trials: list[Trial] = []
        for seed, own in zip(seeds, drawn, strict=True):
            with _name_trial(len(self.trials), History()):
                self.trials.append(Trial(job, seed, own))

    @property
    def histories(self) -> list[History]:
        return [trial.history for trial in self.trials]

    def end(self) -> int:
        """The step at which the search ends, as far as is known by now."""
        met = sorted(history.met(self.job.goals)[0] for history in self.histories)
        return min([self.job.limit, *met[self.hits - 1 : self.hits]])

    def left(self) -> list[tuple[int, Trial]]:
        """The trials that have to be trained further, and their numbers."""
        end = self.end()
        goals = self.job.goals
        far = (not h.done(goals) and h.steps < end for h in self.histories)
        return [pair for pair, go_on in zip(enumerate(self.trials), far) if go_on]

    def run(self, tick: Callable[[], None]) -> None:
        """Train until it ends; tick is called after every step."""
        far = FIRST
        while left := self.left():
            for n, trial in left:
                with _name_trial(n, trial.history):
                    trial.run(min(far, self.end()), tick)
            far = math.ceil(far * GROWTH)

    def outcome(self) -> Outcome:
        """What is known at the step at which the search ended."""
        goals = self.job.goals
        end = self.end()
        out = Outcome(len(self.trials), len(goals))
        histories = self.histories
        for n, history in enumerate(histories):
            _note(out, n, history, goals, end)
        late = out.status == "stopped"
        last = int(out.last_step.max(initial=0))
        out.steps = end if late.any() else last
        if end == self.job.limit:
            out.status[late] = "budget"
        out.trial_steps = sum(history.steps for history in histories)
        out.wall_s = self.wall_s
        return out

    def told(self) -> tuple[int, int, float]:
        """What a progress report says."""
        alive = sum(not history.done(self.job.goals) for history in self.histories)
        errors = (e for history in self.histories for e in history.errors if e == e)
        return max(h.steps for h in self.histories), alive, min(errors, default=math.inf)

    def state(self) -> dict:
        """All of it that changes."""
        return {"wall_s": self.wall_s, "trials": [trial.state() for trial in self.trials]}

    def take_up(self, state: dict) -> Search:
        """Go on from a `state`."""
        for trial, parts in zip(self.trials, state["trials"], strict=True):
            trial.take_up(parts)
        self.wall_s = state["wall_s"]
        return self


@contextlib.contextmanager
def _name_trial(n: int, history: History) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise lockstep.TrialError(f"trial {n}, step {history.steps}: {raised(error)}") from error


def _note(out: Outcome, n: int, history: History, goals: tuple[float, ...], end: int) -> None:
    """Write trial n as it was at the step `end`."""
    pairs = zip(history.errors, history.checked, strict=True)
    known = [(error, at) for error, at in pairs if at <= end and error == error]
    if known:
        out.best_error[n], out.best_step[n] = min(known)
    met = history.met(goals)
    out.first[n] = [at if at <= end else np.nan for at in met]
    out.status[n] = "stopped"
    out.last_step[n] = end
    if met[0] <= end:
        out.status[n] = "complete"
        out.last_step[n] = met[0]
    elif history.diverged <= end:
        out.status[n] = "infeasible"
        out.last_step[n] = history.diverged
        out.cause[n] = "diverged"


def train(
    job: Job,
    seeds: list[int],
    drawn: dict[str, np.ndarray],
    hits: int,
    progress: Callable[[int, int, float], None] = lambda step, alive, best: None,
    unfinished: Path | None = None,
    whose: str = "",
) -> Outcome:
    """Train trials of these seeds and hyperparameters until `hits` met the hardest goal.

    progress is called with the step of the trial under way, the number of trials still training and
    the lowest error seen.  unfinished, whose: as of `lockstep.train`.  Raises `lockstep.TrialError`
    for what the reader's code raises, and OSError naming a file that cannot be written.
    """
    size = float(job.batch_size)
    drawn = {**drawn, "batch_size": np.full(len(seeds), size)}
    rows = [{name: float(v[n]) for name, v in drawn.items()} for n in range(len(seeds))]
    told = f"{whose}{seeds}{json.dumps(rows)}"
    identity = hashlib.sha256(told.encode()).hexdigest()
    keeper = Checkpoint(unfinished, identity)
    ticks = itertools.count(1)

    def first() -> Search:
        return Search(job, seeds, rows, hits)

    def restored(state: dict) -> Search:
        return first().take_up(state)

    search = keeper.resume(restored, first)
    began = time.perf_counter() - search.wall_s

    def tick() -> None:
        search.wall_s = time.perf_counter() - began
        keeper.save(SAVE_EVERY, search.state)
        if next(ticks) % SELDOM == 0:
            progress(*search.told())

    search.run(tick)
    search.wall_s = time.perf_counter() - began
    return search.outcome()
