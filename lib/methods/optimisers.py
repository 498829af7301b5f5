"""Classes of torch.optim as training methods, for what is trained one trial after the other.

Their name is "torch.optim:AdamW", or with hyperparameters, tuned between two values or fixed at
one: "torch.optim:AdamW(lr=1e-4..1e-2,weight_decay=0.1)".  A function in a file of the reader's that
returns an `Optimiser` is one, too, by the name "path/to/file.py:function".
"""

from __future__ import annotations

import functools
import inspect
import math
from dataclasses import dataclass, field

from lib import require, require_number
from lib.methods.intervals import LEE2021, Interval
from lib.methods.method import Method

PREFIX = "torch.optim:"
AROUND = 100.0  # times its usual one and more or less: where a learning rate is drawn from
ITSELF = "params", "lr", "betas", "closure"
BETAS = "beta1", "beta2"  # as they are named here: a pair has no place in a table
SHAPES, UNITS = ("constant", "linear", "cosine"), ("limit", "steps", "examples")
# Steps that take several losses, or gradients that are not dense
APART = {"LBFGS": "asks for several losses a step", "SparseAdam": "takes sparse gradients alone"}


@dataclass(frozen=True)
class Schedule:
    """By what the learning rate is multiplied from step to step.

    warm_up: how long it rises to 1 in equal steps.  shape: "constant" after that, or falling to
    `end` until `length`, "linear" or "cosine"; there it stays.  unit: of warm_up and length, shares
    of the "limit" of steps, "steps", or "examples".  Raises ValueError naming the field.
    """

    warm_up: float = 0.0
    shape: str = "constant"
    length: float = 1.0
    end: float = 0.0
    unit: str = "limit"

    def __post_init__(self):
        require(self.shape in SHAPES, "shape", self.shape, SHAPES)
        require(self.unit in UNITS, "unit", self.unit, UNITS)
        most = 1.0 if self.unit == "limit" else math.inf
        told = "a number in (0, 1], a share of the limit" if most == 1 else "a positive number"
        require_number("length", self.length, lambda v: 0 < v <= most, told)
        before = f"a number from 0 to length ({self.length:g})"
        require_number("warm_up", self.warm_up, lambda v: 0 <= v <= self.length, before)
        require_number("end", self.end, lambda v: 0 <= v <= 1, "a number from 0 to 1")

    def factor(self, step: int, batch_size: int, limit: int) -> float:
        """At update number `step` (from 1) of at most `limit`."""
        steps = {"limit": limit, "steps": 1.0, "examples": 1 / batch_size}[self.unit]
        warm, last = self.warm_up * steps, self.length * steps
        if step < warm:
            return step / warm
        if self.shape == "constant":
            return 1.0
        gone = min(1.0, max(0.0, step - 1 - warm) / max(last - warm, 1.0))
        left = 1 - gone if self.shape == "linear" else (1 + math.cos(math.pi * gone)) / 2
        return self.end + (1 - self.end) * left


@dataclass(frozen=True, eq=False)
class Optimiser:
    """A class of torch.optim, what is tuned of it and what is fixed.

    kind: the class's name.  tuned: intervals by the names of its arguments (a pair of betas as
    beta1 and beta2); "lr", unless it is among them, from the class's own over to times AROUND, of
    SGD as Lee et al. (2021).  fixed: values of others.  schedule: of the learning rate.  clip: the
    largest norm of all gradients together.  decay_vectors: whether weight decay is for biases and
    gains, too (parameters of one dimension).  Raises ValueError naming the field, its value and
    what is allowed.
    """

    kind: str
    tuned: dict[str, Interval] = field(default_factory=dict)
    fixed: dict[str, object] = field(default_factory=dict)
    schedule: Schedule | None = None
    clip: float | None = None
    decay_vectors: bool = True

    def __post_init__(self):
        known = _arguments(self.kind)
        require(isinstance(self.tuned, dict), "tuned", self.tuned, "intervals by name")
        require(isinstance(self.fixed, dict), "fixed", self.fixed, "values by name")
        if "lr" not in self.tuned:
            object.__setattr__(self, "tuned", {"lr": _rates(self.kind, known), **self.tuned})
        names = [name for name in known if name not in ITSELF]
        names += BETAS if "betas" in known else []
        for name, at in self.tuned.items():
            require(name in ("lr", *names), "tuned", name, f"one of lr, {', '.join(names)}")
            require(
                isinstance(at, Interval), f"tuned[{name!r}]", at, "a lib.methods.intervals.Interval"
            )
        for name in self.fixed:
            free = [one for one in (*names, "betas") if one not in self.tuned]
            require(name in free, "fixed", name, f"one of {', '.join(free)}")
        fits = isinstance(self.schedule, Schedule | None)
        require(fits, "schedule", self.schedule, "a Schedule, or None")
        if self.clip is not None:
            require_number("clip", self.clip, lambda v: 0 < v < math.inf, "a positive number")
        both = isinstance(self.decay_vectors, bool)
        require(both, "decay_vectors", self.decay_vectors, "True or False")
        # The class's own checks, of values that its arguments must not have
        try:
            self.made([_parameter()], {name: at.low for name, at in self.tuned.items()})
        except (TypeError, ValueError) as error:
            raise ValueError(f"fixed: {self.fixed} is not allowed; {self.kind}: {error}") from None

    def made(self, parameters: list, drawn: dict[str, float]) -> object:
        """The torch.optim.Optimizer of these parameters with these hyperparameters (`tuned`)."""
        import torch  # slow to import, and most chapters only read records

        given = {**self.fixed, **drawn}
        usual = _arguments(self.kind).get("betas", (None, None))
        pair = tuple(given.pop(name, beta) for name, beta in zip(BETAS, given.get("betas", usual)))
        if "betas" in _arguments(self.kind):
            given["betas"] = pair
        groups = [{"params": parameters}]
        if not self.decay_vectors:
            flat = [p for p in parameters if p.dim() < 2]
            rest = [p for p in parameters if p.dim() >= 2]
            groups = [{"params": rest}, {"params": flat, "weight_decay": 0.0}]
            groups = [group for group in groups if group["params"]]
        return getattr(torch.optim, self.kind)(groups, **given)


