"""The values of the sentences on pruned networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from chapters.sparsity.claims import sparsest
from chapters.sparsity.sparsity_tables import PAPERS, Curves
from lib.analysis import scaling
from lib.claims import FOR, Claim, front
from lib.claims.names import is_lee2021, title
from lib.studies import plans
from lib.wording import between, brief, named, percent


def findings(
    trials: pd.DataFrame,
    curves: Curves,
    relative: pd.DataFrame,
    bends: pd.DataFrame,
    curve: str,
    levels: list[float],
    judged: Mapping[str, Claim],
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        trials: all that are compared, each workload at its goal.
        curves: theirs, of `scaling.summaries`.
        relative: of `relative_steps`.
        bends: of `beside_dense`.
        curve: the name of the curve that the figures begin with.
        levels: the sparsities asked for.
        judged: all claims.
    """
    pairs = sparsest(curves)
    costs = [scaling.mean_steps_ratio(*both).row("cost")["cost"] for both in pairs.values()]
    pruned = trials[trials.sparsity > 0].workload.unique()
    over = scaling.steps_over_dense(curves)
    sparse = over[over.sparsity == over.sparsity.max()]
    own = [both for key, both in pairs.items() if is_lee2021(key[0])]
    return {
        "no_less_for": len(judged["L4"].decided(FOR)),
        "no_less_all": len(judged["L4"].measured),
        "less_on": sum(group.high < 1 for group in judged["L4"].measured),
        "pairs_measured": bool(costs),
        "cost_least": min(costs, default=None),
        "cost_most": max(costs, default=None),
        "networks": _each(title(name).split(", ")[0] for name in pruned)
        or ["no pruned network yet"],
        "costlier": int((sparse.ratio > 1).sum()),
        "compared": len(sparse),
        "sparsest": f"{over.sparsity.max():g}" if len(over) else None,
        "bend_pairs": len(bends),
        "bend_larger": int((bends.ratio_low > 1).sum()),
        "bend_smaller": int((bends.ratio_high < 1).sum()),
        "no_less": f"{judged['L4'].threshold:g}",
        "much_larger": f"{judged['L5'].threshold:g}",
        "longest": max(c.max_steps for c in plans.study("digits-sparsest").cells),
        "hard_draw": front.harder_than(),
        "own_curves": len(own),
        "own_single": sum(min(c.n for c in both) < scaling.ENOUGH for both in own),
        **_protocol(trials),
        **_first_curve(relative, curve, levels),
        **_momentum(judged["L5"]),
        **_hard_splits(trials),
    }


def _protocol(trials: pd.DataFrame) -> dict[str, list[str]]:
    """Goals and numbers of trials of the networks in the first figure."""
    own = trials[trials.workload.isin(PAPERS)].groupby("workload", sort=False)
    goals, tried = own.goal.first(), own.trials.agg(list).map(lambda counts: between(*counts))
    return {
        "goals": _each(f"{percent(goal)} on {_data_set(name)}" for name, goal in goals.items()),
        "tried": _each(f"{count} on {_data_set(name)}" for name, count in tried.items()),
    }


def _each(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _data_set(name: str) -> str:
    """What a network is trained on, as its title says."""
    return title(name).partition(" on ")[2]


def _first_curve(relative: pd.DataFrame, curve: str, levels: list[float]) -> dict[str, object]:
    """What the highest sparsity asked for costs on the curve that is drawn first."""
    own = relative[(relative.curve == curve) & relative.sparsity.isin(levels)]
    most = own[(own.sparsity == own.sparsity.max()) & (own.sparsity > own.sparsity.min())].relative
    return {
        "curve": curve,
        "level": f"{own.sparsity.max():g}",
        "all_dearer": bool(len(most) > 0 and most.min() > 1),
        "steps_least": float(most.min()),
        "steps_most": float(most.max()),
    }


def _momentum(claim: Claim) -> dict[str, object]:
    """On which networks pruning raises the critical batch size with momentum, and by how much."""
    groups = [g for g in claim.groups if g.own or ", momentum" in g.name]
    larger = [g for g in groups if g.low > 1]
    above = sum(g.low > claim.threshold for g in groups)
    names = [f"{_plain(g.name)} ({brief(g.effect)} times)" for g in larger]
    return {
        "raised_on": names or ["no network"],
        "raised_compared": len(groups),
        "not_twice": sum(g.high < claim.threshold for g in groups),
        "twice": above or "none",
    }


def _plain(name: str) -> str:
    """A network without its method, and without a comma."""
    return name.removesuffix(", momentum").replace(", easier goal", " at the easier goal")


def _hard_splits(trials: pd.DataFrame) -> dict[str, object]:
    """What the splits cost on which a pruned network of digits is hard to train."""
    digits = trials[trials.workload.isin(plans.DIGITS)]
    pruned = digits[(digits.sparsity > 0) & (digits.sparsity == digits.sparsity.max())]
    hard = pd.concat([_on_one_split(pruned, split) for split in plans.HARD_SPLITS])
    lacking, met = hard[hard.lacking > 0], hard[hard.lacking == 0]
    return {
        "splits_lacking": bool(len(lacking) and len(met)),
        "hard_splits": list(plans.HARD_SPLITS),
        "harder": between(met.factor.min(), met.factor.max()) if len(met) else None,
        "few_searched": [named(a) for a in lacking.algorithm.unique()],
    }


def _on_one_split(trials: pd.DataFrame, split: int) -> pd.DataFrame:
    """How long searches take on one of our splits, a row per curve that was searched on others,
    too: CURVE, lacking (batch sizes not searched on this one), factor.

    factor: K* on this split over the geometric mean on the others, itself the geometric mean over
    batch sizes; a search that missed the goal counts as its last step; NaN if none is on this one.
    """
    rows = []
    for key, own in scaling.steps_to_result(trials).groupby(scaling.CURVE) if len(trials) else ():
        logs, mine = np.log(own.steps.fillna(own.last_step)), own.split == split
        here, others = (logs[some].groupby(own.batch_size).mean() for some in (mine, ~mine))
        if len(others):
            off = here - others
            rows.append((key, {"lacking": int(off.isna().sum()), "factor": np.exp(off.mean())}))
    return scaling.by_curve(rows, ["lacking", "factor"])
