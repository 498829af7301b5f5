"""What the page on workers' gradients says, as numbers and words, its plan and its tables."""

from __future__ import annotations

import pandas as pd
from scipy import stats

from lib.claims import Claim
from lib.probes import portraits
from lib.probes.portraits import Portrait
from lib.wording import between, brief, percent
from lib.workloads.catalogue import workload

GUESSED, WHOLE = "Gaussian-k, with feedback", "everything sent"
MOST = 4500  # entries of distributions that the page can carry


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
    deviations (far): medians over a run's vectors, a row per network and way.
    """
    vectors = single.set_index(["workload", "compressor", "feedback", "step"])
    at = [threshold(density) * 1.5**i for i in (0, 1)]
    over = {f"over_{i}": beyond(taken, at[i]) / density for i in (0, 1)}
    runs = vectors.assign(**over).groupby(["network", "way"])
    return runs[["over_0", "over_1", "far"]].median().reset_index()


def entries(taken: pd.DataFrame, every: int) -> pd.DataFrame:
    """Densities of the vectors' entries; of every second vector where they are too many."""
    drawn = (taken.measure == "density") & (taken.value > 0)
    found = taken.loc[drawn, ["x", "value", "step", "network", "way"]]
    return found[found.step % (2 * every) == 0] if len(found) > MOST else found


def findings(
    single: pd.DataFrame, tails: pd.DataFrame, asked: Portrait, step: int, judged: Claim
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        single: of `portraits.shapes`, `named`.
        tails: of `tails`.
        asked: the first of `planned`.
        step: at which distributions are shown first.
        judged: T1, of one row.
    """
    (row,) = judged.groups
    own_way = way(asked.compressor, asked.feedback)
    networks, first = sorted(single.network.unique()), threshold(asked.density)
    shown = single[(single.network == networks[0]) & (single.step == step)].set_index("way")
    fed, whole = shown.reindex([own_way, WHOLE]).to_dict("records")
    usual = 2 * portraits.REACH / portraits.BINS * stats.norm.pdf(0)  # entries in the middle bin
    own, guessed = (tails[tails.way == name] for name in (own_way, GUESSED))
    return {
        "bells": round(row.effect * row.n),
        "judged_on": row.n,
        "networks": networks,
        "network": networks[0],
        "step": step,
        "workers": asked.workers,
        "density": f"{asked.density:g}",
        "compressor": asked.compressor.capitalize(),
        "both_shown": bool({own_way, WHOLE} <= set(shown.index)),
        "far_fed": fed["far"],
        "far_whole": whole["far"],
        "middle_fed": percent(fed["peak"] * usual),
        "middle_whole": percent(whole["peak"] * usual),
        "middle_normal": percent(usual),
        "compared": bool(len(own) and len(guessed)),
        "threshold": first,
        "third": first * 1.5**2,
        "cut_off": bool((own.over_0 < 1).all()),
        "tail_most": float(own.over_0.max()),
        "tail_guessed": between(*guessed.over_0),
        "tail_second": between(*guessed.over_1),
        "tail_far": between(*guessed.far),
    }


# --- tables ---------------------------------------------------------------------------------------


def of_tails(tails: pd.DataFrame, first: float) -> pd.DataFrame:
    """tails: of `tails`; first: the first threshold, in deviations."""
    heads = {
        "way": "sent",
        "over_0": f"beyond {first:.1f} deviations, over k",
        "over_1": f"beyond {1.5 * first:.1f}, over k",
        "far": "largest entry, deviations",
    }
    return tails.rename(columns=heads).round(4)


def of_last(single: pd.DataFrame) -> pd.DataFrame:
    """Moments of the last vector of every run."""
    last = single.sort_values("step").groupby(["network", "way"]).tail(1)
    last = last.sort_values(["network", "way"])
    return pd.DataFrame(
        {
            "network": last.network,
            "sent": last.way,
            "step": last.step,
            "mean / deviation": (last["mean"] / last["std"]).map(brief),
            "skew": last["skew"].map(brief),
            "excess kurtosis": last["kurtosis"].map(brief),
            "positive entries": last.positive.map(percent),
        }
    )
