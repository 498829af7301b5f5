"""Trains trials of any module in lock step, each with a separate module: one after another, to the
next check.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from lib.engine import flattening, lockstep, pruning
from lib.engine.checkpoint import NO_CHECKPOINT, Checkpoint, packed, unpacked
from lib.engine.training_state import Outcome
from lib.engine.vocabulary import next_check
from lib.methods.method import Method
from lib.own import Training, raised, require, telling
from lib.workloads import batches, kinds, own_network

EXACT = 1e-12  # by which an error may exceed a goal and still meet it
TRIED = 5  # steps before and after saving, when a state is tried


@dataclass(frozen=True)
class Job:
    """What the trials of a search share.

    Attributes:
        training: what is trained.
        method: of training.
        limit: the maximum of steps.
        goals: errors as recorded, the hardest first.
        batch_size, order_seed, device, precision, checks, sparsity, pruning: of the search.
        matrices: whether only weights of two or more axes are pruned and counted; otherwise all
            parameters are, as in trials trained at once.
    """

    training: Training
    method: Method
    batch_size: int
    limit: int
    goals: tuple[float, ...]
    order_seed: int = 0
    device: str = "cpu"
    precision: str = "float32"
    checks: str = "geometric"
    sparsity: float = 0.0
    pruning: str = "connection-sensitivity"
    matrices: bool = True

    @functools.cached_property
    def data(self) -> object:
        """The training data: tensors on the device; rows or a function as they are."""
        data = self.training.train
        return data if callable(data) else batches.to(data, self.device)

    def build(self) -> nn.Module:
        """A module, initialised from the current state of the global random numbers."""
        return own_network.initialise(self.training).to(self.device)

    def prunable(self, module: nn.Module) -> list[Tensor]:
        """The parameters of a module that may be pruned."""
        trained = [p for p in module.parameters() if p.requires_grad]
        return [p for p in trained if p.dim() > 1 or not self.matrices]

    def backward(self, module: nn.Module, batch: object) -> float:
        """The loss of a batch, whose gradient is added to the parameters' .grad."""
        batch = batches.to(batch, self.device)
        with kinds.arithmetic(self.device, self.precision):
            loss = kinds.loss(self.training, module, batch)
        loss.backward()
        return float(loss.detach())

    def stream(self, steps: int) -> Iterator:
        """The batches, of tensors or of rows, that follow after so many steps."""
        order = lockstep.batches(batches.examples(self.data), self.batch_size, self.order_seed)
        for pick in itertools.islice(order, steps, None):
            yield batches.chosen(self.data, pick)


def masks(job: Job, seed: int) -> list[Tensor]:
    """Masks of the `prunable` parameters of a trial's fresh module, as `lib.engine.pruning` chooses
    them; none at sparsity 0.

    Connection sensitivity sums gradients of the loss over one pass of the training set.  Raises
    OwnError for a module without such parameters, and `pruning.ScoresError`.
    """
    if not job.sparsity:
        return []
    with own_network.alone(seed):
        module = job.build()
        weights = job.prunable(module)
        require(weights, "sparsity", job.sparsity, "0 for a model without trained matrices")
        w = torch.cat([p.detach().flatten() for p in weights])
        if job.pruning == "connection-sensitivity":
            few = min(pruning.PASS_BATCH, own_network.examples(job.training))
            for batch in batches.in_order(job.data, few):
                job.backward(module, batch)
            scores = (w * _gradient(weights)).abs()
        else:
            scores = pruning.scores(job.pruning, w.abs(), None, None, None, seed)
    kept = pruning.chosen(job.pruning, scores, job.sparsity)
    parts = kept.split([p.numel() for p in weights])
    return [part.view_as(p) for p, part in zip(weights, parts)]


def _gradient(parameters: list[Tensor]) -> Tensor:
    """The parameters' gradient [P], zero where there is none."""
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    return torch.cat([grad.reshape(-1) for grad in grads])


