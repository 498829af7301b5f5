"""What the page on three regimes says, as numbers and words, and what its figures draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from chapters.three_regimes import one_network, regime_figures
from lib.analysis import ranges, scaling
from lib.claims import NO, SHOWN, UNCLEAR, YES, Claim
from lib.page import boxes, charts
from lib.page.shared_figures import LARGE
from lib.wording import between, named, percent
from lib.workloads.catalogue import workload

PAPERS_METHODS = ("sgd", "momentum", "nesterov")
PAPERS_NETWORKS = ("mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8")
LARGE_GOALS = ("Transformer on LM1B", "ResNet-50 on ImageNet")
SEVERAL_GOALS = (
    "mnist-simple-cnn",
    "fashion-mnist-simple-cnn",
    "cifar-10-resnet-8",
    "mnist-fc-128x3-easier",
    "digits-mlp",
    "digits-cnn",
)


def asked_for(every: pd.DataFrame, chosen: Any) -> pd.DataFrame:
    """The trials of what a page's parameters ask for."""
    own = (every.workload == chosen.workload) & (every.algorithm == chosen.algorithm)
    sizes = every.batch_size.isin(chosen.batch_sizes)
    return every[own & sizes & every.sparsity.isin(chosen.sparsities)]


def densest(asked: pd.DataFrame) -> pd.DataFrame:
    """The trials at the least sparsity among these."""
    return asked[asked.sparsity == asked.sparsity.min()]


