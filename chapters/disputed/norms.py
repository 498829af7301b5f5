"""Noise scales in three norms beside critical batch sizes: which norm's scale goes with them?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.disputed import arms
from chapters.disputed.norms_experiments import METHODS, PATHS, PLANNED
from lib.analysis import method_results, scaling
from lib.analysis.scaling import Effect
from lib.studies import plans
from lib.wording import with_interval

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
    """ln of the noise scale in each of NORMS and in OWN, a row per path: the mean over its points.

    points: of `norms_experiments.PATHS`.
    """
    path = [*CURVE, "replicate"]
    logs = points[path].copy()
    for norm, (noise, gradient, power) in NORMS.items():
        logs[norm] = power * np.log(points[noise] / points[gradient])
    found = logs.groupby(path, sort=False).mean().reset_index()
    norms = found.algorithm.map(OTHERS).fillna(EUCLID)
    return found.assign(**{OWN: [found.at[row, norm] for row, norm in norms.items()]})


def criticals() -> dict[tuple[str, str], Effect]:
    """ln of the critical batch size by network and method: dense, and momentum as published."""
    trials = method_results.compared(plans.study("digits-soap"))  # as other claims: read once
    asked = trials.workload.isin(PLANNED) & trials.algorithm.isin(METHODS)
    curves = scaling.curves(trials[asked & (trials.sparsity == 0)])
    return {key[:2]: scaling.critical(curve) for key, curve in curves.items()}


def compared() -> pd.DataFrame:
    """`beside` of all on record."""
    points = PATHS.results()
    return beside(*((scales(points), criticals()) if len(points) else (points, {})))


def beside(found: pd.DataFrame, critical: dict[tuple, Effect]) -> pd.DataFrame:
    """A row per network, method and norm (EUCLID or OWN): critical, noise and over, the first less
    the second, each an `Effect` of a logarithm; and searches, the number of paths.

    found: of `scales`.  critical: of `criticals`.
    """
    rows = []
    for key, paths in found.groupby(CURVE) if critical else ():
        for norm in (EUCLID, OWN):
            noise = scaling.mean_of(paths[norm])
            over = scaling.less(critical[key], noise)
            rows.append((*key, norm, critical[key], noise, over, len(paths)))
    return pd.DataFrame(rows, columns=[*CURVE, "norm", "critical", "noise", "over", "searches"])


def misses(rows: pd.DataFrame) -> pd.DataFrame:
    """ln of the critical batch size over the noise scale, a row per curve and a column per norm.

    rows: of `beside`.
    """
    values = rows.assign(over=[effect.value for effect in rows.over])
    return values.pivot(index=CURVE, columns="norm", values="over").reindex(
        columns=[EUCLID, OWN]
    )


def spread(missed: pd.DataFrame) -> tuple[float, float, float] | None:
    """The standard deviation of OWN in `misses` over that of EUCLID, with the ends of its interval:
    curves are drawn again with replacement, the same for both.  None of few curves.
    """
    values = missed.to_numpy()
    count = len(values)
    if count < scaling.ENOUGH:
        return None
    random = np.random.default_rng(0)
    picks = random.integers(count, size=(RESAMPLED, count))
    euclid, own = values[picks].std(1, ddof=1).T
    some = euclid > 0
    ratios = own[some] / euclid[some]
    low, high = scaling.span_of(ratios)
    euclid, own = values.std(0, ddof=1)
    return own / euclid, low, high


def values(rows: pd.DataFrame) -> dict[str, object]:
    """What the section's sentences name; rows: of `beside`."""
    missed = misses(rows)
    muon = missed[OWN].xs("muon", level="algorithm")
    return {"spread": with_interval(*spread(missed)), "muon": float(np.exp(muon.mean()))}


def table(found: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Ratios beside what was predicted of them; found: of `scales`, rows: of `beside`."""
    missed = misses(rows)
    differing = missed[missed.index.isin(OTHERS, level="algorithm")]
    own = np.exp(missed[OWN].groupby("algorithm").mean())
    # Geometric means over a method's paths
    over = np.exp((found[OWN] - found[EUCLID]).groupby(found.algorithm).mean())
    return arms.table(
        [
            ("spread with the method’s own norm, over Euclidean", 0.5, 0.8, spread(missed)),
            ("the same, of Adam and Muon alone", None, None, spread(differing)),
            ("Adam’s ℓ₁ noise scale over its Euclidean one", 1.5, 2.2, over["adam"]),
            ("Muon’s nuclear noise scale over its Euclidean one", 2.5, 7, over["muon"]),
            ("Adam’s critical batch size over its ℓ₁ noise scale", 0.5, 2, own["adam"]),
            ("Muon’s critical batch size over its nuclear noise scale", 0, 0.5, own["muon"]),
        ]
    )