class MethodOptimiser:
    """A training method of the book for one module, in place of a torch.optim.Optimizer.

    The module's trainable parameters become views of one vector w [1, P].
    """

    def __init__(self, method: Method, module: nn.Module, drawn: dict[str, float]):
        trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.method = method
        self.parameters = list(trained.values())
        self.layers = flattening.layers(module, trained)
        self.w = torch.cat([p.detach().reshape(-1) for p in self.parameters])[None]
        for p, layer in zip(self.parameters, self.layers):
            view = self.w[0, layer.where]
            p.data = view.view(p.shape)
        self.buffers = method.begin(self.w.clone(), self.layers)
        self.drawn = {name: self.w.new_full((1, 1), value) for name, value in drawn.items()}
        self.k = 0

    @torch.no_grad()
    def step(self) -> None:
        """Update from the parameters' .grad, with denormal numbers flushed to zero, as in trials
        trained at once.
        """
        self.k += 1
        g = _gradient(self.parameters)[None]
        before = own_network.flushing()
        torch.set_flush_denormal(True)
        try:
            self.method.step(self.w, g, self.buffers, dict(self.drawn), self.k, self.layers)
        finally:
            torch.set_flush_denormal(before)

    def state_dict(self) -> dict:
        return {"buffers": self.buffers, "k": self.k}

    def load_state_dict(self, state: dict) -> None:
        for name, buffer in self.buffers.items():
            buffer.copy_(state["buffers"][name])
        self.k = state["k"]


