"""How rows of the matrix are named, and which networks are the papers' own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio
from lib.wording import named
from lib.workloads.catalogue import WORKLOADS

# How the names of the papers' networks begin
LEE2021 = ("mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8")
# Their Simple CNN has fifty times the parameters of ours, which is Lee et al.'s
SHALLUE2019 = ("mnist-fc-", "cifar-10-resnet-8")
SHI2019 = ("mnist-fnn-3", "mnist-lenet-5", "cifar-10-resnet-20")

REPEATS = ("mnist-fc-128x3-54000",)  # its searches are those of mnist-fc-128x3-easier: counted once


def title(workload: str) -> str:
    """A workload's title, or its name where it has none."""
    return WORKLOADS[workload].title if workload in WORKLOADS else str(workload)


def curve_title(key: tuple) -> str:
    """A network and a method: "MLP on digits, momentum"."""
    return f"{title(key[0])}, {named(key[1])}"


def rows(
    effects: Mapping[tuple, Effect | None],
    own: Callable[[str], bool] = lambda workload: False,
    note: Callable[[tuple, Effect], str] = lambda key, effect: "",
) -> list[Group]:
    """A row per curve of which there is an effect, on a ratio.

    effects: by key (workload, algorithm, ...); own: whether a workload is of the paper's; note: of
    a key and its effect.
    """
    return [
        ratio(curve_title(key), effect, own(key[0]), note(key, effect))
        for key, effect in effects.items()
        if effect is not None
    ]


def is_lee2021(workload: str) -> bool:
    """Whether the network is one of Lee et al. (2021); so for the others."""
    return workload.startswith(LEE2021)


def is_shallue2019(workload: str) -> bool:
    return workload.startswith(SHALLUE2019)


def is_shi2019(workload: str) -> bool:
    return workload.startswith(SHI2019)
