"""The plan, tables and sentences of the page on the vectors that Top-k compresses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
from scipy import stats

from chapters.gradients import energy_bounds
from lib.probes import portraits
from lib.probes.portraits import Portrait
from lib.wording import percent
from lib.workloads.catalogue import workload

ALL_SENT = "everything sent"
MOST = 4500  # entries of distributions that the page can carry
SEEN = 0.1  # density that the lead names in words


def planned(
    workloads: list[str], compressor: str, density: float, learning_rate: float, common: dict
) -> list[Portrait]:
    """Every network with every way of sending, first this compressor with feedback.

    learning_rate: 0 for the book's.  common: further fields, the same for all.
    """
    portraits_planned = []
    for name in workloads:
        rate = learning_rate or portraits.rate(name)
        first = Portrait(name, compressor, density, learning_rate=rate, **common)
        portraits_planned += [
            first,
            dataclasses.replace(first, feedback=False),
            dataclasses.replace(first, compressor="gaussian-k"),
            dataclasses.replace(first, compressor="dense", density=1.0, feedback=False),
        ]
    return list(dict.fromkeys(portraits_planned))


def way(compressor: str, feedback: bool) -> str:
    """How a vector arose, in words."""
    words = f"{compressor.capitalize()}, {'with' if feedback else 'without'} feedback"
    return ALL_SENT if compressor == "dense" else words


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Vectors with the network and the way of sending as the page names them."""
    ways = [way(*row) for row in zip(rows.compressor, rows.feedback)]
    return rows.assign(network=[workload(name).title for name in rows.workload], way=ways)


# --- what is left ---------------------------------------------------------------------------------


def bounds() -> pd.DataFrame:
    """The shares that bounds and a normal vector leave, by recorded density: bound, x, value."""
    x = portraits.DENSITIES
    curves = {
        "1 − k/d (any vector)": energy_bounds.classical(x),
        "(1 − k/d)² (bell)": energy_bounds.tighter(x),
        "normal distribution": energy_bounds.gaussian(x),
    }
    return (
        pd.DataFrame(curves, x)
        .melt(var_name="bound", ignore_index=False)
        .reset_index(names="x")
    )


def fed_back(rows: pd.DataFrame, compressor: str) -> pd.DataFrame:
    """Vectors of runs with this compressor and feedback."""
    return rows[rows.feedback.astype(bool) & (rows.compressor == compressor)]


def band(left: pd.DataFrame) -> pd.DataFrame:
    """What is left, over vectors: x (density), low, middle, high."""
    levels = left.groupby("x").value
    return levels.agg(low="min", middle="median", high="max").reset_index()


# --- how entries are distributed ------------------------------------------------------------------


def beyond(taken: pd.DataFrame, deviations: float) -> pd.Series:
    """The share of entries more than so many standard deviations (at most `portraits.REACH`) from
    zero, by network and step; taken: vectors with one way of sending.
    """
    width = 2 * portraits.REACH / portraits.BINS
    bins = taken[taken.measure == "density"]
    inside = ((deviations - bins.x.abs()) / width + 0.5).clip(0, 1)  # share of a bin
    shares = (bins.value * width * inside).groupby([bins.network, bins.step]).sum()
    return (1 - shares).clip(lower=0)


def tails(taken: pd.DataFrame, density: float) -> pd.DataFrame:
    """Entries of Gaussian-k's vectors beyond its first two thresholds, over k: the median over a
    run's vectors, a row per network.
    """
    vectors = taken[(taken.compressor == "gaussian-k") & taken.feedback.astype(bool)]
    # A normal distribution has k entries beyond the first
    thresholds = stats.norm.isf(density / 2) * np.array([1, 1.5])
    columns = {
        f"entries beyond {deviations:.1f} σ, over k": beyond(vectors, deviations) / density
        for deviations in thresholds
    }
    medians = pd.DataFrame(columns).groupby(level="network").median()
    medians = medians.round(2)
    return medians.rename_axis("network").reset_index()


def entries(taken: pd.DataFrame, every: int) -> pd.DataFrame:
    """Densities of the vectors' entries; only every second vector if there are too many."""
    drawn = (taken.measure == "density") & (taken.value > 0)
    rows = taken.loc[drawn, ["x", "value", "step", "network", "way"]]
    return rows[rows.step % (2 * every) == 0] if len(rows) > MOST else rows


# --- sentences ------------------------------------------------------------------------------------


def findings(taken: pd.DataFrame, first: Portrait) -> dict[str, object]:
    """Values in the sentences on vectors; taken: from `named`; first: from `planned`."""
    left = taken[(taken.measure == "left") & (taken.compressor != "dense")]
    obeys = left.value <= energy_bounds.tighter(left.x) + 1e-6
    levels = band(fed_back(left, first.compressor))
    most = np.interp(first.density, levels.x, levels.high)
    return {
        "compressor": first.compressor.capitalize(),
        "density": f"{first.density:g}",
        "all_within": bool(obeys.all()),
        "most_left": percent(np.interp(SEEN, levels.x, levels.high)),
        "allowed": percent(float(energy_bounds.tighter(SEEN))),
        "least_sent": percent(1 - most),
        "promised": percent(1 - float(energy_bounds.tighter(first.density))),
    }
