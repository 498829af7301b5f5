"""How much more local fields are where inputs have edges, and at larger batches."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from chapters.receptive_fields.experiments import BATCH_SIZES, EDGED, GOALS
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.page import told

# Expected of weights as they are drawn, from a normal distribution cut at two standard deviations
DRAWN = float(3 + stats.truncnorm(-2, 2).stats("k"))
INPUTS = {EDGED: "with edges", 0.0: "Gaussian"}
RANGES = {  # as predicted before the records
    "over": ("participation with edges, over Gaussian", 1.3, 1.8),
    "edged_drawn": ("with edges, over weights as drawn", 1, np.inf),
    "gaussian_drawn": ("Gaussian, over weights as drawn", 0, 1),
    "edged_sizes": ("with edges, largest over smallest batch", 0.8, 1.25),
    "neighbours": ("neighbours kept by pruning, over chance, with edges", 1, np.inf),
}


def at_goal(searches: pd.DataFrame) -> pd.DataFrame:
    """Of `locality.by_search`: dense searches that met the harder goal of their inputs."""
    goals = searches.gain.map({gain: harder for gain, (harder, _) in GOALS.items()})
    return searches[
        (searches.goal == goals) & (searches.sparsity == 0) & searches.steps.notna()
    ]


def effects(met: pd.DataFrame) -> dict[str, Effect | None]:
    """ln of the ratios of participation in RANGES; met: of `at_goal`."""

    def logs(gain, *sizes):
        return replicates.means(met[met.gain == gain], "participation", sizes, log=True)

    edged, gaussian = (logs(gain, *BATCH_SIZES) for gain in (EDGED, 0.0))
    return {
        "over": replicates.compared(edged, gaussian),
        "edged_drawn": replicates.compared(edged, float(np.log(DRAWN))),
        "gaussian_drawn": replicates.compared(gaussian, float(np.log(DRAWN))),
        "edged_sizes": replicates.compared(*(logs(EDGED, BATCH_SIZES[end]) for end in (-1, 0))),
    }


def findings(met: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences; met: of `at_goal`."""
    ratios = effects(met)
    return {
        "over": told.times(ratios["over"]),
        "sizes": told.times(ratios["edged_sizes"]),
        "together": float(met[met.gain == EDGED].together.mean()),
    }


def predictions(searches: pd.DataFrame) -> pd.DataFrame:
    """What was predicted, beside what came; searches: of `locality.by_search`."""
    came = {name: told.interval(one) for name, one in effects(at_goal(searches)).items()}
    pruned = searches[(searches.sparsity > 0) & (searches.gain == EDGED)]
    came["neighbours"] = float(pruned.neighbours.mean())
    return told.predictions((*RANGES[name], came[name]) for name in RANGES)
