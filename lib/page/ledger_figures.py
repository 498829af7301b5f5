"""The front page's figures, and the ledger's and the status page's: verdicts at a glance, one figure of all claims, progress.

A claim is a `lib.claims.Claim`; short: its words by key (`lib.claims.short`).
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable

import altair as alt
import numpy as np
import pandas as pd

from lib.page import boxes, charts, shared_figures
from lib.page.prose import Html
from lib.wording import brief, named, number, signed

# --- verdicts ---------------------------------------------------------------------------------------------------------

PAPERS = {  # by a key's first letter
    "L": "Lee et al.", "M": "McCandlish et al.", "S": "Shallue et al.", "T": "Shi et al.", "O": "papers on training methods",
    "B": "papers on training without backpropagation", "I": "papers on parts of a network", "P": "Guille-Escuret et al.",
    "A": "Dai et al.", "G": "papers on language models",
}  # fmt: skip
WORDS = {"holds": "holds", "holds in part": "in part", "does not hold": "does not hold", "undecided": "undecided"}
SIGNS = {"holds": "✓", "holds in part": "◐", "does not hold": "✗", "undecided": "?"}
COLOURS = {"holds": charts.TEAL, "holds in part": charts.ORANGE, "does not hold": charts.RED, "undecided": charts.GUIDE}

STYLE = """<style>
.book-verdicts { display: flex; flex-wrap: wrap; gap: .3rem; margin: 1rem 0; }
.book-tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(9.2rem, 44%), 1fr)); gap: .35rem;
  margin: .6rem 0 1.2rem; }
