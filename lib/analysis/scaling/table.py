"""Every curve on one row."""

from __future__ import annotations

from dataclasses import fields

import pandas as pd

from lib.analysis.scaling.draws import DRAWS, REDRAWN, curve_from, redrawn, span_of
from lib.analysis.scaling.fits import Hyperbola, fit_hyperbola
from lib.analysis.scaling.rules import Regimes, regimes
from lib.analysis.scaling.steps import CURVE, across_replicates, mixed, steps_to_result


def summaries(trials: pd.DataFrame, draws: int = DRAWS) -> tuple[pd.DataFrame, dict]:
    """Every curve with at least three batch sizes on one row, at the table's goal, and its searches by the same key.

    Columns: those of CURVE, sizes and replicates (counts; the most searches of a point), start, perfect_end, useful_end,
    leaves_perfect, reaches_plateau (as `Regimes`, of the geometric means), c1, c2, critical, r2, identified (as
    `Hyperbola`), and for all five of `redrawn` name_low and name_high, their 5 and 95 % quantiles over drawn curves.
    Searches: (workload, ...) -> `Curve`.  Raises ValueError if the trials of a curve are of several protocols.
    """
    searches = steps_to_result(trials) if len(trials) else trials
    return of_searches(searches, across_replicates(searches) if len(trials) else trials, draws)


def of_searches(searches: pd.DataFrame, points: pd.DataFrame, draws: int = DRAWS) -> tuple[pd.DataFrame, dict]:
    """`summaries`; searches: of `steps_to_result`, at one goal; points: these, `across_replicates`."""
    rows, found, ends = [], {}, [f"{n}_{end}" for n in REDRAWN for end in ("low", "high")]
    curves = dict(list(searches.groupby(CURVE))) if len(searches) else {}
    for key, own in curves.items():
        for name, values in mixed(own).items():
            raise ValueError(f"{name}: {values} are not allowed on one curve, {key}; choose one")
    for key, curve in points.groupby(CURVE) if len(points) else ():
        if len(curve) < 3:
            continue
        found[key] = curve_from(curves[key], draws)
        fit, drawn = fit_hyperbola(curve.batch_size, curve.steps), redrawn(found[key].draws)
        rows.append({
            **dict(zip(CURVE, key)), "sizes": len(curve), "replicates": int(curve.replicates.max()),
            **vars(regimes(curve)), **vars(fit), "critical": fit.critical,
            **{f"{n}_{end}": v for n in drawn for end, v in zip(("low", "high"), span_of(drawn[n]))},
        })  # fmt: skip
    known = [f.name for f in (*fields(Regimes), *fields(Hyperbola))]
    return pd.DataFrame(rows, columns=[*CURVE, "sizes", "replicates", *known, "critical", *ends]), found
