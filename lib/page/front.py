"""The front page's figures: one search, one run, every curve, four papers, and where to go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import altair as alt
import pandas as pd
import yaml

from lib import ROOT
from lib.page import boxes, charts, tips
from lib.page.prose import Html
from lib.wording import between, brief, joined, named, number, percent
from lib.workloads.catalogue import workload

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
    return charts.sized(chart, 210)


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


# --- what a step to result is ---------------------------------------------------------------------

SEARCH = """<style>
.bd-article h1 { font-size: 2.1rem; margin-top: .5rem; }
.book-search { float: right; width: min(19rem, 100%); margin: 0 0 .3rem 1.2rem; }
.book-search svg { width: 100%; height: auto; display: block; font-size: 11px; fill: currentColor; }
.book-search figcaption { font-size: .8rem; text-align: left; }
.book-search ~ .book-figure, .book-figure { clear: both; }
@media (max-width: 700px) { .book-search { float: none; margin: 0; } }
</style><figure class="book-search" id="fig-one-search">
<svg viewBox="0 0 330 165" role="img" aria-label="{{ description }}">
<path d="M38,6 V138 H324" fill="none" stroke="{{ guide }}"/>
<line x1="38" x2="324" y1="{{ goal_at }}" y2="{{ goal_at }}" stroke="{{ guide }}" \
stroke-dasharray="4 4"/>
{% for points, colour, width in lines %}
<polyline points="{{ points }}" fill="none" stroke="{{ colour }}" stroke-width="{{ width }}"/>
{% endfor %}
<line x1="{{ end }}" x2="{{ end }}" y1="{{ goal_at }}" y2="138" stroke="{{ best }}" \
stroke-dasharray="2 3"/>
<circle cx="{{ end }}" cy="{{ goal_at }}" r="4" fill="{{ best }}"/>
{% for y, words in errors %}\
<text x="34" y="{{ y + 4 }}" text-anchor="end">{{ words }}</text>{% endfor %}
{% for x, words in steps %}\
<text x="{{ x }}" y="151" text-anchor="middle">{{ words }}</text>{% endfor %}
<text x="324" y="163" text-anchor="end">steps</text>
<text x="44" y="14">validation error</text>
<text x="{{ end - 6 }}" y="{{ goal_at + 16 }}" text-anchor="end" \
font-weight="700">{{ result }}</text>
</svg><figcaption>{{ caption }}</figcaption></figure>"""
LEFT, RIGHT, TOP, FLOOR = 44, 318, 22, 114  # of the picture's lines


def one_search(met: pd.DataFrame, caption: str) -> Html:
    """A small picture of one search: each training's error falls to the goal, and the first to
    reach it gives the steps to result.

    Args:
        met: a row per trial and goal met, as of `lib.claims.front.one_search`; not empty.
        caption: the sentence below, plain text.
    """
    goal, last = met.goal.min(), met.step.max()
    best = met[met.goal == goal].step.min()
    across, up = _place(met.step.min(), last, LEFT, RIGHT), _place(met.goal.max(), goal, TOP, FLOOR)
    winner = met.trial[(met.goal == goal) & (met.step == best)].iloc[0]
    lines = []
    for trial, own in sorted(met.groupby("trial"), key=lambda item: item[0] == winner):
        own = own.sort_values("goal", ascending=False)
        points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in zip(own.step, own.goal))
        won = trial == winner
        lines.append((points, charts.ORANGE if won else charts.BLUE, 2.6 if won else 0.8))
    ticks = [step for step in (100, 200, 500, 1000, 2000, 5000) if met.step.min() <= step <= last]
    return boxes.html(
        SEARCH,
        lines=lines,
        caption=caption,
        guide=charts.GUIDE,
        best=charts.ORANGE,
        goal_at=up(goal),
        end=across(best),
        errors=[(up(error), percent(error)) for error in sorted({*met.goal})],
        steps=[(across(step), number(step)) for step in ticks],
        result=f"steps to result: {number(round(best))}",
        description=f"Validation error against steps of {met.trial.nunique()} trainings of one "
        f"search; the first reaches {percent(goal)} after {number(round(best))} steps.",
    )


def _place(first: float, last: float, begin: float, end: float) -> Callable[[float], float]:
    """Where a value lies between begin and end, on a logarithmic scale from first to last."""
    whole = math.log(last / first) or 1
    return lambda value: begin + (end - begin) * math.log(value / first) / whole


# --- every curve ----------------------------------------------------------------------------------

PANELS = """<style>
.book-panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr));
  gap: .6rem .8rem; font-size: .75rem; line-height: 1.25; }
