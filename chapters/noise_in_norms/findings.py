"""What the page on noise in norms says, as numbers and words, with its figure and its tables."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.noise_in_norms import experiments, predicted
from chapters.noise_in_norms.predicted import ENTRIES, EUCLID, NORMS, OWN, SPECTRUM
from lib.claims.names import title
from lib.page import charts, tips, told
from lib.wording import named, with_interval

RANGES = {  # as predicted before the records
    "own_spread": ("spread with the method’s own norm, over Euclidean", 0.5, 0.8),
    "adam_over": ("Adam’s ℓ₁ noise scale over its Euclidean one", 1.5, 2.2),
    "muon_over": ("Muon’s nuclear noise scale over its Euclidean one", 2.5, 7),
    "adam_misses": ("Adam’s critical batch size over its ℓ₁ noise scale", 0.5, 2),
    "muon_misses": ("Muon’s critical batch size over its nuclear noise scale", 0, 0.5),
}


def findings(found: pd.DataFrame, rows: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences; found, rows: of `predicted.scales` and `beside`."""
    missed, planned = predicted.misses(rows), experiments.planned()
    spreads, words = {}, {}
    for norm in (OWN, ENTRIES, SPECTRUM):
        spreads[norm] = predicted.spread(missed, norm)
        words[norm] = spreads[norm] and with_interval(*spreads[norm])
    # Geometric means, over a method's paths and over networks
    over = np.exp((found[OWN] - found[EUCLID]).groupby(found.algorithm).mean())
    own = np.exp(missed[OWN].groupby("algorithm").mean())
    within = missed.groupby("workload").std()
    counts = {int(n) for n in rows.searches}
    return {
        "own_told": words[OWN],
        "entries_told": words[ENTRIES],
        "spectrum_told": words[SPECTRUM],
        "own_spread": spreads[OWN] and spreads[OWN][0],
        "within": (within[OWN] / within[EUCLID]).tolist(),
        "adam_over": over.get("adam"),
        "muon_over": over.get("muon"),
        "adam_misses": own.get("adam"),
        "muon_misses": own.get("muon"),
        "adam_each": _each(missed, "adam"),
        "muon_each": _each(missed, "muon"),
        "own_open": bool(spreads[OWN] and spreads[OWN][1] <= 1 <= spreads[OWN][2]),
        "own_each": np.exp(missed[OWN]).tolist(),
        "euclid_each": np.exp(missed[EUCLID]).tolist(),
        "networks": len(within),
        "points": planned[0].points,
        "sample": max(path.examples for path in planned),
        "searches": sorted(counts),
    }


def _each(missed: pd.DataFrame, name: str) -> list[float]:
    """A method's critical batch sizes over the noise scales in its own norm, a value per network."""
    own = missed[missed.index.get_level_values("algorithm") == name]
    return np.exp(own[OWN]).tolist()


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Critical batch size against noise scale, a colour for each method and a shape for each
    network, with the diagonal; a menu chooses the norm.
    """
    ends = [row.noise.row("noise") | row.critical.row("critical") for row in rows.itertuples()]
    shown = pd.DataFrame(ends).join(rows[["algorithm", "norm", "searches"]])
    shown["network"] = rows.workload.map(title)
    shown["method"] = rows.algorithm.map(named)
    known = shown[list(ends[0])].to_numpy()
    known = known[np.isfinite(known) & (known > 0)]
    ends = [max(known.min(), shown.critical.min() / 4), min(known.max(), shown.noise.max() * 2)]
    bars = ["noise_low", "noise_high", "critical_low", "critical_high"]
    shown[bars] = shown[bars].clip(*ends)
    scale = charts.log(12, domain=ends)
    axis = charts.fractions(values=[2.0**n for n in range(-2, 18, 2)], format=",")
    x = alt.X("noise:Q", title="noise scale (examples)", scale=scale, axis=axis)
    y = alt.Y("critical:Q", title="critical batch size (examples)", scale=scale, axis=axis)
    below = alt.Legend(columns=1, orient="bottom")
    shape = alt.Shape("network:N", title=None, legend=below)
    base = alt.Chart(shown).encode(color=charts.by_algorithm(list(shown.algorithm.unique())))
    tip = [tips.NETWORK, tips.tip("method:N", "training method")]
    tip += [tips.tip("noise:Q", "noise scale", ",.0f"), tips.tip("searches:Q", "paths")]
    tip += [tips.tip("critical:Q", "critical batch size", ",.0f")]
    rule = base.mark_rule(opacity=0.6)
    layers = [
        rule.encode(x=alt.X("noise_low:Q", scale=scale), x2="noise_high:Q", y=y),
        rule.encode(y=alt.Y("critical_low:Q", scale=scale), y2="critical_high:Q", x=x),
        base.mark_point(filled=True, size=90, opacity=1).encode(x=x, y=y, shape=shape, tooltip=tip),
    ]
    which = charts.menu("norm", [OWN, *NORMS], OWN, "norm")
    line = alt.Chart(pd.DataFrame({"at": ends})).mark_line(color=charts.GUIDE, strokeDash=[4, 4])
    line = line.encode(x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale))
    return charts.sized(alt.layer(line, charts.controlled(layers, which)), 420)


def predictions(values: dict[str, object], rows: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, beside what came; values: of `findings`."""
    came = values | {"own_spread": predicted.spread(predicted.misses(rows), OWN)}
    return told.predictions((*RANGES[name], came[name]) for name in RANGES)
