"""What the page on three regimes says, as numbers and words, its tables, and what its figures draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from chapters.three_regimes import one_network, regime_figures
from lib.analysis import ranges, scaling, splits
from lib.claims import AGAINST, FOR, Claim, judging
from lib.page import boxes, charts
from lib.page.multiples import LARGE
from lib.probes.unseen import UNSEEN
from lib.wording import between, named, number, percent, span
from lib.workloads.catalogue import workload

LEAST = 5  # batch sizes of a curve that may show three regimes
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


@dataclass(frozen=True)
class Measured:
    """What the page is written from.

    Attributes:
        every: all trials at their goals, momentum over its whole range where that is measured.
        published: the same with momentum from 0.9 on alone.
        asked: those of the network, method and sparsities asked for.
        summary, curves: of `scaling.summaries`, of `every`.
        whole: the curves with momentum over its whole range.
        ranged: of `one_network.before_and_after`, of these.
    """

    every: pd.DataFrame
    published: pd.DataFrame
    asked: pd.DataFrame
    summary: pd.DataFrame
    curves: dict
    whole: list[tuple]
    ranged: pd.DataFrame

    @property
    def lines(self) -> pd.DataFrame:
        """The densest curve's c1/B + c2 at every goal."""
        return one_network.lines_by_goal(self.asked[self.asked.sparsity == self.densest])

    @property
    def densest(self) -> float:
        return self.asked.sparsity.min()


def measured(published: pd.DataFrame, every: pd.DataFrame, asked: pd.DataFrame) -> Measured:
    """The curves of these trials."""
    summary, curves = judging.summaries(every)
    whole = sorted(ranges.whole_curves(every))
    usual = scaling.curves(published) if whole else {}
    ranged = one_network.before_and_after(usual, {key: curves[key] for key in whole})
    return Measured(every, published, asked, summary, curves, whole, ranged)


def asked_for(every: pd.DataFrame, chosen: Any) -> pd.DataFrame:
    """The trials of what a page's parameters ask for."""
    own = (every.workload == chosen.workload) & (every.algorithm == chosen.algorithm)
    sizes = every.batch_size.isin(chosen.batch_sizes)
    return every[own & sizes & every.sparsity.isin(chosen.sparsities)]


def findings(data: Measured, judged: Mapping[str, Claim], chosen: Any) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        data: of `measured`.
        judged: all claims.
        chosen: the page's parameters.
    """
    work = workload(chosen.workload)
    ranged = any(key[:2] == (chosen.workload, chosen.algorithm) for key in data.whole)
    return {
        "workload": work.title,
        "method": named(chosen.algorithm) + " over its whole range" * ranged,
        "tolerance": percent(scaling.TOLERANCE),
        "largest": max(chosen.batch_sizes),
        "train_size": work.train_size,
        "nearly_all": max(chosen.batch_sizes) > work.train_size / 2,
        **_asked(data),
        **_all_three(data.summary, judged["L1"]),
        **_goals(data.lines, judged["S2"]),
        **_methods(data.curves, judged["S7"]),
        **_images(data),
        **_ranges(data.ranged),
        **splits.unseen(UNSEEN.results(), "digits-mlp"),
    }


def _asked(data: Measured) -> dict[str, object]:
    """What doubling the batch saves on the network asked for."""
    points = scaling.across_replicates(scaling.steps_to_result(data.asked))
    lines, goal = data.lines, data.asked.goal.iloc[0]
    dense = points[points.sparsity == data.densest]
    critical = lines.critical[lines.goal == goal].min()
    before, after = one_network.saved_per_doubling(dense.batch_size, dense.steps, critical)
    return {
        "goal": percent(goal),
        "flattens": bool(before > after > 0),
        "critical": critical,
        **_rule(lines[lines.goal == goal]),
        "before": percent(before) if before > after else None,
        "after": percent(after) if before > after else None,
        "densest": f"{data.densest:g}",
        "guided": bool(len(lines)),
        "searches": int(points.replicates.max()),
        "several_searches": bool(points.replicates.max() > 1),
        "trials": boxes.trials(data.asked),
    }


def _rule(lines: pd.DataFrame) -> dict[str, object]:
    """The constants of the densest curve, and batch sizes either side of its critical one."""
    names = ("c1", "c2", "quarter", "fourfold")
    if not len(lines):
        return dict.fromkeys(names)
    line = lines.iloc[0]
    found = (line.c1, line.c2, line.critical / 4, 4 * line.critical)
    return dict(zip(names, map(float, found)))


def _all_three(summary: pd.DataFrame, claim: Claim) -> dict[str, object]:
    """How many curves show all three regimes."""
    long = summary[summary.sizes >= LEAST]
    scales, flat = long.perfect_end >= 4 * long.start, long.reaches_plateau.astype(bool)
    shows = scales & flat & (long.useful_end > long.perfect_end)
    return {
        "three": int(shows.sum()),
        "long": len(long),
        "three_judged": len(claim.measured),
        "three_for": len(claim.decided(FOR)),
        "three_against": len(claim.decided(AGAINST)),
    }


def _goals(lines: pd.DataFrame, claim: Claim) -> dict[str, object]:
    """Where the critical batch size is at other goals."""
    ends = lines.sort_values("goal").critical
    moved = [group.effect for group in claim.measured]
    return {
        "several_goals": len(ends) > 1,
        "at_hardest": float(ends.iloc[0]) if len(ends) else None,
        "at_easiest": float(ends.iloc[-1]) if len(ends) else None,
        "lower": sum(effect < 1 for effect in moved),
        "surely_lower": sum(group.high < 1 for group in claim.measured),
        "undecided": sum(group.low < 1 < group.high for group in claim.measured),
        "moved": len(moved),
        "moved_by": between(*moved),
    }


def _methods(curves: dict, claim: Claim) -> dict[str, object]:
    """What momentum does to the critical batch size and to both constants, over SGD's."""
    pairs = one_network.over_sgd(curves)
    pairs = pairs[pairs.n >= scaling.ENOUGH]  # of single searches an interval says more: S7
    return {
        "needed": f"{claim.threshold:g}",
        "raised": len(claim.decided(FOR)),
        "compared": len(claim.measured),
        "pairs": len(pairs),
        "pairs_c1": between(*pairs.c1),
        "pairs_c2": between(*pairs.c2),
    }


