"""Timings of a machine and their records: taken once, while it does nothing else, and read from
then on.  This module times training steps on one core: of networks, and of methods, alternating
with SGD, so that their ratio holds on other machines.

Timings are specs with `definition()` and `measure()`, whose table has columns seconds, low and
high, among others.
"""

from __future__ import annotations

import itertools
import os
import statistics
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from lib.fields import Count, Whole, spec
from lib.measuring.experiment import Collection
from lib.methods import METHODS, MethodName, method
from lib.records.store import DATA
from lib.studies.search import TRIALS, Search
from lib.workloads.catalogue import WorkloadName, workload

REPEATS = Count(10_000)


def alternately(calls: Sequence[Callable[[], object]], repeats: int) -> list[dict[str, float]]:
    """Median and range in seconds over `repeats` rounds of calls, after one to warm up: {"seconds",
    "low", "high"} for each call.
    """
    rounds = [[timeit.timeit(call, number=1) for call in calls] for _ in range(repeats + 1)][1:]
    return [
        {"seconds": statistics.median(times), "low": min(times), "high": max(times)}
        for times in zip(*rounds)
    ]


def spread(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """`alternately` for a single call."""
    return alternately([call], repeats)[0]


def experiment(what: str, planned: Callable[[], Sequence]) -> Collection:
    """The experiment that takes these timings; what: what is timed, in words."""
    return Collection(
        "timings",
        "sets of timings",
        lambda what: type(what).__name__.lower(),
        planned,
        f"Time {what}, into data/timings/; keep the machine idle meanwhile.",
        precision=None,
        more={"cores": os.cpu_count()},
        alone=True,
    )


def results(*planned, data: Path = DATA) -> pd.DataFrame:
    """The timings that have a record, with their settings as columns; see
    `lib.records.store.gather`.
    """
    return TIMINGS.results(planned, data)


# --- of training steps ----------------------------------------------------------------------------

BASE = "sgd"
# Steps timed together, so that what a method does only every tenth or twentieth step counts
# proportionally
BLOCK = 20


@spec
class StepTimes:
    """Times of one trial's training step on one core, gradient and update, with 4^0 ... 2^largest
    examples.
    """

    workload: WorkloadName
    largest: Whole(0, 16) = 10
    repeats: REPEATS = 9

    def definition(self) -> dict:
        work = workload(self.workload)
        return {"model": work.model, "precision": work.precision}

    def measure(self) -> pd.DataFrame:
        """batch_size, seconds (median), low, high (range)."""
        rows = []
        for power in range(0, self.largest + 1, 2):
            step, _ = _run(Search(self.workload, 2**power, trials=1), 1)
            rows.append({"batch_size": 2**power, **spread(step, self.repeats)})
        return pd.DataFrame(rows)


@spec
class MethodTimes:
    """Times of a trial's training step, gradient and update, by a method and by SGD, with 4^1 ...
    2^largest examples.

    trials: trained at once, as in a search, if the workload batches them.
    """

    workload: WorkloadName
    algorithm: MethodName
    trials: TRIALS = 16
    largest: Whole(2, 16) = 8
    repeats: REPEATS = 5

    def definition(self) -> dict:
        work, source = workload(self.workload), method(self.algorithm).source
        return {"model": work.model, "precision": work.precision, "method": source}

    def measure(self) -> pd.DataFrame:
        """timed (SGD or the method), batch_size, parameters, widest (layer side), seconds (median),
        low, high (range).
        """
        rows, names, trials = [], (BASE, self.algorithm), self.trials
        for power in range(2, self.largest + 1, 2):
            size = 2**power
            cells = [Search(self.workload, size, name, trials=trials) for name in names]
            calls, networks = zip(*map(_run, cells), strict=True)
            times = alternately(calls, self.repeats)
            for name, network, seconds in zip(names, networks, times, strict=True):
                step = {key: value / trials / BLOCK for key, value in seconds.items()}
                rows.append({"timed": name, "batch_size": size, **network, **step})
        return pd.DataFrame(rows)


def _run(cell: Search, steps: int = BLOCK) -> tuple[Callable[[], None], dict]:
    """A call of `steps` steps of a search with learning rate zero, and its network's size."""
    from lib.measuring.rerun import Rerun  # imports PyTorch, which reading times does not need

    rerun = Rerun(cell)
    rerun.trials.drawn["learning_rate"].zero_()
    rerun.order = itertools.repeat(slice(cell.batch_size))  # spends no time on picking examples

    def run() -> None:
        for _ in range(steps):
            rerun.update()

    outputs = [layer.shape[0] for layer in rerun.layers]
    sizes = [layer.where.stop - layer.where.start for layer in rerun.layers]
    widest = max(*outputs, *(size // side for size, side in zip(sizes, outputs)))
    return run, {"parameters": rerun.w.shape[1], "widest": widest}


NETWORKS = """
digits-mlp digits-cnn mnist-fc-128x3 mnist-simple-cnn fashion-mnist-simple-cnn cifar-10-resnet-8
""".split()
# One trial where steps are not batched: the others would each take as long again.  K-FAC without
# its clip was searched on digits.
BY_METHOD = tuple(
    MethodTimes(name, algorithm, trials, 10, repeats)
    for name, trials, repeats in (
        ("digits-mlp", 16, 5),
        ("digits-cnn", 16, 5),
        ("mnist-fc-128x3-easier", 16, 3),
        ("mnist-simple-cnn", 1, 3),
    )
    for algorithm in METHODS
    if algorithm != BASE and (name.startswith("digits") or algorithm != "kfac-unclipped")
)
TIMINGS = experiment(
    "training steps and methods", lambda: (*map(StepTimes, NETWORKS), *BY_METHOD)
)


def one_core(name: str) -> pd.DataFrame | None:
    """The measured step times of a workload on one of our cores, or None."""
    times = results(StepTimes(name))
    return None if times.empty else times


def over_sgd() -> pd.DataFrame:
    """The recorded timings of BY_METHOD, a row per workload, algorithm and batch size, with rows of
    ratio 1 for SGD.

    Columns: workload, algorithm, batch_size, widest, ratio (a step's seconds over those of a step
    of SGD in the same run), low, high (the fastest over SGD's slowest, and vice versa).
    """
    times = results(*BY_METHOD).set_index(["workload", "algorithm", "batch_size"])
    sgd = times[times.timed == BASE]
    method = times[times.timed != BASE]
    ratios = method[["widest"]].assign(
        ratio=method.seconds / sgd.seconds,
        low=method.low / sgd.high,
        high=method.high / sgd.low,
    )
    ratios = ratios.reset_index()
    base = ratios.drop_duplicates(["workload", "batch_size"])
    base = base.assign(algorithm=BASE, ratio=1.0, low=1.0, high=1.0)
    return pd.concat([base, ratios], ignore_index=True)
