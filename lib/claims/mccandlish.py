"""The claim of McCandlish et al. (2018)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.claims.verdicts import FAILS, HOLDS, OPEN, PART, claim
from lib.wording import number


def noise_scale(bends: pd.DataFrame) -> dict:
    """M1; bends: of `landscape.predicted_bends`; those outside the batch sizes measured do not count, every workload does
    alike."""
    beyond, bends = int((~bends.identified.astype(bool)).sum()), bends[bends.identified.astype(bool)]
    ratio = bends.critical / bends.predicted
    off = np.log2(ratio).abs()
    two, four = ((off <= limit).groupby(bends.workload).mean().mean() for limit in (1, 2))
    logs = np.log2(bends.critical)
    constant, own = (2 ** np.sqrt((d**2).mean()) if len(bends) else np.nan for d in (logs - logs.mean(), np.log2(ratio)))
    return claim(
        "The gradient noise scale predicts the largest useful batch size.",
        f"{len(bends)} curves: the bend over the noise scale is {number(ratio.median())} in the median, from "
        f"{number(ratio.min())} to {number(ratio.max())}; within a factor of two for {(off <= 1).sum()}, within four for "
        f"{(off <= 2).sum()}, or for {two:.0%} and {four:.0%} where workloads count alike, as in the verdict. The same number for "
        f"all, their geometric mean, is off by a factor of {constant:.2f} (root mean square), the noise scale by {own:.2f}: to "
        f"hold, it has to be the better of the two. Not counted, since they bend outside the batch sizes measured: {beyond}.",
        OPEN if not len(bends) else HOLDS if two > 0.9 and (own < constant or len(bends) < 2) else PART if four > 0.5 else FAILS,
        "McCandlish et al. 2018, in our words",
    )
