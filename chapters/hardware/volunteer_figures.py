"""The figure of volunteers: time to the goal at every batch size, by the formula and simulated."""

from __future__ import annotations

import json

import altair as alt
import pandas as pd

from chapters.hardware.volunteers import EXPRESSIONS, SETTINGS, START
from lib.page import charts, tips

FORMULA, SIMULATED = charts.BLUE, charts.ORANGE


def _dials() -> dict[str, tuple]:
    """What `charts.dial` returns, by setting."""
    stay = (
        "value ? 'peers stay ' + format(60 / value, '.2~r') + ' s on average' : 'nobody leaves'"
    )
    about = {
        "latency": ("latency of a round", "format(value, '~r') + ' s latency'"),
        "speed": ("speed of all online", "format(value, ',~r') + ' examples/s'"),
        "departures": ("coming and going", f"({stay})"),
    }
    return {
        name: charts.dial(f"{name}_at", SETTINGS[name], START[name], *words)
        for name, words in about.items()
    }


def _table(rounds: pd.DataFrame, sizes: list[int]) -> str:
    """Seconds of a round as an expression: {batch size:
    [latency][speed][departures]}[datum.batch_size], at the sliders.
    """
    seconds = rounds.set_index(["batch_size", *SETTINGS]).seconds.sort_index().round(4)
    shape = [len(values) for values in SETTINGS.values()]
    cubes = {b: seconds[b].to_numpy().reshape(shape).tolist() for b in sizes}
    return f"{json.dumps(cubes)}[datum.batch_size]" + "".join(
        f"[{name}_at]" for name in SETTINGS
    )


def by_batch_size(points: pd.DataFrame, rounds: pd.DataFrame, curve: str) -> alt.LayerChart:
    """Time to the goal against batch size: a line by the formula, points simulated, a rule at the
    formula's best.

    points: curve, batch_size, steps, low, high, c1, c2.  rounds: latency, speed, departures,
    batch_size, seconds, one for every setting of the sliders.  curve: the one shown at first.
    """
    dials = _dials()
    menu = charts.menu("curve", list(points.curve.unique()), curve, "network")
    sizes = sorted(map(int, points.batch_size.unique()))
    ends = {"least": ("batch_size", "min"), "most": ("batch_size", "max")}
    law = {"c1": ("c1", "first"), "c2": ("c2", "first")}
    lines = points.groupby("curve").agg(**law, **ends)
    known = f"{json.dumps(lines.T.to_dict('list'))}[curve_chosen]"
    numbers = {"c1": f"{known}[0]", "c2": f"{known}[1]"}
    numbers |= {name: dials[name][1] for name in ("latency", "speed")}
    time, best = (f"({EXPRESSIONS[name].format(**numbers)})" for name in ("time", "best"))
    ends = [sizes[0] / 1.3, sizes[-1] * 1.3]
    x = charts.batch_axis(sizes)
    x = x.scale(charts.log(domain=ends))
    y = alt.Y("value:Q", title="time to the goal (minutes)")
    y = y.axis(values=charts.DECADES).scale(charts.log(14, base=10))
    line = alt.Chart(alt.sequence(0, 1.005, 0.01, as_="place")).transform_calculate(
        batch_size=f"{known}[2] * pow({known}[3] / {known}[2], datum.place)"
    )
    line = line.transform_calculate(value=f"{time} / 60")
    line = line.mark_line(color=FORMULA, strokeWidth=2.2).encode(x=x, y=y)
    base = (
        alt.Chart(points)
        .transform_filter(menu[1])
        .transform_calculate(seconds=_table(rounds, sizes), formula=f"{time} / 60")
        .transform_calculate(
            value="datum.steps * datum.seconds / 60",
            least="datum.low * datum.seconds / 60",
            most="datum.high * datum.seconds / 60",
        )
        .transform_joinaggregate(lowest="min(value)")
        .encode(x=x)
    )
    tooltip = [
        tips.BATCH_SIZE,
        tips.STEPS,
        tips.tip("seconds:Q", "a simulated round (s)", ",.2r"),
        tips.tip("value:Q", "simulated time (min)", ",.2r"),
        tips.tip("formula:Q", "time by the formula (min)", ",.2r"),
    ]
    bars = base.mark_rule(color=SIMULATED, strokeWidth=2)
    bars = bars.encode(y=alt.Y("least:Q"), y2="most:Q")
    dots = base.mark_point(color=SIMULATED, filled=True, size=65, opacity=1)
    ring = base.transform_filter("datum.value <= datum.lowest * 1.0001")
    ring = ring.mark_point(color=SIMULATED, size=220, strokeWidth=3).encode(y=y)
    rule = _rule(best, known, sizes, x)
    caption = charts.captions([text for *_, text in dials.values()])
    layers = [line, bars, dots.encode(y=y, tooltip=tooltip), ring, *rule, caption]
    chart = alt.layer(*layers).add_params(menu[0], *(param for param, *_ in dials.values()))
    return charts.sized(chart, 360)


def _rule(best: str, known: str, sizes: list[int], x: alt.X) -> list[alt.Chart]:
    """A vertical rule at the formula's batch, with its size in words.

    Args:
        best: that batch as an expression.
        known: an expression of the curve chosen, with its sizes' ends at places 2 and 3.
    """
    beyond = f"{best} > {known}[3] || {best} < {known}[2] ? ', not measured' : ''"
    at = alt.Chart(alt.sequence(0, 1, 1, as_="one")).transform_calculate(
        batch_size=f"clamp({best}, {sizes[0]}, {sizes[-1]})",
        words=f"'formula: ' + format({best}, ',.2r') + ({beyond})",
        side=f"{best} > {(sizes[0] * sizes[-1]) ** 0.5} ? 'right' : 'left'",
    )
    beside = {
        "align": alt.expr("datum.side"),
        "dx": alt.expr("datum.side === 'right' ? -6 : 6"),
    }
    words = at.mark_text(**beside, baseline="top", fontWeight="bold")
    below = alt.value(44)  # the captions of a still picture
    return [
        at.mark_rule(color=FORMULA, strokeDash=[4, 4], strokeWidth=1.5).encode(x=x),
        words.encode(x=x, y=below, text="words:N"),
    ]
