"""What the page on the vectors that Top-k compresses says, its plan and its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from chapters.gradients import energy_bounds
from lib.probes import portraits
from lib.probes.portraits import Portrait
from lib.wording import percent
from lib.workloads.catalogue import workload

WHOLE = "everything sent"
MOST = 4500  # entries of distributions that the page can carry
BINS = (10, 20, portraits.FINE, portraits.PROFILE)  # in which profiles are judged
NORMALS = 20  # vectors of every network's length
ROUNDING = 5e-5  # of values of five digits, as those on record


def planned(
    workloads: list[str], compressor: str, density: float, learning_rate: float, common: dict
) -> list[Portrait]:
    """Every network by every way of sending, the first with this compressor and feedback.

    Args:
        workloads: names.
        compressor: of the first two ways.
        density: share of the entries that is sent.
        learning_rate: 0 for the book's.
        common: further fields, alike for all.
    """
    own = {"compressor": compressor, "density": density}
    ways = (
        own,
        {**own, "feedback": False},
        {**own, "compressor": "gaussian-k"},
        {"compressor": "dense", "density": 1.0, "feedback": False},
    )
    rates = {name: learning_rate or portraits.rate(name) for name in workloads}
    every = [
        Portrait(w, learning_rate=rates[w], **common, **way) for w in workloads for way in ways
    ]
    return list(dict.fromkeys(every))


def way(compressor: str, feedback: bool) -> str:
    """How a vector came about, in words."""
    words = f"{compressor.capitalize()}, {'with' if feedback else 'without'} feedback"
    return WHOLE if compressor == "dense" else words


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Vectors with the network and the way of sending as the page calls them."""
    ways = [way(*row) for row in zip(rows.compressor, rows.feedback)]
    return rows.assign(network=[workload(name).title for name in rows.workload], way=ways)


# --- what is left ---------------------------------------------------------------------------------


def bounds() -> pd.DataFrame:
    """What bounds, and a normal vector, leave at each recorded density: bound, x, value."""
    curves = {
        "1 − k/d (any vector)": energy_bounds.classical,
        "(1 − k/d)² (bell)": energy_bounds.tighter,
        "normal distribution": energy_bounds.gaussian,
    }
    x = portraits.DENSITIES
    return pd.concat(
        pd.DataFrame({"bound": n, "x": x, "value": f(x)}) for n, f in curves.items()
    )


def fed(rows: pd.DataFrame, compressor: str) -> pd.DataFrame:
    """Vectors of runs with this compressor and feedback."""
    return rows[rows.feedback.astype(bool) & (rows.compressor == compressor)]


def band(left: pd.DataFrame) -> pd.DataFrame:
    """What is left, over vectors: x (density), low, middle, high."""
    levels = left.groupby("x").value
    found = {"low": levels.min(), "middle": levels.median(), "high": levels.max()}
    return pd.DataFrame(found).reset_index()


def of_bins(taken: pd.DataFrame, compressor: str) -> pd.DataFrame:
    """How many vectors meet the condition in how many bins: those with feedback, and normal ones.

    taken: of `portraits.results`.
    """
    own = fed(taken[taken.measure == "profile"], compressor).sort_values("x")
    trained = [vector.value.to_numpy() for _, vector in own.groupby(portraits.KEY)]
    normal = [p for name in own.workload.unique() for p in _normal_profiles(name)]
    both = {"from training": trained, "normal, of the same lengths": normal}
    table = {name: [_met(profiles, bins) for bins in BINS] for name, profiles in both.items()}
    return pd.DataFrame({"bins": BINS, **table})


def _normal_profiles(name: str) -> list[np.ndarray]:
    """Profiles of normal vectors as long as a workload's."""
    from lib.workloads import models  # brings PyTorch, which is slow to import

    d = models.parameter_count(workload(name).network())
    r = np.random.default_rng(0)
    return [portraits.profile(r.normal(size=d), portraits.PROFILE) for _ in range(NORMALS)]


def _met(profiles: list[np.ndarray], bins: int) -> str:
    met = [portraits.bell(profile, bins, ROUNDING) for profile in profiles]
    return f"{sum(met)} of {len(met)}"


# --- how entries are distributed ------------------------------------------------------------------


def threshold(density: float) -> float:
    """Beyond how many standard deviations a normal distribution has this share of its entries."""
    return float(stats.norm.isf(density / 2))


def beyond(taken: pd.DataFrame, deviations: float) -> pd.Series:
    """The share of entries more than so many standard deviations, up to `portraits.REACH`, from
    zero: by workload, compressor, feedback and step.
    """
    width = 2 * portraits.REACH / portraits.BINS
    bins = taken[taken.measure == "density"]
    inside = ((deviations - bins.x.abs()) / width + 0.5).clip(0, 1)  # of a bin
    keys = [bins[name] for name in portraits.KEY if name != "density"]
    within = (bins.value * width * inside).groupby(keys).sum()
    return (1 - within).clip(lower=0)


def tails(taken: pd.DataFrame, single: pd.DataFrame, density: float) -> pd.DataFrame:
    """Entries beyond the first two thresholds of Gaussian-k, over k, and the largest entry in
    deviations: medians over a run's vectors, a row per network and way.
    """
    vectors = single.set_index(["workload", "compressor", "feedback", "step"])
    at = [threshold(density) * 1.5**i for i in (0, 1)]
    heads = [f"beyond {deviations:.1f} deviations, over k" for deviations in at]
    over = {head: beyond(taken, deviations) / density for head, deviations in zip(heads, at)}
    runs = vectors.assign(**over).groupby(["network", "way"])
    found = runs[[*heads, "far"]].median().reset_index().round(4)
    return found.rename(columns={"way": "sent", "far": "largest entry, deviations"})


def entries(taken: pd.DataFrame, every: int) -> pd.DataFrame:
    """Densities of the vectors' entries; of every second vector where they are too many."""
    drawn = (taken.measure == "density") & (taken.value > 0)
    found = taken.loc[drawn, ["x", "value", "step", "network", "way"]]
    return found[found.step % (2 * every) == 0] if len(found) > MOST else found


# --- sentences ------------------------------------------------------------------------------------


def findings(taken: pd.DataFrame, asked: Portrait) -> dict[str, str]:
    """All values of the page's sentences.

    Args:
        taken: of `portraits.results`, `named`.
        asked: the first of `planned`.
    """
    left = taken[(taken.measure == "left") & (taken.compressor != "dense")]
    obeys = left.value <= energy_bounds.tighter(left.x) + 1e-6
    levels = band(fed(left, asked.compressor))
    middle, most = (
        np.interp(asked.density, levels.x, levels[end]) for end in ("middle", "high")
    )
    return {
        "compressor": asked.compressor.capitalize(),
        "density": f"{asked.density:g}",
        "within": percent(obeys.mean()),
        "sent": percent(1 - middle),
        "least_sent": percent(1 - most),
        "promised": percent(1 - float(energy_bounds.tighter(asked.density))),
    }
