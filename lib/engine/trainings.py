"""Trials of any module in lock step, each with a module of its own: one after the other trains to
the next check.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import joblib
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
from lib.workloads.kinds import arithmetic

EXACT = 1e-12  # by which an error may exceed the goal that it meets
TRIED = 3  # steps after which a state is tried
# What every module holds besides its tensors, and need not be compared
USUAL = vars(nn.Module()).keys() - {"training"}


@dataclass(frozen=True)
class Job:
    """What the trials of a cell share.

    Attributes:
        own: what is trained.
        method: of training.
        limit: steps.
        goals: errors on record, the hardest first.
        batch_size, order_seed, device, precision, checks, sparsity, pruning: as of a cell.
        matrices: whether weights of two axes or more alone are pruned, and counted; elsewhere all
            parameters are, as where trials are trained at once.

    Raises OwnError where a batch in parts is not the whole (`own_network.check_parts`).
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
    sparsity: float = 0.0
    pruning: str = "connection-sensitivity"
    matrices: bool = True

    def __post_init__(self):
        own_network.check_parts(self.own)

    @functools.cached_property
    def data(self) -> object:
        """What is trained on: tensors on the device, a Dataset or a function as they are."""
        data = self.own.train
        return data if callable(data) else batches.to(data, self.device)


def prunable(job: Job, module: nn.Module) -> list[Tensor]:
    """The parameters of a module that are pruned."""
    trained = [p for p in module.parameters() if p.requires_grad]
    return [p for p in trained if p.dim() > 1 or not job.matrices]


def masks(job: Job, seed: int) -> list[Tensor]:
    """What is kept of each `prunable` parameter of a trial's fresh module, as `lib.engine.pruning`
    chooses it; none at sparsity 0.

    Connection sensitivity sums gradients of the loss over one pass of the training set.  Raises
    OwnError for a module without such parameters, and `pruning.ScoresError`.
    """
    if not job.sparsity:
        return []
    with own_network.alone(seed):
        module = own_network.made(job.own).to(job.device)
        weights = prunable(job, module)
        require(weights, "sparsity", job.sparsity, "0 for a model without trained matrices")
        w = torch.cat([p.detach().flatten() for p in weights])
        if job.pruning == "connection-sensitivity":
            few = min(pruning.PASS_BATCH, own_network.own_examples(job.own))
            for batch in batches.whole(job.data, few):
                _backward(job, module, batch)
            g = torch.cat([grad.flatten() for grad in _gradients(weights)])
            scores = (w * g.conj()).real.abs()
        else:
            scores = pruning.scores(job.pruning, w.abs(), None, None, None, seed)
    kept = pruning.chosen(job.pruning, scores, job.sparsity)
    parts = kept.split([p.numel() for p in weights])
    return [part.view_as(p) for p, part in zip(weights, parts)]


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]


def _backward(job: Job, module: nn.Module, batch: object) -> float:
    """The loss of a batch, whose gradient is added to those of the parameters."""
    total = 0.0
    batch = batches.to(batch, job.device)
    for part, share in kinds.parts(job.own, batch):
        with arithmetic(job.device, job.precision):
            loss = kinds.loss(job.own, module, part)
        (loss * share).backward()
        total += float(loss.detach()) * share
    return total


class MethodOptimiser:
    """A training method of the book for one module, in the place of a torch.optim.Optimizer.

    Its trainable parameters are views of one vector w [1, P], complex ones as pairs of numbers.
    """

    def __init__(self, method: Method, module: nn.Module, drawn: dict[str, float]):
        trained = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        # Pairs lie at even places
        trained = dict(sorted(trained, key=lambda named: not named[1].is_complex()))
        self.method = method
        self.parameters = list(trained.values())
        self.layers = flattening.layers(module, trained)
        self.w = _flat([p.detach() for p in self.parameters])
        for p, layer in zip(self.parameters, self.layers):
            view = self.w[0, layer.where]
            view = torch.view_as_complex(view.unflatten(0, (-1, 2))) if p.is_complex() else view
            p.data = view.view(p.shape)
        self.buffers = method.begin(self.w.clone(), self.layers)
        self.drawn = {name: self.w.new_full((1, 1), value) for name, value in drawn.items()}
        self.k = 0

    @torch.no_grad()
    def step(self) -> None:
        """An update from the gradients that the parameters hold."""
        self.k += 1
        grads = _gradients(self.parameters)
        with own_network.flushing():
            drawn = dict(self.drawn)
            self.method.step(self.w, _flat(grads), self.buffers, drawn, self.k, self.layers)

    def state_dict(self) -> dict:
        return {"buffers": self.buffers, "k": self.k}

    def load_state_dict(self, state: dict) -> None:
        for name, buffer in self.buffers.items():
            buffer.copy_(state["buffers"][name])
        self.k = state["k"]


