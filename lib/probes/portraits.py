"""What a worker's gradient looks like before it is compressed: portraits of u_t along a training
run, kept small.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib import require
from lib.fields import Count, spec
from lib.measuring.experiment import Collection
from lib.messages import contraction
from lib.messages.settings import Messages
from lib.methods import spaces
from lib.own import folder_name
from lib.records import store
from lib.records.store import DATA, SMOKE
from lib.studies.cells import Cell
from lib.workloads.catalogue import WorkloadName

if TYPE_CHECKING:
    from torch import Tensor

REACH, BINS = 6.0, 97  # the histogram: standard deviations on either side, and bins
PROFILE = 100
DENSITIES = np.unique(
    np.concatenate([np.geomspace(1e-3, 0.1, 13), np.linspace(0.1, 0.9, 17)]).round(6)
)
SAMPLE = 5000  # entries to which Student's t is fitted


@spec
class Portrait:
    """A run of P workers whose first worker's vector u_t = gradient + what it kept back is looked
    at every `every` steps.

    batch_size: over all workers.  feedback False: u_t is the gradient alone.  Raises ValueError as
    `lib.studies.cells.Cell`.
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
        _ = self.cell  # its checks are ours

    @property
    def cell(self) -> Cell:
        messages = Messages(self.workers, self.compressor, self.density, self.feedback)
        space = spaces.point(learning_rate=self.learning_rate, momentum=self.momentum)
        return Cell(
            self.workload,
            self.batch_size,
            trials=1,
            replicate=self.replicate,
            stop="budget",
            max_steps=self.steps,
            space=space,
            messages=messages,
        )

    def definition(self) -> dict:
        return self.cell.definition()


def describe(u: np.ndarray) -> pd.DataFrame:
    """A vector u [d] in a few hundred numbers: columns measure, x, value.

    density: of u / sigma at x.  cumulative: the share of entries below x sigma.  profile: squared
    entries in falling order over the largest, at the share x of entries.  left: what Top-k leaves
    at density x.  Without x: mean, std, skew, kurtosis (excess), positive (share),
    Kolmogorov-Smirnov distances to the normal, Laplace and Student-t distribution fitted to u
    (normal, laplace, student; freedom: its degrees), above: the share of the profile above 1 - x.
    """
    from scipy import stats  # slow to import, and most chapters describe no vector

    u = u.astype(np.float64)
    std = u.std()
    edges = np.linspace(-REACH, REACH, BINS + 1)
    counts, _ = np.histogram(u / std, edges)
    profile, ranks = contraction.profile(u, PROFILE), (np.arange(PROFILE) + 0.5) / PROFILE
    series = {
        "density": (edges[:-1] + np.diff(edges) / 2, counts / len(u) / np.diff(edges)),
        "cumulative": (edges[::4], np.searchsorted(np.sort(u / std), edges[::4]) / len(u)),
        "profile": (ranks, profile),
        "left": (DENSITIES, contraction.left(u, DENSITIES)),
    }
    sample = np.random.default_rng(0).choice(u, min(SAMPLE, len(u)), replace=False)
    freedom, place, scale = stats.t.fit(sample / std)
    middle = np.median(u)
    single = {
        "mean": u.mean(),
        "std": std,
        "skew": stats.skew(u),
        "kurtosis": stats.kurtosis(u),
        "positive": (u > 0).mean(),
        "normal": _distance(u, stats.norm(u.mean(), std)),
        "laplace": _distance(u, stats.laplace(middle, np.abs(u - middle).mean())),
        "student": _distance(u, stats.t(freedom, place * std, scale * std)),
        "freedom": freedom,
        "above": (profile > 1 - ranks).mean(),
    }
    rows = [
        pd.DataFrame({"measure": name, "x": x, "value": value})
        for name, (x, value) in series.items()
    ]
    rows.append(
        pd.DataFrame({"measure": list(single), "x": np.nan, "value": list(single.values())})
    )
    return pd.concat(rows, ignore_index=True)


def _distance(u: np.ndarray, distribution) -> float:
    """Kolmogorov and Smirnov's: the largest distance between two cumulative distributions."""
    below, n = distribution.cdf(np.sort(u)), len(u)
    return max(
        np.abs(below - np.arange(n) / n).max(), np.abs(below - np.arange(1, n + 1) / n).max()
    )


def follow(
    portrait: Portrait, progress: Callable[[int], object] = lambda step: None
) -> pd.DataFrame:
    """Train and describe u_t at every `every`-th step: step (from 1), measure, x, value.

    progress: called with every step.  Raises FloatingPointError if the run ends before its first
    portrait.
    """
    # Brings PyTorch, which is slow to import, and most chapters only read
    from lib.measuring import (
        one_cell,
    )

    # Nobody asks for its errors
    cell, seen = (
        dataclasses.replace(portrait.cell, checks="every-100"),
        [],
    )

    def watch(step: int, u: Tensor) -> None:
        progress(step + 1)
        if (step + 1) % portrait.every == 0 and len(u) and u.isfinite().all():
            seen.append(describe(u[0].numpy()).assign(step=step + 1))

    outcome = one_cell.train_cell(
        cell, exchange=one_cell.exchange(cell, one_cell.start(cell), watch)
    )
    if not seen:
        raise FloatingPointError(
            f"learning_rate: {portrait.learning_rate!r} does not do with momentum {portrait.momentum}: the run ended at step "
            f"{outcome.last_step[0]} ({outcome.cause[0]}), before its first portrait at step {portrait.every}; try a smaller one"
        )
    found = pd.concat(seen, ignore_index=True)[["step", "measure", "x", "value"]]
    return found.assign(x=found.x.round(6), value=[float(f"{v:.5g}") for v in found.value])


