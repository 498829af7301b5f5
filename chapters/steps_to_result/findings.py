"""What the page on the protocol says, as numbers and words, and the effect of the choice of
validation images: errors and steps to result on our split and on that of Lee et al. (2021).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.measuring import sweeps
from lib.page import estimates
from lib.probes import unseen
from lib.records import searches
from lib.records.selection import grid
from lib.studies import plans
from lib.studies.search import Search
from lib.studies.study import Study
from lib.wording import named, number, percent
from lib.workloads import datasets
from lib.workloads.catalogue import THEIR_SPLIT, workload

FC, CNN = "mnist-fc-128x3", "mnist-simple-cnn"  # searched on both splits
SAME = "network algorithm sparsity batch_size replicate goal trials checks precision".split()


def around(cell: Search) -> pd.DataFrame:
    """The trials of a cell, at every batch size that is planned to run to a goal."""
    planned = (c for study in plans.STUDIES.values() for c in study.searches)
    sizes = {c.batch_size for c in planned if c.stop == "goal" and c.workload == cell.workload}
    sizes = sorted({cell.batch_size, *sizes})
    return sweeps.results(
        grid(cell.workload, sizes, [cell.algorithm], [cell.sparsity], trials=cell.trials)
    )


def findings(cell: Search, frame: pd.DataFrame, every: pd.DataFrame) -> dict:
    """All values in the page's sentences on a search; frame: its trials; every: from `around`."""
    work = workload(cell.workload)
    steps, trials = frame.steps, len(frame)
    low, _, high = scaling.best_of_k(steps.to_numpy(), max(1, trials // 2))
    last = frame.attrs["provenance"][0]["steps"]
    fastest = every.dropna(subset="steps").sort_values("steps").groupby("batch_size").first()
    half = f"{number(low)} to {number(min(high, last))} steps{' or more' * bool(high > last)}"
    return estimates.plain(
        {
            "workload": work.title,
            "method": named(cell.algorithm),
            "batch_size": cell.batch_size,
            "sparsity": f"{cell.sparsity:g}",
            "goal": work.asks.written(work.goal),
            "steps": int(steps.min()) if steps.notna().any() else None,
            "trials": trials,
            "fastest": fastest.learning_rate.tolist(),
            "half": half if low <= last else None,
        }
    )


def of_splits() -> dict[str, object]:
    """both: number of networks searched on both splits of MNIST; splits: the least and the largest
    ratio of steps to the hardest goal on our split over Lee et al.'s, each the geometric mean over
    searches made on both with the same trials.  A search that missed the goal counts as its last
    step.
    """
    cells = list(plans.study("mnist-split-fc").searches)
    for cell in plans.study("mnist-split").searches:
        name = cell.workload.removesuffix(THEIR_SPLIT)
        ours = replace(cell, workload=name, race=None, rungs="goals")
        # Its exact counterpart, with any number of hits on record
        waited = (replace(ours, hits=hits) for hits in (1, 2, 5))
        cells += [cell, *searches.recorded(waited).values()]
    trials = sweeps.results(Study("both-splits", "Both splits", tuple(cells)))
    ratios = []
    for name in (FC, CNN) if len(trials) else ():
        network = trials[trials.workload.isin([name, name + THEIR_SPLIT])]
        if network.empty:
            continue
        goal = scaling.goals(network)[0]
        first = scaling.steps_to_result(network, goal).query("split == 0")
        logs = np.log(first.steps.fillna(first.last_step))
        first = first.assign(network=name, log=logs)
        theirs = first.workload.str.endswith(THEIR_SPLIT)
        pairs = first[theirs].merge(first[~theirs], on=SAME, suffixes=("_theirs", "_ours"))
        ratios.append(float(np.exp((pairs.log_ours - pairs.log_theirs).mean())))
    return {"both": len(ratios), "splits": [min(ratios), max(ratios)] if ratios else []}


def of_draws() -> dict[str, str | None]:
    """The share of random draws of validation images that are easier than Lee et al.'s and than
    ours (theirs_harder, ours_harder), judged by networks that were not trained on the image.
    """
    folds = unseen.FOLDS.results()
    if not len(folds):
        return {"theirs_harder": None, "ours_harder": None}
    share = unseen.shares(folds, FC)
    among = unseen.drawn(share)
    draws = {
        "theirs_harder": datasets.held_out(datasets.LEE2021),
        "ours_harder": datasets.held_out("mnist", 0),
    }
    return {
        name: percent((among < share[images].mean()).mean()) for name, images in draws.items()
    }
