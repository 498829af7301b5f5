"""What the page on late workers says, as numbers and words, with its table and figure."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.late_workers import experiments, late_results
from chapters.late_workers.late_results import JUDGED, SIZES, WORK
from lib.page import charts, tips
from lib.wording import brief, named, percent, ranged, with_interval


def findings(trials: pd.DataFrame, curves: dict, turns: dict, delays: pd.DataFrame) -> dict:
    """All values of the page's sentences; trials, curves, and turns (by method, of
    `without_waiting`) as `late_results` has them; delays: of `experiments.DELAYS`.
    """
    growth = late_results.growth(curves)
    plain = growth[(growth.workload == WORK) & (growth.algorithm == "sgd")]
    fixed = plain[plain.delays == "fixed"].set_index("staleness")
    drawn = plain[plain.delays == "uniform"].iloc[-1]
    last = fixed.iloc[-1]
    own = trials[trials.workload == WORK]
    theory = _theory(own, fixed.floor)
    off = np.abs(np.log(fixed.large / theory[SIZES[-1]])).max()
    searches = own.groupby(["algorithm", "delays", "staleness"]).replicate.nunique()
    deep = "digits-mlp-64x4", "sgd", "fixed", JUDGED
    shallow = "digits-mlp-64x1", "sgd", "fixed", JUDGED
    depth = late_results.slower(curves, deep, shallow)
    workers = JUDGED + 1
    ratios = {m: table.set_index("workers").ratio for m, table in turns.items()}
    return {
        "small": SIZES[0],
        "large": SIZES[-1],
        "goal": percent(own.goal.iloc[0]),
        "methods": [named(m) for m in turns],
        "searches_least": int(searches.min()),
        "searches_most": int(searches.max()),
        "trials": int(trials.trials.min()),
        "latest": int(last.name),
        "latest_large": float(last.large),
        "late_small": float(fixed.small[JUDGED]),
        "late_small_theory": float(theory[SIZES[0]][JUDGED]),
        "latest_theory": float(last.floor),
        "theory_off": float(np.exp(off)),
        "most_gradients": [f"{brief(own.max())} ({named(m)})" for m, own in ratios.items()],
        "workers": workers,
        "late": JUDGED,
        "bound": late_results.floor(JUDGED) / workers,
        "turn_ratios": [f"{brief(own[workers])} ({named(m)})" for m, own in ratios.items()],
        "sgd_over_adam": late_results.over_adam(curves, 0),
        "sgd_over_adam_late": late_results.over_adam(curves, JUDGED),
        "drawn": int(drawn.staleness),
        "drawn_large": _large(drawn),
        "mean": int(drawn.staleness // 2),
        "mean_large": _large(fixed.loc[drawn.staleness // 2]),
        "depth": ranged(*depth.row("").values()),
        "depth_searches": depth.n,
        "in_turn_percent": float(100 * experiments.in_turn(delays)),
    }


def _theory(trials: pd.DataFrame, floors: pd.Series) -> dict[int, pd.Series]:
    """By what factors late gradients multiply SGD's steps at a batch size, from those of floors."""
    fit = late_results.on_time(late_results.points(trials[trials.algorithm == "sgd"]))
    noise = {size: fit.c1[0] / fit.c2[0] / size for size in SIZES}
    return {size: (share + floors) / (share + 1) for size, share in noise.items()}


def _large(row: pd.Series) -> str:
    """What a delay costs at the largest batch size."""
    return ranged(row.large, row.large_low, row.large_high)


def without_waiting(turns: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Gradients over those of one synchronous batch, a row per number of workers."""
    workers = turns["sgd"].workers
    bounds = [brief(late_results.floor(count - 1) / count) for count in workers]
    table = pd.DataFrame({"theory, at most": bounds}, workers)
    for name, own in turns.items():
        values = own[["ratio", "ratio_low", "ratio_high"]].to_numpy()
        told = pd.Series([with_interval(*row) for row in values], own.workers)
        table[named(name)] = told.reindex(workers, fill_value="—")
    return table.reset_index()


COLOURS = (charts.BLUE, charts.TEAL, charts.GREEN, charts.ORANGE, charts.PINK, charts.RED)


def _late(staleness: int) -> str:
    return "on time" if staleness == 0 else f"{staleness} step{'s' if staleness > 1 else ''} late"


def by_staleness(points: pd.DataFrame, lines: pd.DataFrame) -> alt.LayerChart:
    """Points of one training method, a colour per staleness; dashed: of `late_results.lines`."""
    colours = dict(zip(map(_late, sorted(points.staleness.unique())), COLOURS))
    points = tips.known(points)
    points = points.assign(gradients=points.staleness.map(_late))
    lines = lines.assign(gradients=lines.staleness.map(_late))
    pick, faded = charts.picked("gradients")
    lowest = min(points.low.clip(lower=points.steps / 3).min(), lines.steps.min())
    within = [lowest / 1.2, points.steps.max() * 2.5]
    ends = {f"bar_{end}": points[end].clip(*within) for end in ("low", "high")}
    scale = charts.log(domain=within)
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    base = alt.Chart(points.assign(**ends)).encode(
        x=charts.batch_axis(points.batch_size),
        color=charts.by_name("gradients", colours, 2),
        opacity=faded,
    )
    dashed = base.properties(data=lines).mark_line(strokeDash=[5, 4], strokeWidth=2, clip=True)
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("bar_low:Q", scale=scale), y2="bar_high:Q")
    dots = base.mark_point(filled=True, size=64, opacity=1)
    dots = dots.encode(y=y, tooltip=tips.points("gradients", regime=False))
    return charts.sized(alt.layer(dashed.encode(y=y).add_params(pick), bars, dots), 380)
