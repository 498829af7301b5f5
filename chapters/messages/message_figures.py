"""Figures of training with sparse messages: the published panels, errors, what is sent, and both
kinds of sparsity.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import boxes, charts, tips
from lib.wording import brief

METHODS = {
    "dense": charts.DENSE,
    "Top-k": charts.RED,
    "Gaussian-k": charts.GREEN,
    "DGC-k": charts.TEAL,
    "Rand-k with feedback": charts.ORANGE,
    "Rand-k": charts.PURPLE,
}
FLOOR = 1e-5  # of what is drawn on a logarithmic axis
NONE = "No records yet."


# In the published figures; Rand-k without feedback, as there
PUBLISHED = ("dense", "Top-k", "Gaussian-k", "Rand-k")
# Epochs of a run, by the authors' configuration files and, on CIFAR-10 and ImageNet, by their
# plotting script
EPOCHS = {
    "FNN-3 on MNIST": 30,
    "LeNet-5 on MNIST": 80,
    "ResNet-20 on CIFAR-10": 120,
    "VGG-16 on CIFAR-10": 120,
    "ResNet-50 on ImageNet": 70,
}
PANELS = """<style>
.book-runs { display: grid; gap: .8rem; margin: .6rem 0; align-items: end;
  grid-template-columns: repeat(auto-fill, minmax(9.6rem, 1fr)); }