def _parameter():
    import torch

    return torch.nn.Parameter(torch.zeros(2, 2))


@functools.cache
def _arguments(kind: str) -> dict[str, object]:
    """Arguments of a class of torch.optim and their usual values.  Raises ValueError."""
    import torch

    here = {
        name: one
        for name, one in vars(torch.optim).items()
        if isinstance(one, type) and issubclass(one, torch.optim.Optimizer) and name != "Optimizer"
    }
    allowed = [name for name in here if name not in APART]
    why = f" ({kind} {APART[kind]})" if kind in APART else ""
    known = isinstance(kind, str) and kind in allowed
    require(known, "kind", kind, f"a class of torch.optim: {', '.join(allowed)}{why}")
    return {name: one.default for name, one in inspect.signature(here[kind]).parameters.items()}


def _rates(kind: str, known: dict) -> Interval:
    if kind == "SGD":
        return LEE2021["learning_rate"]
    return Interval(float(known["lr"]) / AROUND, float(known["lr"]) * AROUND)


def is_class(name: object) -> bool:
    """Whether the name of a training method is that of a class of torch.optim."""
    return isinstance(name, str) and name.startswith(PREFIX)


@functools.lru_cache(maxsize=256)
def named(name: str) -> Method:
    """The method called "torch.optim:CLASS" or "torch.optim:CLASS(ARGUMENTS)".  Raises ValueError
    that says what a name may be.
    """
    kind, bracket, rest = name.removeprefix(PREFIX).partition("(")
    form = f"{PREFIX}CLASS, or such as {PREFIX}AdamW(lr=1e-4..1e-2,weight_decay=0.1)"
    require(rest.endswith(")") if bracket else not rest, "algorithm", name, form)
    tuned, fixed = {}, {}
    for word in filter(None, rest.removesuffix(")").split(",")):
        argument, _, value = (part.strip() for part in word.partition("="))
        ends = [_number(end) for end in value.split("..")]
        fits = len(ends) < 3 and None not in ends and argument not in (*tuned, *fixed)
        require(fits, "algorithm", name, form)
        if len(ends) == 2 or argument == "lr":
            tuned[argument] = _interval(argument, ends[0], ends[-1], name)
        else:
            fixed[argument] = ends[0]
    try:
        return method(Optimiser(kind, tuned, fixed), name)
    except ValueError as error:
        raise ValueError(f"algorithm: {name!r} is not allowed; {error}") from None


def _number(text: str) -> float | bool | None:
    words = {"true": True, "false": False}
    try:
        return words[text.lower()] if text.lower() in words else float(text)
    except ValueError:
        return None


def _interval(argument: str, low: float, high: float, name: str) -> Interval:
    """Momentum and betas are drawn by how far they are from one, all else by its logarithm."""
    near_one = argument in (*BETAS, "momentum", "alpha", "rho")
    try:
        return Interval(low, high, "reverse-log" if near_one else "log")
    except ValueError as error:
        raise ValueError(f"algorithm: {name!r} is not allowed; {argument}: {error}") from None


def _apart(*_: object) -> None:
    raise ValueError(
        "algorithm: a class of torch.optim is not allowed here; it must be a method that computes "
        "all trials at once, as those of lib/methods do"
    )


def method(optimiser: Optimiser, name: str, title: str = "") -> Method:
    """The optimiser as a method that searches know: its "lr" is their learning_rate."""
    space = {"learning_rate" if n == "lr" else n: at for n, at in optimiser.tuned.items()}
    return Method(name, title or optimiser.kind, space, _apart, _apart, optimiser=optimiser)
