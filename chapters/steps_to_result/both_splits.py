"""What the draw of validation images does: how hard ours and that of Lee et al. (2021) are, and
steps to result on both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.analysis import scaling, splits
from lib.records import on_record
from lib.studies.cells import Cell
from lib.workloads import datasets
from lib.workloads.catalogue import THEIR_SPLIT

BINS = 40  # of the histogram of draws


def of_splits(share: np.ndarray, among: np.ndarray) -> pd.DataFrame:
    """How hard the split of Lee et al. (2021) and ours are, a row each: name; error (mean of share
    [60,000] over its validation images), percentile (of draws `among` [draws] with a lower error).
    """
    places = [datasets.held_out(datasets.LEE2021), datasets.held_out("mnist", 0)]
    errors = [share[held].mean() for held in places]
    percentiles = [splits.percentile(error, among) for error in errors]
    names = ["Lee et al.", "this book"]
    return pd.DataFrame({"name": names, "error": errors, "percentile": percentiles})


def histogram(among: np.ndarray) -> pd.DataFrame:
    """The errors of draws `among` [draws] in bins of one width: low, high (errors), share (of all
    draws).
    """
    counts, edges = np.histogram(among, BINS)
    return pd.DataFrame({"low": edges[:-1], "high": edges[1:], "share": counts / len(among)})


def counterparts(cells: Iterable[Cell]) -> list[Cell]:
    """Cells on their split, and after each its exact counterpart on ours, with whatever number of
    hits is on record.
    """
    found = []
    for cell in cells:
        name = cell.workload.removesuffix(THEIR_SPLIT)
        ours = replace(cell, workload=name, race=None, rungs="goals")
        waited = (replace(ours, hits=hits) for hits in (1, 2, 5))
        found += [cell, *on_record.recorded_of(waited)]
    return found


def over_theirs(trials: pd.DataFrame, end: int) -> pd.DataFrame:
    """K* on our split over that on theirs, a row per network, at its hardest goal (end 0) or its
    easiest (-1): goal; ratio (the geometric mean over searches that were made on both).

    trials: as of `lib.records.results.read`, of workloads with and without THEIR_SPLIT.
    """
    networks = trials.groupby(trials.workload.str.removesuffix(THEIR_SPLIT), sort=False)
    both = pd.concat([_ratios(own, scaling.goals(own)[end]) for _, own in networks])
    rows = both.groupby("network")
    ratio = np.exp(rows.log_ratio.mean())
    return pd.DataFrame({"goal": rows.goal.first(), "ratio": ratio})


def _ratios(trials: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Searches that were made on both splits with the same trials, a row each: log_ratio, ln of K*
    on ours over theirs; where a search missed the goal, by its last step.
    """
    found = scaling.steps_to_result(trials, goal)
    found = found[found.split == 0]
    there = found.workload.str.endswith(THEIR_SPLIT)
    found = found.assign(
        network=found.workload.str.removesuffix(THEIR_SPLIT),
        steps=found.steps.fillna(found.last_step),
    )
    same = ["network", "algorithm", "sparsity", "batch_size", "replicate", "goal"]
    same += ["trials", "checks", "precision"]
    theirs, ours = (found.loc[side, [*same, "steps"]] for side in (there, ~there))
    both = theirs.merge(ours, on=same, suffixes=("_theirs", "_ours"))
    return both.assign(log_ratio=np.log(both.steps_ours / both.steps_theirs))
