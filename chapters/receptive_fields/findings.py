"""What the page on receptive fields says, as numbers and words, with its figure and its tables."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.receptive_fields import localised, searches
from chapters.receptive_fields.localised import DRAWN
from chapters.receptive_fields.searches import EDGED, GOALS, SITES
from lib.analysis import replicates
from lib.page import charts, tips, told
from lib.wording import percent, with_interval

INPUTS = {EDGED: "with edges", 0.0: "Gaussian"}
COLOURS = {INPUTS[EDGED]: charts.ORANGE, INPUTS[0.0]: charts.BLUE}
RANKS = {"harder": 0, "easier": 1}
SMALL, *_, LARGE = searches.BATCH_SIZES
RANGES = {  # as predicted before the records
    "over": ("participation with edges, over Gaussian", 1.3, 1.8),
    "edged_drawn": ("with edges, over weights as drawn", 1, np.inf),
    "gaussian_drawn": ("Gaussian, over weights as drawn", 0, 1),
    "edged_sizes": ("with edges, largest over smallest batch", 0.8, 1.25),
    "edged_neighbours": ("neighbours kept, over chance, with edges", 1, np.inf),
}


def findings(found: pd.DataFrame, goal: str) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        found: of `localised.by_search`.
        goal: in RANKS.
    """
    rank = RANKS[goal]
    own = localised.at_goal(found, rank)
    effects = {
        "over": localised.beside_gaussian(own),
        "edged_drawn": localised.beside_drawn(own, EDGED),
        "gaussian_drawn": localised.beside_drawn(own, 0.0),
        "edged_sizes": localised.across_sizes(own, EDGED),
        "gaussian_sizes": localised.across_sizes(own, 0.0),
    }
    values = told.ratios(effects, ("over", "edged_sizes"))
    edged, gaussian = (values[f"{name}_drawn"] for name in ("edged", "gaussian"))
    pruned = found[found.sparsity > 0]
    kept = {gain: float(part.neighbours.mean()) for gain, part in pruned.groupby("gain")}
    return {
        **values,
        "edged": edged and edged * DRAWN,
        "gaussian": gaussian and gaussian * DRAWN,
        "sites": edged and SITES / (edged * DRAWN),
        "drawn": DRAWN,
        "searches": effects["over"].n if effects["over"] else None,
        "planned": len(searches.REPLICATES),
        "trials": searches.Search(0.0, SMALL).trials,
        "small": SMALL,
        "large": LARGE,
        "edged_goal": percent(GOALS[EDGED][rank]),
        "gaussian_goal": percent(GOALS[0.0][rank]),
        "pruned": percent(searches.PRUNED["sparsity"]),
        "pruned_searches": pruned.replicate.nunique(),
        "edged_neighbours": kept.get(EDGED),
        "gaussian_neighbours": kept.get(0.0),
    }


def points(own: pd.DataFrame) -> pd.DataFrame:
    """`replicates.by_size` of participation and steps, for either inputs; own: of `at_goal`."""
    parts = [
        replicates.by_size(own[own.gain == gain], "participation", "steps").assign(inputs=name)
        for gain, name in INPUTS.items()
    ]
    ends = {"participation_low": "low", "participation_high": "high"}
    return pd.concat(parts, ignore_index=True).rename(columns=ends)


def chart(own: pd.DataFrame) -> alt.LayerChart:
    """Participation against batch size, a colour for either inputs; faint: single searches; dashed:
    weights as they are drawn.
    """
    if not len(own):
        return charts.nothing("Nothing is measured yet.")
    means, single = points(own), own.assign(inputs=own.gain.map(INPUTS))
    scale = alt.Scale(zero=False, nice=False, padding=14)
    y = alt.Y("participation:Q", title="participation of a field (1: even, 64: one site)")
    y = y.scale(scale)
    tooltip = [
        tips.tip("inputs:N", "inputs"),
        tips.BATCH_SIZE,
        tips.tip("participation:Q", "participation", ".2f"),
        tips.tip("searches:Q", "searches"),
    ]
    colour = charts.by_name("inputs", COLOURS, columns=2)
    base = alt.Chart(means).encode(x=charts.batch_axis(means.batch_size), color=colour)
    shown = means.assign(low=means.low.clip(lower=1), high=means.high.clip(upper=8))
    faint = base.properties(data=single).mark_point(size=40, opacity=0.45).encode(y=y)
    drawn = alt.Chart(pd.DataFrame({"participation": [DRAWN]}))
    rule = drawn.mark_rule(strokeDash=[5, 4], color=charts.GUIDE, strokeWidth=1.6).encode(y=y)
    layers = charts.curve(base.properties(data=shown), y, scale, tooltip)
    return alt.layer(rule, faint, *layers).properties(width="container", height=340)


def table(own: pd.DataFrame) -> pd.DataFrame:
    """Participation and steps to the goal of either inputs."""
    return pd.DataFrame(
        [
            {
                "inputs": row.inputs,
                "batch size": int(row.batch_size),
                "participation": with_interval(row.participation, row.low, row.high),
                "steps to the goal": with_interval(row.steps, row.steps_low, row.steps_high),
                "searches": int(row.searches),
            }
            for row in points(own).itertuples()
        ]
    )


def predictions(values: dict[str, object]) -> pd.DataFrame:
    """What was written down before the records, beside what came; values: of `findings`."""
    return told.predictions((*RANGES[name], values[name]) for name in RANGES)
