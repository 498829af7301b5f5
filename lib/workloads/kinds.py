"""What a reader's own training asks for: ready losses and metrics by name, and metrics of the
reader's.  A further ready one is a line in `KINDS`.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from lib.own import Metric, Own, Training
from lib.workloads import batches
from lib.workloads.tasks import TASKS

IGNORED = -100  # the target of a position that is not asked for
METRICS = dict(zip(TASKS, ("classification", "tokens")))  # what the goals of a task are of


@dataclass(frozen=True)
class Kind:
    """A metric as pages and the executor know it (`lib.workloads.tasks.Task` says the names).

    measure: the mean, in words.  shown: a goal as a sentence has it.  loss(outputs, targets): a
    scalar.  cost(outputs, targets): values [any] of which the mean is taken.  constant(targets):
    the mean cost of the best answer that is always the same.  counted: whether costs are mistakes.
    highest: as of `Metric`.
    """

    measure: str
    shown: Callable[[float], str] = "{:g}".format
    loss: Callable | None = None
    cost: Callable | None = None
    constant: Callable | None = None
    counted: bool = False
    highest: float | None = None

    def written(self, goal: float) -> str:
        """A goal on record as the reader gave it."""
        return f"{100 * goal:g} %" if self.counted else self.shown(self.given(goal))

    def given(self, error: float) -> float:
        """The value of the metric that is on record as this error, and the other way round."""
        return error if self.highest is None else float(f"{self.highest - error:.12g}")


def _alike(out: Tensor, y: Tensor) -> Tensor:
    """Outputs [N, ...] in the shape of their targets."""
    return out.reshape(y.shape).float()


def _asked(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Scores [n, classes] and classes [n] of the positions that are asked for."""
    kept = y.flatten() != IGNORED
    return out.flatten(0, -2).float()[kept], y.flatten()[kept]


def _classes(task: str, measure: str, shown: Callable[[float], str] = "{:g}".format) -> Kind:
    """Of one class an answer; goals are of a task's cost."""
    known = TASKS[task]
    return Kind(
        measure,
        shown,
        loss=lambda out, y: functional.cross_entropy(*_asked(out, y)),
        cost=lambda out, y: known.cost(*_asked(out, y)),
        constant=lambda y: known.constant(y[y != IGNORED]),
        counted=known.counted,
    )


def _logistic(measure: str) -> Kind:
    """Of a yes or no for each output."""

    def loss(out: Tensor, y: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(_alike(out, y), y.float())

    def wrong(out: Tensor, y: Tensor) -> Tensor:
        return (_alike(out, y) > 0) != (y > 0.5)

    def rarer(y: Tensor) -> float:
        share = (y > 0.5).double().mean(0)
        return float(torch.minimum(share, 1 - share).mean())

    return Kind(measure, loss=loss, cost=wrong, constant=rarer, counted=True)


KINDS = {
    "classification": _classes("classification", "validation error"),
    "binary": _logistic("validation error"),
    "multi-label": _logistic("share of wrong labels"),
    "regression": Kind(
        "mean squared error",
        "a mean squared error of {:g}".format,
        loss=lambda out, y: functional.mse_loss(_alike(out, y), y.float()),
        cost=lambda out, y: (_alike(out, y) - y.float()).square(),
        constant=lambda y: float(y.double().var(0, correction=0).mean()),
    ),
    "tokens": _classes(
        "cross-entropy",
        "validation cross-entropy, nats a token",
        lambda nats: f"{nats:g} nats a token (perplexity {math.exp(nats):.3g})",
    ),
}


def of(own: Own | Training) -> Kind:
    """The kind of what the goals of a workload are of, whose fields fit."""
    if isinstance(own, Own):
        return KINDS[METRICS[own.task]]
    metric = own.metric or own.loss
    if isinstance(metric, str):
        return KINDS[metric]
    up = metric.highest is not None
    return Kind(
        f"{metric.highest:g} − {metric.name}" if up else metric.name,
        lambda value: f"{metric.name} of {value:g}",
        highest=metric.highest,
    )


def training(own: Own | Training) -> Training:
    """Of one network and tensors the same task as a `Training`, its tensors plain ones."""
    if isinstance(own, Training):
        return own
    train, held = batches.each((own.train, own.validation), _plain)
    return Training(own.model, train, held, own.goals, metric=METRICS[own.task])


def _plain(x: Tensor) -> Tensor:
    return (x.detach().float() if x.is_floating_point() else x).contiguous()


def errors(own: Own | Training) -> tuple[float, ...]:
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
    if not isinstance(out, Tensor):
        raise ValueError(f"outputs: {type(out).__name__} is not allowed; it must be a tensor")
    return out, y


def loss(own: Training, model: Callable, batch: object) -> Tensor:
    """What training minimises, a scalar."""
    if callable(own.loss):
        return own.loss(model, batch)
    return KINDS[own.loss].loss(*answers(model, batch))


def costs(own: Training, model: Callable, batch: object) -> Tensor:
    """Values of a metric that is a mean, for a batch: [any]."""
    metric = own.metric or own.loss
    if isinstance(metric, Metric):
        return torch.as_tensor(metric.measure(model, batch))
    return KINDS[metric].cost(*answers(model, batch))


def arithmetic(device: str, precision: str) -> torch.autocast:
    """A block in which products are computed in this precision; weights stay as they are."""
    kind = torch.device(device).type
    return torch.autocast(kind, torch.bfloat16, enabled=precision == "bfloat16")


@contextlib.contextmanager
def asked(module: nn.Module) -> Iterator[None]:
    """A block in which a module is in eval mode and its answers hang on no earlier random numbers;
    afterwards its parts' modes, and the numbers, are as before.
    """
    modes = [(part, part.training) for part in module.modules()]
    with batches.restored(), torch.no_grad():
        batches.seeded(0)
        module.eval()
        try:
            yield
        finally:
            for part, mode in modes:
                part.training = mode


def _read(own: Training, module: nn.Module, of: Callable, device: str, precision: str) -> list:
    """What a function of the module and a batch finds in each batch of the validation set."""
    with asked(module), arithmetic(device, precision):
        given = batches.whole(own.validation)
        return [of(module, batches.to(batch, device)) for batch in given]


def validated(
    own: Training, module: nn.Module, device: str = "cpu", precision: str = "float32"
) -> list[Tensor]:
    """Outputs and targets of the whole validation set, on the CPU."""
    found = zip(*_read(own, module, answers, device, precision))
    outputs, targets = (torch.cat([part.cpu() for part in parts]) for parts in found)
    return [outputs.float(), targets]


def error(
    own: Training, module: nn.Module, device: str = "cpu", precision: str = "float32"
) -> tuple[float, int]:
    """What is on record of the module's answers on the validation set, and how many values it is
    the mean of.  Raises ValueError for a value that the metric says it has not.
    """
    kind, metric = of(own), own.metric
    if isinstance(metric, Metric) and metric.whole:
        found = torch.as_tensor(metric.measure(*validated(own, module, device, precision)))
    else:
        each = _read(own, module, functools.partial(costs, own), device, precision)
        found = torch.cat([values.flatten() for values in each])
    value = float(found.double().mean())
    if kind.highest is not None and value > kind.highest:
        raise ValueError(f"metric: {value} is above its highest, {kind.highest:g}")
    return kind.given(value), found.numel()
