"""What the page on noise in norms says, as numbers and words, with its figure and its tables."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.noise_in_norms import paths, predicted
from chapters.noise_in_norms.predicted import ENTRIES, EUCLID, NORMS, OWN, SPECTRUM
from lib.claims.names import title
from lib.methods import method
from lib.page import charts, tips, told
from lib.wording import brief, with_interval

ITS_OWN = "the method’s own"
RANGES = {  # as predicted before the records
    "own_spread": ("spread with the method’s own norm, over Euclidean", 0.5, 0.8),
    "adam_over": ("Adam’s ℓ₁ noise scale over its Euclidean one", 1.5, 2.2),
    "muon_over": ("Muon’s nuclear noise scale over its Euclidean one", 2.5, 7),
    "adam_misses": ("Adam’s critical batch size over its ℓ₁ noise scale", 0.5, 2),
    "muon_misses": ("Muon’s critical batch size over its nuclear noise scale", 0, 0.5),
}


def findings(found: pd.DataFrame, rows: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        found: of `predicted.scales`.
        rows: of `predicted.beside`.
    """
    ratios = predicted.spreads(predicted.misses(rows))
    names = {"own": "own", "entries": ENTRIES, "spectrum": SPECTRUM}
    whole = {f"{key}_told": _told(ratios.get(norm)) for key, norm in names.items()}
    values = np.exp(predicted.misses(rows))
    return {
        **whole,
        "own_spread": ratios.get("own", (None,))[0],
        "adam_over": _over(found, "adam", ENTRIES),
        "muon_over": _over(found, "muon", SPECTRUM),
        "adam_misses": _middle(values, "adam", "own"),
        "muon_misses": _middle(values, "muon", "own"),
        "own_each": values["own"].tolist(),
        "euclid_each": values[EUCLID].tolist(),
        "adam_each": values.query("algorithm == 'adam'").own.tolist(),
        "muon_each": values.query("algorithm == 'muon'").own.tolist(),
        "curves": len(values),
        "networks": int(rows.workload.nunique()),
        "points": paths.planned()[0].points,
        "sample": max(path.examples for path in paths.planned()),
        "searches": sorted({int(n) for n in rows.searches}),
    }


def _told(ends: tuple | None) -> str | None:
    return with_interval(*ends) if ends else None


def _over(found: pd.DataFrame, algorithm: str, norm: str) -> float | None:
    """A noise scale over the Euclidean one, the geometric mean over a method's paths."""
    own = found[found.algorithm == algorithm]
    return float(np.exp((own[norm] - own[EUCLID]).mean())) if len(own) else None


def _middle(values: pd.DataFrame, algorithm: str, norm: str) -> float | None:
    """The geometric mean over networks of a column of ratios."""
    own = values.query("algorithm == @algorithm")[norm]
    return float(np.exp(np.log(own).mean())) if len(own) else None


def marks(rows: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: network, algorithm, method, norm (one more: ITS_OWN), noise and
    critical with _low and _high, searches.
    """
    parts = [rows, rows[rows.own.astype(bool)].assign(norm=ITS_OWN)]
    found = [
        {
            "network": title(row.workload),
            "algorithm": row.algorithm,
            "method": method(row.algorithm).title,
            "norm": row.norm,
            **row.noise.row("noise"),
            **row.critical.row("critical"),
            "searches": row.searches,
        }
        for row in pd.concat(parts).itertuples()
    ]
    return pd.DataFrame(found)


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Critical batch size against noise scale, a colour for each method and a shape for each
    network, with the diagonal; a menu chooses the norm.
    """
    if not len(rows):
        return charts.nothing("Nothing is measured yet.")
    shown = marks(rows)
    columns = ["noise_low", "noise_high", "critical_low", "critical_high"]
    known = shown[["noise", "critical", *columns]].to_numpy()
    known = known[np.isfinite(known) & (known > 0)]
    ends = [max(known.min(), shown.critical.min() / 4), min(known.max(), shown.noise.max() * 2)]
    shown[columns] = shown[columns].clip(*ends)
    scale = charts.log(12, domain=ends)
    axis = charts.fractions(values=[2.0**n for n in range(-2, 18, 2)], format=",")
    x = alt.X("noise:Q", title="noise scale (examples)", scale=scale, axis=axis)
    y = alt.Y("critical:Q", title="critical batch size (examples)", scale=scale, axis=axis)
    below = alt.Legend(columns=1, orient="bottom")
    shape = alt.Shape("network:N", title=None, legend=below)
    colour = charts.by_algorithm(list(shown.algorithm.unique()))
    base = alt.Chart(shown).encode(color=colour)
    tip = [tips.NETWORK, tips.tip("method:N", "training method")]
    tip += [tips.tip("noise:Q", "noise scale", ",.0f"), tips.tip("searches:Q", "paths")]
    tip += [tips.tip("critical:Q", "critical batch size", ",.0f")]
    layers = [
        base.mark_rule(opacity=0.6).encode(
            x=alt.X("noise_low:Q", scale=scale), x2="noise_high:Q", y=y
        ),
        base.mark_rule(opacity=0.6).encode(
            y=alt.Y("critical_low:Q", scale=scale), y2="critical_high:Q", x=x
        ),
        base.mark_point(filled=True, size=90, opacity=1).encode(x=x, y=y, shape=shape, tooltip=tip),
    ]
    which = charts.menu("norm", [ITS_OWN, *NORMS], ITS_OWN, "norm")
    diagonal = alt.Chart(pd.DataFrame({"at": ends})).mark_line(
        color=charts.GUIDE, strokeDash=[4, 4]
    )
    line = diagonal.encode(x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale))
    return charts.sized(alt.layer(line, charts.controlled(layers, which)), 420)


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Critical batch sizes and noise scales in every norm, a row per network and method."""
    found = []
    for (work, name), own in rows.groupby(["workload", "algorithm"], sort=False):
        noise = {row.norm: with_interval(*row.noise.row().values()) for row in own.itertuples()}
        critical = with_interval(*own.critical.iloc[0].row().values())
        about = {"network": title(work), "method": method(name).title}
        found.append({**about, "critical batch size": critical, **noise, "own norm": OWN[name]})
    return pd.DataFrame(found)


def by_network(rows: pd.DataFrame) -> pd.DataFrame:
    """The standard deviation of ln of the critical batch size over the noise scale, in each norm,
    over all curves and over each network's.
    """
    missed = predicted.misses(rows)
    parts = {"all": missed}
    parts |= {title(work): own for work, own in missed.groupby(level="workload", sort=False)}
    found = [
        {"curves": name, "number": len(own), **own.std(ddof=1).map(brief).to_dict()}
        for name, own in parts.items()
    ]
    return pd.DataFrame(found).rename(columns={"own": ITS_OWN})


def predictions(values: dict[str, object]) -> pd.DataFrame:
    """What was written down before the records, beside what came; values: of `findings`."""
    return told.predictions((*RANGES[name], values[name]) for name in RANGES)
