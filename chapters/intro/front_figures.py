"""The front page's figures: one search, one run, every curve, four papers, and where to go."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import altair as alt
import pandas as pd
import yaml

from lib import ROOT
from lib.page import boxes, charts, tips, vega
from lib.page.prose import Html
from lib.page.shared_figures import panels
from lib.wording import between, brief, joined, named, number, percent
from lib.workloads.catalogue import workload

STEP = tips.tip("step:Q", "steps", ",")
COLOURS = {"steps": charts.BLUE, "seconds": charts.ORANGE, "price": charts.TEAL}


def one_run(run: pd.DataFrame, start: int) -> alt.LayerChart:
    """Steps, time and price of one training against its batch size, each over that of the smallest
    batch; a slider picks a batch and says what it takes.

    Args:
        run: a row per batch size, as of `lib.claims.front.one_run`.
        start: the batch size picked at first.
    """
    sizes = run.batch_size.tolist()
    size = "batch size", "format(value, ',')"
    chosen, value, spelt = charts.dial("batch_at", sizes, start, *size)
    lines = _three_lines(run)
    # Room for the words above all lines
    scale = charts.log(base=10, domain=[0.7 * lines.over.min(), 8 * lines.over.max()])
    y = alt.Y("over:Q", title="times that of the smallest batch", scale=scale)
    base = alt.Chart(lines).encode(
        x=charts.batch_axis(run.batch_size),
        y=y.axis(values=charts.DECADES, format="~g"),
        color=charts.by_name("what", COLOURS).legend(None),
    )
    drawn = charts.dotted(base, 45, tooltip=[tips.BATCH_SIZE, tips.tip("words:N", "takes")])
    picked = base.transform_filter(f"datum.batch_size == {value}")
    column = picked.mark_rule(strokeDash=[4, 4]).encode(
        y=alt.value(0), y2=alt.value("height"), color=alt.value(charts.GUIDE)
    )
    dots = picked.mark_point(size=190, filled=True, opacity=1)
    # Above the lines, where nothing is drawn at small batches
    words = picked.mark_text(align="left", baseline="top", fontWeight="bold", fontSize=13)
    down = alt.value(alt.expr("8 + 19 * datum.row"))
    words = words.encode(x=alt.value(12), y=down, text="words:N")
    chart = alt.layer(column, drawn, dots, words).add_params(chosen, charts.spoken(spelt))
    return charts.sized(chart, 210)


def _three_lines(run: pd.DataFrame) -> pd.DataFrame:
    """A row per column of COLOURS and batch size: what (the column), row (its place), over (the
    value over the smallest batch's), words and batch_size.
    """
    words = {
        "steps": [f"Steps: {number(round(steps))}" for steps in run.steps],
        "seconds": [
            f"Time: {brief(s)} s on {_cores(n)}" for s, n in zip(run.seconds, run.fast)
        ],
        "price": [
            f"Price: {brief(p)} core-seconds on {_cores(n)}"
            for p, n in zip(run.price, run.cheap)
        ],
    }
    return pd.concat(
        run[["batch_size"]].assign(
            what=c, row=row, over=run[c] / run[c].iloc[0], words=words[c]
        )
        for row, c in enumerate(COLOURS)
    )


def _cores(count: int) -> str:
    return f"{count} core{'s' * (count > 1)}"


# --- what a step to result is ---------------------------------------------------------------------

SEARCH = """<style>
.bd-article h1 { font-size: 2.1rem; margin-top: .5rem; }
.book-search { float: right; width: min(19rem, 100%); margin: 0 0 .3rem 1.2rem; }
.book-search figcaption { font-size: .8rem; text-align: left; }
.book-search ~ .book-figure, .book-figure { clear: both; }
@media (max-width: 700px) { .book-search { float: none; margin: 0; } }
</style><figure class="book-search" id="fig-one-search">{{ drawn }}
<figcaption>{{ caption }}</figcaption></figure>"""


def one_search(met: pd.DataFrame, caption: str) -> Html:
    """A small figure of one search: each training's error falls to the goal, and the first to
    reach it gives the steps to result.

    Args:
        met: a row per trial and goal met, as of `lib.claims.front.one_search`; not empty.
        caption: the sentence below, plain text.
    """
    goal = met.goal.min()
    ends = met[met.goal == goal]
    best = ends.loc[[ends.step.idxmin()]]
    steps = number(round(best.step.iloc[0]))
    scale, won = charts.log(4, base=10), alt.datum.trial == int(best.trial.iloc[0])
    room = charts.log(
        4, base=10, domain=[goal / 1.4, met.goal.max()]
    )  # for words below the goal
    lines = (
        alt.Chart(met)
        .mark_line()
        .encode(
            x=alt.X("step:Q", title="steps", scale=scale).axis(
                values=charts.DECADES, format=","
            ),
            y=alt.Y("goal:Q", title="validation error", scale=room).axis(
                values=sorted({*met.goal}), format=".2~%", grid=False
            ),
            detail="trial:N",
            color=alt.when(won)
            .then(alt.value(charts.ORANGE))
            .otherwise(alt.value(charts.BLUE)),
            strokeWidth=alt.when(won).then(alt.value(2.6)).otherwise(alt.value(0.8)),
            tooltip=[tips.tip("trial:Q", "trial"), tips.tip("goal:Q", "error", ".2~%"), STEP],
        )
    )
    end = alt.Chart(best).encode(x="step:Q", y="goal:Q")
    dot = end.mark_point(filled=True, size=60, opacity=1, color=charts.ORANGE)
    words = end.mark_text(align="right", baseline="top", dx=-6, dy=5, fontWeight="bold")
    words = words.encode(text=alt.value(f"steps to result: {steps}"))
    chart = alt.layer(charts.across(goal, y=room), lines, dot, words)
    told = (
        f"Validation error against steps of {met.trial.nunique()} trainings of one search; the "
    )
    told += f"first reaches {percent(goal)} after {steps} steps."
    spec = chart.properties(width=235, height=130, description=told).to_dict()
    drawn = Html(vega.drawn(spec))
    return boxes.html(SEARCH, drawn=drawn, caption=caption)


# --- every curve ----------------------------------------------------------------------------------

ENOUGH = 5  # batch sizes of a panel


def every_curve(points: pd.DataFrame, critical: pd.DataFrame) -> alt.FacetChart:
    """Steps against batch size, a panel for each kind of network and method: of its workload with
    most points, if that has `ENOUGH` batch sizes.  A panel's lowest point counts as 1.

    Args:
        points: of `lib.claims.front.curves`.
        critical: of `lib.claims.front.critical`: a dashed line stands where the dense curve's is
            identified.
    """
    found = critical[critical.identified & (critical.sparsity == 0)]
    marked = found.set_index(["workload", "algorithm"]).critical
    parts = []
    for (_, method), every in points.groupby(["network", "algorithm"], sort=False):
        name = every.workload.value_counts().index[0]
        own = every[every.workload == name]
        if own.batch_size.nunique() < ENOUGH:
            continue
        title = workload(name).title.removesuffix(", easier goal")
        own = own.assign(panel=f"{title}, {named(method)}", over=own.steps / own.steps.min())
        at = marked.get((name, method))
        mark = pd.DataFrame({"panel": own.panel[:1], "critical": at})
        parts += [own, mark.assign(told=brief(at))] if at else [own]
    kept = ["panel", "sparsity", "batch_size", "steps", "over", "critical", "told"]
    rows = pd.concat(parts).reindex(columns=kept)
    levels = sorted(rows.sparsity.dropna().unique())
    title = "steps over the fewest of a panel, against batch size"
    layers = functools.partial(_curves, levels=levels)
    return panels(rows, layers, title, height=90, most=5, least=155)


def _curves(base: alt.Chart, levels: list[float]) -> list[alt.Chart]:
    y = alt.Y("over:Q", scale=charts.log(4, base=10)).axis(
        values=[1, 10, 100, 1000], format=","
    )
    curves = base.transform_filter("isValid(datum.over)").encode(
        x=charts.batch_axis([1, 32, 1024], None),
        y=y,
        color=charts.by_sparsity(levels),
        tooltip=[tips.SPARSITY, tips.BATCH_SIZE, tips.STEPS],
    )
    known = base.transform_filter("isValid(datum.critical)").encode(x="critical:Q")
    rule = known.mark_rule(color=charts.GUIDE, strokeDash=[3, 3])
    words = known.mark_text(baseline="top", align="left", dx=3, fontSize=10)
    words = words.encode(y=alt.value(0), text="told:N")
    return [rule, curves.mark_line(strokeWidth=1.7), words]


# --- papers ---------------------------------------------------------------------------------------

PAPERS = """<style>
.book-by-paper td, .book-by-paper th { vertical-align: top; text-align: left; }
.book-by-paper tr.book-also td { border-top: 0; font-size: .9em; }
@media (max-width: 576px) { .book-by-paper thead { display: none; }
  .book-by-paper :is(tbody, tr, th, td) { display: block; border: 0; padding: .1rem 0; }
  .book-by-paper th { padding-top: .8rem; } }
</style>{% macro verdict(claim) %}
<a href="chapters/claims.html#claim-{{ claim.key }}">{{ claim.verdict }}</a>
{%- endmacro %}<table class="book-table book-names book-by-paper"><thead><tr>
<th>paper</th><th>claim</th><th>found here</th><th>on the paper’s own networks</th></tr></thead>
<tbody>
{% for name, first, found, others in papers %}<tr><th>{{ name }}</th>
<td>{{ first.title }}.</td><td>{{ verdict(first) }}</td><td>{{ found }}</td></tr>
{% if others %}<tr class="book-also"><td></td><td colspan="3">Also: {% for claim in others -%}
{{ claim.title }} ({{ verdict(claim) }}){{ "." if loop.last else "; " }}
{%- endfor %}</td></tr>{% endif %}{% endfor %}</tbody></table>"""
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
    return boxes.html(PAPERS, papers=told)


def _on_own(c) -> str:
    """The effects on a claim's own networks that are decided, or else what is lacking there."""
    own = [g for g in c.groups if g.own and g.n]
    decided = [g for g in own if g.verdict != "not decided"]
    shown = [g for g in decided if g.robust] or decided or own
    if not shown:
        return "none measured"
    # Without the method
    names = joined(list(dict.fromkeys(g.name.rpartition(", ")[0] or g.name for g in shown)))
    effects = between(*(g.effect for g in shown))
    if any(g.low == -math.inf for g in shown):
        effects = f"at most {brief(max(g.high for g in shown))}"
    effects += SCALES[c.scale]
    counts = dict.fromkeys([min(g.n for g in shown), max(g.n for g in shown)])
    searches = " to ".join(map(str, counts))
    state = "robust" if all(g.robust for g in shown) else "fragile"
    state = state if decided else "not decided"
    left = [g.name for g in own if g not in shown]
    which = f" ({joined(left)})" if len(left) < 3 else ""
    rest = (
        f"; {len(left)} of {len(own)} own curves not decided or fragile{which}" if left else ""
    )
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
