"""Classes of torch.optim as training methods, for what is trained one trial after the other.

Their name is "torch.optim:AdamW", or with hyperparameters, tuned between two values or fixed at
one: "torch.optim:AdamW(lr=1e-4..1e-2,weight_decay=0.1)".  A function in a file of the reader's that
returns an `Optimiser` is one, too, by the name "path/to/file.py:function".
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import field
from typing import Literal

from lib import require
from lib.fields import POSITIVE, Number, spec
from lib.methods.intervals import LEE2021, Interval
from lib.methods.method import Method

PREFIX = "torch.optim:"
FORM = f"{PREFIX}CLASS, or such as {PREFIX}AdamW(lr=1e-4..1e-2,weight_decay=0.1)"
NAMED = re.compile(rf"{PREFIX}(\w+)(?:\(([^()]*)\))?")
AROUND = 100.0  # times its usual one and more or less: where a learning rate is drawn from
NEAR_ONE = "momentum", "alpha", "rho"  # drawn by how far they are from one
# Steps that take several losses, or gradients that are not dense
APART = "Optimizer", "LBFGS", "SparseAdam"
PLACES = 1e-9, 0.5, 1 - 1e-9  # of the intervals, where a class is tried: no end is ever drawn


@spec
class Schedule:
    """By what the learning rate is multiplied from step to step.

    Raises ValueError naming the field.

    Attributes:
        warm_up: the share of the limit of steps in which it rises to 1 in equal steps.
        shape: "constant" after that, or falling to zero at the limit.
    """

    warm_up: Number("[0, 1]") = 0.0
    shape: Literal["constant", "linear", "cosine"] = "constant"

    def factor(self, step: int, limit: int) -> float:
        """At update number `step` (from 1) of at most `limit`."""
        warm = self.warm_up * limit
        if step < warm:
            return step / warm
        gone = min(1.0, max(0.0, step - 1 - warm) / max(limit - warm, 1.0))
        cosine = (1 + math.cos(math.pi * gone)) / 2
        return {"constant": 1.0, "linear": 1 - gone, "cosine": cosine}[self.shape]


@spec
class Optimiser:
    """A class of torch.optim, what is tuned of it and what is fixed.

    Raises ValueError naming the field, its value and what is allowed.

    Attributes:
        kind: the class's name.
        tuned: intervals by the names of its arguments; "lr", unless it is among them, from the
            class's own over to times AROUND, of SGD as Lee et al. (2021).
        fixed: values of others.
        schedule: of the learning rate.
        clip: the largest norm of all gradients together.
    """

    kind: str
    tuned: dict[str, Interval] = field(default_factory=dict)
    fixed: dict[str, object] = field(default_factory=dict)
    schedule: Schedule | None = None
    clip: POSITIVE | None = None

    def __post_init__(self):
        import torch  # slow to import, and most chapters only read records

        classes = (name for name, one in vars(torch.optim).items() if isinstance(one, type))
        allowed = [name for name in classes if name not in APART]
        words = f"a class of torch.optim: {', '.join(allowed)}"
        require(self.kind in allowed, "kind", self.kind, words)
        # The class itself refuses what its arguments must not be called, and must not be
        try:
            for place in PLACES:
                drawn = {name: float(at.at(place)) for name, at in self.tuned.items()}
                usual = float(self.made([torch.zeros(2, 2)], drawn).defaults["lr"])
            around = Interval(usual / AROUND, usual * AROUND)
            rates = LEE2021["learning_rate"] if self.kind == "SGD" else around
            object.__setattr__(self, "tuned", {"lr": rates, **self.tuned})
        except (TypeError, ValueError) as error:
            given = {**self.tuned, **self.fixed}
            raise ValueError(f"tuned or fixed: {given} is not allowed; {error}") from None

    def made(self, parameters: list, drawn: dict[str, float]) -> object:
        """The torch.optim.Optimizer of these parameters with these hyperparameters (`tuned`)."""
        import torch

        return getattr(torch.optim, self.kind)(parameters, **self.fixed, **drawn)


def is_class(name: object) -> bool:
    """Whether the name of a training method is that of a class of torch.optim."""
    return isinstance(name, str) and name.startswith(PREFIX)


@functools.lru_cache(maxsize=256)
def named(name: str) -> Method:
    """The method called "torch.optim:CLASS" or "torch.optim:CLASS(ARGUMENTS)".  Raises ValueError
    that says what a name may be.
    """
    tuned = {}
    fixed = {}
    try:
        form = NAMED.fullmatch(name)
        require(form, "form", name.removeprefix(PREFIX), "a class, and arguments in brackets")
        kind, rest = form.groups()
        for word in rest.split(",") if rest else ():
            argument, value = word.split("=")
            require(argument not in {**tuned, **fixed}, "argument", argument, "there once")
            low, *high = map(_number, value.split(".."))
            if high or argument == "lr":
                scale = "reverse-log" if argument in NEAR_ONE else "log"
                tuned[argument] = Interval(low, *high or [low], scale)
            else:
                fixed[argument] = low
        return method(Optimiser(kind, tuned, fixed), name)
    except (TypeError, ValueError) as error:
        told = f"algorithm: {name!r} is not allowed; it must be {FORM} ({error})"
        raise ValueError(told) from None


def _number(text: str) -> float | bool:
    words = {"True": True, "False": False}
    return words[text] if text in words else float(text)


def _apart(*_: object) -> None:
    raise ValueError(
        "algorithm: a class of torch.optim is not allowed here; it must be a method that computes "
        "all trials at once, as those of lib/methods do"
    )


def method(optimiser: Optimiser, name: str) -> Method:
    """The optimiser as a method that searches know: its "lr" is their learning_rate."""
    space = {"learning_rate" if n == "lr" else n: at for n, at in optimiser.tuned.items()}
    return Method(name, optimiser.kind, space, _apart, _apart, optimiser=optimiser)
