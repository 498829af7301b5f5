"""Families of workloads that differ in one thing; the goal error of each is in
`lib.analysis.goals`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lib.wording import named
from lib.workloads.catalogue import EASIER, FC_WIDTHS, FRACTIONS


@dataclass(frozen=True)
class Family:
    """members: name -> (workload, algorithm), from the smallest or simplest on.

    ends: the two members whose critical batch sizes are compared; None: the first and the last.
    """

    members: dict[str, tuple[str, str]]
    ends: tuple[str, str] | None = None


def _family(algorithm: str, ends: tuple[str, str] | None = None, **members: str) -> Family:
    return Family(
        {
            title.replace("_", " ").replace("x", "×"): (name, algorithm)
            for title, name in members.items()
        },
        ends,
    )


WIDTH, DEPTH, FRACTION = "digits: width", "digits: depth", "digits: fractions of the data"
LADDER, MNIST_DEPTH = "MNIST: fully connected networks", "MNIST: depth"
MNIST_WIDTH, MNIST_FRACTION = "MNIST: width", "MNIST: fractions of the data"
MODEL, MNIST_MODEL, ALGORITHM = (
    "digits: kind of network",
    "MNIST: kind of network",
    "digits: algorithm",
)
MNIST_MODEL_EASIER = "MNIST: kind of network, easier goal"
DATA, DATA_CNN = "data set (FC-128×3)", "data set (Simple-CNN)"
FAMILIES = {
    WIDTH: _family(
        "momentum", MLP_16x2="digits-mlp-16x2", MLP_64x2="digits-mlp", MLP_256x2="digits-mlp-256x2"
    ),
    DEPTH: _family(
        "momentum", MLP_64x1="digits-mlp-64x1", MLP_64x2="digits-mlp", MLP_64x4="digits-mlp-64x4"
    ),
    FRACTION: Family(
        {f"{1350 // n:,} digits": (f"digits-mlp-{1350 // n}", "momentum") for n in FRACTIONS}
        | {"1,350 digits": ("digits-mlp", "momentum")},
    ),
    MODEL: _family("momentum", MLP="digits-mlp", CNN="digits-cnn"),
    ALGORITHM: Family({named(a): ("digits-mlp", a) for a in ("sgd", "momentum", "nesterov")}),
    LADDER: Family(
        {f"FC-{s.replace('x', '×')}": (f"mnist-fc-{s}", "sgd") for s in FC_WIDTHS},
        ("FC-128×3", "FC-1024×3"),
    ),
    MNIST_MODEL: Family(
        {"FC-1024": ("mnist-fc-1024", "sgd"), "Simple-CNN": ("mnist-simple-cnn", "sgd")}
    ),
    MNIST_MODEL_EASIER: Family(
        {
            "FC-128×3": (f"mnist-fc-128x3{EASIER}", "sgd"),
            "Simple-CNN": (f"mnist-simple-cnn{EASIER}", "sgd"),
        }
    ),
    MNIST_DEPTH: Family(
        {"FC-1024": ("mnist-fc-1024", "sgd"), "FC-1024×3": ("mnist-fc-1024x3", "sgd")}
    ),
    MNIST_FRACTION: Family(
        {f"{54_000 // n:,} of MNIST": (f"mnist-fc-128x3-{54_000 // n}", "sgd") for n in FRACTIONS}
        | {"54,000 of MNIST": ("mnist-fc-128x3-54000", "sgd")},
    ),
    MNIST_WIDTH: _family(
        "momentum",
        half="mnist-simple-cnn-half",
        whole="mnist-simple-cnn",
        double="mnist-simple-cnn-double",
    ),
    DATA: Family(
        {
            "MNIST, goal 5 %": (f"mnist-fc-128x3{EASIER}", "momentum"),
            "Fashion-MNIST, goal 14 %": (f"fashion-mnist-fc-128x3{EASIER}", "momentum"),
        }
    ),
    DATA_CNN: Family(
        {
            "MNIST, goal 2 %": ("mnist-simple-cnn", "momentum"),
            "Fashion-MNIST, goal 12 %": ("fashion-mnist-simple-cnn", "momentum"),
        }
    ),
}


def choose(name: str) -> dict[str, Family]:
    """The family called `name`, or all of them.  Raises ValueError naming the allowed ones."""
    if name != "all" and name not in FAMILIES:
        raise ValueError(
            f"family: {name!r} is not allowed; it must be one of all, {', '.join(FAMILIES)}"
        )
    return FAMILIES if name == "all" else {name: FAMILIES[name]}
