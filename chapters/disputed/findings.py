"""All ratios of the page on one picture, beside where the papers put them."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import numpy as np
import pandas as pd

from lib.claims import Finding, Group
from lib.page import charts, tips

NEAR = 1.05  # as far from one as a region of equality is drawn
ENDS = (0.2, 5.0)  # of the axis
LESS, SAME = (ENDS[0], 1.0), (1 / NEAR, NEAR)
PAPERS = {  # of each finding: what its ratio is, and where the paper puts it
    "D1": ("outer step, steps", LESS),
    "D2": ("sparse changes, steps", LESS),
    "W1": ("Muon, rate per doubling", SAME),
    "W2": ("decay, timescale", SAME),
    "W2b": ("decay, per doubling", SAME),
    "C1": ("LoRA, critical batch size", LESS),
    "C2": ("higher rank, critical batch size", SAME),
}
WITHIN, BEYOND = "reaches where the paper puts it", "does not reach there"
COLOURS = {WITHIN: charts.BLUE, BEYOND: charts.ORANGE}


def beyond(found: Finding, group: Group) -> bool:
    """Whether a group's whole interval lies off where the paper puts the ratio."""
    least, most = PAPERS[found.key][1]
    return group.low > most or group.high < least


def values(findings: Iterable[Finding]) -> dict[str, int]:
    """What the page's first sentences name."""
    off = [beyond(found, group) for found in findings for group in found.measured]
    return {"comparisons": len(off), "against": sum(off)}


def chart(findings: Iterable[Finding]) -> alt.LayerChart:
    """Every ratio with its interval, a row per finding; shaded: where the paper puts it."""
    rows, regions = [], []
    for found in findings:
        name, region = PAPERS[found.key]
        regions.append((name, *region))
        known = [group for group in found.measured if np.isfinite(group.effect)]
        for place, group in enumerate(known):
            ends = np.clip([group.effect, group.low, group.high], *ENDS)
            where = BEYOND if beyond(found, group) else WITHIN
            height = (place + 0.5) / len(known)
            rows.append((name, height, group.name, where, *ends, group.n))
    columns = "finding height case where ratio ratio_low ratio_high searches".split()
    rows = pd.DataFrame(rows, columns=columns)
    names = [name for name, _ in PAPERS.values()]
    scale = charts.log(domain=ENDS, clamp=True)
    y = alt.Y("finding:N", title=None, sort=names, axis=charts.broken())
    region = alt.Chart(pd.DataFrame(regions, columns=["finding", "least", "most"]))
    region = region.mark_rule(strokeWidth=26, color=charts.GUIDE, opacity=0.18)
    region = region.encode(y=y, x=alt.X("least:Q", scale=scale), x2="most:Q")
    base = alt.Chart(rows).encode(
        y=y,
        yOffset=alt.YOffset("height:Q", scale=alt.Scale(domain=[0, 1])),
        color=charts.by_name("where", COLOURS, 1, 3),
    )
    x = alt.X("ratio:Q", title="ratio measured", scale=scale, axis=charts.fractions())
    low = alt.X("ratio_low:Q", scale=scale)
    tooltip = [
        tips.tip("case:N", "case"),
        tips.tip("ratio:Q", "ratio", ".2f"),
        tips.tip("searches:Q", "searches"),
    ]
    layers = charts.ranges(base, "ratio", x, low, tooltip, size=36)
    return charts.sized(alt.layer(region, *layers), 34 * len(names))
