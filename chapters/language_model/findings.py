"""The sentences' values, the tables and the figure of the page on the language model."""

from __future__ import annotations

from types import SimpleNamespace

import altair as alt
import pandas as pd

from chapters.language_model import text_results
from lib.analysis import scaling
from lib.page import boxes, charts, estimates, shared_figures
from lib.probes import tracks
from lib.wording import brief, named, percent, ranged, span
from lib.workloads.tasks import TASKS


def findings(data: SimpleNamespace) -> dict:
    """All values in the page's sentences that are on record; data: from `text_results.read`."""
    trials, written = data.trials, TASKS[data.work.task].written
    goals, main = scaling.goals(trials), text_results.main_of(trials)
    points, line = text_results.curves(trials), main_line(trials)
    shown = points.curve == text_results.titles(main)[0]
    return estimates.plain(
        {
            "title": data.work.title,
            "trials": boxes.trials(trials),
            "searches": points.replicates[shown].max(),
            "method": named(main.algorithm.iloc[0]),
            "goal": written(text_results.goal(trials)),
            "inside": line is not None and line.identified,
            "fitted": line is not None,
            "low": getattr(line, "critical_low", None),
            "high": getattr(line, "critical_high", None),
            "hardest": written(goals[0]),
            "hardest_rung": _rung(data.rungs, goals[0]),
            "easiest": written(goals[-1]),
            "easiest_rung": _rung(data.rungs, goals[-1]),
        }
    )


def main_line(trials: pd.DataFrame) -> pd.Series | None:
    """The row of `text_results.fits` for the main method, if enough batch sizes met the goal."""
    fits = text_results.fits(trials)
    line = fits[fits.algorithm == text_results.main_of(trials).algorithm.iloc[0]]
    return line.iloc[0] if len(line) else None


def _rung(rungs: pd.DataFrame, goal: float) -> str:
    """Which n-gram models a goal lies between, in words."""
    worse = rungs.nats > goal
    if not worse.any():
        return "above the 1-gram model"
    if worse.all():
        return f"below the {rungs.n.max()}-gram model"
    return f"between the {rungs.n[worse].max()}-gram and the {rungs.n[~worse].min()}-gram model"


def pruning_and_noise(data: SimpleNamespace) -> pd.DataFrame:
    """What was measured on the book's text besides curves: quantity, value."""
    trials = data.trials
    matrix = data.layers.name.str.extract(r"(value|query|key)\.weight$", expand=False)
    sums = data.layers.groupby(matrix.replace("key", "query"))[["kept", "all"]].sum()
    left = (sums.kept / sums["all"]).map(percent)
    noise = tracks.noise_scales(data.followed).noise_scale.iloc[0]
    goal = TASKS[data.work.task].written(text_results.pruned_goal(trials))
    rows = {
        f"pruned over dense steps to {goal}, {row.batch_size} sequences per batch": (
            "at least " * row.missed + ranged(row.ratio, row.ratio_low, row.ratio_high)
        )
        for row in text_results.pruned_over_dense(trials).itertuples()
    }
    rows |= {
        "value weights that pruning keeps": left["value"],
        "query and key weights that it keeps": left["query"],
        "noise scale (sequences), averaged over progress": brief(noise),
    }
    if (line := main_line(trials)) is not None:
        rows["critical batch size over the noise scale"] = brief(line.critical / noise)
    return pd.DataFrame(rows.items(), columns=["quantity", "value"])


def fitted(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of the fits at one goal; rows: from `text_results.fits`."""
    return pd.DataFrame(
        {
            "training method": rows.curve,
            "searches": rows.replicates,
            "c₁ (sequences)": rows.c1.map(brief),
            "c₂ (steps)": rows.c2.map(brief),
            "critical batch size (sequences)": rows.critical.map(brief),
            "90 %": list(map(span, zip(rows.critical_low, rows.critical_high))),
        }
    )


NATS = "'goal: ' + format(value, '.2f') + ' nats, ' + format(value / LN2, '.2f') + ' bits a character'"


def steps_by_method(points: pd.DataFrame, start: float) -> alt.LayerChart:
    """Steps to result against batch size, one colour per curve; a slider sets the goal.
    points: from `text_results.curves`.  start: the goal shown first.
    """
    lines = points.drop_duplicates("curve")
    shades = lines.algorithm.map(charts.ALGORITHM_COLOURS).fillna(charts.GUIDE)
    shades = shades.mask(lines.sparsity > 0, charts.sparsity_colour(0.9))
    colour = charts.by_name("curve", dict(zip(lines.curve, shades)), 2)
    slider = charts.slider("goal", sorted(points.goal.unique()), start, "goal (nats)", NATS)
    return shared_figures.scaling_chart(points, colour, slider, height=340, units="sequences")
