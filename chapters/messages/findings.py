"""What the page on sparse messages says, as numbers and words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import pandas as pd

from chapters.messages.claims import DENSITY, sent
from chapters.messages.message_results import gaps, means
from lib.claims import Claim
from lib.claims.claim import NO, YES
from lib.methods.intervals import SHI2019
from lib.wording import between, brief, number, percent
from lib.workloads import catalogue

OTHERWISE = ("warmed up", "as published")  # rows of other settings than the page's
COMPARED = ("Top-k", "dense"), ("DGC-k", "Top-k"), ("Gaussian-k", "Top-k")


def findings(
    shown: pd.DataFrame, networks: list[str], chosen, judged: Mapping[str, Claim]
) -> dict:
    """All values of the page's sentences.

    Args:
        shown: of `message_results.best`.
        networks: titles, in their order.
        chosen: the page's parameters.
        judged: all claims.
    """
    last = shown.groupby("network").budget.max()
    share, rates = min(chosen.densities), SHI2019["learning_rate"]
    top = [g for g in judged["T4"].groups if g.n > 1 and not g.name.endswith(OTHERWISE)]
    verdicts = Counter(group.verdict for group in top)
    found = {
        "networks": networks,
        "stopped": [f"{name}: {number(n)}" for name, n in last.items() if n < chosen.steps],
        "workers": chosen.workers,
        "batch": chosen.batch_size,
        "steps": int(last[networks[0]]),
        "trials": chosen.trials,
        "rates": f"{rates.low:g} and {rates.high:g}",
        "even": percent(1 / chosen.workers),
        "compared": len(top),
        "passed": verdicts[YES],
        "failed": verdicts[NO],
        "lost": between(*(g.effect for g in top)),
        "lengths": _shortest(),
        "titles": {},
    }
    for name in networks:
        own = shown[shown.network == name]
        top, gaussian = (_behind(own, method, share) for method in ("Top-k", "Gaussian-k"))
        found["titles"][name] = (
            f"After {number(last[name])} steps of {name}, density {share:g}, Top-k is {top} points "
            f"behind dense messages, Gaussian-k {gaussian}"
        )
    found["shown_first"] = found["titles"][networks[0]]
    return found


def _behind(shown: pd.DataFrame, method: str, density: float) -> str:
    gap = gaps(shown, method)
    return brief(gap[gap.density == density].gap.mean())


def table(shown: pd.DataFrame) -> pd.DataFrame:
    """A row per network and density: points lost by one method to another, with intervals over
    seeds, and the entries that Gaussian-k sends over those asked for.
    """
    pairs = [means(gaps(shown, *pair)).assign(rival=pair[1]) for pair in COMPARED]
    rows = pd.concat(pairs, ignore_index=True)
    rows["pair"] = rows.method + " over " + rows.rival
    rows["points"] = [
        f"{brief(e.value)} ({brief(e.low)} to {brief(e.high)})" for e in rows.effect
    ]
    keys = ["workload", "density"]
    wide = rows.pivot(index=keys, columns="pair", values="points")[rows.pair.unique()]
    over = shown[shown.method == "Gaussian-k"].groupby([*keys, "budget"]).over.mean()
    wide["k sent by Gaussian-k"] = over.groupby(keys).last().map(brief)
    told = wide.fillna("—").reset_index().rename_axis(columns=None)
    network = told.workload.map(lambda name: catalogue.workload(name).title)
    return told.assign(workload=network).rename(columns={"workload": "network"})


def _shortest() -> float | None:
    """The fewest d/k steps of the runs that T4 judges, to a tenth."""
    top = gaps(sent(), "Top-k")
    lengths = (top.budget * top.density)[top.density == DENSITY]
    long = lengths[lengths >= 1]
    return math.floor(10 * long.min()) / 10 if len(long) else None
