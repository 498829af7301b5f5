"""What the page on three regimes says, as numbers and words, and what its figures draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from chapters.three_regimes import one_network, regime_figures
from lib.analysis import ranges, scaling
from lib.claims import NO, UNCLEAR, YES, Claim
from lib.page import charts
from lib.page.shared_figures import LARGE
from lib.wording import brief, named, percent, with_interval
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
    """The trials of what a page's parameters ask for; of so many searches a point, if they say."""
    own = (every.workload == chosen.workload) & (every.algorithm == chosen.algorithm)
    sizes = every.batch_size.isin(chosen.batch_sizes)
    found = every[own & sizes & every.sparsity.isin(chosen.sparsities)]
    if not chosen.replicates:
        return found
    of = [*scaling.CURVE, "batch_size", *scaling.SEARCH]
    first = found[of].drop_duplicates().sort_values(["split", "replicate"])
    first = first.groupby(of[:5]).head(chosen.replicates)
    return found[pd.MultiIndex.from_frame(found[of]).isin(pd.MultiIndex.from_frame(first))]


def densest(asked: pd.DataFrame) -> pd.DataFrame:
    """The trials at the least sparsity among these."""
    return asked[asked.sparsity == asked.sparsity.min()]


def findings(
    every: pd.DataFrame, lines: pd.DataFrame, judged: Mapping[str, Claim], chosen: Any
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        every: all trials at their goals, momentum over its whole range where that is measured.
        lines: of `one_network.lines_by_goal`, of the `densest` curve asked for.
        judged: all claims.
        chosen: the page's parameters.
    """
    curve = chosen.workload, chosen.algorithm
    ranged = any(key[:2] == curve for key in ranges.whole_curves(every))
    goals, methods = judged["S2"].measured, judged["S7"]
    return {
        "workload": workload(chosen.workload).title,
        "method": named(chosen.algorithm) + " over its whole range" * ranged,
        "tolerance": percent(scaling.TOLERANCE),
        "book": chosen.budget != "smoke",  # all that is on record is drawn beside
        "surely_lower": sum(group.high < 1 for group in goals),
        "moved": len(goals),
        "raised": len(methods.decided(YES)),
        "compared": len(methods.decided(YES, NO, UNCLEAR)),
        **_asked(asked_for(every, chosen), lines),
    }


def _asked(asked: pd.DataFrame, lines: pd.DataFrame) -> dict[str, object]:
    """What doubling the batch saves on the network asked for, on either side of the critical batch
    size of its densest curve.
    """
    dense = densest(scaling.across_replicates(scaling.steps_to_result(asked)))
    goal = asked.goal.iloc[0]
    critical = lines[lines.goal == goal].critical.astype(float).min()
    before, after = one_network.saved_per_doubling(dense.batch_size, dense.steps, critical)
    return {
        "goal": percent(goal),
        "flattens": bool(before > after > 0),
        "guided": bool((lines.goal == goal).any()),
        "critical": critical,
        "before": percent(before) if before > after else None,
        "after": percent(after) if before > after else None,
        "densest": f"{dense.sparsity.min():g}",
    }


def of_ranges(published: pd.DataFrame, every: pd.DataFrame) -> pd.DataFrame:
    """Critical batch sizes with momentum from 0.9 on and over its whole range, a row per curve.

    Args:
        published, every: all trials at their goals, without and with the whole range.
    """
    whole = sorted(ranges.whole_curves(every))
    rows = one_network.before_and_after(published, every, whole)
    ends = zip(rows.ratio, rows.ratio_low, rows.ratio_high)
    return pd.DataFrame(
        {
            "network": rows.workload.map(lambda name: workload(name).title),
            "method": rows.algorithm.map(named),
            "sparsity": rows.sparsity.map("{:g}".format),
            "from 0.9 on": rows.critical_published.map(brief),
            "whole range": rows.critical_whole.map(brief),
            "whole over published": [with_interval(*row) for row in ends],
        }
    )


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