TEXT_RATE = 0.3  # the recurrent network's: 0.01 is so small that it hardly learns in these steps


def rate(workload: str) -> float:
    """The learning rate of the book's portraits of a workload."""
    return TEXT_RATE if workload.startswith("shakespeare") else Portrait.learning_rate


PORTRAITS = tuple(
    Portrait(name, learning_rate=rate(name), **how)
    for name in ("mnist-fnn-3", "mnist-lenet-5", "cifar-10-resnet-20", "shakespeare-lstm")
    for how in (
        {},
        {"feedback": False},
        {"compressor": "dense", "density": 1.0, "feedback": False},
        {"density": 0.01},
        {"compressor": "gaussian-k"},
    )
)


def _place(portrait: Portrait, folder: Path) -> Path:
    name = f"{portrait.compressor}-{portrait.density:g}-{store.digest(portrait)}.csv"
    return folder / store.place(portrait.workload) / folder_name(portrait.workload) / name


GALLERY = Collection(
    "portraits",
    "portrait",
    DATA / "portraits",
    _place,
    lambda: PORTRAITS,
    follow,
    lambda portrait: portrait.cell.arithmetic,
)
record, missing, run = GALLERY.record, GALLERY.missing, GALLERY.run


def results(planned: tuple[Portrait, ...], budget: str = "cached") -> pd.DataFrame:
    """All portraits that have a record, a row per number, with the portrait's fields; budget as for
    `lib.measuring.sweeps.results`.

    "smoke" makes a toy of the first.
    """
    folder = None
    if budget == "smoke":
        planned, folder = (
            (dataclasses.replace(planned[0], steps=20, every=10),),
            SMOKE / "portraits",
        )
    if budget != "cached":
        run(planned, folder)
    return GALLERY.results(planned, folder)


def shapes(taken: pd.DataFrame) -> pd.DataFrame:
    """Of `results`, a row per portrait: its fields, the single numbers of `describe`, and, from its
    curves, four more.

    student, freedom: of Student's t, or of the normal distribution, its limit (freedom inf), where
    the t that was fitted is farther: by likelihood, to a sample, a fit need not be the nearest, nor
    the likeliest where the entries have a spike. far: the largest entry in standard deviations.
    peak: the density at zero over that of a normal distribution.  rise: by how much the histogram,
    in bins of 3/8 of a standard deviation, rises again beyond its highest bin, over that.  convex:
    `contraction.convex` of the profile.
    """
    key, rows = ["workload", "compressor", "density", "feedback", "step"], []
    for at, numbers in taken.groupby(key) if len(taken) else ():
        curves = {
            name: part.sort_values("x").value.to_numpy()
            for name, part in numbers[numbers.x.notna()].groupby("measure")
        }
        fine = curves["density"]
        coarse = fine[2:-2].reshape(-1, 3).mean(axis=1)
        top = int(coarse.argmax())
        rise = max(
            (side - np.minimum.accumulate(side)).max() for side in (coarse[top:], coarse[top::-1])
        )
        single = numbers[numbers.x.isna()].set_index("measure").value.to_dict()
        if single["student"] > single["normal"]:
            single |= {"student": single["normal"], "freedom": np.inf}
        rows.append(
            {
                **dict(zip(key, at, strict=True)),
                **single,
                "far": np.sqrt(
                    (1 + (single["mean"] / single["std"]) ** 2) / curves["profile"].mean()
                ),
                "peak": fine[BINS // 2] * np.sqrt(2 * np.pi),
                "rise": rise / coarse[top],
                "convex": contraction.convex(curves["profile"], rounding=5e-5),  # of five digits
            }
        )
    names = [
        "mean",
        "std",
        "skew",
        "kurtosis",
        "positive",
        "normal",
        "laplace",
        "student",
        "freedom",
        "above",
    ]
    return pd.DataFrame(rows, columns=[*key, *names, "far", "peak", "rise", "convex"])


def beyond(taken: pd.DataFrame, deviations: float) -> pd.Series:
    """Of `results`, the share of entries more than so many standard deviations, up to REACH, from
    zero: by workload, compressor, feedback and step."""
    width = 2 * REACH / BINS
    bins = taken[taken.measure == "density"]
    inside = ((deviations - bins.x.abs()) / width + 0.5).clip(0, 1)  # of a bin
    within = (
        (bins.value * width * inside)
        .groupby([bins[c] for c in ("workload", "compressor", "feedback", "step")])
        .sum()
    )
    return (1 - within).clip(lower=0)
