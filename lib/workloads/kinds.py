"""What a reader's own training asks for: ready losses and metrics by name, and metrics of the
reader's.  A further ready one is a line in `KINDS`, or in `READY` if it is a metric alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from scipy.stats import rankdata
from torch import Tensor, nn
from torch.nn import functional

from lib import shown
from lib.own import Metric, Training, require
from lib.workloads import batches
from lib.workloads.tasks import TASKS, Task

IGNORED = -100  # the target of a position that is not asked for
# Numbers with which networks do not calculate or losses do not count, and what they become
SINGLE = dict.fromkeys((torch.float64, torch.float16, torch.bfloat16), torch.float32)
SINGLE[torch.complex128] = torch.complex64
SINGLE |= dict.fromkeys((torch.int8, torch.int16, torch.int32), torch.int64)
METRICS = dict(zip(TASKS, ("classification", "tokens")))  # what the goals of a task are of


def real(tensor: Tensor) -> Tensor:
    """A complex tensor [...] as pairs of numbers [..., 2], any other as it is."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _alike(out: Tensor, y: Tensor) -> Tensor:
    """Outputs [N, ...] in the shape of their targets."""
    return out.reshape(y.shape).float()


def _asked(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Scores [n, classes] and classes [n] of the positions that are asked for."""
    kept = y.flatten() != IGNORED
    return out.flatten(0, -2).float()[kept], y.flatten()[kept]


def _classes(task: str, **named) -> Task:
    """Of one class an answer; goals are of a task's cost."""
    known = TASKS[task]
    return replace(
        known,
        objective=lambda out, y: functional.cross_entropy(*_asked(out, y)),
        cost=lambda out, y: known.cost(*_asked(out, y)),
        constant=lambda y: known.constant(y[y != IGNORED]),
        **named,
    )


def _objective(out: Tensor, y: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(_alike(out, y), y.float())


def _wrong(out: Tensor, y: Tensor) -> Tensor:
    return (_alike(out, y) > 0) != (y > 0.5)


def _rarer(y: Tensor) -> float:
    share = (y > 0.5).double().mean(0)
    return float(torch.minimum(share, 1 - share).mean())


BINARY = Task("validation error", _wrong, _rarer, counted=True, objective=_objective)
KINDS = {
    "classification": _classes("classification"),
    "binary": BINARY,
    "multi-label": replace(BINARY, measure="share of wrong labels"),
    "regression": Task(
        "mean squared error",
        lambda out, y: (_alike(out, y) - y.float()).square(),
        lambda y: float(y.double().var(0, correction=0).mean()),
        shown="a mean squared error of {:g}".format,
        objective=lambda out, y: functional.mse_loss(_alike(out, y), y.float()),
    ),
    "tokens": _classes(
        "cross-entropy",
        measure="validation cross-entropy, nats a token",
        shown=lambda nats: f"{nats:g} nats a token (perplexity {math.exp(nats):.3g})",
    ),
}


def _labelled(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, answers and truths [n, labels]: of one logit for each label, or of scores for each
    class, of two classes those of the second.
    """
    if out.numel() == y.numel():
        logits = _alike(out, y).reshape(len(y), -1)
        return logits, logits > 0, y.reshape(logits.shape) > 0.5
    out, y = _asked(out, y)
    classes = torch.arange(out.shape[1])
    said = out.argmax(1, keepdim=True) == classes
    true = y[:, None] == classes
    scores = out.log_softmax(1)
    if len(classes) == 2:
        return scores[:, 1:], said[:, 1:], true[:, 1:]
    return scores, said, true


def f1(out: Tensor, y: Tensor) -> Tensor:
    """F1, of several labels the mean over those that are there or are said to be."""
    _, said, true = _labelled(out, y)
    found = said.sum(0) + true.sum(0)
    return (2 * (said & true).sum(0) / found).nanmean().nan_to_num()


def auc(out: Tensor, y: Tensor) -> Tensor:
    """The share of pairs of an example with a label and one without in which the first has the
    higher score, equal ones counting half; of several labels the mean over those of which there are
    such pairs.
    """
    scores, _, true = _labelled(out, y)
    here = true.sum(0)
    ranks = torch.from_numpy(rankdata(scores, axis=0)) * true
    above = ranks.sum(0) - here * (here + 1) / 2
    return (above / (here * (len(true) - here))).nanmean()


def r2(out: Tensor, y: Tensor) -> Tensor:
    """The share of the variance of targets that is explained, of several the mean."""
    y = y.double()
    left = (_alike(out, y) - y).square().sum(0)
    return (1 - left / (y - y.mean(0)).square().sum(0)).mean()


def mae(out: Tensor, y: Tensor) -> Tensor:
    """The mean absolute error."""
    return (_alike(out, y) - y).abs().mean()


# Metrics of the whole validation set, by their names
READY = {
    "f1": Metric(f1, "F1", 1.0, whole=True),
    "auc": Metric(auc, "AUC", 1.0, True, lambda y: 0.5),
    "r2": Metric(r2, "R²", 1.0, True, lambda y: 0.0),
    "mae": Metric(
        mae, "mean absolute error", None, True, lambda y: mae(0 * y + y.double().mean(0), y)
    ),
}


def of(own: Training) -> Task:
    """The kind of what the goals of a workload are of, whose fields fit."""
    metric = own.metric or own.loss
    if isinstance(metric, str):
        return KINDS[metric]
    up = metric.highest is not None
    return Task(
        f"{metric.highest:g} − {metric.name}" if up else metric.name,
        constant=metric.constant,
        shown=lambda value: f"{metric.name} of {value:g}",
        highest=metric.highest,
    )


def task(own: Training) -> str:
    """The name of what the goals of a classifier are of, as in `TASKS`."""
    return {metric: task for task, metric in METRICS.items()}[own.metric or own.loss]


def classifies(own: Training) -> bool:
    """Whether it is a classifier of tensors: of a pair of inputs [N, ...] and classes [N]."""
    for data in (own.train, own.validation):
        pair = isinstance(data, tuple) and len(data) == 2
        if not pair or data[1].dtype != torch.int64 or data[1].dim() != 1:
            return False
    named = own.loss == "classification" and own.metric in (None, *METRICS.values())
    return named and own.at_once is None


def fit(own: Training, batch: object) -> object:
    """The batch of plain tensors in single precision, and labels as losses take them."""
    batch = batches.each(batch, _plain)
    y = targets(batch)
    return batches.each(batch, lambda part: _labels(own, part) if part is y else part)


def _plain(x: Tensor) -> Tensor:
    return x.detach().to(SINGLE.get(x.dtype, x.dtype)).contiguous()


def _labels(own: Training, y: Tensor) -> Tensor:
    """Classes [N] as whole numbers, of a loss that has classes; other targets as they are."""
    if own.loss not in METRICS.values():
        return y
    y = y[:, 0] if [*y.shape[1:]] == [1] else y
    fine = not y.is_floating_point() or (y.dim() == 1 and torch.equal(y, y.round()))
    allowed = "whole numbers [N]: write y.argmax(1), or loss='regression'"
    require(fine, "labels", shown(y), allowed)
    return y.long()


def errors(own: Training) -> tuple[float, ...]:
    """The goals as they are on record, the hardest first."""
    return tuple(of(own).given(float(goal)) for goal in own.goals)


def answers(model: Callable, batch: object) -> tuple[Tensor, Tensor]:
    """Outputs and targets of a batch.  Raises ValueError where they are not to be told."""
    if isinstance(batch, Mapping):
        rest = {key: value for key, value in batch.items() if key != "labels"}
        out = model(**rest)
    else:
        out = model(*batch[:-1])
    y = targets(batch)
    allowed = 'a tensor: write train=(x, y), or {..., "labels": y}'
    require(isinstance(y, Tensor), "labels", type(y).__name__, allowed)
    out = out.get("logits") if isinstance(out, Mapping) else getattr(out, "logits", out)
    fine = isinstance(out, Tensor) and not (out.is_complex() or y.is_complex())
    allowed = "a tensor, and with the targets of real numbers (torch.view_as_real)"
    require(fine, "outputs", getattr(out, "dtype", type(out).__name__), allowed)
    return out, y


def targets(batch: object) -> object:
    """Of a batch; None if it has none."""
    if isinstance(batch, Mapping):
        return batch.get("labels")
    return batch[-1] if isinstance(batch, tuple | list) and batch else None


def weight(own: Training, batch: object) -> int:
    """What the loss is a mean over: the positions of a batch that are asked for, where some are
    not, or else examples.
    """
    if own.loss not in METRICS.values():
        return batches.size(batch)
    return int((targets(batch) != IGNORED).sum())


def parts(own: Training, batch: object) -> list[tuple[object, float]]:
    """A batch in parts that are computed together, and the share of each in the mean; without those
    that have none.
    """
    cut = batches.cut(batch, own.at_once)
    weights = [weight(own, part) for part in cut]
    return [(part, n / sum(weights)) for part, n in zip(cut, weights) if n]


def loss(own: Training, model: Callable, batch: object) -> Tensor:
    """What training minimises, a scalar."""
    if callable(own.loss):
        return own.loss(model, batch)
    return KINDS[own.loss].objective(*answers(model, batch))


def arithmetic(device: str, precision: str) -> torch.autocast:
    """A block in which products are computed in this precision; weights stay as they are."""
    kind = torch.device(device).type
    return torch.autocast(kind, torch.bfloat16, enabled=precision == "bfloat16")


def _read(
    own: Training,
    module: nn.Module,
    of: Callable,
    device: str = "cpu",
    precision: str = "float32",
) -> list:
    """What a function of the module and a batch finds in each batch of the validation set.

    The module is in eval mode, and its answers hang on no earlier random numbers; afterwards its
    parts' modes, and the numbers, are as before.
    """
    modes = {part: part.training for part in module.modules()}
    with batches.restored(), torch.no_grad(), arithmetic(device, precision):
        batches.seeded(0)
        module.eval()
        given = batches.whole(own.validation)
        found = [of(module, batches.to(batch, device)) for batch in given]
    for part, mode in modes.items():
        part.training = mode
    return found


def validated(own: Training, module: nn.Module, *where: str) -> list[Tensor]:
    """Outputs and targets of the whole validation set, on the CPU."""
    found = zip(*_read(own, module, answers, *where))
    outputs, targets = (torch.cat([part.cpu() for part in parts]) for parts in found)
    return [outputs.float(), targets]


def error(own: Training, module: nn.Module, *where: str) -> tuple[float, int]:
    """What is on record of the module's answers on the validation set, and how many values it is
    the mean of; where: device and precision, if not the CPU and float32.  Raises OwnError for a
    value that the metric says it has not.
    """
    kind, metric = of(own), own.metric or own.loss
    if isinstance(metric, Metric) and metric.whole:
        found = [metric.measure(*validated(own, module, *where))]
    elif isinstance(metric, Metric):
        found = _read(own, module, metric.measure, *where)
    else:
        found = _read(own, module, lambda *asked: KINDS[metric].cost(*answers(*asked)), *where)
    values = torch.cat([torch.as_tensor(part).flatten() for part in found])
    require(not values.is_complex(), "metric", "complex numbers", "real ones: write x.abs()")
    value = float(values.double().mean())
    highest = math.inf if kind.highest is None else kind.highest
    require(not value > highest, "metric", value, f"at most its highest, {highest:g}")
    return kind.given(value), values.numel()
