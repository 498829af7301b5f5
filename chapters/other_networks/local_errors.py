"""Training without backpropagation: searches compared with backpropagation's, and how fast flips
reduce a readout's error.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.analysis import method_results, scaling
from lib.analysis.scaling import Effect
from lib.page import charts, shared_figures
from lib.wording import between, with_interval

BACKPROPAGATION = "sgd"
BETAS = {"lra": "β = 0.1", "lra-1": "β = 1"}  # of local alignment, the authors' value first
FOLDS = 3  # e-folds after which a run has converged: 95 % of the way to its floor
KINDS = {False: "features as they are", True: "uncorrelated features"}
NAMES = {  # of ways to pass errors back, as pages call them
    "feedback-alignment": "feedback alignment",
    **{algorithm: f"local alignment, {beta}" for algorithm, beta in BETAS.items()},
}
SHADES = charts.ORANGE, charts.PURPLE, charts.TEAL, charts.GREEN
COLOURS = dict(zip(("backpropagation", *NAMES.values()), SHADES, strict=True))
RATIOS = {
    "critical": "critical batch size over backpropagation’s",
    "small": "steps over backpropagation’s, two smallest batches",
    "large": "the same, two largest batches",
}


def values(trials: pd.DataFrame) -> dict[str, object]:
    """Values in the section's sentences; trials: searches of every way to pass errors back."""
    curves = scaling.curves(trials)
    all_sizes = method_results.at_end(0)
    means = (method_results.between(curves, way, BACKPROPAGATION, all_sizes) for way in NAMES)
    more = [effect.value for by_network in means for effect in by_network.values()]
    return {"local_more": between(*np.exp(more))}


def table(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per way to pass errors back other than backpropagation, with 90 % intervals."""
    ratios = method_results.over(scaling.curves(trials))
    ratios["words"] = list(
        map(with_interval, ratios.ratio, ratios.ratio_low, ratios.ratio_high)
    )
    cells = ratios.pivot(index="algorithm", columns="what", values="words")
    rows = cells.reindex(index=NAMES, columns=RATIOS).rename(index=NAMES, columns=RATIOS)
    return rows.rename_axis(index="errors by", columns=None).reset_index()


def chart(trials: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, one line per way to pass errors back."""
    points = scaling.across_replicates(scaling.steps_to_result(trials))
    points["errors_by"] = points.algorithm.map(NAMES).fillna("backpropagation")
    colour = charts.by_name("errors_by", COLOURS, 1)
    return shared_figures.scaling_chart(points, colour, height=330)


def lost(trials: pd.DataFrame) -> dict[str, Effect]:
    """Test error beyond backpropagation's on the same split, in points, by variant of local
    alignment: the mean over searches, each at the trial of lowest validation error (ties averaged).
    """
    test_error = f"test@{trials.max_steps.max()}"
    least = trials.groupby(["algorithm", "replicate"]).best_error.transform("min")
    best = trials[trials.best_error == least]
    errors = best.groupby(["replicate", "algorithm"])[test_error].mean().unstack()
    beyond = errors[[*BETAS]].sub(errors[BACKPROPAGATION], axis=0) * 100
    return {name: scaling.mean_of(points.dropna()) for name, points in beyond.items()}


def excess(runs: pd.DataFrame) -> pd.DataFrame:
    """The training error's excess over its value at the end of a run, as a share of the initial
    excess: [steps, replicates]; runs: of one setting.
    """
    errors = runs.pivot(index="step", columns="replicate", values="training")
    return (errors - errors.iloc[-1]) / (errors.iloc[0] - errors.iloc[-1])


def folds(errors: pd.DataFrame) -> np.ndarray:
    """Steps at which the mean of an `excess` has fallen by 1 ... FOLDS e-folds, [1 + runs, FOLDS]:
    for all runs, then leaving out each in turn; interpolated linearly in the logarithm.
    """
    without = errors.rsub(errors.sum(axis=1), axis=0) / (errors.shape[1] - 1)
    means = np.column_stack([errors.mean(axis=1), without])
    fallen = -np.log(np.maximum(means, 1e-12))
    levels = np.arange(1, FOLDS + 1)
    return np.array([np.interp(levels, mean, errors.index) for mean in fallen.T])


def convergence(descents: pd.DataFrame) -> pd.DataFrame:
    """For runs with one flip per step on all examples: features, kind, and slower: ln of the steps
    for the last of FOLDS e-folds over the first's (0 for an exponential), with jackknife error.
    """
    rows = []
    singly = descents[descents.flips == 1]
    singly = singly[singly.batch_size == descents.batch_size.max()]
    for (count, whitened), runs in singly.groupby(["features", "whitened"]):
        steps = folds(excess(runs))
        mean, *left_out = np.log((steps[:, -1] - steps[:, -2]) / steps[:, 0])
        n = len(left_out)
        error = float(np.sqrt((n - 1) * np.var(left_out)))
        rows.append((count, KINDS[whitened], Effect(float(mean), error, n - 1.0, n)))
    return pd.DataFrame(rows, columns=["features", "kind", "slower"])
