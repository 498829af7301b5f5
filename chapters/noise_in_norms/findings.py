"""Noise scales in three norms beside critical batch sizes, and what the page says of them."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.noise_in_norms import experiments
from lib.analysis import method_results, scaling
from lib.claims.names import title
from lib.page import charts, tips, told
from lib.studies import plans
from lib.wording import named, with_interval

EUCLID, ENTRIES, SPECTRUM, OWN = "Euclidean", "ℓ₁", "nuclear", "the method’s own"
NORMS = {  # noise over gradient, and to which power
    EUCLID: ("trace", "square", 1),
    ENTRIES: ("sigmas", "slopes", 2),
    SPECTRUM: ("roots", "nuclear", 2),
}
OTHERS = {"adam": ENTRIES, "adam-fixed": ENTRIES, "muon": SPECTRUM}  # whose own is not EUCLID
CURVE = ["workload", "algorithm"]
RESAMPLED = 10_000  # times


def scales(points: pd.DataFrame) -> pd.DataFrame:
    """ln of the noise scale in each of NORMS and in OWN, the mean over points: a row per path."""
    path = [*CURVE, "replicate"]
    logs = points[path].copy()
    for norm, (noise, gradient, power) in NORMS.items():
        logs[norm] = power * np.log(points[noise] / points[gradient])
    found = logs.groupby(path, sort=False).mean().reset_index()
    norms = found.algorithm.map(OTHERS).fillna(EUCLID)
    return found.assign(**{OWN: [found.at[row, norm] for row, norm in norms.items()]})


def criticals() -> dict[tuple, scaling.Effect]:
    """ln of the critical batch size by network and method: dense, and momentum as published."""
    trials = method_results.compared(plans.study("digits-soap"))  # as other claims: read once
    asked = trials.workload.isin(experiments.PLANNED) & trials.algorithm.isin(experiments.METHODS)
    curves = scaling.curves(trials[asked & (trials.sparsity == 0)])
    return {key[:2]: scaling.critical(curve) for key, curve in curves.items()}


def beside(found: pd.DataFrame, critical: dict[tuple, scaling.Effect]) -> pd.DataFrame:
    """A row per network, method and norm (EUCLID or OWN): critical, noise and over, the first less
    the second, each an `Effect` of a logarithm; and searches, the number of paths.
    """
    columns = [*CURVE, "norm", "critical", "noise", "over", "searches"]
    curves = found.groupby(CURVE)
    rows = []
    for key, paths in curves:
        batch = critical[key]
        count = len(paths)
        for norm in (EUCLID, OWN):
            noise = scaling.mean_of(paths[norm])
            over = scaling.less(batch, noise)
            rows.append((*key, norm, batch, noise, over, count))
    return pd.DataFrame(rows, columns=columns)


def misses(rows: pd.DataFrame) -> pd.DataFrame:
    """ln of the critical batch size over the noise scale: a row per curve, a column per norm."""
    values = rows.assign(over=[effect.value for effect in rows.over])
    return values.pivot(index=CURVE, columns="norm", values="over")


def spread(missed: pd.DataFrame) -> tuple[float, float, float]:
    """The standard deviation of OWN in `misses` over that of EUCLID, with the ends of its interval:
    curves are drawn again with replacement, the same for both.
    """
    norms = [EUCLID, OWN]
    values = missed[norms].to_numpy()
    count = len(values)
    random = np.random.default_rng(0)
    picks = random.integers(count, size=(RESAMPLED, count))
    drawn = values[picks]
    euclid, own = drawn.std(1, ddof=1).T
    some = euclid > 0
    ratios = own[some] / euclid[some]
    low, high = scaling.span_of(ratios)
    euclid, own = values.std(0, ddof=1)
    value = own / euclid
    return value, low, high


def findings(rows: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences; rows: of `beside`."""
    missed, planned = misses(rows), experiments.planned()
    each = np.exp(missed)
    means = np.exp(missed[OWN].groupby("algorithm").mean())
    adam, muon = (each[OWN].xs(name, level="algorithm").tolist() for name in ("adam", "muon"))
    return {
        "own_told": with_interval(*spread(missed)),
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
    """Critical batch size against noise scale, with the diagonal; a menu chooses the norm."""
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
    about = {"method:N": "training method", "noise:Q|,.0f": "noise scale", "searches:Q": "paths"}
    about["critical:Q|,.0f"] = "critical batch size"
    tip = [tips.NETWORK, *tips.listed(about)]
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
    """What was written down before the records, beside what came; found: of `scales`."""
    missed = misses(rows)
    own = np.exp(missed[OWN].groupby("algorithm").mean())
    # Geometric means over a method's paths
    over = np.exp((found[OWN] - found[EUCLID]).groupby(found.algorithm).mean())
    return told.predictions(
        [
            ("spread with the method’s own norm, over Euclidean", 0.5, 0.8, spread(missed)),
            ("Adam’s ℓ₁ noise scale over its Euclidean one", 1.5, 2.2, over["adam"]),
            ("Muon’s nuclear noise scale over its Euclidean one", 2.5, 7, over["muon"]),
            ("Adam’s critical batch size over its ℓ₁ noise scale", 0.5, 2, own["adam"]),
            ("Muon’s critical batch size over its nuclear noise scale", 0, 0.5, own["muon"]),
        ]
    )
