"""A view of all curves that its reader chooses: its data, what scripts make of it
(`static/explore.js`), what stands without.
"""

from __future__ import annotations

import base64
import html
import json
import math

import altair as alt
import pandas as pd
import vl_convert as vlc

from lib import require
from lib.page import boxes, charts, vega
from lib.page.prose import Html
from lib.wording import named
from lib.workloads.catalogue import workload

MOST = 1_000_000  # bytes of data in a page
KEYS = ["workload", "algorithm", "pruning", "sparsity", "goal"]
DIGITS = 5  # significant ones that the data keep
FAR = 4  # how many times beyond the outermost points an axis goes, whatever the bars do
DATA = {
    "digits": "Digits",
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
}
HEADS = {
    "algorithm": "training method",
    "pruning": "pruning",
    "sparsity": "sparsity",
    "batch_size": "batch size",
    "steps": "steps",
    "low": "5 %",
    "high": "95 %",
    "line": "line",
    "searches": "searches",
    "missed": "missed",
}
UPDATES = ["workload", "algorithm", "batch_size", "seconds"]
# Columns of the table with so many significant digits
ROUNDED, SHOWN = (
    ["steps", "low", "high", "line"],
    4,
)
COLUMNS = {
    "workload": "data set and network; only in the file, as is the goal",
    "training method": "how weights follow from gradients",
    "pruning": "how the weights to remove were chosen, before training",
    "sparsity": "share of weights removed",
    "batch size": "examples in a training step",
    "steps": "geometric mean over searches of the fewest training steps to the goal; the name changes with the vertical axis",
    "5 %, 95 %": "ends of its 90 % confidence interval",
    "line": "what c₁/B + c₂ gives there",
    "searches": "independent searches behind the point; with one or two, the interval is borrowed from other networks",
    "missed": "searches that missed the goal; they count as their last step, so that the point is a lower bound",
    "critical batch size": "where 1 % more examples a batch save half a per cent of the steps",
}
CAPTION = (
    "Points: means over searches; hollow if a search missed the goal. Bars: 90 % confidence intervals. "
    "Lines: c₁/B + c₂. Diamonds: critical batch sizes."
)


def packed(
    points: pd.DataFrame,
    lines: pd.DataFrame,
    times: pd.DataFrame,
    machines: dict[str, str],
    start: dict,
    goals: dict[str, float] | None = None,
    updates: pd.DataFrame | None = None,
) -> str:
    """All that is drawn, as JSON: what can be chosen, with titles and colours, and the tables.

    points, lines, times, updates: of `explorer`.  machines: hardware -> title.  start: what is
    chosen to begin with: workload, method and sparsity (lists), goal.  goals: workload -> the goal
    at which it is first shown, where that is not its hardest.  Raises ValueError if it is more than
    MOST bytes.
    """
    lines = lines.sort_values(KEYS).reset_index(drop=True)
    place = lines[KEYS].assign(curve=range(len(lines)))
    points = points.merge(place, on=KEYS).sort_values(["curve", "batch_size"])
    ends = ["critical", "critical_low", "critical_high"]
    data = {
        "workloads": [_workload(name, goals or {}) for name in _in_order(lines.workload)],
        "methods": [
            {"name": a, "title": named(a), "colour": charts.ALGORITHM_COLOURS.get(a, charts.GUIDE)}
            for a in _by(charts.ALGORITHM_COLOURS, lines.algorithm)
        ],
        "prunings": [
            {"name": p, "title": named(p)} for p in _by(charts.METHOD_COLOURS, lines.pruning)
        ],
        "sparsities": [
            {"level": s, "colour": charts.SPARSITY_COLOURS.get(s, charts.GUIDE)}
            for s in sorted(set(lines.sparsity))
        ],
        "hardware": [{"name": name, "title": title} for name, title in machines.items()],
        "start": {
            "pruning": "connection-sensitivity",
            "y": "steps",
            "hardware": next(iter(machines), ""),
            **start,
        },
        "curves": _table(lines, [*KEYS, "c1", "c2", *ends, "identified"]),
        "points": _table(
            points,
            [
                "curve",
                "batch_size",
                "steps",
                "low",
                "high",
                "searches",
                "missed",
                "over",
                "over_low",
                "over_high",
            ],
        ),
        "times": _table(times, ["workload", "hardware", "batch_size", "seconds"]),
        "updates": _table(pd.DataFrame(columns=UPDATES) if updates is None else updates, UPDATES),
    }
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace(
        "<", "\\u003c"
    )
    require(
        len(text.encode()) <= MOST, "data", f"{len(text.encode()):,} bytes", f"at most {MOST:,}"
    )
    return text


def _workload(name: str, goals: dict[str, float]) -> dict:
    about = workload(name)
    shown = goals.get(name, about.goal)
    return {
        "name": name,
        "title": about.title,
        "data": DATA.get(about.dataset, "Others"),
        "goal": shown,
    }


