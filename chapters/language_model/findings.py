"""The values of the sentences on the language model, its table and its figure."""

from __future__ import annotations

from types import SimpleNamespace

import altair as alt
import pandas as pd

from chapters.language_model import text_results
from lib.analysis import scaling
from lib.page import boxes, charts, shared_figures, told
from lib.probes import tracks
from lib.wording import between, brief, named, percent, span
from lib.workloads.tasks import TASKS

LINE = ["critical", "critical_low", "critical_high", "c1", "c2"]


def findings(data: SimpleNamespace) -> dict:
    """All values of the page's sentences, of `text_results.read`, as far as on record."""
    trials, written = data.trials, TASKS[data.work.task].written
    goals, main = scaling.goals(trials), text_results.main_of(trials)
    goal, points = text_results.goal(trials), text_results.curves(trials)
    fits = text_results.fits(trials)
    line = fits[fits.algorithm == main.algorithm.iloc[0]]  # none: too few batch sizes met the goal
    known = len(line) > 0
    ours = points.curve == text_results.titles(main)[0]
    own = points[ours & (points.goal == goal)].set_index("batch_size")
    off = 100 * ((own.high / own.low) ** 0.5 - 1)
    small, large = own.index.min(), own.index.max()
    return told.plain(
        {
            "title": data.work.title,
            "trials": boxes.trials(trials),
            "method": named(main.algorithm.iloc[0]),
            "goal": written(goal),
            "easy": written(text_results.pruned_goal(trials)),
            "hardest": goals[0],
            "easiest": goals[-1],
            "searches": points.replicates.max(),
            "known": known,
            "inside": known and line.identified.iloc[0],
            "above": known and line.critical.iloc[0] > large,
            **(line[LINE].iloc[0] if known else dict.fromkeys(LINE)),
            "off_least": f"{off.min():.0f}",
            "off_most": f"{off.max():.0f}",
            "smallest": small,
            "largest": large,
            "tokens_grow": large * own.steps[large] / (small * own.steps[small]),
            "hardest_rung": _rung(data.rungs, goals[0]),
            "easiest_rung": _rung(data.rungs, goals[-1]),
            **_moved(main, goals),
            **(_pruned(trials, data.layers) if (trials.sparsity > 0).any() else {}),
            **(_noise(data.followed, line) if len(data.followed) else {}),
        }
    )


def _rung(rungs: pd.DataFrame, goal: float) -> str:
    """Beside which n-gram models a goal lies."""
    worse = rungs.nats > goal
    if not worse.any():
        return "above the 1-gram model"
    if worse.all():
        return f"below the {rungs.n.max()}-gram model"
    return f"between the {rungs.n[worse].max()}-gram and the {rungs.n[~worse].min()}-gram model"


def _moved(main: pd.DataFrame, goals: list[float]) -> dict:
    """How the critical batch size moves from the easiest goal to the hardest."""
    ends = [scaling.curves(scaling.at_goal(main, goal)) for goal in (goals[0], goals[-1])]
    known = all(ends) and len(goals) > 1
    moved = scaling.critical_ratio(*(next(iter(own.values())) for own in ends)) if known else None
    return told.ratios({"moved": moved}, ["moved"])


def _pruned(trials: pd.DataFrame, layers: pd.DataFrame) -> dict:
    """What pruning costs in steps, and leaves of attention."""
    over = text_results.pruned_over_dense(trials)
    of = layers.name.str.extract(r"(value|query|key)\.weight$", expand=False)
    sums = layers.groupby(of.replace("key", "query"))[["kept", "all"]].sum()
    left = sums.kept / sums["all"]
    return {
        "pruned_over": between(*over.ratio),
        "pruned_low": over.ratio_low.min(),
        "pruned_high": over.ratio_high.max(),
        "pruned_searches": over.n.max(),
        "pruned_sizes": over.batch_size.tolist(),
        "pruned_missed": over.missed.any(),
        "sparsity": f"{layers.sparsity.iloc[0]:g}",
        "values_left": percent(left["value"]),
        "queries_left": percent(left["query"]),
    }


def _noise(path: pd.DataFrame, line: pd.DataFrame) -> dict:
    """The noise scale along the fastest trial, beside the critical batch size."""
    mean = tracks.noise_scales(path).noise_scale.iloc[0]
    return {
        "followed_method": named(path.algorithm.iloc[0]),
        "followed_size": path.batch_size.iloc[0],
        "noise_begin": path.noise_scale.iloc[0],
        "noise_end": path.noise_scale.iloc[-1],
        "noise": mean,
        "noise_over_critical": mean / line.critical.iloc[0] if len(line) else None,
    }


def fitted(rows: pd.DataFrame) -> pd.DataFrame:
    """The lines of one goal, of `text_results.fits`."""
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


NATS = (
    "'goal: ' + format(value, '.2f') + ' nats, ' + format(value / LN2, '.2f') + ' bits a character'"
)


def steps_by_method(points: pd.DataFrame, start: float) -> alt.LayerChart:
    """Steps to result against batch size, a colour per curve; a slider over goals from `start` on.
    points: of `text_results.curves`.
    """
    known = points.drop_duplicates("curve")
    shades = known.algorithm.map(charts.ALGORITHM_COLOURS).fillna(charts.GUIDE)
    shades = shades.mask(known.sparsity > 0, charts.sparsity_colour(0.9))
    colour = charts.by_name("curve", dict(zip(known.curve, shades)), 2)
    slider = charts.slider("goal", sorted(points.goal.unique()), start, "goal (nats)", NATS)
    return shared_figures.scaling_chart(points, colour, slider, height=340)
