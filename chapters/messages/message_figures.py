"""The figure of training with sparse messages: the published panels."""

from __future__ import annotations

import pandas as pd

from lib.page import boxes, charts
from lib.wording import brief, percent
from lib.workloads import catalogue

# In the published figures; Rand-k without feedback, as there
METHODS = {
    "dense": charts.DENSE,
    "Top-k": charts.RED,
    "Gaussian-k": charts.GREEN,
    "Rand-k": charts.PURPLE,
}
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
<svg viewBox="-26 -6 190 116" role="img" aria-label="{{ network|e }}: {{ told|e }}">
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


def lines(shown: pd.DataFrame, density: float) -> pd.DataFrame:
    """Test error (mean over seeds) and epochs per network, method and budget, at one density and of
    dense messages.

    shown: of `message_results.best`.
    """
    sizes = shown.workload.map(lambda name: catalogue.workload(name).train_size)
    drawn = (shown.method == "dense") | (shown.density == density)
    rows = shown.assign(epochs=shown.examples / sizes)[drawn & (shown.budget >= 16)]
    found = rows.groupby(["network", "method", "budget"])
    return found.agg(epochs=("epochs", "first"), error=("test", "mean")).reset_index()


def panels(
    lines: pd.DataFrame, networks: list[str], title: str, caption: str, name: str
) -> boxes.Html:
    """Test accuracy in per cent against epochs, a panel a network and a line a method, as in the
    published figures; grey where the authors have a network that is not measured here.

    Args:
        lines: of `lines`.
        networks: that are measured, in their order.
        title, caption: in words.
        name: the anchor.
    """
    drawn = []
    for network in dict.fromkeys([*networks, *EPOCHS]):
        own = lines[lines.network == network]
        found = [(m, own[own.method == m]) for m in METHODS if m in set(own.method)]
        ends = [f"{m} {percent(1 - rows.error.iloc[-1], 1)}" for m, rows in found]
        points = [(METHODS[m], _points(rows)) for m, rows in found]
        told = ", ".join(ends) or "not measured"
        drawn.append((network, _epochs(own, EPOCHS.get(network)), points, told))
    about = {"title": title, "caption": caption, "name": name}
    return boxes.html(PANELS, panels=drawn, key=METHODS, guide=charts.GUIDE, **about)


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