def _in_order(names: pd.Series) -> list[str]:
    """Workloads by data set, the digits' first; of these those with most curves first, then by
    title.
    """
    places, counts = list(DATA), names.value_counts()
    about = {name: workload(name) for name in counts.index}
    known = {
        name: places.index(w.dataset) if w.dataset in places else len(places)
        for name, w in about.items()
    }
    return sorted(about, key=lambda name: (known[name], -counts[name], about[name].title))


def _by(order, names: pd.Series) -> list[str]:
    """The names that there are, in this order, others last."""
    there = set(names)
    return [*(n for n in order if n in there), *sorted(there - set(order))]


def _table(frame: pd.DataFrame, columns: list[str]) -> dict:
    rows = frame[columns].astype(object).to_numpy().tolist()
    return {"columns": columns, "rows": [[_short(value) for value in row] for row in rows]}


def _short(value: object) -> object:
    """Numbers to DIGITS digits; None where there is none, "inf" where it is without bound."""
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
    """Curves of one workload, method and goal as a picture: points, bars, lines, critical batch
    sizes.
    """
    colour = charts.by_sparsity(list(points.sparsity.unique()))
    ends = [
        max(points.low.min(), points.steps.min() / FAR),
        min(points.high.max(), points.steps.max() * FAR),
    ]
    scale = alt.Scale(type="log", base=2, nice=False, padding=10, clamp=True, domain=ends)
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    base = alt.Chart(points).encode(x=charts.batch_axis(points.batch_size), color=colour)
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    layers = [bars, *_fitted(points, lines, colour, scale)]
    for missed, filled in ((points.missed == 0, True), (points.missed > 0, False)):
        if missed.any():
            layers.append(
                base.mark_point(filled=filled, size=60, opacity=1)
                .encode(y=y)
                .properties(data=points[missed])
            )
    return alt.layer(*layers).properties(width=vega.STATIC_WIDTH, height=340)


def _fitted(
    points: pd.DataFrame, lines: pd.DataFrame, colour: alt.Color, scale: alt.Scale
) -> list[alt.Chart]:
    """The lines, and the critical batch sizes that lie within the sizes measured, with their
    intervals.
    """
    known = lines[lines.c1.notna()]
    if known.empty:
        return []
    least, most = points.batch_size.min(), points.batch_size.max()
    sizes = [least * (most / least) ** (i / 60) for i in range(61)]
    drawn = known.merge(pd.DataFrame({"batch_size": sizes}), "cross").assign(
        steps=lambda t: t.c1 / t.batch_size + t.c2
    )
    at = known[known.identified.astype(bool)].assign(
        batch_size=lambda t: t.critical, steps=lambda t: t.c1 / t.critical + t.c2
    )
    at = at.assign(first=at.critical_low.clip(least, most), last=at.critical_high.clip(least, most))
    x, y = charts.batch_axis(points.batch_size), alt.Y("steps:Q", scale=scale)
    return [
        alt.Chart(drawn).mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=colour),
        alt.Chart(at)
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("first:Q"), x2="last:Q", y=y, color=colour),
        alt.Chart(at)
        .mark_point(shape="diamond", size=190, fill="white", strokeWidth=2, opacity=1)
        .encode(x=x, y=y, color=colour),
    ]


def table(points: pd.DataFrame, lines: pd.DataFrame) -> pd.DataFrame:
    """Points as the page's table has them, in steps."""
    rows = points.merge(lines[[*KEYS, "c1", "c2"]], on=KEYS).sort_values(["sparsity", "batch_size"])
    rows["line"] = rows.c1 / rows.batch_size + rows.c2
    rows["algorithm"], rows["pruning"] = (
        rows.algorithm.map(named),
        rows.pruning.map(named).where(rows.sparsity > 0, "none"),
    )
    rows[ROUNDED] = rows[ROUNDED].map(lambda value: float(f"{value:.{SHOWN}g}"))
    return rows[list(HEADS)].rename(columns=HEADS)


def view(
    data: str, chart: alt.TopLevelMixin, shown: pd.DataFrame, title: str, description: str
) -> Html:
    """The data of `packed`, and what stands without scripts: a picture under its title, over the
    table of what it draws.

    Raises ValueError for an empty description.
    """
    require(
        bool(description.strip()),
        "description",
        description,
        "a sentence that says what the chart shows",
    )
    picture = base64.b64encode(
        vlc.vegalite_to_svg(chart.to_dict(), vl_version=vega.VEGALITE).encode()
    ).decode()
    return Html(
        f'<div class="book-explore"><script type="application/json" class="ex-data">{data}</script>'
        f'<figure class="book-figure" id="fig-explore"><p class="book-title">{html.escape(title)}</p>'
        f'<img class="ex-still" alt="{html.escape(description)}" src="data:image/svg+xml;base64,{picture}">'
        f"<figcaption>{CAPTION}</figcaption></figure>"
        f'<div class="ex-tables"><div class="ex-scroll">{boxes.table(shown).to_html()}</div></div></div>'
    )


def columns() -> pd.DataFrame:
    """What the columns of the table, and of the file, hold."""
    return pd.DataFrame({"column": list(COLUMNS), "what it holds": list(COLUMNS.values())})
