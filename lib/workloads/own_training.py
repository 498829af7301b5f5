"""A reader's own training (`lib.own.Training`), checked before any compute is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from lib.own import Metric, OwnError, Training, raised
from lib.workloads import batches, judge, kinds, own_network

PROBED = 8  # examples of a batch on which an untrained module is tried


@dataclass(frozen=True)
class Facts:
    """What the checks have found out: examples to train on; numbers in one of them; values of the
    metric on the validation set (`judge.Judge`); chance, an error that asks for nothing: that of an
    answer that is always the same, or of an untrained module where the metric is the reader's.
    """

    examples: int
    numbers: int
    values: int
    chance: float


def fingerprints(own: Training) -> dict[str, str]:
    """Digests of the data (`batches.fingerprint`).  Raises ValueError, which names the part, for
    what reading it raises.
    """
    found = {}
    for part in ("train", "validation"):
        try:
            found[part] = batches.fingerprint(getattr(own, part))
        except (Exception, SystemExit) as error:
            raise ValueError(f"{part}: {raised(error)}") from error
    return found


def goals(own: Training) -> tuple[float, ...]:
    """The goals as they are on record, the hardest first."""
    return tuple(kinds.of(own).given(float(goal)) for goal in own.goals)


def check_fields(name: str, own: Training) -> None:
    """All that can be said before a module is built.  Raises OwnError."""
    require = own_network.requiring(name)
    for field in ("train", "validation"):
        _check_data(field, getattr(own, field), require)
    told = own.examples is not None
    fits = type(own.examples) is int and own.examples > 0
    if batches.is_function(own.train):
        require(fits, "examples", own.examples, "how many train has, since it is a function")
    else:
        require(not told, "examples", own.examples, "None unless train is a function")
    _check_metric(own, require)
    _check_goals(own, require)
    require(callable(own.model), "model", own_network.kind(own.model), "a function")
    fits = own.answers is None or callable(own.answers)
    require(fits, "answers", repr(own.answers), "a function of model and batch, or None")
    fits = own.at_once is None or type(own.at_once) is int and own.at_once > 0
    require(fits, "at_once", repr(own.at_once), "a whole number from 1, or None")
    own_network.check_plain(own, require)


def _check_data(field: str, data: object, require: Callable) -> None:
    if isinstance(data, Dataset):
        told = f"a {type(data).__name__} without a length"
        known = hasattr(data, "__len__") and hasattr(data, "__getitem__")
        require(known, field, told, "a Dataset with one, or a function of a batch size and a seed")
        require(len(data) > 0, field, "an empty Dataset", "of one example or more")
        return
    if callable(data):
        return
    held = isinstance(data, tuple | Mapping) and len(data) > 0
    allowed = "tensors in a tuple or a dictionary, a Dataset, or a function"
    require(held, field, own_network.kind(data), allowed)
    parts = data.items() if isinstance(data, Mapping) else enumerate(data)
    for key, part in parts:
        fine = own_network.is_plain(part) and part.dim() > 0
        require(fine, f"{field}[{key!r}]", own_network.kind(part), "a dense tensor on the CPU")
        known = not part.is_floating_point() or part.float().isfinite().all()
        require(known, f"{field}[{key!r}]", "a value that is not finite", "finite")
    sizes = [len(part) for part in batches.tensors(data)]
    require(len(set(sizes)) == 1 and sizes[0] > 0, f"{field} lengths", sizes, "equal and not zero")


def _check_metric(own: Training, require: Callable) -> None:
    ready = ", ".join(kinds.KINDS)
    named = isinstance(own.loss, str) and own.loss in kinds.KINDS
    require(named or callable(own.loss), "loss", repr(own.loss), f"one of {ready}, or a function")
    metric = own.metric
    if isinstance(metric, Metric):
        require(callable(metric.measure), "metric.measure", repr(metric.measure), "a function")
        fine = isinstance(metric.name, str) and metric.name.isprintable() and metric.name
        require(fine, "metric.name", repr(metric.name), "printable text")
        fine = metric.highest is None or _finite(metric.highest)
        require(fine, "metric.highest", repr(metric.highest), "a finite number, or None")
        mean = metric.highest is None and not metric.whole
        fine = mean or not metric.never_negative
        require(fine, "metric.never_negative", True, "False with highest or whole")
        return
    known = isinstance(metric, str) and metric in kinds.KINDS or metric is None and named
    allowed = f"one of {ready}, or a lib.own.Metric, which says whether higher is better"
    require(known, "metric", repr(metric), allowed + (", with a loss of your own" * (not named)))


def _finite(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _check_goals(own: Training, require: Callable) -> None:
    kind, given = kinds.of(own), own.goals
    numbers = isinstance(given, tuple) and given and all(map(_finite, given))
    up = kind.highest is not None
    allowed = f"a tuple of numbers, the hardest ({'highest' if up else 'lowest'}) first"
    order = numbers and list(given) == sorted(set(given), reverse=up)
    require(order, "goals", repr(given), allowed)
    if kind.counted or up or kind.never_negative:
        low, high = (0, math.inf) if not kind.counted else (0, 1)
        fits = all(low <= kind.given(goal) < high for goal in given)
        ends = f"up to {kind.highest:g}" if up else f"in [0, {high:g})"
        more = ": goals are errors, for an accuracy of 0.95 write 0.05" * kind.counted
        require(fits, "goals", repr(given), ends + more)
    apart = len({f"{goal:g}" for goal in goals(own)}) == len(given)
    require(apart, "goals", repr(given), "of numbers that differ in their first six digits")


def check(name: str, own: Training) -> Facts:
    """Try an untrained module on a batch and on the validation set.  Raises OwnError."""
    require = own_network.requiring(name)
    modules = [own_network.build(own, seed, name) for seed in (0, 0, 1)]
    own_network.check_built(modules, require)
    trained = any(p.requires_grad for p in modules[0].parameters())
    require(trained, "model", "without parameters to train", "one with some")
    buffers = [list(module.buffers()) for module in modules[:2]]
    same = all(map(torch.equal, *buffers))
    require(same, "model", "other buffers from the same seed", own_network.SEEDED)
    one = _first(name, own, require)
    before = [buffer.clone() for buffer in modules[0].buffers()]
    with _telling(name, "validation", "asked for its metric"), own_network.alone(0):
        seen = judge.Judge(own, "cpu", own.precision)
        error, targets = seen.error(modules[0]), seen.targets(modules[0])
    kept = all(map(torch.equal, before, modules[0].buffers()))
    require(kept, "model", "one whose buffers change in eval mode", "one that keeps them")
    _check_step(name, own, modules, one, require)
    require(not math.isnan(error), "metric of an untrained model", error, "a number")
    chance = error if targets is None else seen.kind.constant(targets)
    met = [goal for goal, known in zip(own.goals, goals(own)) if known >= chance]
    better = "above" if seen.kind.highest is not None else "below"
    who = "an untrained model" if targets is None else "an answer that is always the same"
    told = f"{better} {seen.kind.given(chance):.4g}, which asks for nothing: {who} has it"
    told += " (goals are errors: for an accuracy of 0.95 write 0.05)" * seen.kind.counted
    require(not met, "goals", ", ".join(f"{goal:g}" for goal in met), told)
    same = "the same from the same seed, pass after pass (make loaders and generators inside it)"
    with own_network.alone():
        prints, again = fingerprints(own), fingerprints(own)
    for field in prints:
        require(prints[field] == again[field], field, "one whose first batch changes", same)
    numbers = sum(t.numel() for t in batches.tensors(one)) // max(1, batches.size(one))
    count = own.examples or batches.examples(own.train)
    return Facts(count, numbers, seen.values, chance)


def _first(name: str, own: Training, require: Callable) -> object:
    """The first batch of a few examples."""
    few = min(PROBED, own.examples or batches.examples(own.train))
    with _telling(name, "train", f"asked for {few} examples"), own_network.alone(0):
        if batches.is_function(own.train):
            batch = next(batches.Passes(own.train, few, 0))
        else:
            batch = batches.chosen(own.train, range(few))
    found = batches.size(batch)
    require(found == few, "train", f"a batch of {found} examples", f"of the {few} asked for")
    return batch


def _check_step(
    name: str, own: Training, modules: list[nn.Module], batch: object, require: Callable
) -> None:
    """The same loss from the same seed, and a gradient."""
    losses = []
    for module in modules[:2]:
        with _telling(name, "loss", f"asked for that of {batches.size(batch)} examples"):
            with own_network.alone(0), judge.arithmetic("cpu", own.precision):
                losses.append(kinds.loss(own, module, batch))
    loss = losses[0]
    scalar = isinstance(loss, Tensor) and loss.dim() == 0
    require(scalar, "loss", own_network.kind(loss), "a scalar tensor")
    require(loss.isfinite(), "loss of an untrained model", loss.item(), "finite")
    same = "the same from the same seed (draw from the numbers of torch, numpy or Python)"
    require(torch.equal(loss, losses[1]), "loss", "another one when asked again", same)
    require(loss.requires_grad, "loss", "one without a gradient", "a function of the parameters")
    with _telling(name, "loss", "asked for its gradient"):
        loss.backward()
    reached = any(p.grad is not None and bool(p.grad.any()) for p in modules[0].parameters())
    require(reached, "loss", "one with gradients of zero", "one that some parameter changes")


class _telling:
    """A block in which what a reader's code raises is told as that of a field."""

    def __init__(self, name: str, field: str, doing: str):
        self.said = f"{name}: {field}: {doing} it raised "

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, _) -> None:
        if isinstance(error, (Exception, SystemExit)) and not isinstance(error, OwnError):
            raise OwnError(self.said + raised(error)) from error
