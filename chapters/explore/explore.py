"""The interactive view of all curves: its data, drawn by a script (`static/explore.js`), and the
picture and table shown without scripts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from chapters.explore.explorer import KEYS, LINES, MACHINES, POINTS, TIMES, UPDATES
from lib import require
from lib.analysis import scaling
from lib.page import boxes, charts, vega
from lib.page.prose import Html
from lib.wording import named
from lib.workloads.catalogue import workload

MOST = 1_000_000  # bytes of data in a page
DIGITS = 5  # significant digits that the data keep
FAR = 4  # an axis ends at most at this many times the outermost points, whatever the bars do
DATA = {
    "digits": "Digits",
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
}
HEADS = {
    "algorithm": "training method",
    "batch_size": "batch size",
    "low": "5 %",
    "high": "95 %",
}
ESTIMATES = ["steps", "low", "high", "line"]  # with four significant digits
COLUMNS = {
    "workload": "data set and network; only in the file, like the goal",
    "pruning": "how the weights to remove were chosen before training; or dense",
    "range": "range of momentum: published, 0.9 to 0.9999, or whole, from 0",
    "steps": "geometric mean over searches of the fewest training steps to the goal",
    "5 %, 95 %": "ends of its 90 % confidence interval",
    "line": "value of c₁/B + c₂ there",
    "searches": "independent searches behind the point; with one or two, "
    "the interval uses the scatter of other networks",
    "missed": "searches that missed the goal: the point is a lower bound",
    "critical batch size": "where 1 % more examples per batch save half a per cent of the steps",
}
CAPTION = (
    "Points: means over searches; hollow if a search missed the goal. "
    "Bars: 90 % confidence intervals. Lines: c₁/B + c₂. Diamonds: critical batch sizes."
)
VIEW = Path(__file__).with_name("view.html").read_text(encoding="utf-8")


def packed(
    points: pd.DataFrame,
    lines: pd.DataFrame,
    times: pd.DataFrame,
    updates: pd.DataFrame,
    start: dict,
) -> str:
    """The data of the view as JSON: the choices with titles and colours, and the tables.

    points, lines, times, updates: from `explorer`.  start: the initial choice: workload, method and
    sparsity (lists), goal.  Raises ValueError above MOST bytes.
    """
    lines = lines.sort_values(KEYS).reset_index(drop=True)
    place = lines[KEYS].assign(curve=range(len(lines)))
    points = points.merge(place, on=KEYS).sort_values(["curve", "batch_size"])
    machines = [{"name": name, "title": title} for name, (title, _) in MACHINES.items()]
    usual = {"pruning": "connection-sensitivity", "y": "steps", "hardware": machines[0]["name"]}
    data = {
        **_choices(lines),
        "hardware": machines,
        "start": {**usual, **start},
        "curves": _table(lines, LINES),
        "points": _table(points, ["curve", *(name for name in POINTS if name not in KEYS)]),
        "times": _table(times, TIMES),
        "updates": _table(updates, UPDATES),
    }
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text = text.replace("<", "\\u003c")
    size = len(text.encode())
    require(size <= MOST, "data", f"{size:,} bytes", f"at most {MOST:,}")
    return text


def _choices(lines: pd.DataFrame) -> dict[str, list[dict]]:
    """The possible choices, with titles and colours."""
    methods = _ordered(lines.algorithm, charts.ALGORITHM_COLOURS)
    prunings = _ordered(lines.pruning, charts.PRUNING_COLOURS)
    levels = sorted(set(lines.sparsity))
    of_methods, of_levels = charts.ALGORITHM_COLOURS, charts.SPARSITY_COLOURS
    return {
        "workloads": _workloads(lines.workload.value_counts()),
        "methods": [
            {"name": name, "title": named(name), "colour": of_methods.get(name, charts.GUIDE)}
            for name in methods
        ],
        "prunings": [{"name": name, "title": named(name)} for name in prunings],
        "sparsities": [
            {"level": level, "colour": of_levels.get(level, charts.GUIDE)} for level in levels
        ],
    }


def _workloads(curves: pd.Series) -> list[dict]:
    """Every workload with its data set and default goal, sorted by data set (digits first), then by
    number of curves (most first), then by title; curves: number of curves by workload.
    """
    places, rows = [*DATA.values(), "Others"], []
    for name, count in curves.items():
        work = workload(name)
        data = DATA.get(work.dataset, "Others")
        about = {"name": name, "title": work.title, "data": data, "goal": scaling.goal(name)}
        rows.append((places.index(data), -count, work.title, about))
    return [about for *_, about in sorted(rows, key=lambda row: row[:3])]


def _ordered(names: pd.Series, order: Mapping) -> list[str]:
    """The distinct names in this order, any others last."""
    return [*(n for n in order if n in set(names)), *sorted({*names} - {*order})]


def _table(frame: pd.DataFrame, columns: list[str]) -> dict:
    rows = frame[columns].astype(object).to_numpy().tolist()
    return {"columns": columns, "rows": [[_short(value) for value in row] for row in rows]}


def _short(value: object) -> object:
    """Numbers to DIGITS digits; None for NaN, "inf" for infinity."""
    if isinstance(value, str | bool) or value is None:
        return value
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf"
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) else short


# --- what stands without scripts ------------------------------------------------------------------


def still(points: pd.DataFrame, lines: pd.DataFrame) -> alt.LayerChart:
    """A static chart of the curves of one workload, method and goal: points, bars, lines, critical
    batch sizes.
    """
    least = max(points.low.min(), points.steps.min() / FAR)
    most = min(points.high.max(), points.steps.max() * FAR)
    scale = charts.log(10, clamp=True, domain=[least, most])
    base = alt.Chart(points).encode(
        x=charts.batch_axis(points.batch_size),
        y=alt.Y("steps:Q", title="steps to result (training steps)", scale=scale),
        color=charts.by_sparsity(list(points.sparsity.unique())),
    )
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    layers = [bars, *_fitted(base, points, lines)]
    for missed, filled in ((points.missed == 0, True), (points.missed > 0, False)):
        if missed.any():
            dots = base.mark_point(filled=filled, size=60, opacity=1)
            layers.append(dots.properties(data=points[missed]))
    return alt.layer(*layers).properties(width=vega.STATIC_WIDTH, height=340)


def _fitted(base: alt.Chart, points: pd.DataFrame, lines: pd.DataFrame) -> list[alt.Chart]:
    """The lines, and the critical batch sizes that lie within the measured sizes, with their
    intervals.
    """
    fitted = lines[lines.c1.notna()]
    if fitted.empty:
        return []
    ends = points.batch_size.min(), points.batch_size.max()
    drawn = fitted.merge(pd.DataFrame({"batch_size": np.geomspace(*ends, 61)}), "cross")
    inside = fitted[fitted.identified.astype(bool)]
    inside = inside.assign(
        batch_size=inside.critical,
        first=inside.critical_low.clip(*ends),
        last=inside.critical_high.clip(*ends),
    )
    drawn, inside = (t.assign(steps=t.c1 / t.batch_size + t.c2) for t in (drawn, inside))
    critical = base.properties(data=inside)
    return [
        base.properties(data=drawn).mark_line(strokeWidth=2, clip=True),
        critical.mark_rule(strokeWidth=2).encode(x="first:Q", x2="last:Q"),
        critical.mark_point(shape="diamond", size=190, fill="white", strokeWidth=2, opacity=1),
    ]


def table(points: pd.DataFrame, lines: pd.DataFrame) -> pd.DataFrame:
    """Points as the page's table shows them, in steps."""
    rows = points.merge(lines[[*KEYS, "range", "c1", "c2"]], on=KEYS)
    rows = rows.sort_values(["sparsity", "batch_size"])
    rows["line"] = rows.c1 / rows.batch_size + rows.c2
    rows["algorithm"] = rows.algorithm.map(named)
    pruned = rows.sparsity > 0
    rows["pruning"] = rows.pruning.map(named).where(pruned, "dense")
    rows[ESTIMATES] = rows[ESTIMATES].map(lambda value: float(f"{value:.4g}"))
    shown = ["algorithm", "pruning", "range", "sparsity", "batch_size", *ESTIMATES]
    shown += ["searches", "missed"]
    return rows[shown].rename(columns=HEADS)


def view(
    data: str, chart: alt.TopLevelMixin, shown: pd.DataFrame, title: str, description: str
) -> Html:
    """The view: the data of `packed`, and what is shown without scripts, a chart under its title
    with a table of its points.
    """
    picture = vega.address(vega.picture(vega.tidy(chart.to_dict())))
    parts = {"data": Html(data), "picture": Html(picture), "table": boxes.table(shown)}
    words = {"title": title, "description": description, "caption": CAPTION}
    return boxes.html(VIEW, **words, **parts)


def columns() -> pd.DataFrame:
    """What the columns of the table and of the file mean."""
    return pd.DataFrame({"column": list(COLUMNS), "what it holds": list(COLUMNS.values())})
