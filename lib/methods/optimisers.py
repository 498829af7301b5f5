"""Classes of torch.optim as training methods, for trials that are trained one after another.

They are named "torch.optim:AdamW", or with hyperparameters tuned between two values or fixed to
one: "torch.optim:AdamW(lr=1e-4..1e-2,weight_decay=0.1)".  A function in a reader's file that
returns an `Optimiser` also defines one, named "path/to/file.py:function".
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import field
from typing import Literal

from lib import require
from lib.fields import POSITIVE, SHARE, Number, spec
from lib.methods.intervals import LEE2021, Interval
from lib.methods.method import Method

PREFIX = "torch.optim:"
FORM = f"{PREFIX}CLASS or, for example, {PREFIX}AdamW(lr=1e-4..1e-2,weight_decay=0.1)"
NAMED = re.compile(rf"{PREFIX}(\w+)(?:\(([^()]*)\))?")
AROUND = 100.0  # factor around its default, either way, within which a learning rate is drawn
NEAR_ONE = "momentum", "alpha", "rho"  # drawn by their distance from one
# Not supported: the base class, several losses per step, and sparse gradients
APART = "Optimizer", "LBFGS", "SparseAdam"
# Schedules in words
SHAPES = {
    "constant": "a constant rate",
    "linear": "a linear decay",
    "cosine": "a cosine",
    "steps": "a decay in steps",
    "one-cycle": "one cycle",
}
PLACES = 1e-9, 0.5, 1 - 1e-9  # in the intervals, where a class is tried: ends are never drawn


@spec
class Schedule:
    """The factor of the learning rate at each step, over a horizon: the maximum of steps of a
    search.

    Raises ValueError naming the field.

    Attributes:
        warm_up: the share of the horizon in which it rises linearly to 1.
        shape: "constant" after that; "linear" or "cosine", falling to zero at the horizon; "steps",
            multiplied by `drop` at each of `falls`; or "one-cycle", along half a cosine from 1/25
            to 1 in the warm-up, and along another to 4e-6 at the horizon.
        falls: shares of the horizon.
        drop: a factor.
    """

    warm_up: Number("[0, 1]") = 0.0
    shape: Literal["constant", "linear", "cosine", "steps", "one-cycle"] = "constant"
    falls: tuple[SHARE, ...] = (0.5, 0.75)
    drop: SHARE = 0.1

    def factor(self, step: int, horizon: int) -> float:
        """The factor at update number `step` (from 1)."""
        warm = self.warm_up * horizon
        if self.shape == "one-cycle":
            return _one_cycle(step - 1, warm - 1, horizon - 1)
        if step < warm:
            return step / warm
        if self.shape == "steps":
            return self.drop ** sum(step > share * horizon for share in self.falls)
        gone = min(1.0, max(0.0, step - 1 - warm) / max(horizon - warm, 1.0))
        cosine = (1 + math.cos(math.pi * gone)) / 2
        return {"constant": 1.0, "linear": 1 - gone, "cosine": cosine}[self.shape]


def _one_cycle(step: int, top: float, end: int) -> float:
    """The factor after `step` steps, 1 at `top`, as in torch (Smith and Topin 2019)."""
    rising = step < top
    low = 1 / 25 if rising else 4e-6
    gone = 1 - step / top if rising else min(1.0, (step - top) / max(end - top, 1.0))
    return low + (1 - low) * (1 + math.cos(math.pi * gone)) / 2


@spec
class Optimiser:
    """A class of torch.optim, and which of its arguments are tuned or fixed.

    Raises ValueError naming the field, its value and what is allowed.

    Attributes:
        kind: the class's name.
        tuned: intervals by the names of its arguments; "lr", if missing, ranges from the class's
            default / AROUND to default * AROUND, and for SGD as in Lee et al. (2021).
        fixed: values of other arguments.
        schedule: of the learning rate; or a function of a step (from 1) and the horizon that
            returns its factor.
        clip: the largest norm of all gradients together.
    """

    kind: str
    tuned: dict[str, Interval] = field(default_factory=dict)
    fixed: dict[str, object] = field(default_factory=dict)
    schedule: Schedule | Callable | None = None
    clip: POSITIVE | None = None

    def __post_init__(self):
        import torch  # slow to import, and not needed to read records

        classes = (name for name, value in vars(torch.optim).items() if isinstance(value, type))
        allowed = [name for name in classes if name not in APART]
        words = f"a class of torch.optim: {', '.join(allowed)}"
        require(self.kind in allowed, "kind", self.kind, words)
        require("lr" not in self.fixed, "fixed", self.fixed, "without lr, which is tuned")
        # The class itself refuses wrong names and values of arguments
        try:
            for place in PLACES:
                drawn = {
                    name: float(interval.values(place)) for name, interval in self.tuned.items()
                }
                optimiser = self.made([torch.zeros(2, 2)], drawn)
                usual = float(optimiser.defaults["lr"])
            around = Interval(usual / AROUND, usual * AROUND)
            rates = LEE2021["learning_rate"] if self.kind == "SGD" else around
            object.__setattr__(self, "tuned", {"lr": rates, **self.tuned})
        except (TypeError, ValueError) as error:
            arguments = {**self.tuned, **self.fixed}
            raise ValueError(f"tuned or fixed: {arguments} is not allowed; {error}") from None
        factors = [self.factor(step, 100) for step in (1, 50, 100)]
        fine = all(0 <= factor < math.inf for factor in factors)
        require(fine, "schedule", factors, "finite factors, not below 0")

    def factor(self, step: int, horizon: int) -> float:
        """The factor of the learning rate at update number `step` (from 1)."""
        if self.schedule is None:
            return 1.0
        return float(getattr(self.schedule, "factor", self.schedule)(step, horizon))

    def warm_up(self, horizon: int) -> int:
        """The update at which the learning rate is highest (to a ten-thousandth of the horizon); 0
        if that is the first.
        """
        steps = range(1, horizon + 1, max(1, horizon // 10_000))
        highest = max(steps, key=lambda step: self.factor(step, horizon))
        return highest if highest > 1 else 0

    def describe(self, horizon: int) -> str:
        """The schedule in words: "a warm-up of 5 and a cosine over 130 steps"."""
        warm = self.warm_up(horizon)
        first = f"a warm-up of {warm:,} and " if warm else ""
        shape = "constant" if self.schedule is None else getattr(self.schedule, "shape", "")
        kind = SHAPES.get(shape, "a schedule of its own")
        return f"{first}{kind} over {horizon:,} steps"

    def made(self, parameters: list, drawn: dict[str, float]) -> object:
        """The torch.optim.Optimizer of these parameters with these hyperparameters (`tuned`)."""
        import torch

        return getattr(torch.optim, self.kind)(parameters, **self.fixed, **drawn)


@functools.lru_cache(maxsize=256)
def named(name: str) -> Method:
    """The method called "torch.optim:CLASS" or "torch.optim:CLASS(ARGUMENTS)".  Raises ValueError
    saying what a name may be.
    """
    tuned = {}
    fixed = {}
    try:
        form = NAMED.fullmatch(name)
        require(form, "form", name.removeprefix(PREFIX), "CLASS or CLASS(ARGUMENTS)")
        kind, arguments = form.groups()
        for word in arguments.split(",") if arguments else ():
            argument, value = word.split("=")
            require(argument not in {**tuned, **fixed}, "argument", argument, "set once")
            low, *high = map(_number, value.split(".."))
            if high or argument == "lr":
                scale = "reverse-log" if argument in NEAR_ONE else "log"
                tuned[argument] = Interval(low, *high or [low], scale)
            else:
                fixed[argument] = low
        return method(Optimiser(kind, tuned, fixed), name)
    except (TypeError, ValueError) as error:
        message = f"algorithm: {name!r} is not allowed; it must be {FORM} ({error})"
        raise ValueError(message) from None


def _number(text: str) -> float | bool:
    words = {"True": True, "False": False}
    return words[text] if text in words else float(text)


def _apart(*_: object) -> None:
    raise ValueError(
        "algorithm: a class of torch.optim is not allowed here; it must be a method that trains "
        "all trials at once, such as those in lib/methods"
    )


def method(optimiser: Optimiser, name: str) -> Method:
    """The optimiser as a method for searches, where its "lr" is called learning_rate."""
    space = {
        "learning_rate" if n == "lr" else n: interval for n, interval in optimiser.tuned.items()
    }
    return Method(name, optimiser.kind, space, _apart, _apart, optimiser=optimiser)
