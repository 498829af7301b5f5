"""What a worker's gradient looks like before compression: compact portraits of u_t along a training
run.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib import require
from lib.fields import Count, spec
from lib.measuring.experiment import Collection, WithSearch
from lib.messages import Messages
from lib.methods import spaces
from lib.records import store
from lib.records.store import DATA, SMOKE
from lib.studies.search import Search
from lib.workloads.catalogue import WorkloadName

if TYPE_CHECKING:
    from torch import Tensor

REACH, BINS = 6.0, 97  # of the histogram: standard deviations on either side, and bins
PROFILE = 100
FINE = 50  # bins in which a profile is judged; in a hundred, noise bends that of a normal vector
DENSITIES = np.unique([*np.geomspace(1e-3, 0.1, 13), *np.linspace(0.1, 0.9, 17)]).round(6)
TEXT_RATE = 0.3  # for the recurrent network, which hardly learns in these steps with 0.01
KEY = ["workload", "compressor", "density", "feedback", "step"]  # identifies a vector
SINGLE = ["mean", "std", "skew", "kurtosis", "positive", "above"]


@spec
class Portrait(WithSearch):
    """A run of P workers, with a portrait of the first worker's vector u_t = gradient + residual
    every `every` steps.

    batch_size: over all workers.
    feedback: if False, u_t is only the gradient.
    """

    workload: WorkloadName
    compressor: str = "top-k"
    density: float = 0.001
    feedback: bool = True
    workers: int = 16
    batch_size: int = 512
    learning_rate: float = 0.01
    momentum: float = 0.9
    every: Count(10**8) = 200
    steps: Count(10**8) = 1600
    replicate: int = 0

    def __post_init__(self):
        require(self.every <= self.steps, "every", self.every, f"at most steps ({self.steps})")
        _ = self.cell  # runs its checks

    @property
    def cell(self) -> Search:
        return Search(
            self.workload,
            self.batch_size,
            trials=1,
            replicate=self.replicate,
            stop="budget",
            max_steps=self.steps,
            space=spaces.point(learning_rate=self.learning_rate, momentum=self.momentum),
            messages=Messages(self.workers, self.compressor, self.density, self.feedback),
        )

    def measure(self) -> pd.DataFrame:
        """Train and describe u_t at every `every`-th step: step (from 1), measure, x, value.

        Raises FloatingPointError if the run ends before its first portrait.
        """
        from lib.measuring import one_search  # imports PyTorch, which is slow

        # Its errors are not used
        cell, portraits = dataclasses.replace(self.cell, checks="every-100"), []

        def watch(step: int, u: Tensor) -> None:
            if (step + 1) % self.every == 0 and len(u) and u.isfinite().all():
                portraits.append(describe(u[0].numpy()).assign(step=step + 1))

        exchange = one_search.exchange(cell, one_search.start(cell), watch)
        outcome = one_search.train_search(cell, exchange=exchange)
        if not portraits:
            raise FloatingPointError(
                f"learning_rate: {self.learning_rate!r} is too high with momentum "
                f"{self.momentum}: the run ended at step {outcome.last_step[0]}; try a lower one"
            )
        rows = pd.concat(portraits, ignore_index=True)[["step", "measure", "x", "value"]]
        return rows.assign(x=rows.x.round(6), value=[float(f"{v:.5g}") for v in rows.value])


def rate(workload: str) -> float:
    """The learning rate for the book's portraits of a workload."""
    return TEXT_RATE if workload.startswith("shakespeare") else Portrait.learning_rate


PORTRAITS = tuple(
    Portrait(name, learning_rate=rate(name), **fields)
    for name in ("mnist-fnn-3", "mnist-lenet-5", "cifar-10-resnet-20", "shakespeare-lstm")
    for fields in (
        {},
        {"feedback": False},
        {"compressor": "dense", "density": 1.0, "feedback": False},
        {"density": 0.01},
        {"compressor": "gaussian-k"},
    )
)


# --- how much of a vector its largest entries hold ------------------------------------------------


def _energy(u: np.ndarray) -> np.ndarray:
    """Cumulative sums of the squared entries of u [d] in descending order: [d + 1], from zero."""
    squares = np.sort(np.square(u, dtype=np.float64))[::-1]
    return np.concatenate([[0.0], np.cumsum(squares)])


def left(u: np.ndarray, density: np.ndarray) -> np.ndarray:
    """|u - Top_k(u)|^2 / |u|^2 at each density k/d, exactly: u [d] -> shape of density.  Fractions
    of an entry are interpolated.
    """
    energy = _energy(u)
    counts = np.asarray(density) * len(u)
    return np.interp(counts, np.arange(len(energy)), 1 - energy / energy[-1]).clip(min=0)


