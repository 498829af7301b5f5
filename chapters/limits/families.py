"""Families of workloads that differ in one thing."""

from __future__ import annotations

from dataclasses import dataclass

from lib.studies.families import (
    ALGORITHM,
    DATA,
    DATA_CNN,
    DEPTH,
    FRACTION,
    LADDER,
    MNIST_DEPTH,
    MNIST_FRACTION,
    MNIST_MODEL,
    MNIST_MODEL_EASIER,
    MNIST_WIDTH,
    MODEL,
    WIDTH,
)
from lib.wording import named
from lib.workloads.catalogue import EASIER, FC_WIDTHS, FRACTIONS


@dataclass(frozen=True)
class Family:
    """members: name -> (workload, algorithm), from the smallest or simplest on.

    ends: the two members whose critical batch sizes are compared; None: the first and the last.
    """

    members: dict[str, tuple[str, str]]
    ends: tuple[str, str] | None = None


def _family(algorithm: str, members: dict[str, str], ends: tuple[str, str] | None = None) -> Family:
    """A family whose members are trained with one method; members: name -> workload."""
    return Family({name: (workload, algorithm) for name, workload in members.items()}, ends)


FAMILIES = {
    WIDTH: _family(
        "momentum",
        {"MLP 16×2": "digits-mlp-16x2", "MLP 64×2": "digits-mlp", "MLP 256×2": "digits-mlp-256x2"},
    ),
    DEPTH: _family(
        "momentum",
        {"MLP 64×1": "digits-mlp-64x1", "MLP 64×2": "digits-mlp", "MLP 64×4": "digits-mlp-64x4"},
    ),
    FRACTION: _family(
        "momentum",
        {f"{1350 // n:,} digits": f"digits-mlp-{1350 // n}" for n in FRACTIONS}
        | {"1,350 digits": "digits-mlp"},
    ),
    MODEL: _family("momentum", {"MLP": "digits-mlp", "CNN": "digits-cnn"}),
    ALGORITHM: Family({named(a): ("digits-mlp", a) for a in ("sgd", "momentum", "nesterov")}),
    LADDER: _family(
        "sgd",
        {f"FC-{width.replace('x', '×')}": f"mnist-fc-{width}" for width in FC_WIDTHS},
        ("FC-128×3", "FC-1024×3"),
    ),
    MNIST_MODEL: _family("sgd", {"FC-1024": "mnist-fc-1024", "Simple-CNN": "mnist-simple-cnn"}),
    MNIST_MODEL_EASIER: _family(
        "sgd",
        {"FC-128×3": f"mnist-fc-128x3{EASIER}", "Simple-CNN": f"mnist-simple-cnn{EASIER}"},
    ),
    MNIST_DEPTH: _family("sgd", {"FC-1024": "mnist-fc-1024", "FC-1024×3": "mnist-fc-1024x3"}),
    MNIST_FRACTION: _family(
        "sgd",
        {f"{54_000 // n:,} of MNIST": f"mnist-fc-128x3-{54_000 // n}" for n in (*FRACTIONS, 1)},
    ),
    MNIST_WIDTH: _family(
        "momentum",
        {
            "half": "mnist-simple-cnn-half",
            "whole": "mnist-simple-cnn",
            "double": "mnist-simple-cnn-double",
        },
    ),
    DATA: _family(
        "momentum",
        {
            "MNIST, goal 5 %": f"mnist-fc-128x3{EASIER}",
            "Fashion-MNIST, goal 14 %": f"fashion-mnist-fc-128x3{EASIER}",
        },
    ),
    DATA_CNN: _family(
        "momentum",
        {
            "MNIST, goal 2 %": "mnist-simple-cnn",
            "Fashion-MNIST, goal 12 %": "fashion-mnist-simple-cnn",
        },
    ),
}


def choose(name: str) -> dict[str, Family]:
    """The family called `name`, or all of them.  Raises ValueError naming the allowed ones."""
    if name != "all" and name not in FAMILIES:
        raise ValueError(
            f"family: {name!r} is not allowed; it must be one of all, {', '.join(FAMILIES)}"
        )
    return FAMILIES if name == "all" else {name: FAMILIES[name]}