.book-panels svg { width: 100%; height: auto; display: block; font-size: 10px; fill: currentColor; }
.book-panels a { color: inherit; text-decoration: none; }
.book-panels a:is(:hover, :focus) b { text-decoration: underline; }
</style><div class="book-panels">
{% for title, method, lines, critical in panels %}
<a href="{{ link }}"><b>{{ title }}</b><br>{{ method }}
<svg viewBox="0 0 160 118" role="img" \
aria-label="{{ title }}, {{ method }}: steps to result against batch size">
<path d="M32,4 V98 H158" fill="none" stroke="{{ guide }}"/>
{% for x, words in across %}<line x1="{{ x }}" x2="{{ x }}" y1="98" y2="101" stroke="{{ guide }}"/>
<text x="{{ x }}" y="111" text-anchor="middle">{{ words }}</text>{% endfor %}
{% for y, words in up %}<line x1="29" x2="32" y1="{{ y }}" y2="{{ y }}" stroke="{{ guide }}"/>
<text x="28" y="{{ y + 3 }}" text-anchor="end">{{ words }}</text>{% endfor %}
{% if critical %}\
<line x1="{{ critical[0] }}" x2="{{ critical[0] }}" y1="12" y2="98" stroke="{{ guide }}" \
stroke-dasharray="3 3"/>\
<text x="{{ critical[0] }}" y="10" text-anchor="middle">{{ critical[1] }}</text>{% endif %}
{% for colour, points in lines %}
<polyline points="{{ points }}" fill="none" stroke="{{ colour }}" stroke-width="1.7"/>
{% endfor %}</svg></a>{% endfor %}</div>"""
ENOUGH = 5  # batch sizes of a panel
SMALLEST, LARGEST, HIGHEST = 1, 16_384, 3_000  # ends of all panels' axes


def panels(points: pd.DataFrame, critical: pd.DataFrame, link: str) -> Html:
    """Steps against batch size, a small panel for each kind of network and method: of its workload
    with most points, if that has `ENOUGH` batch sizes.

    Both axes are logarithmic and the same in all panels; a panel's lowest point counts as 1.

    Args:
        points: of `lib.claims.front.curves`.
        critical: of `lib.claims.front.critical`: a dashed line stands where the dense curve's is
            identified.
        link: where a panel leads.
    """
    found = critical[critical.identified & (critical.sparsity == 0)]
    marked = found.set_index(["workload", "algorithm"]).critical
    across, up = _place(SMALLEST, LARGEST, 36, 156), _place(1, HIGHEST, 95, 14)
    drawn = []
    for (_, method), every in points.groupby(["network", "algorithm"], sort=False):
        name = every.workload.value_counts().index[0]
        own = every[every.workload == name]
        title = workload(name).title.removesuffix(", easier goal")
        if own.batch_size.nunique() < ENOUGH:
            continue
        at = marked.get((name, method))
        label = (across(at), brief(at)) if at else None
        drawn.append((title, named(method), _polylines(own, across, up), label))
    return boxes.html(
        PANELS,
        panels=drawn,
        link=link,
        guide=charts.GUIDE,
        across=[(across(size), number(size)) for size in (1, 32, 1024)],
        up=[(up(times), number(times)) for times in (1, 10, 100, 1000)],
    )


def _polylines(
    points: pd.DataFrame, across: Callable[[float], float], up: Callable[[float], float]
) -> list[tuple[str, str]]:
    """A panel's curves, as (colour, points)."""
    found, lowest = [], points.steps.min()
    for level, curve in points.groupby("sparsity"):
        curve = curve.sort_values("batch_size")
        colour = charts.SPARSITY_COLOURS.get(level, charts.GUIDE)
        places = zip(map(across, curve.batch_size), map(up, curve.steps / lowest))
        found.append((colour, " ".join(f"{x:.1f},{y:.1f}" for x, y in places)))
    return found


# --- papers ---------------------------------------------------------------------------------------

PAPERS = """<style>
.book-by-paper td, .book-by-paper th { vertical-align: top; text-align: left; }
.book-by-paper tr.book-also td { border-top: 0; font-size: .9em; }
@media (max-width: 576px) { .book-by-paper thead { display: none; }
  .book-by-paper :is(tbody, tr, th, td) { display: block; border: 0; padding: .1rem 0; }
  .book-by-paper th { padding-top: .8rem; } }
</style><table class="book-table book-names book-by-paper"><thead><tr>
<th>paper</th><th>claim</th><th>found here</th><th>on the paper’s own networks</th></tr></thead>
<tbody>
{% for name, first, found, others in papers %}<tr><th>{{ name }}</th>
<td>{{ first.title }}.</td><td>{{ verdict(first) }}</td><td>{{ found }}</td></tr>
{% if others %}<tr class="book-also"><td></td><td colspan="3">Also: {% for claim in others -%}
{{ claim.title }} ({{ verdict(claim) }}){{ "." if loop.last else "; " }}
{%- endfor %}</td></tr>{% endif %}{% endfor %}</tbody></table>"""
VERDICT = '<a href="chapters/claims.html#claim-{{ claim.key }}">{{ claim.verdict }}</a>'
SCALES = {"ratio": " times", "points": " points", "share": " (share)"}
COLAB = "binder/colab.ipynb"
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
    """Two rows per paper: its first claim, how that came out, on which of the paper's own networks
    and with how sure a number; then its other claims with their verdicts.

    Args:
        rows: the paper's name (HTML, such as a link) -> its judged claims, the main one first.
    """
    listed = [(Html(name), list(judged)) for name, judged in rows.items()]
    told = [(name, all_[0], _on_own(all_[0]), all_[1:]) for name, all_ in listed if all_]
    return boxes.html(PAPERS, papers=told, verdict=lambda claim: boxes.html(VERDICT, claim=claim))


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


def colab() -> str | None:
    """Where Colab opens the notebook that clones the book and reruns a chapter; None while
    _config.yml names no repository on GitHub.
    """
    about = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    _, _, name = about["url"].rstrip("/").partition("github.com/")
    if not name:
        return None
    return f"https://colab.research.google.com/github/{name}/blob/{about['branch']}/{COLAB}"