class Trial:
    """A trial, with its own module, optimiser, batches and random numbers.

    Attributes:
        steps: number taken.
        finite: whether its last loss was finite; if not, training has stopped.
    """

    def __init__(self, job: Job, seed: int, drawn: dict[str, float]):
        self.job = job
        self.drawn = drawn
        self.steps = 0
        self.finite = True
        self.passes = None
        if callable(job.data):
            size, total = job.batch_size, own_network.examples(job.training)
            self.passes = batches.Passes(job.data, size, 10_000 * job.order_seed, total)
        self.batches: Iterator | None = None
        self.masks = masks(job, seed)
        with own_network.alone(seed):
            self.module = job.build()
            self.weights = job.prunable(self.module)
            self._prune()
            self.optimiser = self._optimiser()
            self.random = batches.randomness()

    @torch.no_grad()
    def _prune(self) -> None:
        """Set removed weights and their gradients to zero."""
        for p, mask in zip(self.weights, self.masks):
            p.mul_(mask)
            if p.grad is not None:
                p.grad.mul_(mask)

    def _optimiser(self) -> MethodOptimiser | torch.optim.Optimizer:
        method = self.job.method
        if method.optimiser is None:
            drawn = self.drawn | {"batch_size": float(self.job.batch_size)}
            return MethodOptimiser(method, self.module, drawn)
        hparams = {"lr" if n == "learning_rate" else n: v for n, v in self.drawn.items()}
        trained = [p for p in self.module.parameters() if p.requires_grad]
        with telling(f"algorithm: creating {method.name} raised"):
            return method.optimiser.made(trained, hparams)

    def run(self, until: int, tick: Callable[[], None] = lambda: None) -> None:
        """Train to this step, or until a loss is not finite; tick is called after every step."""
        self.batches = self.batches or self.passes or self.job.stream(self.steps)
        with own_network.alone():
            batches.go_on(self.random)
            while self.steps < until and self.finite:
                self._step(next(self.batches))
                self.random = None
                tick()
            self.random = batches.randomness()

    def error(self) -> float:
        """The error on the whole validation set."""
        job = self.job
        with own_network.alone():
            return kinds.error(job.training, self.module, job.device, job.precision)[0]

    def _step(self, batch: object) -> None:
        """Take the next update, unless the loss before it is not finite."""
        self.steps += 1
        self.module.zero_grad()
        self.finite = math.isfinite(self.job.backward(self.module, batch))
        if not self.finite:
            return
        self._prune()
        rule = self.job.method.optimiser
        if rule and rule.clip:
            nn.utils.clip_grad_norm_(self.module.parameters(), rule.clip)
        if rule and rule.schedule:
            factor = rule.factor(self.steps, self.job.limit)
            for group in self.optimiser.param_groups:
                group["lr"] = self.drawn["learning_rate"] * factor
        self.optimiser.step()
        self._prune()

    def state(self) -> dict:
        """Everything that changes, as tensors, numbers and strings."""
        return {
            "progress": (self.steps, self.finite),
            "masks": self.masks,
            "module": self.module.state_dict(),
            "buffers": dict(self.module.named_buffers()),
            "optimiser": self.optimiser.state_dict(),
            "passes": self.passes and self.passes.position,
            "random": self.random or batches.randomness(),
        }

    @torch.no_grad()
    def take_up(self, state: dict) -> None:
        """Continue from a `state`; call it before the first step."""
        for name, buffer in state["buffers"].items():
            owner, _, leaf = name.rpartition(".")
            owner = self.module.get_submodule(owner)
            owner.register_buffer(leaf, buffer.to(self.job.device), name in state["module"])
        self.module.load_state_dict(state["module"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.masks = [mask.to(self.job.device) for mask in state["masks"]]
        self.steps, self.finite = state["progress"]
        if self.passes:
            with own_network.alone():
                self.passes.go_to(*state["passes"])
        self.random = state["random"]


def check_state(job: Job, seed: int, drawn: dict[str, float]) -> None:
    """Raise OwnError if a trial restored from its state trains differently: after a few steps, on a
    few examples and the CPU, the next steps are taken by the trial and by a restored copy.
    """
    job = replace(job, device="cpu", batch_size=min(own_network.PROBED, job.batch_size))
    with own_network.alone(), telling("model: resuming its training raised"):
        trial, copy = trials = [Trial(job, seed, drawn) for _ in range(2)]
        trial.run(TRIED)
        copy.take_up(unpacked(packed(trial.state())))
        for t in trials:
            t.run(2 * TRIED)
        states = [batches.map_tensors(t.state(), batches.digest) for t in trials]
        errors = [t.error() for t in trials]
    fine = states[0] == states[1] and np.array_equal(*errors, equal_nan=True)
    allowed = (
        "one with its whole state in parameters, buffers, or get_extra_state and "
        "set_extra_state; the loss and the batches must keep no state"
    )
    require(fine, "model", "one that trains differently when resumed from a file", allowed)


def train(
    job: Job,
    seeds: list[int],
    drawn: dict[str, np.ndarray],
    hits: int,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Outcome:
    """Train trials of these seeds and hyperparameters until `hits` have met the hardest goal.

    checkpoint: as for `lockstep.train`; a state that cannot be restored is set aside.  Raises
    `lockstep.TrialError` for what the reader's code raises, OwnError for what is refused (also by
    `check_state`, before the first state is saved), and OSError naming a file that cannot be
    written.
    """
    hparams = [{name: float(v[n]) for name, v in drawn.items()} for n in range(len(seeds))]

    def start() -> tuple[Outcome, list[Trial]]:
        trials = []
        for n, seed in enumerate(seeds):
            with lockstep.naming(f"trial {n}"):
                trials.append(Trial(job, seed, hparams[n]))
        return Outcome(len(seeds), len(job.goals)), trials

    out, trials = start()
    if saved := checkpoint.load():
        try:
            out.restore(saved["outcome"])
            for trial, parts in zip(trials, saved["trials"], strict=True):
                trial.take_up(parts)
        except Exception as error:  # a reader's module may raise anything
            checkpoint.set_aside(f"cannot be resumed ({raised(error)})")
            out, trials = start()

    @functools.cache
    def check_once() -> None:
        check_state(job, seeds[0], hparams[0])

    def state() -> dict:
        check_once()
        return {"outcome": out.parts(), "trials": [trial.state() for trial in trials]}

    while out.goes_on(hits) and out.steps < job.limit and (out.status == "").any():
        check = next_check(out.steps, job.checks)
        until = min(check, job.limit)
        ids = np.flatnonzero(out.status == "")
        errors = np.full(len(ids), math.nan)
        for row, n in enumerate(ids):
            trial = trials[n]
            with lockstep.naming(f"trial {n}, from step {trial.steps}"):
                trial.run(until, lambda: checkpoint.save(state))
                if trial.finite and until == check:
                    errors[row] = trial.error()
            lockstep.LOG.info("trial %d of %d, step %d", n + 1, len(trials), trial.steps)
        out.steps = until
        met = errors[:, None] <= np.array(job.goals) + EXACT
        out.check(ids, errors, met)
        out.leave(ids[met[:, 0]], "complete")
        out.leave([n for n in ids if not trials[n].finite], "infeasible", "diverged")
    out.end(job.limit)
    out.last_step[:] = [trial.steps for trial in trials]
    out.steps = int(out.last_step.max(initial=0))
    out.trial_steps = int(out.last_step.sum())
    return out