def _images(data: Measured) -> dict[str, object]:
    """How many dense curves of larger images reach their critical batch size."""
    images = on_images(data.every)
    own = data.summary[data.summary.workload.isin(images.workload) & (data.summary.sparsity == 0)]
    searches = images.groupby([*scaling.CURVE, "batch_size"]).replicate.nunique()
    return {
        "image_curves": len(own),
        "image_inside": int(own.identified.sum()),
        "image_trials": boxes.trials(images),
        "image_searches": int(searches.max()) if len(searches) else None,
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


# --- what figures draw ----------------------------------------------------------------------------


def _networks(points: pd.DataFrame) -> pd.Series:
    level = points.sparsity.map(lambda s: f", sparsity {s:g}" if s else ", dense")
    return points.workload.map(lambda name: workload(name).title) + level


def of_sizes(trials: pd.DataFrame, least: int) -> pd.DataFrame:
    """The trials of curves that are measured at this number of batch sizes or more."""
    if trials.empty:
        return trials
    return trials[trials.groupby(scaling.CURVE).batch_size.transform("nunique") >= least]


def on_images(every: pd.DataFrame) -> pd.DataFrame:
    """The trials of curves of larger images that have three batch sizes."""
    digits = every.workload.str.startswith("digits")
    own = every.workload.str.contains(".py:", regex=False)
    return of_sizes(every[~(digits | own).astype(bool)], 3)


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


def of_goals(every: pd.DataFrame) -> alt.FacetChart:
    """The figure of dense networks at every goal of their ladders, with momentum, a panel each."""
    own = every[(every.sparsity == 0) & (every.algorithm == "momentum")]
    own = of_sizes(own[own.workload.isin(SEVERAL_GOALS)], 4)
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


def of_ranges(data: Measured) -> alt.LayerChart:
    """The figure of curves over both ranges of momentum."""
    if not data.whole:
        return charts.nothing("No curve is measured over the whole range.")
    parts = []
    for name, trials in (("published", data.published), ("whole", data.every)):
        searches = scaling.steps_to_result(trials)
        keys = list(searches[scaling.CURVE].itertuples(index=False, name=None))
        points = scaling.across_replicates(searches[[key in data.whole for key in keys]])
        parts.append(points.assign(range=name, curve=_networks(points)))
    drawn = pd.concat(parts)
    names = sorted(drawn.curve.unique())
    return regime_figures.ranges_chart(drawn, charts.menu("curve", names, names[0], "network"))


# --- tables ---------------------------------------------------------------------------------------


def regimes(asked: pd.DataFrame) -> pd.DataFrame:
    """Where the regimes of the curves asked for begin and end."""
    rows, _ = scaling.summaries(asked)

    def told(name: str, known: pd.Series) -> pd.Series:
        ends = rows[[name, f"{name}_low", f"{name}_high"]].map(lambda v: float(f"{v:.2g}"))
        texts = [f"{number(v)} ({span(between)})" for v, *between in ends.to_numpy()]
        return pd.Series(texts, rows.index, dtype=object).where(known.astype(bool), "—")

    return pd.DataFrame(
        {
            "sparsity": rows.sparsity,
            "critical batch size": told("critical", rows.critical.notna()),
            "perfect scaling from": rows.start,
            "up to": told("perfect_end", rows.perfect_end.notna()),
            "maximal from": told("useful_end", rows.reaches_plateau),
            "searches": rows.replicates,
        }
    )