.book-runs svg { width: 100%; height: auto; display: block; overflow: visible; }
.book-runs text { font-size: 11px; fill: currentColor; }
.book-runs-key { font-size: .85rem; }
.book-runs-key span { margin-right: 1em; white-space: nowrap; }
</style><figure class="book-figure" id="{{ name }}" style="margin:1.5em 0">
<p class="book-title" style="font-weight:600;margin:0 0 .5em">{{ title }}</p>
<div class="book-runs-key">
{% for method, colour in key.items() %}
<span><svg width="22" height="8" aria-hidden="true"><path d="M0 4H22" stroke="{{ colour }}" \
stroke-width="3"/></svg> {{ method }}</span>
{% endfor %}</div><div class="book-runs">
{% for network, below, lines, told in panels %}
<div><small><b>{{ network }}</b></small>
<svg viewBox="-26 -6 190 116" role="img" aria-label="{{ network }}: {{ told }}">
<title>{{ told }}</title>
{% if lines %}
{% for tick in (0, 50, 100) %}
<path d="M0 {{ 90 - 0.9 * tick }}H160" stroke="{{ guide }}" stroke-width=".4"/>
<text x="-4" y="{{ 94 - 0.9 * tick }}" text-anchor="end">{{ tick }}</text>
{% endfor %}
{% for colour, points in lines %}
<polyline points="{{ points }}" fill="none" stroke="{{ colour }}" stroke-width="1.8"/>
{% endfor %}
<text x="0" y="105">0</text>
{% else %}
<rect width="160" height="90" fill="{{ guide }}" fill-opacity=".25"/>
<text x="80" y="49" text-anchor="middle">not measured</text>
{% endif %}
<text x="160" y="105" text-anchor="end">{{ below }}</text></svg></div>
{% endfor %}</div>
<figcaption style="font-size:.9em;margin-top:.3em">{{ caption }}</figcaption>
<p class="book-tools"><a href="#{{ name }}">Link to this figure</a></p></figure>"""


def panels(
    lines: pd.DataFrame, networks: list[str], title: str, caption: str, name: str
) -> boxes.Html:
    """Test accuracy in per cent against epochs, a panel a network and a line a method, as in the
    published figures; grey where the authors have a network that is not measured here.

    Args:
        lines: of `message_tables.lines`, at one density.
        networks: that are measured, in their order.
        title, caption: in words.
        name: the anchor.
    """
    drawn = []
    for network in dict.fromkeys([*networks, *EPOCHS]):
        own = lines[lines.network == network]
        found = [(m, own[own.method == m]) for m in PUBLISHED if m in set(own.method)]
        ends = [f"{m} {100 * (1 - rows.error.iloc[-1]):.1f} %" for m, rows in found]
        points = [(METHODS[m], _points(rows)) for m, rows in found]
        told = ", ".join(ends) or "not measured"
        drawn.append((network, _epochs(own, EPOCHS.get(network)), points, told))
    key = {method: METHODS[method] for method in PUBLISHED}
    about = {"title": title, "caption": caption, "name": name}
    return boxes.html(PANELS, panels=drawn, key=key, guide=charts.GUIDE, **about)


def _epochs(own: pd.DataFrame, theirs: int | None) -> str:
    """How long runs are, and those of the authors."""
    if own.empty:
        return f"theirs: {theirs} epochs"
    ended = f"{brief(own.epochs.max())} epochs"
    return f"{ended}; theirs: {theirs}" if theirs else ended


def _points(rows: pd.DataFrame) -> str:
    """A line in a picture of 160 by 90."""
    at = zip(160 * rows.epochs / rows.epochs.max(), 90 * rows.error)
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in at)


def _colour(rows: pd.DataFrame) -> alt.Color:
    shown = set(rows.method)
    return charts.by_name("method", {m: c for m, c in METHODS.items() if m in shown}, columns=2)


def _controls(networks: list[str], densities: list[float]) -> tuple[tuple, tuple]:
    """A menu of networks and a slider over densities, the first of each shown first."""
    caption = "'density ' + format(value, '.2~g')"
    return (
        charts.menu("network", networks, networks[0], "network"),
        charts.slider("density", densities, densities[0], "density", caption),
    )


def errors(lines: pd.DataFrame, networks: list[str], densities: list[float]) -> alt.LayerChart:
    """Test error against steps or megabytes, a line per method.

    Args:
        lines: network, method, density, budget (steps), megabytes, error, low, high (over seeds),
            seeds and rate.
        networks, densities: those to choose from, shown first first.
    """
    if lines.empty:
        return charts.nothing(NONE)
    sides = {"training steps": "budget", "megabytes sent by a worker": "megabytes"}
    rows = pd.concat([lines.assign(axis=name, x=lines[column]) for name, column in sides.items()])
    network, density = _controls(networks, densities)
    against = charts.menu("axis", list(sides), next(iter(sides)), "against")
    pick, faded = charts.picked("method")
    scale = charts.log(8, base=10)
    x = alt.X("x:Q", title=None, scale=scale).axis(values=charts.DECADES)
    y = alt.Y("error:Q", title="test error", scale=scale).axis(format="~%", values=charts.DECADES)
    tooltip = tips.listed(
        {
            "method:N": "method",
            "budget:Q|,": "training steps",
            "megabytes:Q|.3g": "megabytes sent by a worker",
            "error:Q|.2%": "test error, mean",
            "low:Q|.2%": "lowest seed",
            "high:Q|.2%": "highest seed",
            "seeds:Q": "seeds",
            "rate:Q|.3f": "learning rate",
        }
    )
    base = alt.Chart(rows).encode(x=x, color=_colour(lines), opacity=faded)
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q").add_params(pick)
    layers = [bars, charts.dotted(base, 45, y=y, tooltip=tooltip)]
    drawn = charts.controlled(layers, network, against, density)
    return charts.sized(alt.layer(drawn, charts.below(against[0].name)), 250)


def sent(ranges: pd.DataFrame, networks: list[str], densities: list[float]) -> alt.LayerChart:
    """Entries sent over those asked for against the step: the median of runs with a band to the
    least and the most, a colour per method; what is below FLOOR is drawn there.

    Args:
        ranges: of `message_tables.sent`.
        networks, densities: those to choose from, shown first first.
    """
    if ranges.empty:
        return charts.nothing(NONE)
    ends = ["middle", "low", "high"]
    rows = ranges.assign(**{f"drawn_{end}": ranges[end].clip(lower=FLOOR) for end in ends})
    ticks = charts.powers([-5, -4, -3, -2, -1, 0, 1, 2], {-5: "≤ 10⁻⁵", 1: "10", 2: "100"})
    scale = charts.log(8, base=10, domainMin=FLOOR)
    title = "entries sent over k"
    y = alt.Y("drawn_middle:Q", title=title, axis=ticks, scale=scale)
    pick, faded = charts.picked("method")
    base = alt.Chart(rows).encode(
        x=alt.X("budget:Q", title="training step", scale=charts.log(8)),
        color=_colour(rows),
        opacity=faded,
    )
    low = alt.Y("drawn_low:Q", title=title, axis=ticks, scale=scale)
    band = base.mark_area(fillOpacity=0.25).encode(y=low, y2="drawn_high:Q").add_params(pick)
    tooltip = tips.listed(
        {
            "method:N": "method",
            "budget:Q|,": "up to step",
            "middle:Q|.2~g": "sent over k, median",
            "low:Q|.2~g": "least of all runs",
            "high:Q|.2~g": "most of all runs",
            "runs:Q": "runs",
        }
    )
    lines = charts.dotted(base, 40, y=y, tooltip=tooltip)
    asked = charts.across(1, y=scale)
    drawn = charts.controlled([band, lines], *_controls(networks, densities))
    return charts.sized(alt.layer(asked, drawn), 280)


def joint(curves: pd.DataFrame, start: str) -> alt.LayerChart:
    """Steps to result against the density of messages, a line per sparsity.

    Args:
        curves: of `message_results.joint_curves`, and place (its menu's name).
        start: the place shown first.
    """
    if curves.empty:
        return charts.nothing(NONE)
    places = list(dict.fromkeys(curves.place))
    shares = sorted(curves.density.unique())
    axis = alt.Axis(values=shares, format=".2~g", grid=False)
    ends = [shares[0] / 1.6, shares[-1] * 1.6]
    x = alt.X("density:Q", title="density (share of entries sent)", axis=axis)
    x = x.scale(charts.log(base=10, reverse=True, domain=ends))
    scale = charts.log(10)
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    colour = charts.by_sparsity(sorted(curves.sparsity.unique()))
    base = alt.Chart(curves).encode(x=x, color=colour)
    tooltip = tips.listed(
        {
            "sparsity:N": "sparsity of the network",
            "density:Q|.2~g": "density",
            "steps:Q|,": "steps to result",
            "low:Q|,.0f": "5 % over searches",
            "high:Q|,.0f": "95 % over searches",
            "trials:Q": "trials of the search",
            "hits_seen:Q": "trials that met the goal",
        }
    )
    low = alt.Y("low:Q", scale=scale)
    bars = base.mark_rule(strokeWidth=2).encode(y=low, y2="high:Q")
    layers = [bars, charts.dotted(base, 64, y=y, tooltip=tooltip)]
    menu = charts.menu("place", places, start if start in places else places[0], "where")
    return charts.sized(charts.controlled(layers, menu), 300)
