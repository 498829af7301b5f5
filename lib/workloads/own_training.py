"""A reader's own training (`lib.own.Training`), checked before any compute is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from lib.own import Metric, Training, require, telling
from lib.workloads import batches, kinds
from lib.workloads.own_network import (
    SEEDED,
    SHARED,
    Facts,
    alone,
    build,
    check_built,
    check_chance,
    check_each,
    check_goals,
    check_tensors,
    has_gradient,
    is_count,
    is_finite,
    kind,
)

READY = ", ".join(kinds.KINDS)
FIELDS = {
    **SHARED,
    "answers": (lambda v: v is None or callable(v), "a function of model and batch, or None"),
    "at_once": (lambda v: v is None or is_count(v), "a whole number from 1, or None"),
    "loss": (
        lambda v: callable(v) or isinstance(v, str) and v in kinds.KINDS,
        f"one of {READY}, or a function",
    ),
}
PROBED = 8  # examples of a batch on which an untrained module is tried


def fingerprints(own: Training) -> dict[str, str]:
    """Digests of the data (`batches.fingerprint`).  Raises OwnError for what reading it raises."""
    found = {}
    for part in ("train", "validation"):
        with telling(f"{part}: reading it raised"):
            found[part] = batches.fingerprint(getattr(own, part))
    return found


def check_fields(own: Training) -> None:
    """All that can be said before a module is built.  Raises OwnError."""
    for field in ("train", "validation"):
        _check_data(field, getattr(own, field))
    allowed = "None unless train is a function"
    fine = own.examples is None
    if batches.is_function(own.train):
        allowed = "how many train has, since it is a function"
        fine = is_count(own.examples)
    require(fine, "examples", own.examples, allowed)
    check_each(own, FIELDS)
    _check_metric(own)
    check_goals(own)


def _check_data(field: str, data: object) -> None:
    if isinstance(data, Dataset):
        told = f"a {type(data).__name__} without a length, or of no example"
        fine = hasattr(data, "__len__") and hasattr(data, "__getitem__") and len(data) > 0
        require(fine, field, told, "a Dataset with one, or a function of a batch size and a seed")
    elif not callable(data):
        held = isinstance(data, tuple | Mapping) and len(data) > 0
        allowed = "tensors in a tuple or a dictionary, a Dataset, or a function"
        require(held, field, kind(data), allowed)
        parts = data if isinstance(data, Mapping) else dict(enumerate(data))
        check_tensors(field, {f"{field}[{key!r}]": part for key, part in parts.items()})


def _check_metric(own: Training) -> None:
    metric = own.metric
    if isinstance(metric, Metric):
        require(callable(metric.measure), "metric.measure", repr(metric.measure), "a function")
        fine = isinstance(metric.name, str) and metric.name.isprintable() and metric.name
        require(fine, "metric.name", repr(metric.name), "printable text")
        fine = metric.highest is None or is_finite(metric.highest)
        require(fine, "metric.highest", repr(metric.highest), "a finite number, or None")
        fine = not metric.never_negative or metric.highest is None and not metric.whole
        require(fine, "metric.never_negative", True, "False with highest or whole")
    else:
        named = isinstance(own.loss, str)
        known = named if metric is None else isinstance(metric, str) and metric in kinds.KINDS
        allowed = f"one of {READY}, or a lib.own.Metric, which says whether higher is better"
        allowed += ", with a loss of your own" * (not named)
        require(known, "metric", repr(metric), allowed)


def check(own: Training) -> Facts:
    """Try an untrained module on a batch and on the validation set.  Raises OwnError."""
    module, again, other = (build(own, seed) for seed in (0, 0, 1))
    check_built(module, again, other)
    trained = any(p.requires_grad for p in module.parameters())
    require(trained, "model", "without parameters to train", "one with some")
    before = [buffer.clone() for buffer in module.buffers()]
    same = all(map(torch.equal, before, again.buffers()))
    require(same, "model", "other buffers from the same seed", SEEDED)
    batch = _first(own)
    with telling("validation: asked for its metric it raised"), alone(0):
        seen = kinds.Judge(own, "cpu", own.precision)
        error = seen.error(module)
        targets = seen.targets(module)
    kept = all(map(torch.equal, before, module.buffers()))
    told = "one whose buffers change in eval mode"
    require(kept, "model", told, "one that keeps them")
    _check_step(own, module, again, batch)
    require(not math.isnan(error), "metric of an untrained model", error, "a number")
    chance = error
    who = "an untrained model"
    if targets is not None:
        chance = seen.kind.constant(targets)
        who = "an answer that is always the same"
    check_chance(own, chance, who)
    allowed = "the same from the same seed, pass after pass (make loaders and generators inside it)"
    with alone():
        prints = fingerprints(own)
        others = fingerprints(own)
    for field, first in prints.items():
        same = first == others[field]
        require(same, field, "one whose first batch changes", allowed)
    numbers = sum(tensor.numel() for tensor in batches.tensors(batch))
    return Facts(
        own.examples or batches.examples(own.train),
        numbers // max(1, batches.size(batch)),
        seen.values,
        chance,
    )


def _first(own: Training) -> object:
    """The first batch of a few examples."""
    few = min(PROBED, own.examples or batches.examples(own.train))
    with telling(f"train: asked for {few} examples it raised"), alone(0):
        if batches.is_function(own.train):
            batch = next(batches.Passes(own.train, few, 0))
        else:
            batch = batches.chosen(own.train, range(few))
    found = batches.size(batch)
    require(found == few, "train", f"a batch of {found} examples", f"of the {few} asked for")
    return batch


def _check_step(own: Training, module: nn.Module, again: nn.Module, batch: object) -> None:
    """The same loss from the same seed, and a gradient."""
    losses = []
    for one in (module, again):
        with telling(f"loss: asked for that of {batches.size(batch)} examples it raised"):
            with alone(0), kinds.arithmetic("cpu", own.precision):
                losses.append(kinds.loss(own, one, batch))
    loss = losses[0]
    scalar = isinstance(loss, Tensor) and loss.dim() == 0
    require(scalar, "loss", kind(loss), "a scalar tensor")
    require(loss.isfinite(), "loss of an untrained model", loss.item(), "finite")
    allowed = "the same from the same seed (draw from the numbers of torch, numpy or Python)"
    require(torch.equal(*losses), "loss", "another one when asked again", allowed)
    require(loss.requires_grad, "loss", "one without a gradient", "a function of the parameters")
    with telling("loss: asked for its gradient it raised"):
        loss.backward()
    reached = has_gradient(list(module.parameters()))
    require(reached, "loss", "one with gradients of zero", "one that some parameter changes")