def profile(u: np.ndarray, bins: int = 100) -> np.ndarray:
    """Squared entries in descending order, averaged in equal bins, over the largest: [bins]."""
    energy = _energy(u)
    edges = np.linspace(0, len(u), bins + 1)
    in_bins = np.diff(np.interp(edges, np.arange(len(energy)), energy))
    return in_bins / (len(u) / bins) / energy[1]


def bell(profile: np.ndarray, bins: int, rounding: float = 0.0) -> bool:
    """Whether a profile, in a multiple of `bins` bins, is convex in `bins` and ends at zero, for
    values with relative errors up to `rounding`.

    It ends at zero if the last bin holds at most a third of the one before, as on a straight line
    that reaches zero at the end.
    """
    p = profile.reshape(bins, -1).mean(1)
    convex = np.diff(p, 2) >= -4 * rounding * p[1:-1]
    return convex.all() and p[-1] <= p[-2] / 3


def describe(u: np.ndarray) -> pd.DataFrame:
    """A vector u [d] in a few hundred numbers: columns measure, x, value.

    density: of u / sigma at x.
    profile: squared entries in descending order over the largest, at the share x of entries.
    left: what Top-k leaves at density x.
    Without x: mean, std, skew, kurtosis (excess), positive (share), above: the share of the profile
    above 1 - x.
    """
    from scipy import stats  # slow to import, and unused by most chapters

    u = u.astype(np.float64)
    edges = np.linspace(-REACH, REACH, BINS + 1)
    counts, _ = np.histogram(u / u.std(), edges)
    falling, ranks = profile(u, PROFILE), (np.arange(PROFILE) + 0.5) / PROFILE
    single = [
        u.mean(),
        u.std(),
        stats.skew(u),
        stats.kurtosis(u),
        (u > 0).mean(),
        (falling > 1 - ranks).mean(),
    ]
    centres = edges[:-1] + np.diff(edges) / 2
    curves = {
        "density": (centres, counts / len(u) / np.diff(edges)),
        "profile": (ranks, falling),
        "left": (DENSITIES, left(u, DENSITIES)),
    }
    rows = [pd.DataFrame({"measure": n, "x": x, "value": v}) for n, (x, v) in curves.items()]
    rows.append(pd.DataFrame({"measure": SINGLE, "x": np.nan, "value": single}))
    return pd.concat(rows, ignore_index=True)


GALLERY = Collection(
    "portraits",
    "histograms",
    lambda what: f"{store.home(what.workload)}/{what.compressor}-{what.density:g}",
    lambda: PORTRAITS,
    "Record what gradients look like before they are compressed, into data/portraits/.",
)


# --- reading --------------------------------------------------------------------------------------


def results(planned: tuple[Portrait, ...], budget: str = "cached") -> pd.DataFrame:
    """All portraits that have a record, a row per number, with the portrait's fields; budget: as
    for `lib.measuring.sweeps.results`; "smoke" makes a toy version of the first.
    """
    data = DATA
    if budget == "smoke":
        planned, data = (dataclasses.replace(planned[0], steps=20, every=10),), SMOKE
    if budget != "cached":
        GALLERY.run(planned, data)
    return GALLERY.results(planned, data)


def shapes(portraits: pd.DataFrame) -> pd.DataFrame:
    """A row per portrait in `results`: its fields, the single numbers of `describe`, and four more
    from its curves.

    far: the largest entry in standard deviations.
    peak: the density at zero over that of a normal distribution.
    rise: how far the histogram, in bins of 3/8 of a standard deviation, rises again beyond its
    highest bin, relative to that.
    bell: `bell` of the profile in `FINE` bins.
    """
    rows = []
    for key, numbers in portraits.groupby(KEY) if len(portraits) else ():
        by_measure = numbers.sort_values("x").groupby("measure").value
        density = by_measure.get_group("density").to_numpy()
        falling = by_measure.get_group("profile").to_numpy()
        single = by_measure.first()[SINGLE]
        coarse = density[2:-2].reshape(-1, 3).mean(axis=1)
        top = int(coarse.argmax())
        sides = coarse[top:], coarse[top::-1]
        risen = max((side - np.minimum.accumulate(side)).max() for side in sides)
        energy = (1 + (single["mean"] / single["std"]) ** 2) / falling.mean()
        shape = [
            np.sqrt(energy),
            density[BINS // 2] * np.sqrt(2 * np.pi),
            risen / coarse[top],
            bell(falling, FINE, rounding=5e-5),  # recorded with five digits
        ]
        rows.append([*key, *single, *shape])
    return pd.DataFrame(rows, columns=[*KEY, *SINGLE, "far", "peak", "rise", "bell"])
