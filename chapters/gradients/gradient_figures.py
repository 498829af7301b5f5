"""Figures of what Top-k leaves of a vector, of its entries, and of the time to choose them."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips

BOUNDS = {
    "1 − k/d (any vector)": charts.GUIDE,
    "(1 − k/d)² (bell)": charts.RED,
    "normal distribution": charts.TEAL,
}


def bounds(curves: pd.DataFrame, band: pd.DataFrame) -> alt.LayerChart:
    """The share of the energy that Top-k leaves against the density: bounds, and the measured band,
    from the functions of these names in `findings`.
    """
    title = "share of the energy that is left"
    axis = alt.Axis(values=[0.001, 0.01, 0.1, 1], format="~g")
    x = alt.X("x:Q", title="density k/d", axis=axis).scale(type="log", domain=[1e-3, 1])
    y = alt.Y("value:Q", title=title).scale(domain=[0, 1]).axis(format="%")
    density = {"x:Q|.2~g": "density"}
    ends = {"low:Q|.2%": "least left", "middle:Q|.2%": "median left", "high:Q|.2%": "most left"}
    area = (
        alt.Chart(band)
        .mark_area(opacity=0.35, color=charts.BLUE)
        .encode(
            x=x, y=alt.Y("low:Q", title=title), y2="high:Q", tooltip=tips.listed(density | ends)
        )
    )
    lines = (
        alt.Chart(curves)
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=charts.by_name("bound", BOUNDS, columns=1),
            tooltip=tips.listed({"bound:N": "curve", **density, "value:Q|.2%": "left"}),
        )
    )
    return charts.sized(alt.layer(area, lines), 280)


def shapes(entries: pd.DataFrame, normal: pd.DataFrame, ways: list[str]) -> alt.LayerChart:
    """Densities of a vector's entries on a logarithmic axis, one line per way of sending, for one
    network and step at a time.

    entries: network, way, step, x (in standard deviations) and value (positive); normal: x and
    value of a normal distribution; ways: in the legend's order.
    """
    if entries.empty:
        return charts.nothing("Not measured yet.")
    pick, faded = charts.picked("way")
    x = alt.X("x:Q", title="entry over the standard deviation of all entries")
    y = alt.Y(
        "value:Q", title="probability density", axis=charts.powers([-4, -3, -2, -1, 0, 1])
    )
    axes = {
        "x": x.scale(domain=[-6, 6]),
        "y": y.scale(type="log", domain=[1e-5, 20], clamp=True),
    }
    guide = alt.Chart(normal).mark_line(strokeDash=[4, 4], color=charts.GUIDE).encode(**axes)
    shades = iter([charts.RED, charts.ORANGE, charts.GREEN, charts.TEAL])
    # Sending everything has the colour of dense networks
    colours = {w: charts.DENSE if w == "everything sent" else next(shades) for w in ways}
    tooltip = {
        "way:N": "sent",
        "x:Q|.2f": "standard deviations",
        "value:Q|.2~g": "probability density",
    }
    lines = alt.Chart(entries).mark_line(strokeWidth=2, clip=True).add_params(pick)
    lines = lines.encode(
        **axes,
        color=charts.by_name("way", colours, columns=1),
        opacity=faded,
        tooltip=tips.listed(tooltip),
    )
    networks, steps = sorted(entries.network.unique()), sorted(map(int, entries.step.unique()))
    menu = charts.menu("network", networks, networks[0], "network")
    slider = charts.slider("step", steps, steps[0], "step", "'step ' + format(value, ',')")
    return charts.sized(alt.layer(guide, charts.controlled([lines], menu, slider)), 250)


METHODS = {  # by compressor
    "torch.topk": ("torch.topk", charts.BROWN),
    "top-k": ("Top-k", charts.RED),
    "gaussian-k": ("Gaussian-k", charts.GREEN),
    "gaussian-k-band": ("Gaussian-k, banded", charts.INDIGO),
    "dgc-k": ("DGC-k", charts.TEAL),
    "redsync": ("RedSync", charts.ORANGE),
    "rand-k": ("Rand-k", charts.PURPLE),
}
DEVICES = ("one core", "a GPU")


def operators(*timed: pd.DataFrame) -> alt.LayerChart:
    """Time to choose against the length of the vector: the fastest repeat, with bars up to the
    slowest, and a menu of devices.

    timed: from `message_times.Operators`, one table for each of DEVICES.
    """
    rows = pd.concat(part.assign(device=device) for part, device in zip(timed, DEVICES))
    rows = rows.assign(
        method=rows.compressor.map({name: method for name, (method, _) in METHODS.items()}),
        **{c: 1e3 * rows[c] for c in ("seconds", "low", "high")},
    )
    base = alt.Chart(rows).encode(
        x=alt.X("d:Q", title="entries of the vector", scale=charts.log(8)).axis(format=".2~s"),
        color=charts.by_name("method", dict(METHODS.values()), columns=2),
    )
    tooltip = {
        "method:N": "method",
        "d:Q|,": "entries of the vector",
        "elements:Q|,": "entries chosen",
        "low:Q|.2~g": "milliseconds, fastest",
        "seconds:Q|.2~g": "median",
        "high:Q|.2~g": "slowest",
    }
    y = alt.Y("low:Q", title="milliseconds", scale=charts.log(8, base=10))
    y = y.axis(format="~g", values=charts.DECADES[::3])
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q")
    menu = charts.menu("device", list(DEVICES), DEVICES[0], "on")
    lines = charts.dotted(base, 45, y=y, tooltip=tips.listed(tooltip))
    return charts.sized(charts.controlled([bars, lines], menu), 300)
