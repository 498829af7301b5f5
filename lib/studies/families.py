"""Families of workloads that differ in one thing, each with one goal error."""

from __future__ import annotations

from dataclasses import dataclass

from lib.wording import named
from lib.workloads.catalogue import FC_WIDTHS, FRACTIONS


@dataclass(frozen=True)
class Family:
    """members: name -> (workload, algorithm), from the smallest or simplest on.

    goal: the error all of them share; 0: each its workload's own.  stop: of the cells that are compared, as in `Cell`.
    ends: the two members whose bends are compared; None: the first and the last.
    """

    members: dict[str, tuple[str, str]]
    goal: float
    stop: str = "goal"
    ends: tuple[str, str] | None = None


def _family(goal: float, algorithm: str, **members: str) -> Family:
    return Family({title.replace("_", " ").replace("x", "×"): (name, algorithm) for title, name in members.items()}, goal)


WIDTH, DEPTH, FRACTION = "digits: width", "digits: depth", "digits: fractions of the data"
LADDER, MNIST_DEPTH = "MNIST: fully connected networks", "MNIST: depth"
MNIST_WIDTH, MNIST_FRACTION = "MNIST: width", "MNIST: fractions of the data"
MODEL, MNIST_MODEL, ALGORITHM = "digits: kind of network", "MNIST: kind of network", "digits: algorithm"
DIGITS_GOAL = 0.05  # the hardest that every dense and 90 % sparse search met; a test compares it with the records
DATA, DATA_CNN = "data set (FC-128×3)", "data set (Simple-CNN)"
FAMILIES = {
    WIDTH: _family(DIGITS_GOAL, "momentum", MLP_16x2="digits-mlp-16x2", MLP_64x2="digits-mlp", MLP_256x2="digits-mlp-256x2"),
    DEPTH: _family(DIGITS_GOAL, "momentum", MLP_64x1="digits-mlp-64x1", MLP_64x2="digits-mlp", MLP_64x4="digits-mlp-64x4"),
    FRACTION: Family(
        {f"{1350 // n:,} digits": (f"digits-mlp-{1350 // n}", "momentum") for n in FRACTIONS}
        | {"1,350 digits": ("digits-mlp", "momentum")}, 0.1,
    ),
    MODEL: _family(DIGITS_GOAL, "momentum", MLP="digits-mlp", CNN="digits-cnn"),
    ALGORITHM: Family({named(a): ("digits-mlp", a) for a in ("sgd", "momentum", "nesterov")}, DIGITS_GOAL),
    LADDER: Family({f"FC-{s.replace('x', '×')}": (f"mnist-fc-{s}", "sgd") for s in FC_WIDTHS}, 0.03,
                   ends=("FC-128×3", "FC-1024×3")),
    MNIST_MODEL: Family({"FC-1024": ("mnist-fc-1024", "sgd"), "Simple-CNN": ("mnist-simple-cnn", "sgd")}, 0.03),
    MNIST_DEPTH: Family({"FC-1024": ("mnist-fc-1024", "sgd"), "FC-1024×3": ("mnist-fc-1024x3", "sgd")}, 0.03),
    MNIST_FRACTION: Family(
        {f"{54_000 // n:,} of MNIST": (f"mnist-fc-128x3-{54_000 // n}", "sgd") for n in FRACTIONS}
        | {"54,000 of MNIST": ("mnist-fc-128x3-54000", "sgd")}, 0.08,  # at 6 % an eighth of them is near its lowest error
    ),
    MNIST_WIDTH: _family(0.02, "momentum", half="mnist-simple-cnn-half", whole="mnist-simple-cnn",
                         double="mnist-simple-cnn-double"),
    DATA: Family({"MNIST, goal 3 %": ("mnist-fc-128x3", "momentum"),
                  "Fashion-MNIST, goal 13 %": ("fashion-mnist-fc-128x3", "momentum")}, 0.0, "budget"),
    DATA_CNN: Family({"MNIST, goal 2 %": ("mnist-simple-cnn", "momentum"),
                      "Fashion-MNIST, goal 12 %": ("fashion-mnist-simple-cnn", "momentum")}, 0.0),
}  # fmt: skip


def choose(name: str) -> dict[str, Family]:
    """The family called `name`, or all of them.  Raises ValueError naming the allowed ones."""
    if name != "all" and name not in FAMILIES:
        raise ValueError(f"family: {name!r} is not allowed; it must be one of all, {', '.join(FAMILIES)}")
    return FAMILIES if name == "all" else {name: FAMILIES[name]}
