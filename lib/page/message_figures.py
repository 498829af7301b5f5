"""The figures of the pages on sparse messages: errors, what is sent, gradients, bounds and times."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts

METHODS = {
    "dense": charts.DENSE,
    "Top-k": charts.RED,
    "Gaussian-k": charts.GREEN,
    "DGC-k": charts.TEAL,
    "Rand-k with feedback": charts.ORANGE,
    "Rand-k": charts.PURPLE,
}
TIMED = {
    "torch.topk": charts.BROWN,
    "Top-k": charts.RED,
    "Gaussian-k": charts.GREEN,
    "Gaussian-k, banded": charts.INDIGO,
    "DGC-k": charts.TEAL,
    "RedSync": charts.ORANGE,
    "Rand-k": charts.PURPLE,
}
METHOD = alt.Tooltip("method:N", title="method")
DENSITY = alt.Tooltip("density:Q", title="density", format=".2~g")


def _colour(colours: dict[str, str], field: str = "method", columns: int = 2) -> alt.Color:
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    columns = alt.expr(f"width < {charts.PHONE} ? {columns} : {2 * columns}")
    legend = alt.Legend(columns=columns, columnPadding=8, labelLimit=220)
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=legend)


# --- training -------------------------------------------------------------------------------------


def errors(lines: pd.DataFrame, networks: list[str], densities: list[float]) -> alt.LayerChart:
    """Test error against steps or megabytes, a line per method, with menus of networks and axes and
    a slider over densities.

    lines: network, method, density, budget (steps), megabytes, error, low, high (over seeds),
    seeds, rate; networks, densities: those to choose from, shown first first.
    """
    if lines.empty:
        return charts.nothing("No records yet.")
    sides = {"training steps": "budget", "megabytes sent by a worker": "megabytes"}
    long = pd.concat([lines.assign(axis=name, x=lines[column]) for name, column in sides.items()])
    controls = [
        charts.menu("network", networks, networks[0], "network"),
        charts.menu("axis", list(sides), next(iter(sides)), "against"),
        charts.slider(
            "density", densities, densities[0], "density", "'density ' + format(value, '.2~g')"
        ),
    ]
    pick, faded = charts.picked("method")
    scale = alt.Scale(type="log", nice=False, padding=8)
    base = alt.Chart(long).encode(
        x=alt.X("x:Q", title="training steps, or megabytes sent", scale=scale).axis(
            values=charts.DECADES
        ),
        color=_colour({m: c for m, c in METHODS.items() if m in set(lines.method)}),
        opacity=faded,
    )
    tip = [
        METHOD,
        alt.Tooltip("budget:Q", title="training steps", format=","),
        alt.Tooltip("megabytes:Q", title="megabytes sent by a worker", format=".3g"),
        alt.Tooltip("error:Q", title="test error, mean", format=".2%"),
        alt.Tooltip("low:Q", title="lowest seed", format=".2%"),
        alt.Tooltip("high:Q", title="highest seed", format=".2%"),
        alt.Tooltip("seeds:Q", title="seeds"),
        alt.Tooltip("rate:Q", title="learning rate", format=".3f"),
    ]
    y = alt.Y("error:Q", title="test error", scale=scale).axis(format="~%", values=charts.DECADES)
    marks = base.mark_line(point=alt.OverlayMarkDef(size=45)).encode(y=y, tooltip=tip)
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q").add_params(pick)
    return charts.controlled([bars, marks], *controls).properties(width="container", height=250)


FLOOR = 1e-3  # of what is drawn on a logarithmic axis


def sent(runs: pd.DataFrame, networks: list[str], densities: list[float]) -> alt.LayerChart:
    """Entries sent over those asked for against the step, a line per method and learning rate; what
    is below FLOOR is drawn there.

    runs: network, method, density, learning_rate, budget (step), over.
    """
    if runs.empty:
        return charts.nothing("No records yet.")
    pick, faded = charts.picked("method")
    tip = [
        METHOD,
        alt.Tooltip("learning_rate:Q", title="learning rate", format=".3f"),
        alt.Tooltip("budget:Q", title="up to step", format=","),
        alt.Tooltip("over:Q", title="entries sent over those asked for", format=".2~g"),
    ]
    ticks = charts.powers(
        [-3, -2, -1, 0, 1, 2], {-2: "0.01", -1: "0.1", -3: "≤ 0.001", 1: "10", 2: "100"}
    )
    y = alt.Y("drawn:Q", title="entries sent over k", axis=ticks).scale(
        type="log", nice=False, padding=8
    )
    line = (
        alt.Chart(runs.assign(drawn=runs.over.clip(lower=FLOOR)))
        .mark_line(point=alt.OverlayMarkDef(size=30))
        .encode(
            x=alt.X("budget:Q", title="training step").scale(
                type="log", base=2, nice=False, padding=8
            ),
            y=y,
            color=_colour({m: c for m, c in METHODS.items() if m in set(runs.method)}),
            detail="learning_rate:N",
            opacity=faded,
            tooltip=tip,
        )
        .add_params(pick)
    )
    asked = (
        alt.Chart(pd.DataFrame({"drawn": [1]}))
        .mark_rule(color=charts.GUIDE, strokeDash=[4, 4])
        .encode(y=y)
    )
    menu = charts.menu("network", networks, networks[0], "network")
    share = charts.slider(
        "density", densities, densities[0], "density", "'density ' + format(value, '.2~g')"
    )
    return alt.layer(asked, charts.controlled([line], menu, share)).properties(
        width="container", height=280
    )


def joint(curves: pd.DataFrame, start: str) -> alt.LayerChart:
    """Steps to result against the density of messages, a line per sparsity; curves: of
    `joint_curves`, place (its menu's name).
    """
    if curves.empty:
        return charts.nothing("No records yet.")
    places = list(dict.fromkeys(curves.place))
    scale, shares = (
        alt.Scale(type="log", base=2, nice=False, padding=10),
        sorted(curves.density.unique()),
    )
    ends = [shares[0] / 1.6, shares[-1] * 1.6]
    axis = alt.Axis(values=shares, format=".2~g", grid=False)
    base = alt.Chart(curves).encode(
        x=alt.X("density:Q", title="density of the messages", axis=axis).scale(
            type="log", reverse=True, domain=ends, nice=False
        ),
        color=charts.by_sparsity(sorted(curves.sparsity.unique())),
    )
    tip = [
        alt.Tooltip("sparsity:N", title="sparsity of the network"),
        DENSITY,
        alt.Tooltip("steps:Q", title="steps to result", format=","),
        alt.Tooltip("low:Q", title="5 % over searches", format=",.0f"),
        alt.Tooltip("high:Q", title="95 % over searches", format=",.0f"),
        alt.Tooltip("trials:Q", title="trials of the search"),
        alt.Tooltip("hits_seen:Q", title="trials that met the goal"),
    ]
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    line = base.mark_line(point=alt.OverlayMarkDef(size=64)).encode(y=y, tooltip=tip)
    menu = charts.menu("place", places, start if start in places else places[0], "where")
    return charts.controlled([bars, line], menu).properties(width="container", height=300)


# --- gradients ------------------------------------------------------------------------------------


def of_ways(names: list[str]) -> dict[str, str]:
    """A colour for every way of sending; everything sent has that of dense networks."""
    shades = iter([charts.RED, charts.ORANGE, charts.GREEN, charts.TEAL])
    return {name: charts.DENSE if name == "everything sent" else next(shades) for name in names}


def shapes(
    entries: pd.DataFrame, normal: pd.DataFrame, ways: list[str], network: str, step: int
) -> alt.LayerChart:
    """Densities of a vector's entries on a logarithmic axis, a line per way of sending, one network
    and step at a time.

    entries: network, way, step, x (in standard deviations), value (positive); normal: x and value
    of a normal distribution.
    """
    if entries.empty:
        return charts.nothing("Not measured yet.")
    pick, faded = charts.picked("way")
    x = alt.X("x:Q", title="entry over the standard deviation of all entries").scale(domain=[-6, 6])
    y = alt.Y(
        "value:Q", title="probability density", axis=charts.powers([-4, -3, -2, -1, 0, 1])
    ).scale(type="log", domain=[1e-5, 20], clamp=True)
    guide = alt.Chart(normal).mark_line(strokeDash=[4, 4], color=charts.GUIDE).encode(x=x, y=y)
    tip = [
        alt.Tooltip("way:N", title="sent"),
        alt.Tooltip("x:Q", title="standard deviations", format=".2f"),
        alt.Tooltip("value:Q", title="probability density", format=".2~g"),
    ]
    lines = (
        alt.Chart(entries)
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=x, y=y, color=_colour(of_ways(ways), "way", columns=1), opacity=faded, tooltip=tip
        )
        .add_params(pick)
    )
    networks, steps = sorted(entries.network.unique()), sorted(map(int, entries.step.unique()))
    menu = charts.menu(
        "network", networks, network if network in networks else networks[0], "network"
    )
    slider = charts.slider(
        "step", steps, step if step in steps else steps[0], "step", "'step ' + format(value, ',')"
    )
    return alt.layer(guide, charts.controlled([lines], menu, slider)).properties(
        width="container", height=250
    )


# --- bounds ---------------------------------------------------------------------------------------

BOUNDS = {
    "1 − k/d (any vector)": charts.GUIDE,
    "(1 − k/d)² (bell)": charts.RED,
    "normal distribution": charts.TEAL,
}
VECTOR = alt.Tooltip("vector:N", title="vector")


def bounds(
    curves: pd.DataFrame, band: pd.DataFrame, dots: pd.DataFrame, start: str
) -> alt.LayerChart:
    """What Top-k leaves of the energy against the density: bounds, the range of what was measured,
    and one vector's dots.

    curves: bound (of BOUNDS), x, value; band: x, low, middle, high; dots: vector, x, value, for the
    menu.
    """
    x = alt.X(
        "x:Q", title="density k/d", axis=alt.Axis(values=[0.001, 0.01, 0.1, 1], format="~g")
    ).scale(type="log", domain=[1e-3, 1])
    y = (
        alt.Y("value:Q", title="share of the energy that is left")
        .scale(domain=[0, 1])
        .axis(format="%")
    )
    share = {"title": "left", "format": ".2%"}
    tip = [
        alt.Tooltip("bound:N", title="curve"),
        alt.Tooltip("x:Q", title="density", format=".2~g"),
    ]
    lines = (
        alt.Chart(curves)
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=_colour(BOUNDS, "bound", columns=1),
            tooltip=[*tip, alt.Tooltip("value:Q", **share)],
        )
    )
    within = [
        alt.Tooltip("x:Q", title="density", format=".2~g"),
        *(
            alt.Tooltip(f"{c}:Q", title=f"{t} left", format=".2%")
            for c, t in zip(band.columns[1:], ("least", "median", "most"))
        ),
    ]
    area = alt.Chart(band).mark_area(opacity=0.35, color=charts.BLUE)
    area = area.encode(
        x=x, y=alt.Y("low:Q", title="share of the energy that is left"), y2="high:Q", tooltip=within
    )
    points = alt.Chart(dots).mark_point(filled=True, size=40, opacity=1, color=charts.BLUE)
    points = points.encode(x=x, y=y, tooltip=[VECTOR, tip[1], alt.Tooltip("value:Q", **share)])
    menu = charts.menu("vector", list(dict.fromkeys(dots.vector)), start, "dots")
    return alt.layer(area, lines, charts.controlled([points], menu)).properties(
        width="container", height=280
    )


def profiles(rows: pd.DataFrame, start: str) -> alt.LayerChart:
    """Sorted squared entries over the largest, one vector at a time, below a straight line; rows:
    vector, x, value.
    """
    straight = pd.DataFrame({"x": [0, 1], "value": [1, 0]})
    x = alt.X("x:Q", title="share of the entries, largest first").axis(format="%")
    y = alt.Y("value:Q", title="squared entry over the largest").scale(domain=[0, 1])
    line = alt.Chart(straight).mark_line(strokeDash=[4, 4], color=charts.GUIDE).encode(x=x, y=y)
    tip = [
        VECTOR,
        alt.Tooltip("x:Q", title="share of the entries", format=".0%"),
        alt.Tooltip("value:Q", title="squared entry over the largest", format=".2~g"),
    ]
    area = (
        alt.Chart(rows)
        .mark_area(opacity=0.5, line=True, color=charts.BLUE)
        .encode(x=x, y=y, tooltip=tip)
    )
    menu = charts.menu("vector", list(dict.fromkeys(rows.vector)), start, "vector")
    return alt.layer(charts.controlled([area], menu), line).properties(
        width="container", height=240
    )


# --- times ----------------------------------------------------------------------------------------


def operators(timed: pd.DataFrame, title: str = "milliseconds on one core") -> alt.LayerChart:
    """Time to choose against the length of the vector, the fastest repeat, with bars up to the
    slowest.

    timed: method (of TIMED), d, elements, seconds (median), low, high.  title: of the axis of
    times.
    """
    if timed.empty:
        return charts.nothing("No timings yet.")
    pick, faded = charts.picked("method")
    rows = timed.assign(**{c: 1e3 * timed[c] for c in ("seconds", "low", "high")})
    x = (
        alt.X("d:Q", title="entries of the vector")
        .scale(type="log", base=2, nice=False, padding=8)
        .axis(format=".2~s")
    )
    base = alt.Chart(rows).encode(x=x, color=_colour(TIMED), opacity=faded)
    tip = [
        METHOD,
        alt.Tooltip("d:Q", title="entries of the vector", format=","),
        alt.Tooltip("elements:Q", title="entries chosen", format=","),
        alt.Tooltip("low:Q", title="milliseconds, fastest", format=".2~g"),
        alt.Tooltip("seconds:Q", title="median", format=".2~g"),
        alt.Tooltip("high:Q", title="slowest", format=".2~g"),
    ]
    scale = alt.Scale(type="log", nice=False, padding=8)
    y = alt.Y("low:Q", title=title, scale=scale).axis(format="~g", values=charts.DECADES[::3])
    marks = base.mark_line(point=alt.OverlayMarkDef(size=45)).encode(y=y, tooltip=tip)
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q").add_params(pick)
    return alt.layer(bars, marks).properties(width="container", height=250)


def dials(workers: int, bandwidth: float, latency: float, compute: float) -> dict[str, tuple]:
    """What `efficiency` lets a reader set, and where its dials begin."""
    return {
        "workers": charts.dial(
            "workers_at", [2, 4, 8, 16, 32, 64, 128], workers, "workers", "value + ' workers'"
        ),
        "bandwidth": charts.dial(
            "bandwidth_at",
            [1.25e8, 1.25e9, 3.1e9, 1.25e10],
            bandwidth,
            "bandwidth",
            "format(value * 8 / 1e9, '.3~g') + ' Gb/s'",
        ),
        "latency": charts.dial(
            "latency_at",
            [1e-6, 1e-5, 5e-5, 1e-3],
            latency,
            "latency",
            "format(value * 1e6, ',.0f') + ' µs'",
        ),
        "compute": charts.dial(
            "compute_at",
            [0.01, 0.03, 0.1, 0.2, 0.5, 1, 3],
            compute,
            "seconds of computing",
            "format(value, '.2~g') + ' s computing'",
        ),
        "speed": charts.dial(
            "speed_at",
            [1, 3, 10, 30, 100, 300, 1000],
            1,
            "core speeded up",
            "'core × ' + format(value, ',')",
        ),
    }


def efficiency(
    timed: pd.DataFrame, per_entry: float, formulas: dict[str, str], set_to: dict[str, tuple]
) -> alt.LayerChart:
    """Time of computing over that of a step against the parameters of the network, a line per
    method and one for dense messages.

    timed: as for `operators`.  per_entry: seconds an entry beyond choosing.  formulas:
    `links.EXPRESSIONS`.  set_to: `dials`.
    """
    if timed.empty:
        return charts.nothing("No timings yet.")
    at = {name: dial[1] for name, dial in set_to.items()}
    told = {"workers": at["workers"], "latency": at["latency"], "bandwidth": at["bandwidth"]}
    ring, gather = (
        formulas[name].format(**told, d="datum.d", elements="datum.elements")
        for name in ("ring", "gather")
    )
    core = f"(datum.seconds + {per_entry} * datum.d) / {at['speed']}"
    total = f"{at['compute']} + if(datum.method === 'dense', {ring}, {core} + {gather})"
    rows = timed.loc[timed.d >= 2**18, ["method", "d", "seconds", "elements"]]
    dense = pd.DataFrame(
        {"method": "dense", "d": sorted(rows.d.unique()), "seconds": 0.0, "elements": 0}
    )
    pick, faded = charts.picked("method")
    x = (
        alt.X("d:Q", title="parameters of the network")
        .scale(type="log", base=2, nice=False, padding=8)
        .axis(format=".2~s")
    )
    share = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    tip = [
        METHOD,
        alt.Tooltip("d:Q", title="parameters", format=","),
        alt.Tooltip("total:Q", title="seconds per step", format=".2~g"),
        alt.Tooltip("efficiency:Q", title="scaling efficiency", format=".0%"),
    ]
    base = alt.Chart(pd.concat([dense, rows])).transform_calculate(total=total)
    line = base.transform_calculate(efficiency=f"{at['compute']} / datum.total").mark_line(
        point=alt.OverlayMarkDef(size=45)
    )
    y = alt.Y("efficiency:Q", title="scaling efficiency", axis=share).scale(domain=[0, 1.2])
    line = line.encode(
        x=x, y=y, color=_colour({"dense": charts.DENSE} | TIMED), opacity=faded, tooltip=tip
    ).add_params(pick)
    caption = charts.captions([dial[2] for dial in set_to.values()])
    return (
        alt.layer(line, caption)
        .add_params(*(dial[0] for dial in set_to.values()))
        .properties(width="container", height=300)
    )
