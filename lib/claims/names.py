"""Makes and names rows of the matrix, and says which networks are the papers'."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from lib.analysis import scaling
from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio
from lib.methods import WITH_MOMENTUM
from lib.wording import named
from lib.workloads.catalogue import WORKLOADS

# Prefixes of the names of the papers' networks
LEE2021 = ("mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8")
# Their Simple CNN, of which they take fractions of MNIST, has fifty times the parameters of ours,
# which is Lee et al.'s
SHALLUE2019 = re.compile("mnist-fc-(?!.*-[0-9]+$)|cifar-10-resnet-8")
# Their recurrent networks are on speech and on Penn Treebank; ours is not
SHI2019 = ("mnist-fnn-3", "mnist-lenet-5", "cifar-10-resnet-20")

REPEATS = (
    "mnist-fc-128x3-54000",
)  # its searches are those of mnist-fc-128x3-easier: counted once
# For rules on ratios of critical batch sizes
LADDER = (
    "The ratio is the geometric mean of four, on shared searches: from the first 2 trials to meet "
    "the goal, and the first 5, 10 and 10 to meet the next easier ones; in races, the first alone."
)


def title(workload: str) -> str:
    """A workload's title, or its name if it has none."""
    return WORKLOADS[workload].title if workload in WORKLOADS else str(workload)


def curve_title(key: tuple) -> str:
    """A network and a method: "MLP on digits, momentum"."""
    return f"{title(key[0])}, {named(key[1])}"


def rows(
    effects: Mapping[tuple, Effect | None],
    is_theirs: Callable[[str], bool] = lambda workload: False,
    note: Callable[[tuple, Effect], str] = lambda key, effect: "",
) -> list[Group]:
    """A row per curve that has an effect, as a ratio.

    Args:
        effects: by key (workload, algorithm, ...).
        is_theirs: whether a workload is one of the paper's.
        note: for a key and its effect.
    """
    return [
        ratio(curve_title(key), effect, is_theirs(key[0]), note(key, effect))
        for key, effect in effects.items()
        if effect is not None
    ]


def marked(
    keys: Iterable[tuple], groups: Iterable[Group], whole: Collection[tuple]
) -> list[Group]:
    """The groups of these keys.  Those with momentum restricted to 0.9 and above, where small
    batches take too many steps, get a note and no verdict.

    whole: the keys of curves over momentum's whole range.
    """
    kept = []
    for key, group in zip(keys, groups, strict=True):
        if key[1] in WITH_MOMENTUM and key not in whole:
            note = "; ".join(filter(None, [group.note, "momentum only from 0.9 on"]))
            group = replace(group, note=note, decides=False)
        kept.append(group)
    return kept


def pooled_images(effects: Mapping[tuple, Effect | None]) -> dict[tuple, Effect]:
    """Estimates by key, with the scatter between searches pooled over networks on images; those on
    the digits, with many searches and small splits, keep their own.
    """
    measured = {key: effect for key, effect in effects.items() if effect is not None}
    return scaling.pooled(measured, lambda key: not key[0].startswith("digits"))


def is_lee2021(workload: str) -> bool:
    """Whether the network is one of Lee et al. (2021)."""
    return workload.startswith(LEE2021)


def is_shallue2019(workload: str) -> bool:
    """Whether the network is one of Shallue et al. (2019)."""
    return bool(SHALLUE2019.match(workload))
