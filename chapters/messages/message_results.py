"""Compressors compared: errors, numbers of entries sent, and gaps, from the records of runs with
sparse messages.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from lib.analysis import fixed_budgets, scaling
from lib.analysis.ranges import OUTER
from lib.messages import target
from lib.methods import spaces
from lib.records import results
from lib.studies import plans
from lib.studies.study import Study
from lib.wording import number
from lib.workloads.catalogue import workload

KEYS = ["workload", "network", "compressor", "method", "density", "replicate", "budget"]
NAMES = {
    ("dense", False): "dense",
    ("top-k", True): "Top-k",
    ("gaussian-k", True): "Gaussian-k",
    ("dgc-k", True): "DGC-k",
    ("rand-k", True): "Rand-k with feedback",
    ("rand-k", False): "Rand-k",
}


SIDES = {"method": "edge", "rival": "edge_rival"}  # whether the best rate lies at an edge


def measured() -> pd.DataFrame:
    """All trials of the comparison of methods, on every network."""
    names = ("messages", "messages-lenet-5", "messages-resnet-20")
    searches = tuple(search for name in names for search in plans.study(name).searches)
    return results.read(Study("messages", "", searches))


def best(trials: pd.DataFrame) -> pd.DataFrame:
    """The trial with the lowest validation error per method, density, seed and budget of steps
    (`fixed_budgets.chosen`).

    method: of NAMES.  network: the workload's title.  over: entries sent per step over k.  edge:
    whether the learning rate lies in the outer tenth of its range at either end.
    """
    from lib.workloads import models  # imports PyTorch, which is slow

    rows = fixed_budgets.within(trials)
    ways = zip(rows.compressor, rows.feedback.astype(bool), strict=True)
    rows = rows.assign(
        method=[NAMES.get(way, way[0]) for way in ways],
        network=[workload(w).title for w in rows.workload],
    )
    winners = fixed_budgets.chosen(rows, KEYS)
    works = {name: workload(name) for name in winners.workload.unique()}
    sizes = {name: models.parameter_count(work.network()) for name, work in works.items()}
    k = [target(p, sizes[name]) for name, p in zip(winners.workload, winners.density)]
    edges = []
    for row in winners.itertuples():
        work = works[row.workload]
        space = row.space if isinstance(row.space, str) else work.space
        rates = spaces.intervals(space, row.algorithm, work.decay)["learning_rate"]
        place = rates.place(np.array(row.learning_rate))
        edges.append(bool(min(place, 1 - place) < OUTER))
    return winners.assign(over=winners.sent / winners.checked / k, edge=edges)


def gaps(runs: pd.DataFrame, method: str, rival: str = "dense") -> pd.DataFrame:
    """Test error of a method minus its rival's at the largest budget, in points (gap), per
    workload, density and seed.

    Further columns: those of `best` for the method, rival and edge_rival.
    """
    ends = runs[runs.budget == runs.groupby("workload").budget.transform("max")]
    key = ["workload", "replicate"] + (["density"] if rival != "dense" else [])
    rivals = ends.loc[ends.method == rival, [*key, "test", "edge"]]
    pairs = ends[ends.method == method].merge(rivals, on=key, suffixes=("", "_rival"))
    return pairs.assign(rival=rival, gap=100 * (pairs.test - pairs.test_rival).astype(float))


def longest(gap: pd.DataFrame, longer: pd.DataFrame) -> pd.DataFrame:
    """Two tables from `gaps` joined: the longer runs, on networks where as many seeds have them."""
    seeds, more = (table.groupby("workload").replicate.nunique() for table in (gap, longer))
    ready = longer.workload.isin(more.index[more >= seeds.reindex(more.index, fill_value=0)])
    kept = ~gap.workload.isin(longer.workload[ready])
    return pd.concat([gap[kept], longer[ready]], ignore_index=True)


def means(gap: pd.DataFrame) -> pd.DataFrame:
    """A row per method, workload and density of `gaps`: effect (`scaling.mean_of` seeds), note.

    If most of the method's best rates lie at an edge of their range, a wider one might reduce the
    gap, which is then open below; if most of the rival's do, above.  In runs of fewer than 1 /
    density steps the average entry is not sent even once: their gaps are open on both sides.
    """
    rows, keys = [], ["method", "workload", "density"]
    for key, runs in gap.groupby(keys, sort=False):
        steps, least = int(runs.budget.max()), 1 / key[-1]
        edges = {runs[side].iloc[0]: int(runs[column].sum()) for side, column in SIDES.items()}
        open_ends = [2 * count > len(runs) for count in edges.values()]
        notes = [f"{number(steps)} steps"] + [
            f"best rate at an edge with {name} in {count} of {len(runs)}"
            for name, count in edges.items()
            if 2 * count > len(runs)
        ]
        if steps < least:
            open_ends = [True, True]
            done = number(steps)
            notes = [f"not run to d/k = {number(round(least))} steps: stopped after {done}"]
        ends = dict(zip(("below", "above"), open_ends))
        rows.append([*key, replace(scaling.mean_of(runs.gap), **ends), "; ".join(notes)])
    return pd.DataFrame(rows, columns=[*keys, "effect", "note"])
