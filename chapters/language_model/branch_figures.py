"""The figure of a run that branches: how large a batch is useful at each point of the training."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.language_model import branched
from lib.page import charts

NOISE = "noise scale of the run"
COLOURS = (charts.RED, charts.TEAL)  # of the ways to set the learning rate, in their order


def along_the_run(noise: pd.DataFrame, run: branched.Run) -> alt.LayerChart:
    """Noise scale and critical batch sizes, in sequences, against the sequences that the run had
    seen.

    noise: step, batch_size, noise_scale, noise_low, noise_high.  run: that branches; points that
    are not decided are left out.
    """
    noise = noise.assign(seen=noise.step * noise.batch_size)
    decided = {f"critical batch size: {way}": rows[rows.decided] for way, rows in run.ways.items()}
    points = pd.concat([rows.assign(way=way) for way, rows in decided.items()])
    points = points.drop(columns="effect").assign(seen=run.base * points["at"])
    ways = list(dict.fromkeys(points.way))
    names, shades = [NOISE, *ways], [charts.GUIDE, *COLOURS[: len(ways)]]
    legend = alt.Legend(title=None, columns=1, labelLimit=320)
    colour = alt.Color("way:N", scale=alt.Scale(domain=names, range=shades), legend=legend)
    least = min(points.low.clip(lower=1).min(), noise.noise_low.min())
    most = max(points.high.clip(upper=1e4).max(), noise.noise_high.max())
    within = [max(0.5, least / 1.3), most * 1.3]
    scale = alt.Scale(type="log", base=2, domain=within, nice=False)
    wide = alt.Scale(type="log", base=2, nice=False, padding=12)
    axis = alt.Axis(format=",", labelOverlap=True)
    x = alt.X("seen:Q", title="sequences that the run has seen", axis=axis, scale=wide)
    y = alt.Y("noise_scale:Q", title="sequences in a batch", scale=scale)
    followed = alt.Chart(noise.assign(way=NOISE)).encode(x=x)
    tooltip = [
        alt.Tooltip("step:Q", title="step", format=","),
        alt.Tooltip("noise_scale:Q", title="noise scale, sequences", format=".3~r"),
        alt.Tooltip("noise_low:Q", title="interval, from", format=".3~r"),
        alt.Tooltip("noise_high:Q", title="interval, to", format=".3~r"),
    ]
    line = followed.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=30)).encode(
        y=y, color=colour, tooltip=tooltip
    )
    # The ways side by side, where they would hide each other.
    places = {way: 1.06 ** (2 * place - len(ways) + 1) for place, way in enumerate(ways)}
    branches = alt.Chart(points.assign(seen=points.seen * points.way.map(places))).encode(
        x=x, color=colour
    )
    bars = branches.mark_rule(strokeWidth=2, clip=True).encode(
        y=alt.Y("low:Q", scale=scale), y2="high:Q"
    )
    told = [
        alt.Tooltip("way:N", title="learning rate"),
        alt.Tooltip("at:Q", title="branches at step", format=","),
        alt.Tooltip("goal:Q", title="next goal, nats", format=".2f"),
        alt.Tooltip("critical:Q", title="critical batch size, sequences", format=".3~r"),
        alt.Tooltip("low:Q", title="interval, from", format=".3~r"),
        alt.Tooltip("high:Q", title="interval, to", format=".3~r"),
        alt.Tooltip("orders:Q", title="orders of the examples"),
    ]
    dots = branches.mark_point(filled=True, size=80, opacity=1).encode(
        y=alt.Y("critical:Q", scale=scale), tooltip=told
    )
    return alt.layer(line, bars, dots).properties(width="container", height=300)
