"""Compressors side by side: from records of runs with sparse messages to errors, what was sent, and
gaps.
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


def measured() -> pd.DataFrame:
    """All trials of the comparison of methods, on every network."""
    names = ("messages", "messages-lenet-5", "messages-resnet-20")
    return results.read(
        Study(
            "messages", "", tuple(cell for name in names for cell in plans.study(name).searches)
        )
    )


def best(trials: pd.DataFrame) -> pd.DataFrame:
    """The trial with the lowest validation error per method, density, seed and budget of steps
    (`fixed_budgets.chosen`).

    method: of NAMES.  network: the workload's title.  over: entries sent per step over those asked
    for.  edge: whether its learning rate lies in the outer tenth of its range.
    """
    rows = fixed_budgets.within(trials)
    ways = zip(rows.compressor, rows.feedback.astype(bool), strict=True)
    rows = rows.assign(
        method=[NAMES.get(way, way[0]) for way in ways],
        network=[workload(w).title for w in rows.workload],
    )
    found = fixed_budgets.chosen(rows, KEYS)
    return found.assign(over=found.sent / found.checked / _asked(found), edge=_at_edge(found))


def _at_edge(rows: pd.DataFrame) -> list[bool]:
    """Whether a learning rate lies in the outer tenth of the range that it was drawn from."""
    edges = []
    for row in rows.itertuples():
        work = workload(row.workload)
        space = row.space if isinstance(row.space, str) else work.space
        interval = spaces.intervals(space, row.algorithm, work.decay)["learning_rate"]
        place = interval.place(np.array(row.learning_rate))
        edges.append(bool(min(place, 1 - place) < OUTER))
    return edges


def _asked(rows: pd.DataFrame) -> list[int]:
    """k of every row, from its workload and density."""
    from lib.workloads import models  # brings PyTorch, which is slow to import

    sizes = {w: models.parameter_count(workload(w).network()) for w in rows.workload.unique()}
    return [target(p, sizes[w]) for w, p in zip(rows.workload, rows.density, strict=True)]


def gaps(found: pd.DataFrame, method: str, rival: str = "dense") -> pd.DataFrame:
    """Test error of a method over its rival's at the largest budget, in points (gap), per workload,
    density and seed.

    With the columns of `best`, of the method, rival and edge_rival.
    """
    ends = found[found.budget == found.groupby("workload").budget.transform("max")]
    key = ["workload", "replicate"] + (["density"] if rival != "dense" else [])
    other = ends.loc[ends.method == rival, [*key, "test", "edge"]]
    both = ends[ends.method == method].merge(other, on=key, suffixes=("", "_rival"))
    return both.assign(rival=rival, gap=100 * (both.test - both.test_rival).astype(float))


def longest(gap: pd.DataFrame, longer: pd.DataFrame) -> pd.DataFrame:
    """Of two tables of `gaps`, those of longer runs on networks where as many seeds have them."""
    seeds, more = (one.groupby("workload").replicate.nunique() for one in (gap, longer))
    ready = longer.workload.isin(more.index[more >= seeds.reindex(more.index, fill_value=0)])
    kept = ~gap.workload.isin(longer.workload[ready])
    return pd.concat([gap[kept], longer[ready]], ignore_index=True)


def means(gap: pd.DataFrame) -> pd.DataFrame:
    """Of `gaps`, a row per method, workload and density: effect (`scaling.mean_of` seeds), note.

    Where most of the method's best rates lie at an edge of their search, a wider one might lessen
    the gap, which is then open below; where most of the rival's do, above.  Runs of fewer than 1 /
    density steps, in which an average entry is not sent once, are open on both sides.
    """
    rows, keys = [], ["method", "workload", "density"]
    for key, own in gap.groupby(keys, sort=False):
        edges = {"method": int(own.edge.sum()), "rival": int(own.edge_rival.sum())}
        below, above = (2 * count > len(own) for count in edges.values())
        density = key[-1]
        short = own.budget.max() * density < 1
        effect = replace(scaling.mean_of(own.gap), below=below or short, above=above or short)
        done = number(int(own.budget.max()))
        told = [f"{done} steps"] + [
            f"best rate at an edge with {own[side].iloc[0]} in {count} of {len(own)}"
            for side, count in edges.items()
            if 2 * count > len(own)
        ]
        if short:
            told = [
                f"not run to d/k = {number(round(1 / density))} steps: stopped after {done}"
            ]
        rows.append([*key, effect, "; ".join(told)])
    return pd.DataFrame(rows, columns=[*keys, "effect", "note"])
