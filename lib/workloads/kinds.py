"""What a reader's own training asks for: ready losses and metrics by name, and metrics of the
reader's.  A further ready one is a line in `KINDS`.  A `Judge` reads a module's on the validation
set.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from lib.own import Metric, Own, Training
from lib.workloads import batches
from lib.workloads.tasks import TASKS

CLASSES, NATS = TASKS.values()
IGNORED = -100  # the target of a position that is not asked for


@dataclass(frozen=True)
class Kind:
    """A metric as pages and the executor know it (`lib.workloads.tasks.Task` says the names).

    measure: the mean, in words.  shown: a goal as a sentence has it.  loss(outputs, targets): a
    scalar.  cost(outputs, targets): values [any] of which the mean is taken.  constant(targets):
    the mean cost of the best answer that is always the same.  counted: whether costs are mistakes.
    highest, whole, never_negative: as of `Metric`.
    """

    measure: str
    shown: Callable[[float], str] = "{:g}".format
    loss: Callable | None = None
    cost: Callable | None = None
    constant: Callable | None = None
    counted: bool = False
    highest: float | None = None
    whole: bool = False
    never_negative: bool = True

    def written(self, goal: float) -> str:
        """A goal on record as the reader gave it."""
        return f"{100 * goal:g} %" if self.counted else self.shown(self.given(goal))

    def given(self, error: float) -> float:
        """The value of the metric that is on record as this error, and the other way round."""
        return error if self.highest is None else float(f"{self.highest - error:.12g}")


def _fitting(fine: bool, out: Tensor, y: Tensor) -> None:
    if not fine:
        raise ValueError(f"outputs {tuple(out.shape)} for targets {tuple(y.shape)}")


def _alike(out: Tensor, y: Tensor) -> Tensor:
    """Outputs [N, ...] in the shape of their targets, if they have as many numbers."""
    _fitting(out.numel() == y.numel(), out, y)
    return out.reshape(y.shape).float()


def _asked(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Scores [n, classes] and classes [n] of the positions that are asked for."""
    _fitting(out.shape[:-1] == y.shape, out, y)
    kept = y.flatten() != IGNORED
    return out.flatten(0, -2).float()[kept], y.flatten()[kept]


