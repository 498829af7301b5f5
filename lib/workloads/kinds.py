"""What a reader's own training asks for: ready losses and metrics by name, and metrics of the
reader's.  A further ready one is a line in `KINDS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from lib.own import Metric, Training, require
from lib.workloads import batches
from lib.workloads.tasks import TASKS, Task

IGNORED = -100  # the target of a position that is not asked for
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


def of(own: Training) -> Task:
    """The kind of what the goals of a workload are of, whose fields fit."""
    metric = own.metric or own.loss
    if isinstance(metric, str):
        return KINDS[metric]
    up = metric.highest is not None
    return Task(
        f"{metric.highest:g} − {metric.name}" if up else metric.name,
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


def plain(own: Training) -> Training:
    """The same, the tensors of a classifier plain ones."""
    if not classifies(own):
        return own
    train, held = batches.each((own.train, own.validation), _plain)
    return replace(own, train=train, validation=held)


def _plain(x: Tensor) -> Tensor:
    return (x.detach().float() if x.is_floating_point() else x).contiguous()


def errors(own: Training) -> tuple[float, ...]:
    """The goals as they are on record, the hardest first."""
    return tuple(of(own).given(float(goal)) for goal in own.goals)


def answers(model: Callable, batch: object) -> tuple[Tensor, Tensor]:
    """Outputs and targets of a batch.  Raises ValueError where they are not to be told."""
    if isinstance(batch, Mapping):
        rest = {key: value for key, value in batch.items() if key != "labels"}
        out, y = model(**rest), batch["labels"]
    else:
        out, y = model(*batch[:-1]), batch[-1]
    out = out.get("logits") if isinstance(out, Mapping) else getattr(out, "logits", out)
    fine = isinstance(out, Tensor) and not (out.is_complex() or y.is_complex())
    allowed = "a tensor, and with the targets of real numbers (torch.view_as_real)"
    require(fine, "outputs", getattr(out, "dtype", type(out).__name__), allowed)
    return out, y


def weight(own: Training, batch: object) -> int:
    """What the loss is a mean over: the positions of a batch that are asked for, where some are
    not, or else examples.
    """
    if own.loss not in METRICS.values():
        return batches.size(batch)
    y = batch["labels"] if isinstance(batch, Mapping) else batch[-1]
    return int((y != IGNORED).sum())


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
    the mean of; where: device and precision, if not the CPU and float32.  Raises ValueError for a
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
    if values.is_complex():
        raise ValueError("metric: complex numbers are not allowed; it must be real ones")
    value = float(values.double().mean())
    if kind.highest is not None and value > kind.highest:
        raise ValueError(f"metric: {value} is above its highest, {kind.highest:g}")
    return kind.given(value), values.numel()
