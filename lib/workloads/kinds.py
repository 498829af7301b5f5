"""Losses and metrics of a reader's own training: ready ones by name, and the reader's metrics.  To
add a ready one, add a line to `KINDS`, or to `READY` if it is only a metric.
"""

from __future__ import annotations

import functools
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

IGNORED = -100  # the target of a position that does not count
# Dtypes not trained with here, and what they are converted to
SINGLE = dict.fromkeys((torch.float64, torch.float16, torch.bfloat16), torch.float32)
SINGLE[torch.complex128] = torch.complex64
SINGLE |= dict.fromkeys((torch.int8, torch.int16, torch.int32), torch.int64)
METRICS = dict(zip(TASKS, ("classification", "tokens")))  # the metric of each task's goals


# --- losses and metrics by name -------------------------------------------------------------------


def _as_targets(out: Tensor, y: Tensor) -> Tensor:
    """Outputs [N, ...] reshaped like their targets."""
    return out.reshape(y.shape).float()


def _counted(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Scores [n, classes] and classes [n] of the positions that count."""
    kept = y.flatten() != IGNORED
    return out.flatten(0, -2).float()[kept], y.flatten()[kept]


def _cross_entropy(out: Tensor, y: Tensor) -> Tensor:
    scores, classes = _counted(out, y)
    return functional.cross_entropy(scores, classes) if len(classes) else scores.sum()


def _classes(task: Task, **changes) -> Task:
    """A kind with one class per answer, and goals in the cost of `task`."""
    return replace(
        task,
        objective=_cross_entropy,
        cost=lambda out, y: task.cost(*_counted(out, y)),
        constant=lambda y: task.constant(y[y != IGNORED]),
        **changes,
    )


def _binary_loss(out: Tensor, y: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(_as_targets(out, y), y.float())


def _rarer_share(y: Tensor) -> float:
    share = (y > 0.5).double().mean(0)
    return float(torch.minimum(share, 1 - share).mean())


BINARY = Task(
    "validation error",
    cost=lambda out, y: (_as_targets(out, y) > 0) != (y > 0.5),
    constant=_rarer_share,
    counted=True,
    objective=_binary_loss,
)
KINDS = {
    "classification": _classes(TASKS["classification"]),
    "binary": BINARY,
    "multi-label": replace(BINARY, measure="share of wrong labels"),
    "regression": Task(
        "mean squared error",
        cost=lambda out, y: (_as_targets(out, y) - y.float()).square(),
        constant=lambda y: float(y.double().var(0, correction=0).mean()),
        shown="a mean squared error of {:g}".format,
        objective=lambda out, y: functional.mse_loss(_as_targets(out, y), y.float()),
    ),
    "tokens": _classes(
        TASKS["cross-entropy"],
        measure="validation cross-entropy, nats a token",
        shown=lambda nats: f"{nats:g} nats a token (perplexity {math.exp(nats):.3g})",
    ),
}


def _labelled(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, answers and truths [n, labels], from one logit per label, or from scores per class;
    of two classes, only the second counts.
    """
    if out.numel() == y.numel():
        logits = _as_targets(out, y).reshape(len(y), -1)
        return logits, logits > 0, y.reshape(logits.shape) > 0.5
    scores, y = _counted(out, y)
    n = scores.shape[1]
    classes = torch.arange(1 if n == 2 else 0, n)
    answers = scores.argmax(1, keepdim=True) == classes
    return scores.log_softmax(1)[:, classes], answers, y[:, None] == classes


def f1(out: Tensor, y: Tensor) -> Tensor:
    """F1; of several labels, the mean over those that occur in truths or answers."""
    _, answers, truths = _labelled(out, y)
    counts = answers.sum(0) + truths.sum(0)
    return (2 * (answers & truths).sum(0) / counts).nanmean().nan_to_num()


def accuracy(out: Tensor, y: Tensor) -> Tensor:
    """The share of right answers; with several labels, of examples with all labels right."""
    _, answers, truths = _labelled(out, y)
    return (answers == truths).all(1).double().mean()


def auc(out: Tensor, y: Tensor) -> Tensor:
    """The area under the ROC curve; of several labels, the mean over those that only some examples
    have.
    """
    scores, _, truths = _labelled(out, y)
    n = truths.sum(0)
    ranks = torch.from_numpy(rankdata(scores, axis=0)) * truths
    return ((ranks.sum(0) - n * (n + 1) / 2) / (n * (len(truths) - n))).nanmean()


def r2(out: Tensor, y: Tensor) -> Tensor:
    """The share of the targets' variance that is explained; of several targets, the mean."""
    y = y.double()
    residuals = (_as_targets(out, y) - y).square().mean(0)
    return (1 - residuals / y.var(0, correction=0)).mean()


def mae(out: Tensor, y: Tensor) -> Tensor:
    """The mean absolute error."""
    return (_as_targets(out, y) - y).abs().mean()


def _commonest(y: Tensor) -> Tensor:
    """The share of the commonest target; with several labels, of their commonest combination."""
    several = y.is_floating_point() and y.dim() > 1
    y = y if several else y[y != IGNORED]
    return y.unique(dim=0, return_counts=True)[1].max() / len(y)


# Metrics of the whole validation set, by name
READY = {
    "accuracy": Metric(
        accuracy,
        "accuracy",
        1.0,
        True,
        _commonest,
    ),
    "f1": Metric(f1, "F1", 1.0, whole=True),
    "auc": Metric(auc, "AUC", 1.0, whole=True, constant=lambda y: 0.5),
    "r2": Metric(r2, "R²", 1.0, whole=True, constant=lambda y: 0.0),
    "mae": Metric(
        mae, "mean absolute error", None, True, lambda y: mae(y.median(0).values.expand_as(y), y)
    ),
}


def metric_of(training: Training) -> Task:
    """The metric of a workload's goals; its fields must have been checked."""
    metric = training.metric or training.loss
    if isinstance(metric, str):
        return KINDS[metric]
    highest = metric.highest
    return Task(
        metric.name if highest is None else f"{highest:g} − {metric.name}",
        constant=metric.constant,
        shown=lambda value: f"{metric.name} of {value:g}",
        highest=highest,
    )


def task(training: Training) -> str:
    """The name in `TASKS` of the task whose cost a classifier's goals are in."""
    return "cross-entropy" if training.metric == "tokens" else "classification"


def errors(training: Training) -> tuple[float, ...]:
    """The goals as recorded, the hardest first."""
    return tuple(metric_of(training).convert(float(goal)) for goal in training.goals)


# --- batches and what is made of them -------------------------------------------------------------


def classifies(training: Training) -> bool:
    """Whether it is a classifier of tensors: data are pairs of inputs [N, ...] and classes [N]."""
    for data in (training.train, training.validation):
        pair = isinstance(data, tuple) and len(data) == 2
        if not pair or data[1].dtype != torch.int64 or data[1].dim() != 1:
            return False
        if IGNORED in data[1]:  # the engine counts every example
            return False
    metrics = (None, *METRICS.values(), READY["accuracy"])
    return training.loss == "classification" and training.metric in metrics


def is_integer(x: Tensor) -> bool:
    return not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)


