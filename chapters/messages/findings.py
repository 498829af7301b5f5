"""What the page on sparse messages says, as numbers and words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import pandas as pd

from chapters.messages import experiments, message_results
from chapters.messages.claims import DENSITY, sent, sent_longer
from lib.analysis.scaling import mean_of
from lib.claims import Claim
from lib.claims.claim import AGAINST, FOR, UNDECIDED, Group
from lib.methods.intervals import HIGHER_RATES, SHI2019
from lib.wording import between, brief, joined, number, percent
from lib.workloads import catalogue

OTHERWISE = ("warmed up", "as published")  # rows of other settings than the page's


def findings(shown: pd.DataFrame, networks: list[str], chosen, judged: Mapping[str, Claim]) -> dict:
    """All values of the page's sentences.

    Args:
        shown: of `message_results.best`.
        networks: titles, in their order.
        chosen: the page's parameters.
        judged: all claims.
    """
    last = shown.groupby("network").budget.max()
    share = min(chosen.densities)
    return {
        "networks": networks,
        "stopped": [f"{name}: {number(n)}" for name, n in last.items() if n < chosen.steps],
        "workers": chosen.workers,
        "batch": chosen.batch_size,
        "steps": chosen.steps,
        "trials": chosen.trials,
        "rate_low": f"{SHI2019['learning_rate'].low:g}",
        "rate_high": f"{SHI2019['learning_rate'].high:g}",
        "rate_higher": f"{HIGHER_RATES['learning_rate'].high:g}",
        "share": f"{share:g}",
        "denser": f"{max(chosen.densities):g}",
        "wait": round(1 / share),
        "waits": f"{chosen.steps * share:.1g}",
        "even": percent(1 / chosen.workers),
        **_judged(judged),
        **_first(shown, networks[0], share),
        **_every(shown, share, max(chosen.densities)),
        **_by_gaussian_k(shown, share, max(chosen.densities)),
        "lengths": _shortest(),
        "longer_top": _longer("Top-k", "dense"),
        "longer_guess": _longer("Gaussian-k", "Top-k"),
        "recipe": _by_recipe(),
    }


def _judged(judged: Mapping[str, Claim]) -> dict:
    """What is lost on networks of several seeds, and with a warm-up, as the claims have it."""
    several = {
        key: [g for g in judged[key].groups if g.n > 1 and not g.name.endswith(OTHERWISE)]
        for key in ("T4", "T5")
    }
    topped = several["T4"]
    guessed = several["T5"]
    warm = [g.effect for g in judged["T5"].groups if "warmed" in g.name and g.n]
    return {
        "lost": between(*(g.effect for g in topped)),
        "behind": between(*(g.effect for g in guessed)),
        "guessed": len(guessed),
        "seeds": max((g.n for g in guessed), default=None),
        "top_decided": _decided(topped),
        "guess_decided": _decided(guessed),
        "undecided": any(g.verdict == UNDECIDED for g in topped + guessed),
        "random": between(*(g.effect for g in judged["T4b"].groups if g.n)),
        "warm": warm[0] if warm else None,
    }


def _longer(method: str, rival: str) -> list[str]:
    """By how much four times as many steps change what a method loses to its rival, in the mean
    over seeds: a phrase per network that all seeds have trained so.
    """
    usual, longer = (message_results.gaps(runs(), method, rival) for runs in (sent, sent_longer))
    usual = usual[usual.density == DENSITY]
    both = longer.merge(usual, on=["workload", "replicate"], suffixes=("", "_usual"))
    told = []
    for name, own in both.groupby("workload", sort=False):
        if len(own) == (usual.workload == name).sum():
            change = mean_of(own.gap - own.gap_usual)
            ends = f"{brief(change.low)} to {brief(change.high)}"
            title = catalogue.workload(name).title
            told.append(f"{brief(change.value)} points ({ends}) on {title}")
    return told


def _by_recipe() -> list[str]:
    """How runs of ResNet-20 by the authors' recipe end, a phrase per compressor."""
    runs = experiments.PUBLISHED.results()
    if not len(runs):
        return []
    ends = runs[runs.epoch == runs.epochs]
    errors = ends.groupby("compressor", sort=False).test_error.mean()
    told = []
    for compressor, error in errors.items():
        name = message_results.NAMES[compressor, compressor != "dense"]
        told.append(f"{percent(error)} with {name}")
    return told


def _decided(groups: list[Group]) -> str:
    """On how many networks a method passes and on how many it fails."""
    counts = Counter(group.verdict for group in groups)
    words = {FOR: "passes", AGAINST: "fails"}
    told = [f"{word} on {counts[verdict]}" for verdict, word in words.items() if counts[verdict]]
    return joined(told) or "is undecided"


def _shortest() -> float | None:
    """The fewest d/k steps of the runs that T4 judges, to a tenth."""
    top = message_results.gaps(sent(), "Top-k")
    lengths = (top.budget * top.density)[top.density == DENSITY]
    long = lengths[lengths >= 1]
    return math.floor(10 * long.min()) / 10 if len(long) else None


def _first(shown: pd.DataFrame, network: str, share: float) -> dict:
    """Top-k and Gaussian-k on the network that is shown first."""
    own = shown[shown.network == network]
    top, guess = (message_results.gaps(own, name) for name in ("Top-k", "Gaussian-k"))
    lost = [gap[gap.density == share].gap.mean() for gap in (top, guess)]
    return {
        "network": network,
        "both_measured": bool(pd.notna(lost).all()),
        "top": lost[0],
        "guess": lost[1],
    }


def _by_gaussian_k(shown: pd.DataFrame, share: float, denser: float) -> dict:
    """What Gaussian-k sends, over k, at two densities and loses to Top-k at the larger one, over
    networks that are run long enough to judge.
    """
    guess = message_results.gaps(shown, "Gaussian-k", "Top-k")
    waits = guess.budget * guess.density
    long = guess[waits >= 1]
    means = long.groupby(["network", "density"])
    means = means[["over", "gap"]].mean().reset_index()
    thin = means[means.density == share]
    thick = means[means.density == denser]
    both = len(thin) and len(thick)
    return {
        "sent_measured": bool(both and share < denser),
        "sent": between(*thin.over),
        "sent_denser": between(*thick.over),
        "guess_denser": between(*thick.gap),
    }


def _every(shown: pd.DataFrame, share: float, denser: float) -> dict:
    """Points that Top-k loses to dense messages at the larger density, and DGC-k to Top-k at the
    smaller one, over networks; and what it loses in runs too short to judge.
    """
    top, sampled = (
        message_results.gaps(shown, "Top-k"),
        message_results.gaps(shown, "DGC-k", "Top-k"),
    )
    short = top[(top.budget * top.density < 1) & top.network.str.startswith("ResNet-20")]
    means = [
        gap[gap.density == density].groupby("network").gap.mean()
        for gap, density in ((top, denser), (sampled, share))
    ]
    return {
        "lost_denser": between(*means[0]),
        "sampled": between(*means[1]),
        "short_loss": short.gap.max() if len(short) else None,
    }
