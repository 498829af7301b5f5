"""What frameworks make of two processes: seconds of a step with a link between them, time to the
goal, and the link that pays.

A step takes t = c + n a + b / B: what the busier process computes, n messages one after the other
with latency a, and the b bytes of the process that sends more over a bandwidth of B.  Nothing goes
on beside anything else, so this is an upper limit.  Time to the goal is K* t, and K* is that of one
process for every framework but sparse messages, which may need more steps.
"""

from __future__ import annotations

import numpy as np
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
# Columns of bytes that a process holds between steps
HELD = ("parameters", "gradients", "states", "residuals")

# The seconds of a step in the language of the charts; a test evaluates it.
EXPRESSION = "datum.seconds + datum.waits * {latency} + datum.sent / {bandwidth}"


def step_seconds(times: pd.DataFrame, latency: float = 0.0, bandwidth: float = np.inf) -> pd.Series:
    """Seconds of a step by rows of `experiments.measured`, with this link between the processes.

    latency: seconds of a message; bandwidth: bytes per second.
    """
    return times.seconds + times.waits * latency + times.sent / bandwidth


def over_one(times: pd.DataFrame, column: str = "seconds") -> pd.Series:
    """A column of every row over that of one process with the same workload, method and batch size;
    NaN where it is not timed.
    """
    one = times[times.system == ONE].set_index(KEYS)[column]
    base = times.set_index(KEYS).index.map(one.to_dict())
    return times[column] / np.asarray(base, float)


def ratios(times: pd.DataFrame) -> pd.DataFrame:
    """`experiments.measured` with three columns more, over one process: ratio (of seconds), ratio_low
    and ratio_high (its quartiles), waiting (of clock times).
    """
    ratio = over_one(times)
    quartiles = {f"ratio_{end}": times[end] * ratio / times.seconds for end in ("low", "high")}
    return times.assign(ratio=ratio, **quartiles, waiting=over_one(times, "wall"))


def searched(times: pd.DataFrame) -> pd.DataFrame:
    """The trials on record (`lib.records.results`) of dense networks with the methods that are
    timed.
    """
    pairs = times[KEYS[:2]].drop_duplicates().to_dict("records") if len(times) else ()
    studies = [on_record.gathered(sparsity=0.0, **pair, **plans.USUAL) for pair in pairs]
    cells = tuple(cell for study in studies for cell in study.cells)
    return results.read(Study("timed", "", cells))


def to_goal(
    points: pd.DataFrame, times: pd.DataFrame, latency: float = 0.0, bandwidth: float = np.inf
) -> pd.DataFrame:
    """Time to the goal of every framework at the batch sizes that have both steps on record and
    times.

    points: of `scaling.across_replicates`; times: of `experiments.measured`.  Adds to the latter:
    framework (its name), curve (network and method), goal, steps, time (seconds).
    """
    both = times.merge(points[[*KEYS, "goal", "steps"]], on=KEYS)
    curve = [f"{workload(w).title} with {named(a)}" for w, a in zip(both.workload, both.algorithm)]
    time = both.steps * step_seconds(both, latency, bandwidth)
    return both.assign(framework=both.system.map(NAMES), curve=curve, time=time)


def fastest(goals: pd.DataFrame) -> pd.Series:
    """The row of `to_goal` with the shortest time, of frameworks that take the steps of one
    process.
    """
    exact = goals[goals.system != SPARSE]
    return exact.loc[exact.time.idxmin()]


def breaks_even(times: pd.DataFrame) -> pd.DataFrame:
    """The slowest link over which a framework's step still takes no longer than one process alone:
    times with two columns more.

    bandwidth: bytes per second without latency; latency: seconds with endless bandwidth.  NaN where
    it takes longer anyway.
    """
    gained = times.seconds / over_one(times) - times.seconds
    gained = gained.where(gained > 0)
    return times.assign(
        bandwidth=times.sent / gained, latency=gained / times.waits.where(times.waits > 0)
    )
