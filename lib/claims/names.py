"""How rows of the matrix are made and named, and which networks are the papers' own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio, share
from lib.probes import portraits
from lib.wording import named
from lib.workloads.catalogue import WORKLOADS

# How the names of the papers' networks begin
LEE2021 = ("mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8")
# Their Simple CNN has fifty times the parameters of ours, which is Lee et al.'s
SHALLUE2019 = ("mnist-fc-", "cifar-10-resnet-8")
# Their recurrent networks are on speech and on Penn Treebank; ours is not
SHI2019 = ("mnist-fnn-3", "mnist-lenet-5", "cifar-10-resnet-20")

REPEATS = (
    "mnist-fc-128x3-54000",
)  # its searches are those of mnist-fc-128x3-easier: counted once
DEPENDENT = "vectors of one run are no independent repeats"  # so networks are judged


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


def tested_form(row: pd.Series) -> str:
    """How well c1/B + c2 fits a curve, in words, of a row of `scaling.tests_of_form`."""
    p_value = f"p = {row.p_value:.2g}" if row.p_value >= 0.001 else "p < 0.001"
    return f"χ² = {row.chi2:.0f} on {row.freedom:.0f} degrees of freedom ({p_value})"


def is_lee2021(workload: str) -> bool:
    """Whether the network is one of Lee et al. (2021)."""
    return workload.startswith(LEE2021)


def is_shallue2019(workload: str) -> bool:
    """Whether the network is one of Shallue et al. (2019)."""
    return workload.startswith(SHALLUE2019)


# --- claims on the vectors that Top-k compresses --------------------------------------------------


def fed() -> pd.DataFrame:
    """Vectors of Top-k with feedback at the authors' density, a row each (`portraits.shapes`)."""
    wanted = (0.001, "top-k", True)
    planned = (
        p for p in portraits.PORTRAITS if (p.density, p.compressor, p.feedback) == wanted
    )
    return portraits.shapes(portraits.results(tuple(planned)))


def most_vectors(met: pd.Series, workloads: pd.Series) -> list[Group]:
    """The networks on which a condition is met by most vectors of their run, of all networks; each
    network's count as a note, with a star at the paper's own.
    """
    by = met.groupby(workloads, sort=False)
    counts = "; ".join(
        f"{'★ ' * name.startswith(SHI2019)}{title(name)}: {own.sum()} of {len(own)} vectors"
        for name, own in by
    )
    most = int((by.mean() > 0.5).sum())
    return [share(f"{by.ngroups} networks, a run each", most, by.ngroups, True, counts)]
