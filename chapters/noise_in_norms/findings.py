"""What the page on noise in norms says, as numbers and words, with its figure and its table."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.noise_in_norms import experiments, predicted
from chapters.noise_in_norms.predicted import EUCLID, OWN
from lib.claims.names import title
from lib.page import charts, tips, told
from lib.wording import named, with_interval


def findings(rows: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences; rows: of `predicted.beside`."""
    missed, planned = predicted.misses(rows), experiments.planned()
    spread = predicted.spread(missed)
    differing = missed[missed.index.isin(predicted.OTHERS, level="algorithm")]
    theirs = predicted.spread(differing)
    each = np.exp(missed)
    means = np.exp(missed[OWN].groupby("algorithm").mean())
    adam, muon = (each[OWN].xs(name, level="algorithm").tolist() for name in ("adam", "muon"))
    return {
        "own_told": spread and with_interval(*spread),
        "own_open": bool(spread and spread[1] <= 1 <= spread[2]),
        "others_told": theirs and with_interval(*theirs),
        "others": len(differing),
        "own_each": each[OWN].tolist(),
        "euclid_each": each[EUCLID].tolist(),
        "adam_misses": means["adam"],
        "muon_misses": means["muon"],
        "adam_each": adam,
        "muon_each": muon,
        "networks": rows.workload.nunique(),
        "points": planned[0].points,
        "sample": max(path.examples for path in planned),
        "searches": sorted({int(n) for n in rows.searches}),
    }


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Critical batch size against noise scale, a colour for each method and a shape for each
    network, with the diagonal; a menu chooses the norm.
    """
    ends = [row.noise.row("noise") | row.critical.row("critical") for row in rows.itertuples()]
    shown = pd.DataFrame(ends).join(rows[["algorithm", "norm", "searches"]])
    shown["network"] = rows.workload.map(title)
    shown["method"] = rows.algorithm.map(named)
    marks = shown[["noise", "critical"]].to_numpy()
    ends = [marks.min() / 4, marks.max() * 4]
    bars = ["noise_low", "noise_high", "critical_low", "critical_high"]
    shown[bars] = shown[bars].clip(*ends)
    scale = charts.log(12, domain=ends)
    axis = charts.fractions(values=[2.0**n for n in range(-2, 18, 2)], format=",")
    x = alt.X("noise:Q", title="noise scale (examples)", scale=scale, axis=axis)
    y = alt.Y("critical:Q", title="critical batch size (examples)", scale=scale, axis=axis)
    shape = alt.Shape("network:N", title=None, legend=alt.Legend(columns=1, orient="bottom"))
    base = alt.Chart(shown).encode(x, y, charts.by_algorithm(list(shown.algorithm.unique())))
    tip = [tips.NETWORK, tips.tip("method:N", "training method")]
    tip += [tips.tip("noise:Q", "noise scale", ",.0f"), tips.tip("searches:Q", "paths")]
    tip += [tips.tip("critical:Q", "critical batch size", ",.0f")]
    rule = base.mark_rule(opacity=0.6)
    layers = [
        rule.encode(x=alt.X("noise_low:Q", scale=scale), x2="noise_high:Q"),
        rule.encode(y=alt.Y("critical_low:Q", scale=scale), y2="critical_high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(shape=shape, tooltip=tip),
    ]
    which = charts.menu("norm", [OWN, EUCLID], OWN, "norm")
    line = alt.Chart(pd.DataFrame({"at": ends})).mark_line(color=charts.GUIDE, strokeDash=[4, 4])
    line = line.encode(x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale))
    return charts.sized(alt.layer(line, charts.controlled(layers, which)), 420)


def predictions(found: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, beside what came; found: of `predicted.scales`."""
    missed = predicted.misses(rows)
    own = np.exp(missed[OWN].groupby("algorithm").mean())
    # Geometric means over a method's paths
    over = np.exp((found[OWN] - found[EUCLID]).groupby(found.algorithm).mean())
    return told.predictions(
        [
            ("spread with the method’s own norm, over Euclidean", 0.5, 0.8, predicted.spread(missed)),
            ("Adam’s ℓ₁ noise scale over its Euclidean one", 1.5, 2.2, over["adam"]),
            ("Muon’s nuclear noise scale over its Euclidean one", 2.5, 7, over["muon"]),
            ("Adam’s critical batch size over its ℓ₁ noise scale", 0.5, 2, own["adam"]),
            ("Muon’s critical batch size over its nuclear noise scale", 0, 0.5, own["muon"]),
        ]
    )
