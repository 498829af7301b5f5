"""Noise scales in three norms beside critical batch sizes: which norm's scale goes with them?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.noise_in_norms.paths import METHODS, PLANNED
from lib.analysis import goals, scaling
from lib.analysis.scaling import Curve, Effect
from lib.claims.cache import kept
from lib.records import on_record, results
from lib.studies import plans
from lib.studies.study import Study

EUCLID, ENTRIES, SPECTRUM = "Euclidean", "ℓ₁", "nuclear"
NORMS = {  # noise over gradient, and to which power
    EUCLID: ("trace", "square", 1),
    ENTRIES: ("sigmas", "slopes", 2),
    SPECTRUM: ("roots", "nuclear", 2),
}
OWN = dict.fromkeys(METHODS, EUCLID) | {
    "adam": ENTRIES,
    "adam-fixed": ENTRIES,
    "muon": SPECTRUM,
}
PATH = ["workload", "algorithm", "replicate"]
RESAMPLED = 10_000  # times


def scales(points: pd.DataFrame) -> pd.DataFrame:
    """ln of the noise scale in each of NORMS, a row per path: the mean over its points.

    points: of `paths.PATHS`.
    """
    if not len(points):
        return pd.DataFrame(columns=[*PATH, *NORMS])
    logs = {
        norm: power * np.log(points[noise] / points[gradient])
        for norm, (noise, gradient, power) in NORMS.items()
    }
    return points[PATH].assign(**logs).groupby(PATH, sort=False).mean().reset_index()


def curves() -> dict[tuple, Curve]:
    """The dense curves of these networks and methods, momentum as published."""
    studies = [plans.study(name) for name in plans.WHICH]
    cells = [
        cell
        for cell in on_record.gathered(*studies, **plans.USUAL).cells
        if cell.workload in PLANNED and cell.algorithm in METHODS and not cell.sparsity
    ]
    study = Study("noise in norms", "Noise in norms", cells)
    trials = results.read(study, without=scaling.WITHIN_BUDGETS)
    return scaling.curves(goals.at_goals(trials))


def criticals() -> pd.DataFrame:
    """The critical batch size of each of `curves`: workload, algorithm and the fields of its
    logarithm's `Effect`.
    """
    return pd.DataFrame(kept("noise-in-norms", _criticals))


def _criticals() -> dict[str, list]:
    found = {key[:2]: scaling.critical(curve) for key, curve in curves().items()}
    rows = [dict(zip(PATH, key)) | vars(effect) for key, effect in found.items()]
    return pd.DataFrame(rows).to_dict("list")


def beside(found: pd.DataFrame, critical: pd.DataFrame) -> pd.DataFrame:
    """A row per network, method and norm: critical and noise (each an `Effect`, of a logarithm),
    over (the first less the second), own (whether it is the method's norm), searches (paths).

    Args:
        found: of `scales`.
        critical: of `criticals`.
    """
    rows = []
    for _, row in critical.iterrows():
        batch = Effect(*row[["value", "error", "freedom", "n", "below", "above"]])
        about = {"workload": row.workload, "algorithm": row.algorithm, "critical": batch}
        of = (found.workload == row.workload) & (found.algorithm == row.algorithm)
        for norm in NORMS if of.any() else ():
            noise = scaling.mean_of(found.loc[of, norm])
            over, own = scaling.less(batch, noise), OWN[row.algorithm] == norm
            told = {"norm": norm, "noise": noise, "over": over, "own": own}
            rows.append({**about, **told, "searches": int(of.sum())})
    columns = ["workload", "algorithm", "critical", "norm", "noise", "over", "own", "searches"]
    return pd.DataFrame(rows, columns=columns)


def misses(rows: pd.DataFrame) -> pd.DataFrame:
    """ln of the critical batch size over the noise scale, a row per curve: in each of NORMS, and in
    the method's own ("own").

    rows: of `beside`.
    """
    table = rows.assign(over=[effect.value for effect in rows.over])
    wide = table.pivot(index=["workload", "algorithm"], columns="norm", values="over")
    own = table[table.own.astype(bool)].set_index(["workload", "algorithm"]).over
    return wide.reindex(columns=list(NORMS)).astype(float).assign(own=own)


def spreads(missed: pd.DataFrame, base: str = EUCLID) -> dict[str, tuple[float, float, float]]:
    """The standard deviation of each column of `misses` over that of the base, with the ends of its
    interval: curves are drawn again with replacement, the same for both.
    """
    values = missed.to_numpy()
    if len(values) < scaling.ENOUGH:
        return {}
    picks = np.random.default_rng(0).integers(len(values), size=(RESAMPLED, len(values)))
    drawn, whole = values[picks].std(1, ddof=1), values.std(0, ddof=1)
    place = list(missed.columns).index(base)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = drawn / drawn[:, [place]]
    ratios = ratios[np.isfinite(ratios).all(1)]
    return {
        name: (float(whole[k] / whole[place]), *scaling.span_of(ratios[:, k]))
        for k, name in enumerate(missed.columns)
    }
