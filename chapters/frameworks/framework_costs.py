"""What frameworks make of two processes: time to the goal, by the clock and in computing, over that
of one process, and the link that pays.

Time to the goal is K* times the seconds of a step, and K* is that of one process for every
framework but sparse messages, which may need more steps.
"""

from __future__ import annotations

import pandas as pd

from lib.claims.names import title
from lib.records import results, selection
from lib.studies.study import Study

NAMES = {
    "one": "one process",
    "ddp": "data parallelism",
    "zero": "sharded states",
    "fsdp": "full sharding",
    "pipeline": "two stages",
    "sparse": "sparse messages",
}
ONE, SPARSE = "one", "sparse"
KEYS = ["workload", "algorithm", "batch_size"]


def searched(times: pd.DataFrame) -> pd.DataFrame:
    """The trials on record (`lib.records.results`) of dense networks with the methods that are
    timed.
    """
    pairs = set(zip(times.workload, times.algorithm))
    dense = (cell for cell in selection.curves().searches if not cell.sparsity)
    timed = (cell for cell in dense if (cell.workload, cell.algorithm) in pairs)
    return results.read(Study("timed", "", timed))


def gains(points: pd.DataFrame, times: pd.DataFrame, seconds: str) -> pd.Series:
    """How many times as fast as one process each framework reaches the goal, both at their best
    batch size; by network and framework, without sparse messages, which may need more steps.

    points: of `scaling.across_replicates`; times: of `experiments.measured`.  seconds: their column
    for the time of a step: "wall" by the clock, "seconds" of computing.
    """
    both = times.merge(points[[*KEYS, "steps"]], on=KEYS)
    both["time"] = both.steps * both[seconds]
    names = both.assign(network=both.workload.map(title), framework=both.system.map(NAMES))
    best = names[names.system != SPARSE].groupby(["network", "framework"]).time.min().unstack()
    return best.rdiv(best[NAMES[ONE]], axis=0).drop(columns=NAMES[ONE]).stack()
