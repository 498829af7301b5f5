"""Trials of any module in lock step, each with a module of its own: one after the other trains to
the next check.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lib.engine import flattening, lockstep
from lib.engine.checkpoint import NO_CHECKPOINT, Checkpoint
from lib.engine.training_state import Outcome
from lib.engine.vocabulary import next_check
from lib.methods.method import Method
from lib.own import Training
from lib.workloads import batches, kinds, own_network
from lib.workloads.kinds import arithmetic

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
        self.layers = flattening.layers(module, trained)
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
        finite: whether its last loss was; it trains no more where it was not.
    """

    def __init__(self, job: Job, seed: int, drawn: dict[str, float]):
        self.job = job
        self.drawn = drawn
        self.steps = 0
        self.finite = True
        self.passes = None
        if callable(job.data):
            self.passes = batches.Passes(job.data, job.batch_size, 10_000 * job.order_seed)
        self.given = self.passes or self._batches()
        with own_network.alone(seed):
            self.module = own_network.made(job.own).to(job.device)
            self.optimiser = self._optimiser()
            self.random = batches.randomness()

    def _optimiser(self) -> MethodOptimiser | torch.optim.Optimizer:
        job = self.job
        made = job.method.optimiser
        if made is None:
            drawn = self.drawn | {"batch_size": float(job.batch_size)}
            return MethodOptimiser(job.method, self.module, drawn)
        own = {"lr" if n == "learning_rate" else n: v for n, v in self.drawn.items()}
        return made.made([p for p in self.module.parameters() if p.requires_grad], own)

    def run(self, until: int, tick: Callable[[], None] = lambda: None) -> None:
        """Train to this step, or until a loss is not finite; tick is called after every step."""
        with own_network.alone():
            batches.go_on(self.random)
            while self.steps < until and self.finite:
                self._step(next(self.given))
                self.random = None
                tick()
            self.random = batches.randomness()

    def error(self) -> float:
        """That of the whole validation set."""
        job = self.job
        with own_network.alone():
            return kinds.error(job.own, self.module, job.device, job.precision)[0]

    def _batches(self) -> Iterator:
        """The batches of tensors or of a Dataset from here on."""
        job = self.job
        order = lockstep.batches(batches.examples(job.data), job.batch_size, job.order_seed)
        for pick in itertools.islice(order, self.steps, None):
            yield batches.chosen(job.data, pick)

    def _step(self, batch: object) -> None:
        """The next update, unless the loss before it is not finite."""
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
            (loss * share).backward()
            total += float(loss.detach()) * share
        self.finite = math.isfinite(total)
        if self.finite:
            self._update()

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

    def state(self) -> dict:
        """All of it that changes, of tensors, numbers and texts."""
        return {
            "known": (self.steps, self.finite),
            "tensors": self._tensors(),
            "optimiser": self.optimiser.state_dict(),
            "passes": self.passes and self.passes.at,
            "random": self.random or batches.randomness(),
        }

    def _tensors(self) -> list[Tensor]:
        return [*self.module.parameters(), *self.module.buffers()]

    @torch.no_grad()
    def take_up(self, state: dict) -> None:
        """Go on from a `state`."""
        for tensor, saved in zip(self._tensors(), state["tensors"], strict=True):
            tensor.copy_(saved)
        self.optimiser.load_state_dict(state["optimiser"])
        self.steps, self.finite = state["known"]
        if self.passes:
            with own_network.alone():
                self.passes.go_to(*state["passes"])
        self.random = state["random"]


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
    out = Outcome(len(seeds), len(job.goals))
    trials = []
    for n, seed in enumerate(seeds):
        with lockstep.naming(f"trial {n}"):
            trials.append(Trial(job, seed, {name: float(v[n]) for name, v in drawn.items()}))
    if saved := checkpoint.load():
        out.restore(saved["outcome"])
        for trial, parts in zip(trials, saved["trials"], strict=True):
            trial.take_up(parts)

    def state() -> dict:
        return {"outcome": out.parts(), "trials": [trial.state() for trial in trials]}

    while out.goes_on(hits) and out.steps < job.limit and (out.status == "").any():
        check = next_check(out.steps, job.checks)
        until = min(check, job.limit)
        ids = np.flatnonzero(out.status == "")
        errors = np.full(len(ids), math.nan)
        for place, n in enumerate(ids):
            trial = trials[n]
            with lockstep.naming(f"trial {n}, from step {trial.steps}"):
                trial.run(until, lambda: checkpoint.save(state))
                if trial.finite and until == check:
                    errors[place] = trial.error()
            lockstep.LOG.info("trial %d of %d, step %d", n + 1, len(trials), trial.steps)
        out.steps = until
        met = errors[:, None] <= np.array(job.goals) + EXACT
        out.check(ids, errors, met)
        out.leave(ids[met[:, 0]], "complete")
        gone = [n for n in ids if not trials[n].finite]
        out.leave(gone, "infeasible", "diverged")
    out.end(job.limit)
    out.last_step[:] = [trial.steps for trial in trials]
    out.steps = int(out.last_step.max(initial=0))
    out.trial_steps = int(out.last_step.sum())
    return out
