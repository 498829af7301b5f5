"""Every curve on one row."""

from __future__ import annotations

from dataclasses import fields

import pandas as pd

from lib.analysis.scaling.fits import Hyperbola, fit_hyperbola
from lib.analysis.scaling.intervals import REDRAWN, UNSEEN, redrawn, resampled, span_of
from lib.analysis.scaling.regimes import Regimes, regimes
from lib.analysis.scaling.steps import CURVE, across_replicates, mixed, of_sizes, reached, slimmed, steps_to_result


def summaries(trials: pd.DataFrame, draws: int = 500, widened: float = UNSEEN) -> tuple[pd.DataFrame, dict]:
    """Every curve with at least three batch sizes on one row, at its workload's goal, and its draws by the same key.

    Columns: those of CURVE, sizes and replicates (counts), start, perfect_end, useful_end, leaves_perfect,
    reaches_plateau (as `Regimes`, of the median over replicates), c1, c2, critical, r2, identified (as `Hyperbola`), and
    for all five of `redrawn` name_low and name_high, their 5 and 95 % quantiles.  draws: (workload, ...) -> `resampled`.
    Raises ValueError if the trials of a curve are of several protocols.
    """
    rows, drawn, ends = [], {}, [f"{n}_{end}" for n in REDRAWN for end in ("low", "high")]
    trials = slimmed(trials)
    for key, cells in trials.groupby(CURVE) if len(trials) else ():
        for name, values in mixed(cells).items():
            raise ValueError(f"{name}: {values} are not allowed on one curve, {key}; choose one")
    trials = of_sizes(reached(trials), 3) if len(trials) else trials
    curves = across_replicates(steps_to_result(trials)).groupby(CURVE) if len(trials) else None
    for key, cells in trials.groupby(CURVE) if len(trials) else ():
        curve = curves.get_group(key)
        drawn[key] = resampled(cells, cells.goal.iloc[0], None, draws, widened)
        own = redrawn(drawn[key])
        fit = fit_hyperbola(curve.batch_size, curve.steps)
        rows.append({
            **dict(zip(CURVE, key)), "sizes": len(curve), "replicates": int(cells.replicate.nunique()),
            **vars(regimes(curve)), **vars(fit), "critical": fit.critical,
            **{f"{n}_{end}": v for n in own for end, v in zip(("low", "high"), span_of(own[n]))},
        })  # fmt: skip
    known = [f.name for f in (*fields(Regimes), *fields(Hyperbola))]
    return pd.DataFrame(rows, columns=[*CURVE, "sizes", "replicates", *known, "critical", *ends]), drawn
