"""What a module reaches on a reader's validation set."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from lib.own import Training
from lib.workloads import batches, kinds


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
    drawn = batches.randomness()
    batches.seeded(0)
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        batches.go_on(drawn)
        for part, mode in modes:
            part.training = mode


class Judge:
    """Reads a validation set, no further than a goal needs where no value is below zero.

    values: how many a metric that is a mean has on it; 0 until a reading to the end has told.
    """

    def __init__(self, own: Training, device: str, precision: str, values: int = 0):
        self.own, self.kind = own, kinds.of(own)
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
            found = kinds.costs(self.own, module, batches.to(batch, self.device)).double()
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
        pairs = [
            [part.cpu() for part in kinds.answers(self.own, module, batches.to(b, self.device))]
            for b in batches.whole(self.own.validation)
        ]
        outputs, targets = (torch.cat(parts) for parts in zip(*pairs))
        return float(self.own.metric.measure(outputs.float(), targets))

    def targets(self, module: nn.Module) -> Tensor | None:
        """Targets of the validation set, for kinds that know what a constant answer costs."""
        if self.kind.constant is None:
            return None
        with asked(module):
            found = [
                kinds.answers(self.own, module, b)[1] for b in batches.whole(self.own.validation)
            ]
        return torch.cat([one.flatten() if one.dim() < 2 else one for one in found])
