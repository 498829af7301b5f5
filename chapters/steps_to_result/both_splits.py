"""What the draw of validation images does: errors and steps to result on our split and on that of
Lee et al. (2021).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.records import searches
from lib.studies.search import Search
from lib.wording import percent
from lib.workloads import datasets
from lib.workloads.catalogue import THEIR_SPLIT

SAME = "network algorithm sparsity batch_size replicate goal trials checks precision".split()


def errors(share: np.ndarray) -> dict[str, float]:
    """The mean of share [60,000] over the validation images of either split."""
    held = {
        "Lee et al.": datasets.held_out(datasets.LEE2021),
        "this book": datasets.held_out("mnist", 0),
    }
    return {name: share[images].mean() for name, images in held.items()}


def counterparts(cells: Iterable[Search]) -> list[Search]:
    """Cells on their split, and after each its exact counterpart on ours, with whatever number of
    hits is on record.
    """
    found = []
    for cell in cells:
        name = cell.workload.removesuffix(THEIR_SPLIT)
        ours = replace(cell, workload=name, race=None, rungs="goals")
        waited = (replace(ours, hits=hits) for hits in (1, 2, 5))
        found += [cell, *searches.recorded(waited).values()]
    return found


def over_theirs(trials: pd.DataFrame) -> dict[str, tuple[str, float]]:
    """By network, its hardest goal, and K* to it on our split over that on theirs: the geometric
    mean over searches that were made on both with the same trials. One that missed the goal counts
    by its last step.

    trials: as of `lib.records.results.read`, of workloads with and without THEIR_SPLIT.
    """
    found = {}
    networks = trials.workload.str.removesuffix(THEIR_SPLIT)
    for name, own in trials.groupby(networks, sort=False):
        goal = scaling.goals(own)[0]
        rows = scaling.steps_to_result(own, goal)
        rows = rows[rows.split == 0]
        steps = rows.steps.fillna(rows.last_step)
        rows = rows.assign(network=name, log=np.log(steps))
        there = rows.workload.str.endswith(THEIR_SPLIT)
        both = rows[there].merge(rows[~there], on=SAME, suffixes=("_theirs", "_ours"))
        ratio = np.exp((both.log_ours - both.log_theirs).mean())
        found[name] = percent(goal), ratio
    return found
