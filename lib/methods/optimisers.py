"""Classes of torch.optim as training methods, for what is trained one trial after the other.

Their name is "torch.optim:AdamW", or with hyperparameters, tuned between two values or fixed at
one: "torch.optim:AdamW(lr=1e-4..1e-2,weight_decay=0.1)".  A function in a file of the reader's that
returns an `Optimiser` is one, too, by the name "path/to/file.py:function".
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from dataclasses import field
from typing import Annotated, Literal

from lib import require
from lib.fields import AMOUNT, POSITIVE, Number, spec
from lib.methods.intervals import LEE2021, Interval
from lib.methods.method import Method

PREFIX = "torch.optim:"
AROUND = 100.0  # times its usual one and more or less: where a learning rate is drawn from
ITSELF = "params", "lr", "betas", "closure"
BETAS = "beta1", "beta2"  # as they are named here: a pair has no place in a table
# Steps that take several losses, or gradients that are not dense
APART = {"LBFGS": "asks for several losses a step", "SparseAdam": "takes sparse gradients alone"}


@spec
class Schedule:
    """By what the learning rate is multiplied from step to step.

    Raises ValueError naming the field.

    Attributes:
        warm_up: how long it rises to 1 in equal steps.
        shape: "constant" after that, or falling to `end` until `length`; there it stays.
        unit: of warm_up and length: shares of the "limit" of steps, "steps", or "examples".
    """

    warm_up: AMOUNT = 0.0
    shape: Literal["constant", "linear", "cosine"] = "constant"
    length: POSITIVE = 1.0
    end: Number("[0, 1]") = 0.0
    unit: Literal["limit", "steps", "examples"] = "limit"

    def __post_init__(self):
        share = self.unit != "limit" or self.length <= 1
        require(share, "length", self.length, "at most 1, a share of the limit")
        before = f"at most length ({self.length:g})"
        require(self.warm_up <= self.length, "warm_up", self.warm_up, before)

    def factor(self, step: int, batch_size: int, limit: int) -> float:
        """At update number `step` (from 1) of at most `limit`."""
        steps = {"limit": limit, "steps": 1.0, "examples": 1 / batch_size}[self.unit]
        warm = self.warm_up * steps
        last = self.length * steps
        if step < warm:
            return step / warm
        if self.shape == "constant":
            return 1.0
        gone = min(1.0, max(0.0, step - 1 - warm) / max(last - warm, 1.0))
        left = 1 - gone if self.shape == "linear" else (1 + math.cos(math.pi * gone)) / 2
        return self.end + (1 - self.end) * left


@spec
class Optimiser:
    """A class of torch.optim, what is tuned of it and what is fixed.

    Raises ValueError naming the field, its value and what is allowed.

    Attributes:
        kind: the class's name.
        tuned: intervals by the names of its arguments (a pair of betas as beta1 and beta2); "lr",
            unless it is among them, from the class's own over to times AROUND, of SGD as Lee et al.
            (2021).
        fixed: values of others.
        schedule: of the learning rate.
        clip: the largest norm of all gradients together.
        decay_vectors: whether weight decay is for biases and gains, too (parameters of one
            dimension).
    """

    kind: str
    tuned: Annotated[dict[str, Interval], "intervals by name"] = field(default_factory=dict)
    fixed: Annotated[dict[str, object], "values by name"] = field(default_factory=dict)
    schedule: Annotated[Schedule | None, "a Schedule, or None"] = None
    clip: Annotated[POSITIVE | None, "a positive number, or None"] = None
    decay_vectors: bool = True

    def __post_init__(self):
        import torch  # slow to import, and most chapters only read records

        known = _arguments(self.kind)
        if "lr" not in self.tuned:
            object.__setattr__(self, "tuned", {"lr": _rates(self.kind, known), **self.tuned})
        names = [name for name in known if name not in ITSELF]
        names += BETAS if "betas" in known else []
        for name in self.tuned:
            require(name in ("lr", *names), "tuned", name, f"one of lr, {', '.join(names)}")
        free = [name for name in (*names, "betas") if name not in self.tuned]
        for name in self.fixed:
            require(name in free, "fixed", name, free)
        # The class's own checks, of values that its arguments must not have
        try:
            self.made([torch.zeros(2, 2)], {name: at.low for name, at in self.tuned.items()})
        except (TypeError, ValueError) as error:
            raise ValueError(f"fixed: {self.fixed} is not allowed; {self.kind}: {error}") from None

    def made(self, parameters: list, drawn: dict[str, float]) -> object:
        """The torch.optim.Optimizer of these parameters with these hyperparameters (`tuned`)."""
        import torch

        given = {**self.fixed, **drawn}
        known = _arguments(self.kind)
        if "betas" in known:
            pair = zip(BETAS, given.get("betas", known["betas"]))
            given["betas"] = tuple(given.pop(name, beta) for name, beta in pair)
        groups = [{"params": parameters}]
        if not self.decay_vectors:
            vectors = [p for p in parameters if p.dim() < 2]
            groups = [{"params": [p for p in parameters if p.dim() >= 2]}]
            groups += [{"params": vectors, "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        return getattr(torch.optim, self.kind)(groups, **given)


@functools.cache
def _arguments(kind: str) -> dict[str, object]:
    """Arguments of a class of torch.optim and their usual values.  Raises ValueError."""
    import torch

    optimisers = inspect.getmembers(torch.optim, inspect.isclass)
    here = [name for name, one in optimisers if issubclass(one, torch.optim.Optimizer)]
    allowed = [name for name in here if name not in (*APART, "Optimizer")]
    why = f" ({kind} {APART[kind]})" if kind in APART else ""
    words = f"a class of torch.optim: {', '.join(allowed)}{why}"
    require(kind in allowed, "kind", kind, words)
    parameters = inspect.signature(getattr(torch.optim, kind)).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


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
    tuned = {}
    fixed = {}
    for word in filter(None, rest.removesuffix(")").split(",")):
        argument, _, value = (part.strip() for part in word.partition("="))
        ends = [_number(end) for end in value.split("..")]
        fits = len(ends) < 3 and None not in ends and argument not in (*tuned, *fixed)
        require(fits, "algorithm", name, form)
        if len(ends) == 1 and argument != "lr":
            fixed[argument] = ends[0]
            continue
        # Momentum and betas are drawn by how far they are from one, all else by its logarithm
        near_one = argument in (*BETAS, "momentum", "alpha", "rho")
        with _naming(name, f"{argument}: "):
            scale = "reverse-log" if near_one else "log"
            tuned[argument] = Interval(ends[0], ends[-1], scale)
    with _naming(name):
        return method(Optimiser(kind, tuned, fixed), name)


@contextlib.contextmanager
def _naming(name: str, argument: str = ""):
    try:
        yield
    except ValueError as error:
        raise ValueError(f"algorithm: {name!r} is not allowed; {argument}{error}") from None


def _number(text: str) -> float | bool | None:
    words = {"true": True, "false": False}
    try:
        return words[text.lower()] if text.lower() in words else float(text)
    except ValueError:
        return None


def _apart(*_: object) -> None:
    raise ValueError(
        "algorithm: a class of torch.optim is not allowed here; it must be a method that computes "
        "all trials at once, as those of lib/methods do"
    )


def method(optimiser: Optimiser, name: str, title: str = "") -> Method:
    """The optimiser as a method that searches know: its "lr" is their learning_rate."""
    space = {"learning_rate" if n == "lr" else n: at for n, at in optimiser.tuned.items()}
    return Method(name, title or optimiser.kind, space, _apart, _apart, optimiser=optimiser)