def single(x: Tensor) -> Tensor:
    """The tensor in single precision, or int64."""
    return x.detach().to(SINGLE.get(x.dtype, x.dtype)).contiguous()


def fit(training: Training, batch: object, floats: bool = False) -> object:
    """The batch as plain tensors in single precision, with labels as losses take them; floats: also
    convert integer inputs, bytes divided by 255.
    """

    def fitted(x: Tensor) -> Tensor:
        if x is y and training.loss == "multi-label":
            return x.float()
        if x is y:
            return _labels(x) if training.loss in METRICS.values() else x
        if floats and is_integer(x):
            return x / 255 if x.dtype == torch.uint8 else x.float()
        return x

    batch = batches.map_tensors(batch, single)
    y = targets(batch)
    return batches.map_tensors(batch, fitted)


def _labels(y: Tensor) -> Tensor:
    """Classes [N] as whole numbers."""
    y = y[:, 0] if [*y.shape[1:]] == [1] else y
    fine = not y.is_floating_point() or (y.dim() == 1 and torch.equal(y, y.round()))
    allowed = "whole numbers [N]: write y.argmax(1), or loss='regression'"
    require(fine, "labels", shown(y), allowed)
    return y.long()


def outputs_and_targets(model: Callable, batch: object) -> tuple[Tensor, Tensor]:
    """Outputs and targets of a batch.  Raises OwnError if they cannot be identified."""
    if isinstance(batch, Mapping):
        out = model(**{key: value for key, value in batch.items() if key != "labels"})
    else:
        out = model(*batch[:-1])
    y = targets(batch)
    allowed = 'a tensor: write train=(x, y), or {..., "labels": y}'
    require(isinstance(y, Tensor), "labels", type(y).__name__, allowed)
    out = out.get("logits") if isinstance(out, Mapping) else getattr(out, "logits", out)
    fine = isinstance(out, Tensor) and not (out.is_complex() or y.is_complex())
    allowed = "a tensor of real numbers, like the targets (torch.view_as_real)"
    require(fine, "outputs", getattr(out, "dtype", type(out).__name__), allowed)
    return out, y