def _flat(values: list[Tensor]) -> Tensor:
    """Tensors as one vector [1, P] (a copy)."""
    return torch.cat([kinds.real(value).reshape(-1) for value in values])[None]


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
            every = own_network.own_examples(job.own)
            self.passes = batches.Passes(
                job.data, job.batch_size, 10_000 * job.order_seed, every
            )
        self.given = self.passes or self._batches()
        self.masks = masks(job, seed)
        with own_network.alone(seed):
            self.module = own_network.made(job.own).to(job.device)
            self.weights = prunable(job, self.module)
            self._prune()
            self.optimiser = self._optimiser()
            self.random = batches.randomness()

    @torch.no_grad()
    def _prune(self) -> None:
        """Zeros where weights are removed, and in their gradients."""
        for p, mask in zip(self.weights, self.masks):
            p.mul_(mask)
            if p.grad is not None:
                p.grad.mul_(mask)

    def _optimiser(self) -> MethodOptimiser | torch.optim.Optimizer:
        job = self.job
        made = job.method.optimiser
        if made is None:
            drawn = self.drawn | {"batch_size": float(job.batch_size)}
            return MethodOptimiser(job.method, self.module, drawn)
        own = {"lr" if n == "learning_rate" else n: v for n, v in self.drawn.items()}
        trained = [p for p in self.module.parameters() if p.requires_grad]
        with telling(f"algorithm: {job.method.name}, for the model's parameters, raised"):
            return made.made(trained, own)

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
        self.steps += 1
        self.module.zero_grad()
        self.finite = math.isfinite(_backward(self.job, self.module, batch))
        if self.finite:
            self._update()

    def _update(self) -> None:
        job = self.job
        made = job.method.optimiser
        self._prune()
        if made and made.clip:
            nn.utils.clip_grad_norm_(self.module.parameters(), made.clip)
        if made and made.schedule:
            factor = made.factor(self.steps, job.limit)
            for group in self.optimiser.param_groups:
                group["lr"] = self.drawn["learning_rate"] * factor
        self.optimiser.step()
        self._prune()

    def state(self) -> dict:
        """All of it that changes, of tensors, numbers and texts."""
        return {
            "known": (self.steps, self.finite),
            "masks": self.masks,
            "module": self.module.state_dict(),
            "buffers": dict(self.module.named_buffers()),
            "optimiser": self.optimiser.state_dict(),
            "passes": self.passes and self.passes.at,
            "random": self.random or batches.randomness(),
        }

    @torch.no_grad()
    def take_up(self, state: dict) -> None:
        """Go on from a `state`."""
        held = dict(self.module.named_buffers())
        for name, saved in state["buffers"].items():
            if name in held and held[name].shape == saved.shape:
                held[name].copy_(saved)
            else:
                owner, _, leaf = name.rpartition(".")
                owner = self.module.get_submodule(owner)
                owner.register_buffer(leaf, saved.to(self.job.device), name in state["module"])
        self.module.load_state_dict(state["module"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.masks = [mask.to(self.job.device) for mask in state["masks"]]
        self.steps, self.finite = state["known"]
        if self.passes:
            with own_network.alone():
                self.passes.go_to(*state["passes"])
        self.random = state["random"]


def check_state(job: Job, seed: int, drawn: dict[str, float]) -> None:
    """Raise OwnError where a trial that goes on from its state is not the one that it was: after a
    few steps of a copy, on a few examples and the CPU, the next step is taken twice.
    """
    job = replace(job, device="cpu", batch_size=min(own_network.PROBED, job.batch_size))
    with own_network.alone(), telling("model: going on from a state it raised"):
        one, other = pair = [Trial(job, seed, drawn) for _ in range(2)]
        begun, alike = (_memory(trial.module) for trial in pair)
        one.run(TRIED)
        other.take_up(unpacked(packed(one.state())))
        for trial in pair:
            trial.run(TRIED + 1)
        kept, found = (_memory(trial.module) for trial in pair)
    differ = [name for name in kept | found if kept.get(name) != found.get(name)]
    lost = [name for name in differ if begun.get(name) == alike.get(name)]
    told = f"one that forgets {', '.join(lost[:3])} when training goes on from a file,"
    allowed = (
        "one that keeps all it remembers in parameters, in buffers or by get_extra_state and "
    )
    allowed += "set_extra_state, with a loss and batches that remember nothing"
    require(not lost, "model", told, allowed)


def _memory(module: nn.Module) -> dict[str, str]:
    """Digests of all that a module holds, attributes first, by name; without what has none."""
    found = {}
    for owner, part in module.named_modules():
        for name in sorted(vars(part).keys() - USUAL):
            with contextlib.suppress(Exception):
                value = batches.each(vars(part)[name], batches.digest)
                found[f"{owner}.{name}".lstrip(".")] = joblib.hash(value)
    for name, tensor in itertools.chain(module.named_parameters(), module.named_buffers()):
        found[name] = f"{batches.digest(tensor)} {tensor.requires_grad}"
    return found


def train(
    job: Job,
    seeds: list[int],
    drawn: dict[str, np.ndarray],
    hits: int,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Outcome:
    """Train trials of these seeds and hyperparameters until `hits` met the hardest goal.

    checkpoint: as of `lockstep.train`; a state that cannot be taken up is set aside.  Raises
    `lockstep.TrialError` for what the reader's code raises, OwnError for what is refused, before
    the first state is kept also for what `check_state` says, and OSError naming a file that cannot
    be written.
    """
    each = [{name: float(v[n]) for name, v in drawn.items()} for n in range(len(seeds))]

    def start() -> tuple[Outcome, list[Trial]]:
        trials = []
        for n, seed in enumerate(seeds):
            with lockstep.naming(f"trial {n}"):
                trials.append(Trial(job, seed, each[n]))
        return Outcome(len(seeds), len(job.goals)), trials

    out, trials = start()
    if saved := checkpoint.load():
        try:
            out.restore(saved["outcome"])
            for trial, parts in zip(trials, saved["trials"], strict=True):
                trial.take_up(parts)
        except Exception as error:  # whatever a reader's module makes of it
            checkpoint.set_aside(f"cannot be taken up ({raised(error)})")
            out, trials = start()

    @functools.cache
    def tried() -> None:
        check_state(job, seeds[0], each[0])

    def state() -> dict:
        tried()
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
