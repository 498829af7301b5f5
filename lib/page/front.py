"""The front page's figures: one run, every curve, four papers, and where to go from here."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import numpy as np
import pandas as pd

from lib.page import boxes, charts, tips
from lib.page.prose import Html
from lib.wording import between, brief, joined, named, number

KINDS = {"steps": charts.BLUE, "time": charts.ORANGE, "price": charts.TEAL}


def one_run(run: pd.DataFrame, start: int) -> alt.LayerChart:
    """Steps, time and price of one training against its batch size, each over that of the smallest
    batch; a slider picks a batch and says what it takes.

    Args:
        run: a row per batch size, as of `lib.claims.front.one_run`.
        start: the batch size picked at first.
    """
    sizes = run.batch_size.tolist()
    chosen, value, spelt = charts.dial(
        "batch_at",
        sizes,
        start,
        "batch size",
        "format(value, ',')",
    )
    lines = _three_lines(run)
    # Room for the words above all lines
    scale = charts.log(base=None, domain=[0.7 * lines.over.min(), 8 * lines.over.max()])
    y = alt.Y("over:Q", title="times that of the smallest batch", scale=scale)
    base = alt.Chart(lines).encode(
        x=charts.batch_axis(run.batch_size),
        y=y.axis(values=charts.DECADES, format="~g"),
        color=alt.Color("what:N", legend=None, scale=charts.among(KINDS, KINDS)),
    )
    drawn = charts.dotted(base, 45, tooltip=[tips.BATCH_SIZE, tips.tip("words:N", "takes")])
    picked = base.transform_filter(f"datum.batch_size == {value}")
    column = picked.mark_rule(color=charts.GUIDE, strokeDash=[4, 4]).encode(
        y=alt.value(0), y2=alt.value("height"), color=alt.value(charts.GUIDE)
    )
    dots = picked.mark_point(
        size=190,
        filled=True,
        opacity=1,
    )
    words = [_words(picked, kind, row) for row, kind in enumerate(KINDS)]
    chart = alt.layer(column, drawn, dots, *words).add_params(chosen, charts.spoken(spelt))
    return charts.sized(chart, 300)


def _words(picked: alt.Chart, kind: str, row: int) -> alt.Chart:
    """What the batch picked takes, above the lines, where nothing is drawn at small batches."""
    own = picked.transform_filter(alt.datum.what == kind)
    text = own.mark_text(align="left", baseline="top", fontWeight="bold", fontSize=13)
    return text.encode(x=alt.value(12), y=alt.value(8 + 19 * row), text="words:N")


def _three_lines(run: pd.DataFrame) -> pd.DataFrame:
    """A row per kind of `KINDS` and batch size: what (the kind), over (the value over the smallest
    batch's), words and batch_size.
    """
    steps = [f"Steps: {number(round(row.steps))}" for row in run.itertuples()]
    time = [f"Time: {brief(row.seconds)} s on {_cores(row.fast)}" for row in run.itertuples()]
    price = [
        f"Price: {brief(row.price)} core-seconds on {_cores(row.cheap)}" for row in run.itertuples()
    ]
    sizes, columns = run.batch_size, ["steps", "seconds", "price"]
    parts = [
        pd.DataFrame(
            {"what": kind, "over": run[c] / run[c].iloc[0], "words": words, "batch_size": sizes}
        )
        for kind, c, words in zip(KINDS, columns, (steps, time, price))
    ]
    return pd.concat(parts, ignore_index=True)


def _cores(count: int) -> str:
    return f"{count} core{'s' * (count > 1)}"


# --- every curve ----------------------------------------------------------------------------------

PANELS = """<style>
.book-panels { display: grid;
  grid-template-columns: 4.9rem repeat(var(--methods), minmax(0, 1fr)); gap: .25rem .3rem;
  font-size: .72rem; line-height: 1.2; align-items: center; }
.book-panels > b { font-size: .62rem; overflow: hidden; letter-spacing: -.01em; }
.book-panels svg { width: 100%; height: auto; display: block; }
.book-panels svg * { vector-effect: non-scaling-stroke; } .book-panels a { color: inherit; }
</style><div class="book-panels" style="--methods:{{ methods|length }}"><span></span>
{% for method in methods %}<b>{{ method[0]|upper }}{{ method[1:] }}</b>{% endfor %}
{% for name, kind, panels in rows %}
<span><b>{{ name }}</b><br>{{ kind }}</span>
{% for title, lines in panels %}
{% if lines %}<a href="{{ link }}"><svg viewBox="0 0 100 90" role="img" aria-label="{{ title }}"><title>{{ title }}</title>
<path d="M1,0 V89 H100" fill="none" stroke="{{ guide }}" stroke-width="1"/>
{% for colour, points in lines %}
<polyline points="{{ points }}" fill="none" stroke="{{ colour }}" stroke-width="1.6"/>
{% endfor %}</svg></a>{% else %}<span></span>{% endif %}
{% endfor %}{% endfor %}</div>"""


def panels(points: pd.DataFrame, link: str) -> Html:
    """Steps against batch size of every curve, a small panel for each kind of network (rows) and
    method (columns).

    All panels have the same scales, both logarithmic; a panel's lowest point lies at its bottom.

    Args:
        points: of `lib.claims.front.curves`.
        link: where a panel leads.
    """
    lowest = points.groupby(["network", "algorithm"]).steps.transform("min")
    across, up = np.log2(points.batch_size), np.log2(points.steps / lowest)
    points = points.assign(across=across / (across.max() or 1), up=up / (up.max() or 1))
    known = set(points.algorithm)
    methods = [name for name in ("sgd", "momentum", "nesterov", "adam") if name in known]
    methods += sorted(known - {*methods})
    rows = []
    for network, own in points.groupby("network", sort=False):
        drawn = [
            (f"{network}, {named(method)}", _polylines(own[own.algorithm == method]))
            for method in methods
        ]
        name, _, kind = network.partition(", ")
        rows.append((name, kind, drawn))
    names = list(map(named, methods))
    return boxes.html(
        PANELS,
        methods=names,
        rows=rows,
        link=link,
        guide=charts.GUIDE,
    )


def _polylines(points: pd.DataFrame) -> list[tuple[str, str]]:
    """A panel's curves, as (colour, points in a picture of 100 by 90)."""
    found = []
    for (_, level), curve in points.groupby(["workload", "sparsity"]):
        curve = curve.sort_values("batch_size")
        places = zip(4 + 92 * curve.across, 85 - 81 * curve.up)
        colour = charts.SPARSITY_COLOURS.get(level, charts.GUIDE)
        found.append((colour, " ".join(f"{x:.1f},{y:.1f}" for x, y in places)))
    return found


# --- papers ---------------------------------------------------------------------------------------

PAPERS = """\
<table class="book-table book-names book-by-paper"><thead><tr>
<th>paper</th><th>what it says</th><th>found</th><th>on its own networks</th></tr></thead><tbody>
{% for name, judged in papers %}{% for claim, found in judged %}<tr>
{% if loop.first %}<th rowspan="{{ judged|length }}">{{ name }}</th>{% endif %}
<td>{{ claim.title }}</td><td><a href="chapters/claims.html#claim-{{ claim.key }}">
{{- claim.verdict }}</a></td><td>{{ found }}</td></tr>
{% endfor %}{% endfor %}</tbody></table>"""
SCALES = {"ratio": " times", "points": " points", "share": " (share)"}
DOORS = """<style>
.book-doors { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr));
  gap: .8rem; margin: 1rem 0; }
.book-doors a { border: 1px solid var(--pst-color-border, #ccc); border-radius: 6px;
  padding: .6rem .8rem; color: inherit;
  text-decoration: none; } .book-doors b, .book-doors span { display: block; }
.book-doors span { font-size: .85rem; }
</style><div class="book-doors">
{% for name, (address, words) in ways.items() %}
<a href="{{ address }}"><b>{{ name }}</b><span>{{ words }}</span></a>
{% endfor %}</div>"""


def papers(rows: dict[str, Iterable]) -> Html:
    """A row per claim, by paper: what it says, how that came out, and on which of the paper's own
    networks with how sure a number.

    Args:
        rows: the paper's name (HTML, such as a link) -> its judged claims.
    """
    told = [(Html(name), [(c, _on_own(c)) for c in judged]) for name, judged in rows.items()]
    return boxes.html(PAPERS, papers=told)


def _on_own(c) -> str:
    """The effects on a claim's own networks that are decided, or else what is lacking there."""
    own = [g for g in c.groups if g.own and g.n]
    decided = [g for g in own if g.verdict != "not decided"]
    shown = [g for g in decided if g.robust] or decided or own
    if not shown:
        return "none measured"
    names = joined(list(dict.fromkeys(g.name.split(", ")[0] for g in shown)))
    effects = between(*(g.effect for g in shown)) + SCALES[c.scale]
    counts = dict.fromkeys([min(g.n for g in shown), max(g.n for g in shown)])
    searches = " to ".join(map(str, counts))
    state = "robust" if all(g.robust for g in shown) else "fragile"
    state = state if decided else "not decided"
    left = len(own) - len(shown)
    rest = f"; {left} of {len(own)} own curves not decided or fragile" if left else ""
    return f"{names}: {effects}; n = {searches}; {state}{rest}"


def doors(ways: dict[str, tuple[str, str]]) -> Html:
    """Where to go from here.

    Args:
        ways: name -> (address, words).
    """
    return boxes.html(DOORS, ways=ways)
