"""The front page's figures, and the ledger's and the status page's: verdicts at a glance, one
figure of all claims, progress.

A claim is a `lib.claims.Claim`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

import altair as alt
import numpy as np
import pandas as pd

from lib.page import boxes, charts, tips
from lib.page.prose import Html
from lib.wording import between, brief, joined, named, number

# --- verdicts -------------------------------------------------------------------------------------

PAPERS = {  # by a key's first letter
    "L": "Lee et al.",
    "M": "McCandlish et al.",
    "S": "Shallue et al.",
    "T": "Shi et al.",
    "O": "papers on training methods",
    "G": "papers on language models",
    "A": "Dai et al.",
    "B": "papers on training without backpropagation",
    "I": "papers on parts of a network",
    "P": "Guille-Escuret et al.",
}
SIGNS = {"for": "✓", "against": "✗", "not decided": "?"}

STYLE = """<style>
.book-matrix { display: grid; grid-template-columns: auto minmax(9rem, 3fr) minmax(5rem, 2fr) minmax(8rem, 3fr);
  gap: .25rem .7rem; font-size: .85rem; align-items: baseline; margin: .6rem 0 1.2rem; }
.book-matrix a { color: inherit; } .book-matrix > b { border-bottom: 1px solid var(--pst-color-border, #ccc); }
.book-chips span { display: inline-block; width: 1.25em; text-align: center; border-radius: 3px; margin: 0 .12em .12em 0;
  border: 1px solid currentColor; line-height: 1.3; opacity: .8; }
.book-chips .book-own { border-width: 2px; font-weight: 700; opacity: 1; }
.book-chips .book-yes { color: var(--book-yes, #17786c); } .book-chips .book-no { color: var(--book-no, #bf3549); }
.book-chips .book-open { color: var(--pst-color-text-muted, #666); }
@media (max-width: 576px) { .book-matrix { grid-template-columns: auto minmax(0, 1fr); }
  .book-matrix > b:nth-child(-n+4) { display: none; } .book-matrix > :nth-child(4n) { grid-column: 2; } }
.book-papers { border: 0; padding: 0; margin: 1rem 0 0; font-size: .9rem; } .book-papers label { margin-right: .9rem; }
.book-papers legend { float: left; font-size: inherit; width: auto; margin: 0 .9rem 0 0; }
@media print { .book-papers { display: none !important; } }
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


def chips(claim) -> str:
    """A sign per network of a claim, the paper's own before all; its title says the numbers."""
    ordered = sorted(claim.groups, key=lambda g: not g.own)
    return "".join(
        f'<span class="book-{boxes.KINDS[g.verdict]}{" book-own" * g.own}" title="{html.escape(boxes.told(g, claim.scale))}">'
        f"{SIGNS[g.verdict]}</span>"
        for g in ordered
    )


def matrix(judged: Iterable) -> Html:
    """A row per claim: key, title, the word that sums it up, and a sign per network; above, a
    choice among the papers.
    """
    judged = list(judged)
    papers = [letter for letter in PAPERS if any(c.key.startswith(letter) for c in judged)]
    hidden = "".join(
        f'body:has(#paper-{letter}:checked) [data-paper]:not([data-paper="{letter}"]) {{ display: none; }}'
        for letter in papers
    )
    choices = [("all", "all", " checked"), *((letter, PAPERS[letter], "") for letter in papers)]
    inputs = "".join(
        f'<label><input type="radio" name="paper" id="paper-{name}"{first}> {title}</label>'
        for name, title, first in choices
    )
    rows = "".join(
        f'<a data-paper="{c.key[0]}" href="#claim-{c.key}">{c.key}</a><span data-paper="{c.key[0]}">{html.escape(c.title)}</span>'
        f'<span data-paper="{c.key[0]}">{c.verdict}</span><span data-paper="{c.key[0]}" class="book-chips">{chips(c)}</span>'
        for c in judged
    )
    return Html(
        f'{STYLE}<style>{hidden}</style><fieldset class="book-papers"><legend>Claims of</legend>{inputs}</fieldset>'
        f'<div class="book-matrix"><b></b><b>claim</b><b>verdict</b><b>on each network (bold: the paper’s own)</b>{rows}</div>'
    )


def details(judged: Iterable) -> Html:
    """Everything about each claim, folded; #claim-KEY opens one."""
    folded = "".join(
        f'<details class="book-claim" id="claim-{c.key}" data-paper="{c.key[0]}"><summary><b>{c.key}</b> '
        f"{html.escape(c.title)}: {c.verdict}</summary>{boxes.claim(c)}{_history(c)}"
        f'<p><a href="{c.chapter}.html">The chapter that measures it</a></p></details>'
        for c in judged
    )
    return Html(folded + OPENED)


def _history(c) -> str:
    """When the rule got its form, and what it was before."""
    known = {True: "with the records known", False: "before the records were known"}
    earlier = "".join(
        f"<li>Until {change.when}: {html.escape(change.was)}. "
        f"Changed {known[change.records_known]}: {html.escape(change.why)}.</li>"
        for change in c.history
    )
    fixed = "was fixed in advance" if c.fixed else "was not fixed in advance"
    told = f"<p>Rule since {c.since}. The number of searches {fixed}.</p>"
    return told + (f"<ul>{earlier}</ul>" if earlier else "")


# --- the front page -------------------------------------------------------------------------------


KINDS = {"steps": charts.BLUE, "time": charts.ORANGE, "price": charts.TEAL}


def one_run(run: pd.DataFrame, start: int) -> alt.LayerChart:
    """Steps, time and price of one training against its batch size, each over that of the smallest
    batch; a slider picks a batch and says what it takes.

    run: a row per batch size, as of `lib.claims.front.one_run`.  start: the batch size picked at
    first.
    """
    chosen, value, spelt = charts.dial(
        "batch_at", run.batch_size.tolist(), start, "batch size", "format(value, ',')"
    )
    color = alt.Color("what:N", legend=None).scale(domain=list(KINDS), range=list(KINDS.values()))
    y = alt.Y("over:Q", title="times that of the smallest batch")
    lines = _three_lines(run)
    domain = [0.7 * lines.over.min(), 8 * lines.over.max()]  # room for the words above all lines
    y = y.scale(type="log", domain=domain, nice=False).axis(values=charts.DECADES, format="~g")
    tooltip = [tips.BATCH_SIZE, alt.Tooltip("words:N", title="takes")]
    base = alt.Chart(lines).encode(x=charts.batch_axis(run.batch_size), y=y, color=color)
    drawn = base.mark_line(point=alt.OverlayMarkDef(size=45)).encode(tooltip=tooltip)
    picked = base.transform_filter(f"datum.batch_size == {value}")
    column = picked.mark_rule(color=charts.GUIDE, strokeDash=[4, 4]).encode(
        y=alt.value(0), y2=alt.value("height"), color=alt.value(charts.GUIDE)
    )
    dots = picked.mark_point(size=190, filled=True, opacity=1)
    words = [  # above the lines, where nothing is drawn at small batches
        picked.transform_filter(alt.datum.what == kind)
        .mark_text(align="left", baseline="top", fontWeight="bold", fontSize=13)
        .encode(x=alt.value(12), y=alt.value(8 + 19 * row), text="words:N")
        for row, kind in enumerate(KINDS)
    ]
    chart = alt.layer(column, drawn, dots, *words).add_params(chosen, charts.spoken(spelt))
    return chart.properties(width="container", height=300)


def _three_lines(run: pd.DataFrame) -> pd.DataFrame:
    """A row per batch size and kind of `KINDS`: over (the value over the smallest batch's), words."""
    values = {"steps": run.steps, "time": run.seconds, "price": run.price}
    words = {
        "steps": [f"Steps: {number(round(s))}" for s in run.steps],
        "time": [f"Time: {brief(s)} s on {_cores(n)}" for s, n in zip(run.seconds, run.fast)],
        "price": [
            f"Price: {brief(s)} core-seconds on {_cores(n)}" for s, n in zip(run.price, run.cheap)
        ],
    }
    parts = [
        pd.DataFrame({"what": kind, "over": v / v.iloc[0], "words": words[kind]}).assign(
            batch_size=run.batch_size
        )
        for kind, v in values.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _cores(count: int) -> str:
    return f"{count} core{'s' * (count > 1)}"


def panels(points: pd.DataFrame, link: str) -> Html:
    """Steps against batch size of every curve, a small panel for each kind of network (rows) and
    method (columns).

    All panels have the same scales, both logarithmic; a panel's lowest point lies at its bottom.
    points: of `lib.claims.front.curves`.  link: where a panel leads.
    """
    reach = float(
        np.log2(
            points.steps / points.groupby(["network", "algorithm"]).steps.transform("min")
        ).max()
    )
    ends = (float(np.log2(points.batch_size.max())) or 1.0, reach or 1.0)
    methods = [m for m in ("sgd", "momentum", "nesterov", "adam") if m in set(points.algorithm)]
    methods += sorted(set(points.algorithm) - {*methods})
    body = "<span></span>" + "".join(f"<b>{html.escape(_capital(named(m)))}</b>" for m in methods)
    for network, own in points.groupby("network", sort=False):
        name, _, kind = network.partition(", ")
        body += f"<span><b>{html.escape(name)}</b><br>{html.escape(kind)}</span>"
        for method in methods:
            shown = own[own.algorithm == method]
            body += (
                f'<a href="{link}">{_panel(shown, f"{network}, {named(method)}", ends)}</a>'
                if len(shown)
                else "<span></span>"
            )
    return Html(f'<div class="book-panels" style="--methods:{len(methods)}">{body}</div>')


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _panel(points: pd.DataFrame, title: str, ends: tuple[float, float]) -> str:
    """One small picture, 100 by 90, of curves coloured by sparsity; ends: how many doublings either
    axis has.
    """
    least = points.steps.min()
    drawn = []
    for (_, level), curve in points.groupby(["workload", "sparsity"]):
        curve = curve.sort_values("batch_size")
        across = 4 + 92 * np.log2(curve.batch_size) / ends[0]
        up = 85 - 81 * np.log2(curve.steps / least) / ends[1]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up))
        colour = charts.SPARSITY_COLOURS.get(level, charts.GUIDE)
        drawn.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        )
    frame = f'<path d="M1,0 V89 H100" fill="none" stroke="{charts.GUIDE}" stroke-width="1"/>'
    words = html.escape(title)
    return f'<svg viewBox="0 0 100 90" role="img" aria-label="{words}"><title>{words}</title>{frame}{"".join(drawn)}</svg>'


def papers(rows: dict[str, Iterable]) -> Html:
    """A row per claim, by paper: what it says, how that came out, and on which of the paper's own
    networks with how sure a number.

    rows: the paper's name (HTML, such as a link) -> its judged claims.
    """
    body = ""
    for name, judged in rows.items():
        judged = list(judged)
        for i, c in enumerate(judged):
            paper = f'<th rowspan="{len(judged)}">{name}</th>' if i == 0 else ""
            word = f'<a href="chapters/claims.html#claim-{c.key}">{c.verdict}</a>'
            cells = (html.escape(c.title), word, html.escape(_on_own(c)))
            body += f"<tr>{paper}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    heads = "".join(
        f"<th>{head}</th>" for head in ("paper", "what it says", "found", "on its own networks")
    )
    table = f'<table class="book-table book-names book-by-paper"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return Html(STYLE + table)


def _on_own(c) -> str:
    """The effects on a claim's own networks that are decided, or else what is lacking there."""
    own = [g for g in c.groups if g.own and g.n]
    decided = [g for g in own if g.verdict != "not decided"]
    shown = [g for g in decided if g.robust] or decided or own
    if not shown:
        return "none measured"
    names = joined(list(dict.fromkeys(g.name.split(", ")[0] for g in shown)))
    effects = (
        between(*(g.effect for g in shown))
        + {"ratio": " times", "points": " points", "share": " (share)"}[c.scale]
    )
    searches = (
        f"{min(g.n for g in shown)} to {max(g.n for g in shown)}"
        if len({g.n for g in shown}) > 1
        else f"{shown[0].n}"
    )
    sure = "fragile" if not all(g.robust for g in shown) else "robust"
    state = "not decided" if shown[0].verdict == "not decided" else sure
    left = len(own) - len(shown)
    rest = f"; {left} of {len(own)} own curves not decided or fragile" if left else ""
    return f"{names}: {effects}; n = {searches}; {state}{rest}"


def doors(ways: dict[str, tuple[str, str]]) -> Html:
    """Where to go from here; ways: name -> (address, words)."""
    cards = "".join(
        f'<a href="{address}"><b>{html.escape(name)}</b><span>{html.escape(words)}</span></a>'
        for name, (address, words) in ways.items()
    )
    return Html(f'<div class="book-doors">{cards}</div>')


# --- status ---------------------------------------------------------------------------------------


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
