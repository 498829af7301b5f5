"""Figures of what choosing entries takes."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts
from lib.page.tips import tip

METHODS = {  # by compressor
    "torch.topk": ("torch.topk", charts.BROWN),
    "top-k": ("Top-k", charts.RED),
    "gaussian-k": ("Gaussian-k", charts.GREEN),
    "gaussian-k-band": ("Gaussian-k, banded", charts.INDIGO),
    "dgc-k": ("DGC-k", charts.TEAL),
    "redsync": ("RedSync", charts.ORANGE),
    "rand-k": ("Rand-k", charts.PURPLE),
}


DEVICES = ("one core", "a graphics processor")


def operators(*timed: pd.DataFrame) -> alt.LayerChart:
    """Time to choose against the length of the vector, the fastest repeat, with bars up to the
    slowest; a menu of devices.

    timed: of `message_times.Operators`, one of each of DEVICES.
    """
    rows = pd.concat(part.assign(device=device) for part, device in zip(timed, DEVICES))
    rows = rows.assign(
        method=rows.compressor.map({name: method for name, (method, _) in METHODS.items()}),
        **{c: 1e3 * rows[c] for c in ("seconds", "low", "high")},
    )
    x = alt.X("d:Q", title="entries of the vector", scale=charts.log(8)).axis(format=".2~s")
    color = charts.by_name("method", dict(METHODS.values()), columns=2)
    base = alt.Chart(rows).encode(x=x, color=color)
    tooltip = [
        tip("method:N", "method"),
        tip("d:Q", "entries of the vector", ","),
        tip("elements:Q", "entries chosen", ","),
        tip("low:Q", "milliseconds, fastest", ".2~g"),
        tip("seconds:Q", "median", ".2~g"),
        tip("high:Q", "slowest", ".2~g"),
    ]
    y = alt.Y("low:Q", title="milliseconds", scale=charts.log(8, base=10))
    y = y.axis(format="~g", values=charts.DECADES[::3])
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q")
    menu = charts.menu("device", list(DEVICES), DEVICES[0], "on")
    lines = charts.dotted(base, 45, y=y, tooltip=tooltip)
    return charts.sized(charts.controlled([bars, lines], menu), 300)
