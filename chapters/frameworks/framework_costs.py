"""What frameworks make of two processes: seconds of a step over those of one process, time to the
goal, and the link that pays.

Time to the goal is K* times the seconds of a step, and K* is that of one process for every
framework but sparse messages, which may need more steps.
"""

from __future__ import annotations

import pandas as pd

from lib.records import on_record, results
from lib.studies import plans
from lib.studies.study import Study
from lib.wording import named
from lib.workloads.catalogue import workload

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


def ratios(times: pd.DataFrame) -> pd.DataFrame:
    """`experiments.measured` with four columns more, over one process with the same workload, method
    and batch size: ratio (of seconds), ratio_low and ratio_high (its quartiles), waiting (of clock
    times).
    """
    one = times[times.system == ONE].set_index(KEYS)
    base = one.loc[pd.MultiIndex.from_frame(times[KEYS])].set_index(times.index)
    over = times[["seconds", "low", "high"]].div(base.seconds, axis=0)
    over.columns = ["ratio", "ratio_low", "ratio_high"]
    return times.join(over).assign(waiting=times.wall / base.wall)


def searched(times: pd.DataFrame) -> pd.DataFrame:
    """The trials on record (`lib.records.results`) of dense networks with the methods that are
    timed.
    """
    pairs = times[KEYS[:2]].drop_duplicates().to_dict("records")
    studies = [on_record.gathered(sparsity=0.0, **pair, **plans.USUAL) for pair in pairs]
    cells = tuple(cell for study in studies for cell in study.cells)
    return results.read(Study("timed", "", cells))


def to_goal(points: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    """Time to the goal of every framework at the batch sizes that have both steps on record and
    times.

    points: of `scaling.across_replicates`; times: of `experiments.measured`.  Adds to the latter:
    framework (its name), curve (network and method), goal, steps, replicates (searches),
    time (seconds), time_low and time_high (of the quartiles of a step).
    """
    both = times.merge(points[[*KEYS, "goal", "steps", "replicates"]], on=KEYS)
    curve = [f"{workload(w).title} with {named(a)}" for w, a in zip(both.workload, both.algorithm)]
    spent = both[["seconds", "low", "high"]].mul(both.steps, axis=0)
    spent.columns = ["time", "time_low", "time_high"]
    return both.assign(framework=both.system.map(NAMES), curve=curve).join(spent)


def fastest(goals: pd.DataFrame) -> pd.Series:
    """The row of `to_goal` with the shortest time, of frameworks that take the steps of one
    process.
    """
    exact = goals[goals.system != SPARSE]
    return exact.loc[exact.time.idxmin()]


def slowest_link(times: pd.DataFrame) -> tuple[float, float]:
    """The link over which a step of data parallelism takes as long as one of one process: bandwidth
    (bytes per second) without latency, and latency (seconds) without a limit to bandwidth.

    times: of one workload, method and batch size.  Both are negative where it takes longer anyway.
    Nothing goes on beside anything else, so a step takes c + n a + b / B: what the busier process
    computes, n messages one after the other, and the b bytes of the process that sends more.
    """
    own = times.set_index("system")
    ddp = own.loc["ddp"]
    gained = own.seconds[ONE] - ddp.seconds
    return ddp.sent / gained, gained / ddp.waits
