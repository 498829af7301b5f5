"""Timings of a machine and their records: taken once, while it does nothing else, and read from
then on.  Here are those of training steps on one core: of networks, and of methods, each in turn
with SGD, so that their ratio holds on other machines.

What is timed are frozen dataclasses with `definition()`, what the record's name depends on besides
the settings, and `measure()`, a table with columns seconds, low and high among others.
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
    """Median and range in seconds of so many rounds of calls, after one to warm up: {"seconds",
    "low", "high"} of each.
    """
    rounds = [[timeit.timeit(call, number=1) for call in calls] for _ in range(repeats + 1)][1:]
    return [
        {"seconds": statistics.median(times), "low": min(times), "high": max(times)}
        for times in zip(*rounds)
    ]


def spread(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """`alternately` of one call."""
    return alternately([call], repeats)[0]


def experiment(what: str, planned: Callable[[], Sequence]) -> Collection:
    """The experiment that takes these timings; what: is timed, in words."""
    return Collection(
        "timings",
        "sets of timings",
        lambda what: type(what).__name__.lower(),
        planned,
        f"Time {what}, into data/timings/; leave the machine alone meanwhile.",
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
# Steps timed together: what a method does at every tenth or twentieth step alone counts with its
# share
BLOCK = 20


@spec
class StepTimes:
    """Times of one trial's training step on one core, gradient and update, at 4^0 ... 2^largest
    examples.

    Raises ValueError naming the field, its value and what is allowed.
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
    """Times of a trial's training step, gradient and update, with a method and with SGD, at 4^1 ...
    2^largest examples.

    trials: trained at once, as in a search, where the workload stacks them.  Raises ValueError
    naming the field, its value and what is allowed.
    """

    workload: WorkloadName
    algorithm: MethodName
    trials: TRIALS = 16
    largest: Whole(2, 16) = 8
    repeats: REPEATS = 5

    def definition(self) -> dict:
        work = workload(self.workload)
        return {
            "model": work.model,
            "precision": work.precision,
            "method": method(self.algorithm).source,
        }

    def measure(self) -> pd.DataFrame:
        """timed (SGD or the method), batch_size, parameters, widest (layer side), seconds (median),
        low, high (range).
        """
        rows, names = [], (BASE, self.algorithm)
        for power in range(2, self.largest + 1, 2):
            cells = [
                Search(self.workload, 2**power, name, trials=self.trials) for name in names
            ]
            calls, networks = zip(*map(_run, cells), strict=True)
            times = alternately(calls, self.repeats)
            for name, network, found in zip(names, networks, times, strict=True):
                per = {key: seconds / self.trials / BLOCK for key, seconds in found.items()}
                rows.append({"timed": name, "batch_size": 2**power, **network, **per})
        return pd.DataFrame(rows)


def _run(cell: Search, steps: int = BLOCK) -> tuple[Callable[[], None], dict]:
    """So many of a cell's steps with a learning rate of zero, and how large its network is."""
    from lib.measuring.rerun import Rerun  # brings PyTorch, and reading times does without

    rerun = Rerun(cell)
    rerun.trials.drawn["learning_rate"].zero_()
    rerun.order = itertools.repeat(slice(cell.batch_size))  # no time goes into picking examples

    def run() -> None:
        for _ in range(steps):
            rerun.update()

    inputs = [(one.where.stop - one.where.start) // one.shape[0] for one in rerun.layers]
    widest = max(*inputs, *(one.shape[0] for one in rerun.layers))
    return run, {"parameters": rerun.w.shape[1], "widest": widest}


NETWORKS = tuple(
    map(
        StepTimes,
        (
            "digits-mlp",
            "digits-cnn",
            "mnist-fc-128x3",
            "mnist-simple-cnn",
            "fashion-mnist-simple-cnn",
            "cifar-10-resnet-8",
        ),
    )
)
# Where steps are not stacked, one trial: the others would take as long again.  K-FAC without its
# clip was searched on digits.
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
PLANNED = (*NETWORKS, *BY_METHOD)
TIMINGS = experiment("training steps and methods", lambda: PLANNED)


def one_core(name: str) -> pd.DataFrame | None:
    """The measured step times of a workload on one core of ours, or None."""
    measured = results(StepTimes(name))
    return None if measured.empty else measured


def over_sgd() -> pd.DataFrame:
    """What is on record of BY_METHOD, a row per workload, algorithm and batch size, with SGD's own
    rows of one.

    Columns: workload, algorithm, batch_size, widest, ratio (a step's seconds over those of a step
    of SGD in the same run), low, high (the fastest over SGD's slowest, and the other way round).
    """
    table = results(*BY_METHOD).set_index(["workload", "algorithm", "batch_size"])
    base, own = table[table.timed == BASE], table[table.timed != BASE]
    ratios = {"ratio": own.seconds / base.seconds, "low": own.low / base.high}
    both = own[["widest"]].assign(**ratios, high=own.high / base.low).reset_index()
    alone = both.drop_duplicates(["workload", "batch_size"])
    alone = alone.assign(algorithm=BASE, ratio=1.0, low=1.0, high=1.0)
    return pd.concat([alone, both], ignore_index=True)