.book-verdicts a, .book-tiles a { border: 1px solid var(--pst-color-border, #ccc); border-left-width: 4px; border-radius: 4px;
  padding: .1rem .45rem; color: inherit; text-decoration: none; font-size: .82rem; line-height: 1.35; }
.book-tiles a { padding: .25rem .45rem; } .book-tiles b, .book-tiles span { display: block; }
.book-tiles span { font-size: .74rem; line-height: 1.3; } .book-tiles span + span { color: var(--pst-color-text-muted, #666); }
:is(.book-verdicts, .book-tiles) .book-yes { border-left-color: var(--book-yes, #17786c); }
:is(.book-verdicts, .book-tiles) .book-part { border-left-color: var(--book-part, #965f00); }
:is(.book-verdicts, .book-tiles) .book-no { border-left-color: var(--book-no, #bf3549); }
.book-papers { border: 0; padding: 0; margin: 1rem 0 0; font-size: .9rem; } .book-papers label { margin-right: .9rem; }
.book-papers legend { float: left; font-size: inherit; width: auto; margin: 0 .9rem 0 0; }
.book-on-paper { display: none; }
@media print { .book-papers, #fig-claims > :not(.book-title) { display: none !important; }
  .book-on-paper { display: block; } }
.book-claim { border-bottom: 1px solid var(--pst-color-border, #ccc); padding: .1rem 0; }
.book-claim > summary { cursor: pointer; font-size: .9rem; }
.book-doors { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .8rem; margin: 1rem 0; }
.book-doors a { border: 1px solid var(--pst-color-border, #ccc); border-radius: 6px; padding: .6rem .8rem; color: inherit;
  text-decoration: none; } .book-doors b, .book-doors span { display: block; } .book-doors span { font-size: .85rem; }
.book-pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0 1.4rem; }
.book-pair > * { min-width: 0; } .book-pair .book-figure { margin: .6rem 0 !important; }
.book-pair .book-title { min-height: 2.6em; } .book-pair figcaption { text-align: left; font-size: .9em; }
.book-panels { display: grid; grid-template-columns: 4.9rem repeat(var(--methods), minmax(0, 1fr)); gap: .25rem .3rem;
  font-size: .72rem; line-height: 1.2; align-items: center; }
.book-panels > b { font-size: .62rem; overflow: hidden; letter-spacing: -.01em; }
.book-panels svg { width: 100%; height: auto; display: block; }
.book-panels svg * { vector-effect: non-scaling-stroke; } .book-panels a { color: inherit; }
.book-progress { display: grid; grid-template-columns: minmax(9rem, 3fr) minmax(5rem, 4fr) auto auto; gap: .15rem .8rem;
  font-size: .85rem; align-items: center; margin: 1rem 0; } .book-progress b { font-weight: 600; }
.book-progress progress { width: 100%; height: .7rem; accent-color: #2f77b8; } .book-progress .book-right { text-align: right; }
@media (max-width: 576px) { .book-progress { grid-template-columns: minmax(0, 3fr) minmax(0, 2fr) auto; }
  .book-progress .book-time { display: none; } }
</style>"""

# Linked to, a claim opens.
OPENED = """<script>(() => { const open = () => { const at = document.getElementById(location.hash.slice(1));
  if (at && at.tagName === "DETAILS") { at.open = true; at.scrollIntoView(); } };
  addEventListener("hashchange", open); addEventListener("load", open); })();</script>"""


def price(claim) -> str:
    """What would decide an open claim, as short as it can be said: computing time where the claim counts it."""
    cost = re.search(r"((?:over )?[\d,.]+) more (core-\w+)", claim.price)
    return f"{cost[1]} {cost[2]}" if cost else claim.price.removeprefix("It would take ").rstrip(".")


def _beside(claim) -> str:
    """What a tile says below the verdict: for what it holds, if in part, or its price."""
    if claim.part:
        return re.split(r", (?:not|undecided) for ", claim.part)[0]
    return price(claim) if claim.price else ""


def strip(judged: Iterable, short: dict[str, str], folder: str = "") -> Html:
    """All verdicts as keys with a sign each, linked to the ledger."""
    chips = "".join(
        f'<a class="book-{boxes.MARKS[c.verdict]}" href="{folder}claims.html#claim-{c.key}" '
        f'title="{html.escape(short[c.key])}: {c.verdict}" aria-label="{c.key} {c.verdict}">{c.key} {SIGNS[c.verdict]}</a>'
        for c in judged
    )
    return Html(f'{STYLE}<div class="book-verdicts">{chips}</div>')


def tiles(judged: Iterable, short: dict[str, str]) -> Html:
    """A tile per claim with its verdict, above it a choice among the papers, which also chooses among `details`."""
    judged = list(judged)
    papers = [letter for letter in PAPERS if any(c.key.startswith(letter) for c in judged)]
    hidden = "".join(
        f'body:has(#paper-{letter}:checked) [data-paper]:not([data-paper="{letter}"]) {{ display: none; }}' for letter in papers
    )
    choices = [("all", "all", " checked"), *((letter, PAPERS[letter], "") for letter in papers)]
    inputs = "".join(
        f'<label><input type="radio" name="paper" id="paper-{name}"{first}> {title}</label>' for name, title, first in choices
    )
    boxed = "".join(
        f'<a class="book-{boxes.MARKS[c.verdict]}" data-paper="{c.key[0]}" href="#claim-{c.key}" title="{html.escape(c.paper)}">'
        f"<b>{c.key} {WORDS[c.verdict]}</b><span>{html.escape(short[c.key])}</span><span>{html.escape(_beside(c))}</span></a>"
        for c in judged
    )
    return Html(
        f'{STYLE}<style>{hidden}</style><fieldset class="book-papers"><legend>Claims of</legend>{inputs}</fieldset>'
        f'<div class="book-tiles">{boxed}</div>'
    )


def details(judged: Iterable, short: dict[str, str]) -> Html:
    """Everything about each claim, folded; #claim-KEY opens one."""
    folded = "".join(
        f'<details class="book-claim" id="claim-{c.key}" data-paper="{c.key[0]}"><summary><b>{c.key}</b> '
        f"{html.escape(short[c.key])}: {WORDS[c.verdict]}</summary>{boxes.claim(c)}"
        f'<p><a href="{c.chapter}.html">The chapter that measures it</a></p></details>'
        for c in judged
    )
    return Html(folded + OPENED)


# --- all claims in one figure -----------------------------------------------------------------------------------------

SCALES = {
    "ratio": "ratios",
    "points": "differences of error, in percentage points",
    "share": "shares",
}
ROW, HEAD, FOOT = 35, 26, 42  # pixels: a claim, a panel's title, its ticks and the space below
PLOT = 0.72  # the part of the width in which intervals lie; verdicts stand to its right
TICKS = {
    "ratio": [1 / 16, 1 / 4, 1 / 2, 1, 2, 4, 16, 64, 256],
    "points": [-30, -10, -3, -1, 0, 1, 3, 10, 30],
    "share": [0, 0.25, 0.5, 0.75, 1],
}


def claims_chart(judged: Iterable, short: dict[str, str]) -> alt.LayerChart:
    """A row per claim with its effect, interval and verdict, in a panel per scale; shaded: where the claim holds.

    Ratios lie on a logarithmic axis, points on one that is linear below one point and logarithmic beyond.
    """
    rows, marks, height = [], [], 0.0
    for scale, title in SCALES.items():
        own = [c for c in judged if c.scale == scale]
        if own:
            at, told = _axis(own, scale)
            marks += [{"x": 0.0, "y": height + 12, "words": title[0].upper() + title[1:], "kind": "title"}]
            top, height = height + HEAD, height + HEAD
            for claim in own:
                rows.append(_row(claim, short[claim.key], at, height))
                height += ROW
            marks += [{"x": x, "y": height + 12, "top": top, "bottom": height, "words": t, "kind": "tick"} for x, t in told]
            height += FOOT
    return _drawn(pd.DataFrame(rows), pd.DataFrame(marks), height)


def on_paper(judged: Iterable, short: dict[str, str]) -> Html:
    """The same as a table, which takes the figure's place in print: the figure is longer than a page."""
    rows = [_row(c, short[c.key], lambda value: value, 0.0) for c in judged]
    columns = {"claim": "claim", "effect": "effect", "interval": "5–95 %", "needs": "to hold", "right": "verdict"}
    return Html(f'<div class="book-on-paper">{boxes.table(pd.DataFrame(rows)[[*columns]].rename(columns=columns)).to_html()}</div>')


def _axis(own: list, scale: str) -> tuple[Callable[[float], float], list[tuple[float, str]]]:
    """Where a value lies, 0 to PLOT, and the ticks: (place, words).  Values beyond the ends lie at the ends."""
    bend = {"ratio": lambda v: math.log(max(v, 1e-9)), "points": lambda v: math.copysign(math.log1p(abs(v)), v)}.get(scale, float)
    outer = [bend(v) for c in own for v in (c.threshold, c.effect) if math.isfinite(v)]
    slack = {"ratio": math.log(8), "points": 0.7, "share": 0.1}[scale]
    ends = [bend(v) for c in own for v in (c.low, c.high) if math.isfinite(v)]
    low, high = max(min(outer) - slack, min(ends, default=0)), min(max(outer) + slack, max(ends, default=1))
    low, high = min(low, min(outer) - slack / 4), max(high, max(outer) + slack / 4)

    def at(value: float) -> float:
        bounded = np.clip(bend(value) if math.isfinite(value) else math.copysign(math.inf, value), low, high)
        return PLOT * float((bounded - low) / (high - low))

    shown = [tick for tick in TICKS[scale] if low <= bend(tick) <= high]
    return at, [(at(tick), _tick(tick, scale)) for tick in shown]


def _tick(value: float, scale: str) -> str:
    if scale == "share":
        return f"{value:.0%}".replace("%", " %")
    return f"1/{round(1 / value)}" if scale == "ratio" and value < 1 else signed(f"{value:g}")


def _row(c, words: str, at: Callable[[float], float], top: float) -> dict:
    """A claim as the chart draws it; y in pixels from the top."""
    near = at(c.threshold)
    measured = c.n > 0
    return {
        "key": c.key, "claim": f"{c.key}  {words}", "verdict": c.verdict, "y": top + 25, "top": top + 18, "bottom": top + 32,
        "label": top + 9, "from": near if c.above else 0.0, "to": PLOT if c.above else near,
        "x": at(c.effect) if measured else None, "low": at(c.low) if measured else None, "high": at(c.high) if measured else None,
        "right": f"{WORDS[c.verdict]}" + (f", n = {c.n:,}" if measured else ""),
        "effect": _said(c.effect, c.scale) if measured else "not measured",
        "interval": f"{_said(c.low, c.scale)} to {_said(c.high, c.scale)}" if measured else "not measured",
        "needs": c.needs,
    }  # fmt: skip


def _said(value: float, scale: str) -> str:
    if not math.isfinite(value):
        return number(value)
    return f"{value:.0%}".replace("%", " %") if scale == "share" else brief(value)


def _drawn(rows: pd.DataFrame, marks: pd.DataFrame, height: float) -> alt.LayerChart:
    x = {"axis": None, "scale": alt.Scale(domain=[0, 1], nice=False)}
    y = {"axis": None, "scale": alt.Scale(domain=[0, height], reverse=True, nice=False)}
    base, ticks = alt.Chart(rows), alt.Chart(marks[marks.kind == "tick"])
    tooltip = [
        alt.Tooltip("claim:N", title="claim"), alt.Tooltip("verdict:N", title="verdict"), alt.Tooltip("effect:N", title="effect"),
        alt.Tooltip("interval:N", title="confidence interval"), alt.Tooltip("needs:N", title="to hold"),
    ]  # fmt: skip
    known = alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    colour = alt.Color("verdict:N", scale=known, legend=None)
    small = alt.expr("width < 450 ? 10 : 12")
    measured = base.transform_filter("isValid(datum.x)")
    layers = [
        ticks.mark_rule(color=charts.GUIDE, opacity=0.25).encode(x=alt.X("x:Q", **x), y=alt.Y("top:Q", **y), y2="bottom:Q"),
        base.mark_rect(color=charts.TEAL, opacity=0.16).encode(
            x=alt.X("from:Q", **x), x2="to:Q", y=alt.Y("top:Q", **y), y2="bottom:Q"),
        measured.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", **x), x2="high:Q", y=alt.Y("y:Q", **y), color=colour),
        measured.mark_point(filled=True, size=70, opacity=1).encode(
            x=alt.X("x:Q", **x), y=alt.Y("y:Q", **y), color=colour, tooltip=tooltip),
        base.mark_text(align="left", fontSize=small, limit=alt.expr("width")).encode(
            x=alt.value(0), y=alt.Y("label:Q", **y), text="claim:N", tooltip=tooltip),
        base.mark_text(align="right", fontSize=alt.expr("width < 450 ? 9 : 12")).encode(
            x=alt.value("width"), y=alt.Y("y:Q", **y), text="right:N"),
        ticks.mark_text(fontSize=11).encode(x=alt.X("x:Q", **x), y=alt.Y("y:Q", **y), text="words:N"),
        alt.Chart(marks[marks.kind == "title"]).mark_text(align="left", fontSize=13, fontWeight="bold").encode(
            x=alt.value(0), y=alt.Y("y:Q", **y), text="words:N"),
    ]  # fmt: skip
    return alt.layer(*layers).properties(width="container", height=int(height))


# --- the front page ---------------------------------------------------------------------------------------------------


def on_one_line(points: pd.DataFrame) -> alt.LayerChart:
    """Every curve over its own floor and critical batch size, coloured by sparsity, along 1 + 1/x.

    points: of `lib.claims.front.curves`.
    """
    scale = alt.Scale(type="log", base=2, nice=False, padding=4)
    axis = charts.fractions(labelOverlap="parity", values=[4.0**n for n in range(-8, 9)])
    x = alt.X("x:Q", title="batch size over critical batch size", scale=scale, axis=axis)
    y = alt.Y("y:Q", title="steps over the curve’s floor", scale=scale)
    colour = charts.by_sparsity(sorted(points.sparsity.unique()), legend=alt.Legend(titleOrient="top"))
    dots = alt.Chart(points).mark_point(filled=True, size=34, opacity=0.85)
    dots = dots.encode(x=x, y=y, color=colour, tooltip=shared_figures.ON_THE_LINE)
    return alt.layer(shared_figures.law(points, x, y), dots).properties(width="container", height=300)


def panels(points: pd.DataFrame, link: str) -> Html:
    """Steps against batch size of every curve, a small panel for each kind of network (rows) and method (columns).

    All panels have the same scales, both logarithmic; a panel's lowest point lies at its bottom.  points: as in
    `on_one_line`.  link: where a panel leads.
    """
    reach = float(np.log2(points.steps / points.groupby(["network", "algorithm"]).steps.transform("min")).max())
    ends = (float(np.log2(points.batch_size.max())) or 1.0, reach or 1.0)
    methods = [m for m in ("sgd", "momentum", "nesterov", "adam") if m in set(points.algorithm)]
    methods += sorted(set(points.algorithm) - {*methods})
    body = "<span></span>" + "".join(f"<b>{html.escape(_capital(named(m)))}</b>" for m in methods)
    for network, own in points.groupby("network", sort=False):
        name, _, kind = network.partition(", ")
        body += f"<span><b>{html.escape(name)}</b><br>{html.escape(kind)}</span>"
        for method in methods:
            shown = own[own.algorithm == method]
            body += f'<a href="{link}">{_panel(shown, f"{network}, {named(method)}", ends)}</a>' if len(shown) else "<span></span>"
    return Html(f'<div class="book-panels" style="--methods:{len(methods)}">{body}</div>')


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _panel(points: pd.DataFrame, title: str, ends: tuple[float, float]) -> str:
    """One small picture, 100 by 90, of curves coloured by sparsity; ends: how many doublings either axis has."""
    least = points.steps.min()
    drawn = []
    for (_, level), curve in points.groupby(["workload", "sparsity"]):
        curve = curve.sort_values("batch_size")
        across = 4 + 92 * np.log2(curve.batch_size) / ends[0]
        up = 85 - 81 * np.log2(curve.steps / least) / ends[1]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up))
        colour = charts.SPARSITY_COLOURS.get(level, charts.GUIDE)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    frame = f'<path d="M1,0 V89 H100" fill="none" stroke="{charts.GUIDE}" stroke-width="1"/>'
    words = html.escape(title)
    return f'<svg viewBox="0 0 100 90" role="img" aria-label="{words}"><title>{words}</title>{frame}{"".join(drawn)}</svg>'


def pair(first: str, second: str, title: str, caption: str, name: str) -> Html:
    """A figure beside another part with a title and a caption of its own, or above it where there is no room."""
    other = (
        f'<figure class="book-figure" id="{name}"><p class="book-title" style="font-weight:600">{html.escape(title)}</p>{second}'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )
    return Html(f'{STYLE}<div class="book-pair">{first}{other}</div>')


def doors(ways: dict[str, tuple[str, str]]) -> Html:
    """Where to go from here; ways: name -> (address, words)."""
    cards = "".join(
        f'<a href="{address}"><b>{html.escape(name)}</b><span>{html.escape(words)}</span></a>'
        for name, (address, words) in ways.items()
    )
    return Html(f'<div class="book-doors">{cards}</div>')


# --- status -----------------------------------------------------------------------------------------------------------


def progress(studies: pd.DataFrame) -> Html:
    """A bar per study, the least complete first; studies: study, title, done, planned, hours."""
    share = studies.done / studies.planned
    rows = "".join(
        f'<span title="{html.escape(row.title)}">{html.escape(row.study)}</span>'
        f'<progress value="{row.done}" max="{row.planned}" aria-label="{html.escape(row.title)}"></progress>'
        f'<span class="book-right">{row.done:,} of {row.planned:,}</span>'
        f'<span class="book-right book-time">{number(round(row.hours, 2 if row.hours < 1 else 1))} h</span>'
        for row in studies.iloc[np.argsort(share, kind="stable")].itertuples()
    )
    heads = '<b>study</b><b></b><b class="book-right">searches</b><b class="book-right book-time">core-hours</b>'
    return Html(f'{STYLE}<div class="book-progress">{heads}{rows}</div>')