def findings(
    every: pd.DataFrame,
    published: pd.DataFrame,
    lines: pd.DataFrame,
    judged: Mapping[str, Claim],
    chosen: Any,
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        every: all trials at their goals, momentum over its whole range where that is measured.
        published: the same with momentum from 0.9 on alone.
        lines: of `one_network.lines_by_goal`, of the `densest` curve asked for.
        judged: all claims.
        chosen: the page's parameters.
    """
    work = workload(chosen.workload)
    whole = sorted(ranges.whole_curves(every))
    ranged = any(key[:2] == (chosen.workload, chosen.algorithm) for key in whole)
    return {
        "workload": work.title,
        "method": named(chosen.algorithm) + " over its whole range" * ranged,
        "tolerance": percent(scaling.TOLERANCE),
        "largest": max(chosen.batch_sizes),
        "train_size": work.train_size,
        "nearly_all": max(chosen.batch_sizes) > work.train_size / 2,
        "image_trials": boxes.trials(_on_images(every)),
        "goal_panels": of_several_goals(every).workload.nunique(),
        **_asked(asked_for(every, chosen), lines),
        **_judged(judged["L1"], judged["S2"], judged["S7"]),
        **_ranges(one_network.before_and_after(published, every, whole)),
        **_draws(every[every.workload == "digits-mlp"]),
    }


def _asked(asked: pd.DataFrame, lines: pd.DataFrame) -> dict[str, object]:
    """What doubling the batch saves on the network asked for, the constants of its densest curve,
    and batch sizes either side of its critical one.
    """
    points = scaling.across_replicates(scaling.steps_to_result(asked))
    dense = densest(points)
    goal = asked.goal.iloc[0]
    line = lines[lines.goal == goal].reindex(columns=["c1", "c2", "critical"])
    c1, c2, critical = line.astype(float).min()
    before, after = one_network.saved_per_doubling(dense.batch_size, dense.steps, critical)
    return {
        "goal": percent(goal),
        "flattens": bool(before > after > 0),
        "guided": bool(len(line)),
        "c1": c1,
        "c2": c2,
        "bend": c1 / c2,
        "critical": critical,
        "quarter": critical / 4,
        "fourfold": 4 * critical,
        "before": percent(before) if before > after else None,
        "after": percent(after) if before > after else None,
        "densest": f"{dense.sparsity.min():g}",
        "searches": int(points.replicates.max()),
        "several_searches": bool(points.replicates.max() > 1),
        "trials": boxes.trials(asked),
    }


def _judged(three: Claim, goals: Claim, methods: Claim) -> dict[str, object]:
    """How many curves show all three regimes, move with the goal, and bend later with momentum."""
    moved = goals.measured
    return {
        "three_judged": len(three.measured),
        "three_able": len(three.measured) - len(three.decided(SHOWN)),
        "three_for": len(three.decided(YES)),
        "three_against": len(three.decided(NO)),
        "surely_lower": sum(group.high < 1 for group in moved),
        "undecided": sum(group.low < 1 < group.high for group in moved),
        "moved": len(moved),
        "moved_by": between(*(group.effect for group in moved)),
        "needed": f"{methods.threshold:g}",
        "raised": len(methods.decided(YES)),
        "compared": len(methods.decided(YES, NO, UNCLEAR)),
    }


def _ranges(rows: pd.DataFrame) -> dict[str, object]:
    """What momentum below 0.9 does to the critical batch size."""
    own = rows[(rows.workload == "digits-mlp") & (rows.sparsity == 0)]
    head = own[own.algorithm == "momentum"]
    return {
        "ranged": bool(len(head)),
        "ranged_before": head.critical_published.max(),
        "ranged_after": head.critical_whole.max(),
        "ranged_curves": len(rows),
        "whole_over": between(*rows.ratio),
        "whole_lower": int((rows.ratio_high < 1).sum()),
    }


def _draws(every: pd.DataFrame) -> dict[str, str]:
    """Trials of a dense search with momentum and with SGD."""
    dense = every[every.sparsity == 0]
    return {
        f"{name}_trials": boxes.trials(dense[dense.algorithm == name])
        for name in ("momentum", "sgd")
    }


def _on_images(every: pd.DataFrame) -> pd.DataFrame:
    """The trials of curves of larger images that have three batch sizes."""
    digits = every.workload.str.startswith("digits")
    own = every.workload.str.contains(".py:", regex=False)
    return of_sizes(every[~(digits | own).astype(bool)], 3)


# --- what figures draw ----------------------------------------------------------------------------


def of_sizes(trials: pd.DataFrame, least: int) -> pd.DataFrame:
    """The trials of curves that are measured at this number of batch sizes or more."""
    if trials.empty:
        return trials
    return trials[trials.groupby(scaling.CURVE).batch_size.transform("nunique") >= least]


def of_networks(every: pd.DataFrame) -> alt.FacetChart:
    """The figure of dense networks with two of the paper's training methods, a panel each: those of
    the paper first.
    """
    dense = every[(every.sparsity == 0) & every.algorithm.isin(PAPERS_METHODS)]
    several = dense.groupby("workload").algorithm.transform("nunique") > 1
    dense = of_sizes(dense[several], 3)
    if not len(dense):
        return charts.nothing("No network is measured with two training methods.")
    points = scaling.label(scaling.across_replicates(scaling.steps_to_result(dense)))
    points = points.assign(panel=_at_goal(points.workload, points.goal))
    later = ~points.workload.isin(PAPERS_NETWORKS)
    points = points.assign(later=later).sort_values(["later", "panel"], kind="stable")
    colour = charts.by_algorithm(list(points.algorithm.unique()))
    return regime_figures.panels_chart(points, "algorithm", colour, LARGE)


def of_several_goals(every: pd.DataFrame) -> pd.DataFrame:
    """The dense trials with momentum that `of_goals` draws."""
    own = every[(every.sparsity == 0) & (every.algorithm == "momentum")]
    return of_sizes(own[own.workload.isin(SEVERAL_GOALS)], 4)


def of_goals(every: pd.DataFrame) -> alt.FacetChart:
    """The figure of dense networks at every goal of their ladders, with momentum, a panel each."""
    own = of_several_goals(every)
    if not len(own):
        return charts.nothing("No dense network is measured with momentum.")
    parts = [
        scaling.all_goals(trials).assign(panel=workload(name).title)
        for name, trials in own.groupby("workload")
    ]
    points = pd.concat(parts)
    rank = points.groupby("panel").goal.rank("dense") - 1
    points["ease"] = rank / rank.groupby(points.panel).transform("max")
    points["goal"] = points.goal.map(percent)
    shades = alt.Scale(domain=[0, 1], range=[charts.BLUE, charts.ORANGE])
    colour = alt.Color("ease:Q", scale=shades, legend=None)
    return regime_figures.panels_chart(
        points.drop(columns="perfect", errors="ignore"), "goal", colour, LARGE_GOALS
    )


def _at_goal(workloads: pd.Series, goals: pd.Series) -> list[str]:
    titles = [workload(name).title.removesuffix(", easier goal") for name in workloads]
    return [f"{title}, error ≤ {percent(goal)}" for title, goal in zip(titles, goals)]
