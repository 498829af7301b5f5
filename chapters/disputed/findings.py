"""All claims of the page on one picture, and how many of them hold."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import numpy as np
import pandas as pd

from lib.claims import AGAINST, FOR, OPEN, UNDECIDED, Claim
from lib.page import charts, tips

NAMES = {  # of the ratios that claims are about
    "D1": "outer step, steps",
    "D2": "sparse changes, steps",
    "W1": "Muon, rate per doubling",
    "W2": "decay, timescale",
    "W2b": "decay, per doubling",
    "C1": "LoRA, critical batch size",
    "C2": "higher rank, critical batch size",
}
WORDS = {FOR: "agrees with the claim", AGAINST: "contradicts it", UNDECIDED: "unclear"}
COLOURS = dict(zip(WORDS.values(), (charts.BLUE, charts.ORANGE, charts.GUIDE)))
ENDS = (0.2, 5.0)  # of the axis


def values(judged: Iterable[Claim]) -> dict[str, int]:
    """What the page's first sentences name."""
    judged = list(judged)
    verdicts = [group.verdict for claim in judged for group in claim.measured]
    return {
        "claims": len(judged),
        "contradicted": sum(claim.verdict.endswith(f": {AGAINST}") for claim in judged),
        "unclear": sum(claim.verdict == OPEN for claim in judged),
        "comparisons": len(verdicts),
        "against": verdicts.count(AGAINST),
        "agree": verdicts.count(FOR),
    }


def chart(judged: Iterable[Claim]) -> alt.LayerChart:
    """Every ratio with its interval, a row per claim; shaded: where the claim needs it to lie."""
    rows, needed = [], []
    for claim in judged:
        name, edge = NAMES[claim.key], claim.threshold
        least = {"above": edge, "below": ENDS[0], "within": 1 / edge}[claim.kind]
        needed.append((name, least, ENDS[1] if claim.kind == "above" else edge))
        known = [group for group in claim.measured if np.isfinite(group.effect)]
        for place, group in enumerate(known):
            ends = np.clip([group.effect, group.low, group.high], *ENDS)
            height = (place + 0.5) / len(known)
            rows.append((name, height, group.name, WORDS[group.verdict], *ends, group.n))
    columns = [
        "claim",
        "height",
        "case",
        "verdict",
        "ratio",
        "ratio_low",
        "ratio_high",
        "searches",
    ]
    rows = pd.DataFrame(rows, columns=columns)
    scale = charts.log(domain=ENDS, clamp=True)
    y = alt.Y("claim:N", title=None, sort=list(NAMES.values()), axis=charts.broken())
    region = alt.Chart(pd.DataFrame(needed, columns=["claim", "least", "most"]))
    region = region.mark_rule(strokeWidth=26, color=charts.GUIDE, opacity=0.18)
    region = region.encode(y=y, x=alt.X("least:Q", scale=scale), x2="most:Q")
    colour = charts.by_name("verdict", COLOURS, 1, 3)
    offset = alt.YOffset("height:Q", scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(rows).encode(y=y, yOffset=offset, color=colour)
    words = "ratio that the claim is about"
    x = alt.X("ratio:Q", title=words, scale=scale, axis=charts.fractions())
    low = alt.X("ratio_low:Q", scale=scale)
    tooltip = [
        tips.tip("case:N", "case"),
        tips.tip("ratio:Q", "ratio", ".2f"),
        tips.tip("verdict:N", "verdict"),
        tips.tip("searches:Q", "searches"),
    ]
    layers = charts.ranges(base, "ratio", x, low, tooltip, size=36)
    return charts.sized(alt.layer(region, *layers), 34 * len(NAMES))