def _logistic(out: Tensor, y: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(_alike(out, y), y.float())


def _wrong(out: Tensor, y: Tensor) -> Tensor:
    return ((_alike(out, y) > 0) != (y > 0.5)).double()


def _rarer(y: Tensor) -> float:
    """The mean over labels [N, ...] of the share of the rarer answer."""
    share = (y > 0.5).double().mean(0)
    return float(torch.minimum(share, 1 - share).mean())


def _spread(y: Tensor) -> float:
    return float(y.double().var(0, correction=0).mean())


def _judged(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """As `_asked`.  Raises ValueError for targets that are no classes of the outputs'."""
    scores, classes = _asked(out, y)
    if classes.is_floating_point() or classes.dtype == torch.bool:
        raise ValueError(f"targets of type {classes.dtype}: they must be classes, int64 from 0")
    low, high = map(int, classes.aminmax()) if len(classes) else (0, 0)
    if not 0 <= low <= high < out.shape[-1]:
        told = f"targets from {low} to {high} for {out.shape[-1]} outputs"
        raise ValueError(f"{told}: they count from 0")
    return scores, classes


LOGISTIC = {"loss": _logistic, "cost": _wrong, "constant": _rarer, "counted": True}
KINDS = {
    "classification": Kind(
        "validation error",
        loss=lambda out, y: functional.cross_entropy(*_asked(out, y)),
        cost=lambda out, y: CLASSES.cost(*_judged(out, y)),
        constant=CLASSES.constant,
        counted=True,
    ),
    "binary": Kind("validation error", **LOGISTIC),
    "multi-label": Kind("share of wrong labels", **LOGISTIC),
    "regression": Kind(
        "mean squared error",
        "a mean squared error of {:g}".format,
        loss=lambda out, y: functional.mse_loss(_alike(out, y), y.float()),
        cost=lambda out, y: (_alike(out, y) - y.float()).square(),
        constant=_spread,
    ),
    "tokens": Kind(
        "validation cross-entropy, nats a token",
        lambda nats: f"{nats:g} nats a token (perplexity {math.exp(nats):.3g})",
        loss=lambda out, y: functional.cross_entropy(*_asked(out, y)),
        cost=lambda out, y: functional.cross_entropy(*_judged(out, y), reduction="none"),
        constant=lambda y: NATS.constant(y[y != IGNORED]),
    ),
}


def of(own: Own | Training) -> Kind:
    """The kind of what the goals of a workload are of, whose fields fit."""
    if isinstance(own, Own):
        return KINDS["classification" if own.task == "classification" else "tokens"]
    metric = own.loss if own.metric is None else own.metric
    if not isinstance(metric, Metric):
        return KINDS[metric]
    up = metric.highest is not None
    return Kind(
        f"{metric.highest:g} − {metric.name}" if up else metric.name,
        lambda value: f"{metric.name} of {value:g}",
        highest=metric.highest,
        whole=metric.whole,
        never_negative=metric.never_negative,
    )


def errors(own: Own | Training) -> tuple[float, ...]:
    """The goals as they are on record, the hardest first."""
    return tuple(of(own).given(float(goal)) for goal in own.goals)


def answers(own: Training, model: Callable, batch: object) -> tuple[Tensor, Tensor]:
    """Outputs and targets of a batch.  Raises ValueError where they are not to be told."""
    if own.answers:
        return own.answers(model, batch)
    if isinstance(batch, Mapping):
        rest = {key: value for key, value in batch.items() if key != "labels"}
        out, y = model(**rest), batch.get("labels")
    else:
        out, y = model(*batch[:-1]), batch[-1]
    if isinstance(out, Mapping):
        out = out.get("logits", out)
    out = getattr(out, "logits", out)
    for what, found in (("outputs", out), ("targets", y)):
        if not isinstance(found, Tensor):
            raise ValueError(
                f"{what} of type {type(found).__name__}: give answers=, a function of model and "
                f"batch that returns outputs and targets"
            )
    return out, y


def loss(own: Training, model: Callable, batch: object) -> Tensor:
    """What training minimises, a scalar."""
    if callable(own.loss):
        return own.loss(model, batch)
    return KINDS[own.loss].loss(*answers(own, model, batch))


def costs(own: Training, model: Callable, batch: object) -> Tensor:
    """Values of a metric that is a mean, for a batch: [any]."""
    metric = own.loss if own.metric is None else own.metric
    if isinstance(metric, Metric):
        return torch.as_tensor(metric.measure(model, batch))
    return KINDS[metric].cost(*answers(own, model, batch))


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


class Judge:
    """Reads a validation set, no further than a goal needs where no value is below zero.

    values: how many a metric that is a mean has on it; 0 until a reading to the end has told.
    """

    def __init__(self, own: Training, device: str, precision: str, values: int = 0):
        self.own, self.kind = own, of(own)
        self.device, self.precision, self.values = device, precision, values

    def error(self, module: nn.Module, allowed: float = math.inf) -> float:
        """What is on record of the module's answers; NaN if it is above what is allowed, as became
        clear before the end.  Raises ValueError for values that the metric says it has not.
        """
        with asked(module), arithmetic(self.device, self.precision):
            value = self._whole(module) if self.kind.whole else self._mean(module, allowed)
        if self.kind.highest is not None and value > self.kind.highest:
            raise ValueError(f"metric: {value} is above its highest, {self.kind.highest:g}")
        return self.kind.given(value)

    def _mean(self, module: nn.Module, allowed: float) -> float:
        most = allowed * self.values if self.values and self.kind.never_negative else math.inf
        total, count = 0.0, 0
        for batch in batches.whole(self.own.validation):
            found = costs(self.own, module, batches.to(batch, self.device)).double()
            if self.kind.never_negative and (found < 0).any():
                raise ValueError("metric: a value below zero, which never_negative rules out")
            total, count = total + float(found.sum()), count + found.numel()
            if total > most * (1 + 1e-9) + 1e-9:
                return math.nan
        if not count:
            raise ValueError("validation: no example to read")
        self.values = self.values or count
        return total / count

    def _whole(self, module: nn.Module) -> float:
        outputs, targets = self._answers(module)
        return float(self.own.metric.measure(outputs.float(), targets))

    def _answers(self, module: nn.Module) -> tuple[Tensor, ...]:
        """Outputs and targets of the whole validation set, on the CPU."""
        asked_for = (batches.to(b, self.device) for b in batches.whole(self.own.validation))
        found = zip(*(answers(self.own, module, batch) for batch in asked_for))
        return tuple(torch.cat([part.cpu() for part in parts]) for parts in found)

    def targets(self, module: nn.Module) -> Tensor | None:
        """Targets of the validation set, for kinds that know what a constant answer costs."""
        if self.kind.constant is None:
            return None
        with asked(module):
            return self._answers(module)[1]
