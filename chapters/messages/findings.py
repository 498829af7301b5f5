"""What the page on sparse messages says, as numbers and words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from chapters.messages import message_results
from chapters.messages.grids import title
from chapters.messages.message_tables import ranged
from lib.claims import Claim
from lib.claims.claim import UNDECIDED, Group
from lib.engine import pruning
from lib.messages.settings import target
from lib.methods.intervals import HIGHER_RATES, SHI2019
from lib.wording import between, number, percent
from lib.workloads import catalogue, models

ENDED = {"starved": "Gaussian-k", "warmed": "Gaussian-k, density warm-up"}


def findings(
    shown: pd.DataFrame,
    networks: list[str],
    table: pd.DataFrame,
    sides: dict[float, pd.DataFrame],
    curves: pd.DataFrame,
    chosen,
    judged: Mapping[str, Claim],
) -> dict:
    """All values of the page's sentences.

    Args:
        shown: of `message_results.best`.
        networks: titles, in their order.
        table: of `message_tables.losses`.
        sides: of `message_tables.variants`.
        curves: of `message_results.joint_curves`.
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
        "enough": round(2 / share),
        "even": percent(1 / chosen.workers),
        **_judged(judged),
        **_first(table, networks[0], share, max(chosen.densities)),
        **_top_k(shown),
        **_variants(sides, judged["T5"]),
        **_joint(curves, share),
    }


def _judged(judged: Mapping[str, Claim]) -> dict:
    """What is lost on networks of several seeds, as the claims have it."""
    several = {
        key: [g for g in judged[key].groups if g.n > 1 and "warmed" not in g.name]
        for key in ("T4", "T5")
    }
    guessed, highs = several["T5"], [g.high for g in several["T4"]]
    return {
        "lost": between(*(g.effect for g in several["T4"])),
        "behind": between(*(g.effect for g in guessed)),
        "guessed": len(guessed),
        "seeds": max((g.n for g in guessed), default=None),
        "top_decided": _decided(several["T4"]),
        "guess_decided": _decided(guessed),
        "most_lost": max((g.effect for g in several["T4"]), default=None),
        "most_lost_high": max(filter(np.isfinite, highs), default=None),
        "unbounded": highs.count(np.inf),
        "part": judged["T4"].part,
        "random": between(*(g.effect for g in judged["T4b"].groups if g.n)),
    }


def _decided(groups: list[Group]) -> int:
    return sum(group.verdict != UNDECIDED for group in groups)


def _first(table: pd.DataFrame, network: str, share: float, denser: float) -> dict:
    """Top-k and Gaussian-k on the network that is shown first."""
    own = table[table.network == network].set_index(["method", "density"])
    lost = [own.gap.get((method, share)) for method in ("Top-k", "Gaussian-k")]
    sent = [own.sent.get(("Gaussian-k", density)) for density in (share, denser)]
    return {
        "network": network,
        "both_measured": None not in lost,
        "top": lost[0],
        "guess": lost[1],
        "sent_measured": None not in sent,
        "sent": sent[0],
        "sent_denser": sent[1],
    }


def _top_k(shown: pd.DataFrame) -> dict:
    """How Top-k's loss falls with the density, and runs too short to judge."""
    lost = message_results.gaps(shown, "Top-k")
    falls = message_results.narrowed(lost)
    short = lost[(lost.budget * lost.density < 1) & lost.network.str.startswith("ResNet-20")]
    return {
        "falls": [f"{ranged(fall.row(log=False))} on {title(w)}" for w, fall in falls.items()],
        "short_loss": short.gap.max() if len(short) else None,
    }


def _variants(sides: dict[float, pd.DataFrame], rule: Claim) -> dict:
    """Errors of variants at the smallest density, in percent."""
    errors = 100 * sides[min(sides)].test.astype(float) if sides else {}
    warm = [g.effect for g in rule.groups if "warmed" in g.name and g.n]
    return {
        "warm": warm[0] if warm else None,
        **{name: errors.get(variant) for name, variant in ENDED.items()},
    }


def _joint(curves: pd.DataFrame, share: float) -> dict:
    """What pruning and sparse messages cost together; shift: the share that the pruned network
    sends over the dense one's.
    """
    cells = message_results.joint_costs(curves).workload.value_counts()
    if cells.empty:
        return {"joint_means": []}
    means = message_results.joint_means(curves)
    name = next(iter(means))
    weights = models.parameter_count(models.build(catalogue.workload(name).model))
    left = pruning.kept(weights, curves.sparsity.max())
    return {
        "joint_network": title(name),
        "both_over": ranged(means[name]["over"].row()),
        "both_cells": int(cells[name]),
        "joint_means": [
            f"{title(w)}, {cells[w]} cells: {ranged(effects['over'].row())} times the product, "
            f"{ranged(effects['beyond'].row())} times the sum"
            for w, effects in means.items()
        ],
        "shift": (target(share, left) / left) / (target(share, weights) / weights),
    }
