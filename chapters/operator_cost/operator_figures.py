"""Figures of what choosing entries takes, and of what is left of a step for computing."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts
from lib.page.tips import tip

TIMED = {
    "torch.topk": charts.BROWN,
    "Top-k": charts.RED,
    "Gaussian-k": charts.GREEN,
    "Gaussian-k, banded": charts.INDIGO,
    "DGC-k": charts.TEAL,
    "RedSync": charts.ORANGE,
    "Rand-k": charts.PURPLE,
}
METHOD = tip("method:N", "method")
NONE = "No timings yet."


def _entries(title: str) -> alt.X:
    return alt.X("d:Q", title=title, scale=charts.log(8)).axis(format=".2~s")


def operators(timed: pd.DataFrame, title: str = "milliseconds on one core") -> alt.LayerChart:
    """Time to choose against the length of the vector, the fastest repeat, with bars up to the
    slowest.

    Args:
        timed: method (of TIMED), d, elements, seconds (median), low and high.
        title: of the axis of times.
    """
    if timed.empty:
        return charts.nothing(NONE)
    pick, faded = charts.picked("method")
    rows = timed.assign(**{c: 1e3 * timed[c] for c in ("seconds", "low", "high")})
    base = alt.Chart(rows).encode(
        x=_entries("entries of the vector"),
        color=charts.by_name("method", TIMED, columns=2),
        opacity=faded,
    )
    tooltip = [
        METHOD,
        tip("d:Q", "entries of the vector", ","),
        tip("elements:Q", "entries chosen", ","),
        tip("low:Q", "milliseconds, fastest", ".2~g"),
        tip("seconds:Q", "median", ".2~g"),
        tip("high:Q", "slowest", ".2~g"),
    ]
    y = alt.Y("low:Q", title=title, scale=charts.log(8, base=10))
    y = y.axis(format="~g", values=charts.DECADES[::3])
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q").add_params(pick)
    return charts.sized(alt.layer(bars, charts.dotted(base, 45, y=y, tooltip=tooltip)), 250)


# What `efficiency` lets a reader set: values, title, caption
DIALS = {
    "workers": ([2, 4, 8, 16, 32, 64, 128], "workers", "value + ' workers'"),
    "bandwidth": (
        [1.25e8, 1.25e9, 3.1e9, 1.25e10],
        "bandwidth",
        "format(value * 8 / 1e9, '.3~g') + ' Gb/s'",
    ),
    "latency": ([1e-6, 1e-5, 5e-5, 1e-3], "latency", "format(value * 1e6, ',.0f') + ' µs'"),
    "compute": (
        [0.01, 0.03, 0.1, 0.2, 0.5, 1, 3],
        "seconds of computing",
        "format(value, '.2~g') + ' s computing'",
    ),
    "speed": (
        [1, 3, 10, 30, 100, 300, 1000],
        "core speeded up",
        "'core × ' + format(value, ',')",
    ),
}


def dials(workers: int, bandwidth: float, latency: float, compute: float) -> dict[str, tuple]:
    """The dials of DIALS, each where it begins."""
    starts = (workers, bandwidth, latency, compute, 1)
    return {
        name: charts.dial(f"{name}_at", values, start, title, caption)
        for (name, (values, title, caption)), start in zip(DIALS.items(), starts)
    }


def efficiency(
    timed: pd.DataFrame, per_entry: float, formulas: dict[str, str], set_to: dict[str, tuple]
) -> alt.LayerChart:
    """Time of computing over that of a step against the parameters of the network, a line per
    method and one for dense messages.

    Args:
        timed: as for `operators`.
        per_entry: seconds an entry beyond choosing.
        formulas: `links.EXPRESSIONS`.
        set_to: `dials`.
    """
    if timed.empty:
        return charts.nothing(NONE)
    params, at, captions = zip(*set_to.values())
    at = dict(zip(set_to, at))
    link = {name: at[name] for name in ("workers", "latency", "bandwidth")}
    link |= {"d": "datum.d", "elements": "datum.elements"}
    ring, gather = (formulas[name].format(**link) for name in ("ring", "gather"))
    core = f"(datum.seconds + {per_entry} * datum.d) / {at['speed']}"
    total = f"{at['compute']} + if(datum.method === 'dense', {ring}, {core} + {gather})"
    rows = timed.loc[timed.d >= 2**18, ["method", "d", "seconds", "elements"]]
    sizes = sorted(rows.d.unique())
    dense = pd.DataFrame({"method": "dense", "d": sizes, "seconds": 0.0, "elements": 0})
    pick, faded = charts.picked("method")
    share = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    base = alt.Chart(pd.concat([dense, rows])).transform_calculate(total=total)
    lines = charts.dotted(
        base.transform_calculate(efficiency=f"{at['compute']} / datum.total"),
        45,
        x=_entries("parameters of the network"),
        y=alt.Y("efficiency:Q", title="scaling efficiency", axis=share).scale(domain=[0, 1.2]),
        color=charts.by_name("method", {"dense": charts.DENSE} | TIMED, columns=2),
        opacity=faded,
        tooltip=[
            METHOD,
            tip("d:Q", "parameters", ","),
            tip("total:Q", "seconds per step", ".2~g"),
            tip("efficiency:Q", "scaling efficiency", ".0%"),
        ],
    )
    chart = alt.layer(lines.add_params(pick), charts.captions(list(captions)))
    return charts.sized(chart.add_params(*params), 300)
