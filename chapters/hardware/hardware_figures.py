"""The figure of time and price at every batch size on hardware that a reader sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

import altair as alt
import numpy as np
import pandas as pd

from lib.analysis import hardware
from lib.page import charts, tips

KINDS = ("one core, measured", "as the sliders say")
TITLE = "show === 'time' ? 'time to the goal (s)' : 'price of reaching the goal'"
NEAR = 0.1  # shaded batch sizes exceed the best time, or price, by at most this share
TOLD = f"""curve_chosen + (show === 'time' ? ': the fastest' : ': the cheapest')
+ ' batch size is ringed; sizes up to {NEAR:.0%} worse are shaded'""".replace("%", "\u00a0%")
LOG = {"type": "log", "nice": False, "padding": 28}
VALUES = {
    "throughput": [1e2, 1e3, 1e4, 1e5, 1e6],
    "saturation": [2**i for i in range(9)],
    "bandwidth": [1e7, 1e8, 1e9, 1e10, 1e11],
    "latency": [0, 1e-6, 1e-5, 1e-4, 1e-3],
    "price": [0.1, 0.5, 1, 2, 5, 10],
}
WORDS = {  # a slider's title, and the expression that states its value in the caption
    "devices": ("devices at most", "'up to ' + format(value, ',') + ' devices'"),
    "throughput": ("examples per second", "format(value, ',.0f') + ' examples/s'"),
    "saturation": ("examples that keep a device busy", "format(value, ',') + ' to keep a device busy'"),
    "bandwidth": ("bandwidth", "format(value / 1e9, '.2~g') + ' GB/s'"),
    "latency": ("latency", "format(value * 1e6, ',.3~r') + ' µs'"),
    "price": ("price per device and hour", "'price ' + format(value, '.2f') + '/h'"),
}

# `hardware.to_goal` as chart expressions; a test evaluates both.  {own}: whether datum.measured,
# the time of a measured device, is used.
EXPRESSIONS = {
    "seconds": "datum.steps * (({own} ? datum.measured : "
    "max(datum.batch_size / {devices}, {saturation}) / {throughput})"
    " + 2 * ({devices} - 1) * "
    f"({hardware.BYTES} * datum.parameters / {{devices}} / {{bandwidth}} + {{latency}}))",
    "cost": "datum.seconds / 3600 * {devices} * {price}",
}


def dials(start: Mapping[str, float]) -> dict[str, tuple]:
    """The results of `charts.dial`, by field of `lib.analysis.hardware.Hardware`; start: their
    initial values.
    """
    values = {"devices": device_counts(start["devices"]), **VALUES}
    return {
        name: charts.dial(f"{name}_at", values[name], start[name], *WORDS[name])
        for name in values
    }


def device_counts(most: int) -> list[int]:
    """Powers of two up to 1,024, or as far as `most` if that is larger."""
    return [2**i for i in range(max(11, most.bit_length()))]


def _best_devices(table: pd.DataFrame, shown: Mapping[str, tuple], keep: str) -> alt.Chart:
    """A row per curve and batch size, on the best number of devices, with seconds, cost, value and
    its range.
    """
    timed = f"(device === '{KINDS[0]}' && isValid(datum.measured))"
    values = {name: value for name, (_, value, _) in shown.items()}
    values |= {"devices": "datum.devices", "own": timed}
    return (
        alt.Chart(table)
        .transform_flatten(["devices", "measured"])
        .transform_filter(f"{keep} && datum.devices <= {shown['devices'][1]}")
        .transform_calculate(seconds=EXPRESSIONS["seconds"].format(**values))
        .transform_calculate(cost=EXPRESSIONS["cost"].format(**values))
        .transform_calculate(value="show === 'time' ? datum.seconds : datum.cost")
        .transform_window(
            rank="row_number()",
            sort=[alt.SortField("value"), alt.SortField("devices")],
            groupby=["sparsity", "batch_size"],
        )
        .transform_filter("datum.rank === 1")
        # under new names: a field computed from itself would change again with every move of a
        # slider
        .transform_calculate(
            least_value="datum.value * datum.low / datum.steps",
            most_value="datum.value * datum.high / datum.steps",
        )
        .transform_joinaggregate(least="min(value)", groupby=["sparsity"])
    )


def _near(best: alt.Chart, points: pd.DataFrame) -> alt.Chart:
    """Shades the batch sizes that are nearly as good as the densest curve's best; best: from
    `_best_devices` for these points.
    """
    sizes, dense = points.batch_size, points.sparsity.min()
    near = f"datum.sparsity === {dense} && datum.value <= {1 + NEAR} * datum.least"
    return (
        best.transform_filter(near)
        .transform_aggregate(low="min(batch_size)", high="max(batch_size)")
        .transform_calculate(low=f"max({sizes.min()}, datum.low / SQRT2)")
        .transform_calculate(high=f"min({sizes.max()}, datum.high * SQRT2)")
        .mark_rect(color=charts.GUIDE, opacity=0.15)
        .encode(x="low:Q", x2="high:Q")
    )


def by_batch_size(
    points: pd.DataFrame,
    cores: Mapping[str, pd.DataFrame | None],
    machine: hardware.Hardware,
    timed: bool,
    curve: str,
) -> alt.LayerChart:
    """Time to the goal, or its price, against batch size, one line per sparsity; each line's best
    size is ringed, sizes within NEAR of the densest curve's best are shaded.  Sliders without
    effect are not shown.

    Args:
        points: of all curves, with curve (its name) and parameters.
        cores: workload -> step times of one device, or None.
        machine: initial values of the sliders.
        timed: whether the measured device is selected initially.
        curve: name of the network selected initially.
    """
    counts = device_counts(machine.devices)
    measured = [  # seconds of a device's part of a step, by number of devices; [] if not timed
        []
        if cores[name] is None
        else hardware.interpolated(cores[name], size / np.array(counts)).tolist()
        for name, size in zip(points.workload, points.batch_size)
    ]
    columns = ["curve", "sparsity", "batch_size", "steps", "low", "high", "parameters"]
    table = points[columns].assign(devices=[counts] * len(points), measured=measured)
    shown = dials(asdict(machine))
    options = alt.binding_select(options=["time", "price"], name="show ")
    show = alt.param(name="show", value="time", bind=options)
    options = alt.binding_select(options=list(KINDS), name="device ")
    kind = alt.param(name="device", value=KINDS[not timed], bind=options)
    pick, faded = charts.picked("sparsity")
    menu = charts.menu("curve", sorted(table.curve.unique()), curve, "workload")
    rows = _best_devices(table, shown, menu[1])
    base = rows.encode(
        x=charts.batch_axis(table.batch_size),
        color=charts.by_sparsity(sorted(table.sparsity.unique())),
        opacity=faded,
    )
    y = alt.Y("value:Q", title=None).scale(**LOG).axis(values=charts.DECADES)
    devices = tips.tip("devices:Q", "devices", ",")
    costs = tips.listed({"seconds:Q|,.2r": "time to the goal (s)", "cost:Q|,.2r": "price"})
    tooltip = [tips.SPARSITY, tips.BATCH_SIZE, devices, tips.STEPS, *costs]
    line = base.mark_line(point=alt.OverlayMarkDef(size=50)).encode(y=y, tooltip=tooltip)
    bars = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("least_value:Q"), y2="most_value:Q")
    best = base.transform_filter("datum.value <= datum.least * 1.0001")
    rings = best.mark_point(size=220, strokeWidth=3, filled=False).encode(y=y)
    ends = table.sparsity.min(), table.sparsity.max()
    outer = " || ".join(f"datum.sparsity === {end}" for end in ends)
    words = "format(datum.batch_size, ',') + ' on ' + format(datum.devices, ',')"
    names = (  # only for the outermost curves: there is no room between them
        best.transform_filter(outer)
        .transform_calculate(words=words)
        .mark_text(dy=alt.expr(f"datum.sparsity === {ends[0]} ? 20 : -18"), fontWeight="bold")
        .encode(y=y, text="words:N")
    )
    caption = charts.captions([text for *_, text in shown.values()])
    networks = table.curve[table.measured.map(len) > 0].unique().tolist()
    has_times = f"indexof({json.dumps(networks)}, {menu[0].name}) >= 0"
    entered = f"{kind.name} === '{KINDS[1]}' || !({has_times})"
    needed = {
        kind.name: has_times,
        "throughput_at": entered,
        "saturation_at": entered,
        "price_at": f"{show.name} === 'price'",
    }
    layers = _near(rows, table), line.add_params(pick), bars, rings, names, caption
    return (
        alt.layer(*layers, charts.beside(TITLE))
        .add_params(alt.param(name="title_text", expr=TOLD))
        .add_params(show, menu[0], kind, *(param for param, *_ in shown.values()))
        .add_params(*(charts.needed(name, when) for name, when in needed.items()))
        .properties(width="container", height=330)
    )
