"""SOAP beside the methods that it grew from: what the section draws and says."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib import wording
from lib.analysis import method_results, scaling
from lib.analysis.scaling import Curve, Effect
from lib.page import charts, shared_figures, tips
from lib.studies import plans

WORK = "digits-mlp"
STUDY = "digits-soap"
ALIKE = 1.25  # within which two numbers of steps, or two critical batch sizes, are alike
SOAP = {"soap", "soap-10"}
COLOURS = {
    "adam": charts.RED,
    "muon": charts.GREEN,
    "kfac": charts.BLUE,
    "soap": charts.PURPLE,
    "soap-10": charts.ORANGE,
}


def curves(trials: pd.DataFrame) -> dict[str, Curve]:
    """The dense curves of COLOURS' methods on WORK, at the batch sizes of STUDY."""
    sizes = {cell.batch_size for cell in plans.study(STUDY).cells}
    wanted = (trials.workload == WORK) & (trials.sparsity == 0) & trials.batch_size.isin(sizes)
    own = trials[wanted & trials.algorithm.isin(COLOURS)]
    return {key[1]: curve for key, curve in scaling.curves(own).items()}


def compared(known: dict[str, Curve], above: str, below: str, what: str) -> Effect | None:
    """A quantity of `method_results.QUANTITIES` of one method over another's; None if one lacks."""
    both = [known.get(name) for name in (above, below)]
    return method_results.QUANTITIES[what](*both) if all(both) else None


def told(effect: Effect | None) -> str | None:
    """A ratio with its interval, as sentences have it."""
    return wording.with_interval(*effect.row().values()) if effect else None


def figure(known: dict[str, Curve]) -> alt.LayerChart:
    """Steps to result against batch size, a line per method."""
    if not SOAP <= known.keys():
        return charts.nothing("SOAP was not searched here.")
    parts = [curve.points().assign(algorithm=name) for name, curve in known.items()]
    rows = tips.known(pd.concat(parts))
    rows = rows.assign(method=rows.algorithm.map(wording.named), trials=100)
    within = [rows.low.min() / 1.3, rows.high.max() * 1.3]
    scale = charts.log(domain=within)
    y = alt.Y("steps:Q", title="steps to result", scale=scale)
    colours = {wording.named(name): c for name, c in COLOURS.items() if name in known}
    x, colour = charts.batch_axis(rows.batch_size), charts.by_name("method", colours, 2)
    base = alt.Chart(rows).encode(x=x, color=colour)
    layers = charts.curve(base, y, scale, tips.points("method", regime=False))
    names = shared_figures.line_labels(rows, "algorithm", within=within, height=330)
    return charts.sized(alt.layer(*layers, names.encode(color=colour)), 330)


TOLD = {  # by the names of findings: a method, another, and what of theirs is compared
    "soap_small": ("soap", "adam", "small"),
    "soap_large": ("soap", "adam", "large"),
    "soap_critical": ("soap", "adam", "critical"),
    "soap_seldom": ("soap-10", "adam", "large"),
    "soap_over_muon": ("soap", "muon", "large"),
    "soap_over_kfac": ("soap", "kfac", "large"),
}


def findings(known: dict[str, Curve]) -> dict[str, object]:
    """All values of the section's sentences."""
    soap = known.get("soap")
    return {
        "soap_measured": SOAP <= known.keys() and "adam" in known,
        "soap_least": float(soap.points().steps.min()) if soap else None,
        "soap_largest": int(soap.sizes.max()) if soap else None,
        "soap_held": held(known),
        **{name: told(compared(known, *asked)) for name, asked in TOLD.items()},
    }


def held(known: dict[str, Curve]) -> int:
    """How many of the section's three predictions the estimates bear out."""
    names = ("soap_large", "soap_small", "soap_critical", "soap_seldom")
    found = [compared(known, *TOLD[name]) for name in names]
    if None in found:
        return 0
    large, small, critical, seldom = (np.exp(effect.value) for effect in found)
    fewer = large < 1 / ALIKE and small < 1 / 2
    return int(sum([fewer, critical <= ALIKE, 1 / ALIKE <= seldom <= ALIKE]))
