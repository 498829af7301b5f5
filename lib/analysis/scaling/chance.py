"""What curves of one form would show by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.analysis.scaling.draws import Curve, apart, redrawn
from lib.analysis.scaling.rules import regime_ends
from lib.analysis.scaling.steps import CURVE, LONG


def by_chance(curves: Sequence[Curve]) -> float:
    """The factor by which the bends of these curves would differ at most, 19 times out of 20, if they were one.

    As where bends are compared, those outside the batch sizes measured do not count; NaN if no draw has any inside.
    """
    drawn = [curve.draws for curve in curves]
    bends = (redrawn(d).critical.where(lambda c, b=d.columns: c.between(b.min(), b.max())) for d in drawn)
    logs = np.log(np.stack(list(bends)))
    off = pd.DataFrame(logs - pd.DataFrame(logs).median(axis=1).to_numpy()[:, None])
    return float(np.exp((off.max() - off.min()).quantile(0.95, interpolation="nearest")))


def expected_regimes(summary: pd.DataFrame, drawn: dict, draws: int = 1000) -> pd.DataFrame:
    """How likely `all_three` is for every curve of `summaries`, were it exactly of a form and points as uncertain as they are.

    Columns: trend, for its c1/B + c2 (1 for a curve of LONG sizes that does not bend within them, which ought to); power,
    for the straight line through the logarithms of its points, which has no floor.
    """
    random, rows = np.random.default_rng(0), []
    for r in summary.itertuples():
        curve = drawn[tuple(getattr(r, c) for c in CURVE)]
        logs = curve.logs[apart(curve.logs)]
        b, error = logs.columns.to_numpy(float), logs.std().fillna(curve.scatter) / np.sqrt(logs.count())
        off = error.to_numpy() * random.standard_normal((draws, len(b)))
        line = np.polyval(np.polyfit(np.log(b), logs.mean(), 1), np.log(b))
        trend, power = (regime_ends(b, np.exp(k + off))[2].mean() for k in (np.log(r.c1 / b + r.c2), line))
        rows.append((1.0 if r.sizes >= LONG and not r.identified else trend, power))
    return pd.DataFrame(rows, columns=["trend", "power"], index=summary.index)
