"""From the points of `lib.probes.tracks` to the noise scale of a path, and the critical batch size
that it predicts.
"""

from __future__ import annotations

import pandas as pd

PATH = "workload algorithm batch_size sparsity replicate split trial".split()


def steps_around(ordered: pd.DataFrame) -> pd.Series:
    """The steps for which each point stands: half of those to the neighbouring points on the same
    path, by the trapezoidal rule.

    ordered: points in the order of steps.  A path of one point stands for its step.
    """
    steps = ordered.groupby(PATH).step
    gaps = pd.concat([steps.diff(), -steps.diff(-1)], axis=1)
    return gaps.sum(axis=1, min_count=1).fillna(2 * ordered.step) / 2


def noise_scales(paths: pd.DataFrame) -> pd.DataFrame:
    """One row per path: noise_scale, tr(Sigma) over |G|^2 averaged over its progress; apart, each
    averaged over its steps.

    A step at batch size B is worth 1 / (1 + noise scale / B) of one at an unlimited batch
    (McCandlish et al. 2018, equation 2.7), and the bend is the mean over such steps.
    """
    own = paths.sort_values("step")
    square = own.square.clip(lower=0)
    weight = steps_around(own)
    progress = weight / (square + own.trace / own.batch_size)
    parts = own[PATH].assign(
        up=own.trace * progress,
        down=square * progress,
        trace=own.trace * weight,
        square=square * weight,
    )
    total = parts.groupby(PATH).sum()
    found = {"noise_scale": total.up / total.down, "apart": total.trace / total.square}
    return pd.DataFrame(found).reset_index()