def targets(batch: object) -> object:
    """The targets of a batch; None if it has none."""
    if isinstance(batch, Mapping):
        return batch.get("labels")
    return batch[-1] if isinstance(batch, tuple | list) and batch else None


def loss(training: Training, model: Callable, batch: object) -> Tensor:
    """What training minimises, a scalar."""
    if callable(training.loss):
        return training.loss(model, batch)
    return KINDS[training.loss].objective(*outputs_and_targets(model, batch))


def arithmetic(device: str, precision: str) -> torch.autocast:
    """Within the block, compute products in this precision; weights stay as they are."""
    kind = torch.device(device).type
    return torch.autocast(kind, torch.bfloat16, enabled=precision == "bfloat16")


def _evaluate(
    training: Training,
    module: nn.Module,
    measure: Callable,
    device: str = "cpu",
    precision: str = "float32",
) -> list:
    """The values of a function of the module and a batch, for each batch of the validation set.

    The module is in eval mode and does not depend on earlier random numbers; the modes of its parts
    and the random state are restored.
    """
    modes = {part: part.training for part in module.modules()}
    with batches.restored(), torch.no_grad(), arithmetic(device, precision):
        batches.seed_all(0)
        module.eval()
        validation = batches.in_order(training.validation)
        values = [measure(module, batches.to(batch, device)) for batch in validation]
    for part, mode in modes.items():
        part.training = mode
    return values


def validated(training: Training, module: nn.Module, *where: str) -> list[Tensor]:
    """Outputs and targets of the whole validation set, on the CPU."""
    pairs = zip(*_evaluate(training, module, outputs_and_targets, *where))
    outputs, y = (torch.cat([part.cpu() for part in parts]) for parts in pairs)
    return [outputs.float(), y]


def _weighted(measure: Callable, model: nn.Module, batch: object) -> Tensor:
    """A metric of a batch; a mean is repeated for each example, so as to count for all of them."""
    part = torch.as_tensor(measure(model, batch)).flatten()
    return part.expand(batches.size(batch) or 1) if part.numel() == 1 else part


def error(training: Training, module: nn.Module, *where: str) -> tuple[float, int]:
    """The module's error on the validation set, as recorded, and how many values it is the mean of;
    where: device and precision, if not the CPU and float32.  Raises OwnError for a value above the
    highest that the metric allows.
    """
    task, metric = metric_of(training), training.metric

    def cost(model: nn.Module, batch: object) -> Tensor:
        return task.cost(*outputs_and_targets(model, batch))

    if isinstance(metric, Metric) and metric.whole:
        parts = [metric.measure(*validated(training, module, *where))]
    else:
        custom = isinstance(metric, Metric)
        measure = functools.partial(_weighted, metric.measure) if custom else cost
        parts = _evaluate(training, module, measure, *where)
    values = torch.cat([torch.as_tensor(part).flatten() for part in parts])
    value = float(values.double().mean())
    highest = math.inf if task.highest is None else task.highest
    require(not value > highest, "metric", value, f"at most its highest, {highest:g}")
    return task.convert(value), values.numel()
