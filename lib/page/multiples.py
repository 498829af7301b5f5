"""Small multiples: a small plot for each of several networks, all on the same axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import altair as alt
import pandas as pd

from lib.page import charts

WIDTH = 150  # pixels of a panel of the still picture; on a page they share its width
BESIDE = 54  # pixels of a panel's axis and of the gap to the next one
MEASURE = "isFinite(containerSize()[0]) ? containerSize()[0] : 640"
# A phone has room for two short names side by side
BROKEN = (
    "split(replace(replace(replace(datum.label, ' on ', '|on '), ', ', '|'), ' → ', '|→ '), '|')"
)

# Of figures 1 and 8 of Shallue et al. (2019), and not measured here
LARGE = (
    "ResNet-50 on ImageNet",
    "ResNet-50 on Open Images",
    "VGG-11 on ImageNet",
    "Transformer on LM1B",
    "Transformer on Common Crawl",
    "LSTM on LM1B",
)
Layers = Callable[[alt.Chart], list[alt.Chart]]


def panels(
    rows: pd.DataFrame,
    layers: Layers,
    title: str,
    absent: Iterable[str] = (),
    height: int = 110,
    most: int = 4,
    least: int = 220,
) -> alt.FacetChart:
    """A panel per value of `panel`, in the order of the rows.

    Args:
        rows: `panel`, broken before " on " and " → " and after a comma, and what the layers draw.
        layers: what is drawn in each panel, from a chart without data; axes have no titles.  It
            must not add parameters.
        title: what goes up and what goes across, since panels have no room for titles of axes.
        absent: further panels, grey and marked as not measured.
        height: of a panel, in pixels.
        most: panels abreast.
        least: pixels that a panel takes with its axis, if more than two are abreast.
    """
    lacking = pd.DataFrame({"panel": list(absent), "lacks": "not measured"})
    whole = pd.concat([rows.assign(lacks=None), lacking])
    base = alt.Chart()
    grey = base.mark_text(align="left", color=charts.GUIDE)
    grey = grey.encode(x=alt.value(8), y=alt.value(height / 2), text="lacks:N")
    drawn = layers(base.transform_filter("!isValid(datum.lacks)"))
    inner = alt.layer(*drawn, grey.transform_filter("isValid(datum.lacks)"), data=whole)
    facet = alt.Facet("panel:N", title=None, sort=list(dict.fromkeys(whole.panel)))
    facet = facet.header(labelExpr=BROKEN, labelLimit=150, labelFontSize=11, labelAnchor="start")
    chart = inner.properties(width=WIDTH, height=height).facet(
        facet=facet, columns=min(3, most), spacing=12
    )
    chart = chart.resolve_axis(x="independent", y="independent")
    chart = chart.configure_axis(title=None, labelFontSize=10, labelSeparation=2, tickSize=3)
    words = alt.Title(title, fontSize=12, anchor="start")
    return chart.properties(title=words, usermeta=_sharing(most, least))


def arranged(rows: pd.DataFrame, names: dict[tuple[str, str], str]) -> pd.DataFrame:
    """The rows of these panels in this order, with `panel`.

    Args:
        rows: with workload and algorithm.
        names: (workload, algorithm) -> the name of its panel; some may have no rows.
    """
    found = dict(list(rows.groupby(["workload", "algorithm"])))
    return pd.concat(found[key].assign(panel=names[key]) for key in names if key in found)


def _sharing(most: int, least: int) -> dict:
    """Lets panels share the width of a page, two to `most` abreast: Vega-Lite gives them a fixed
    width, so what it compiles to is changed by a JSON Patch.
    """
    abreast = f"clamp(floor(page_width / {least}), 2, {most})"
    width = {"name": "child_width", "update": f"floor(page_width / abreast) - {BESIDE}"}
    resized = {"events": "window:resize", "update": MEASURE}
    page = {"name": "page_width", "init": MEASURE, "on": [resized]}
    patch = [
        {"op": "replace", "path": "/layout/columns", "value": {"signal": "abreast"}},
        {"op": "replace", "path": "/signals/0", "value": width},
        {"op": "add", "path": "/signals/0", "value": {"name": "abreast", "update": abreast}},
        {"op": "add", "path": "/signals/0", "value": page},
    ]
    return {"embedOptions": {"patch": patch}}


def small_curve(
    lines: alt.Chart, tooltip: list, ends: Sequence[str] = ("low", "high")
) -> list[alt.Chart]:
    """The layers of a curve in a panel: bars between these columns, a line, and points.

    Args:
        lines: with both axes and the colour.
        tooltip: of the points.
        ends: columns of the ends of the bars; none: no bars.
    """
    points = lines.mark_point(filled=True, size=22, opacity=1)
    curve = [lines.mark_line(strokeWidth=1.8), points.encode(tooltip=tooltip)]
    if not ends:
        return curve
    low, high = ends
    bars = lines.mark_rule()
    return [bars.encode(y=f"{low}:Q", y2=f"{high}:Q"), *curve]
