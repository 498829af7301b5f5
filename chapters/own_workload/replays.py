"""The adaptive plan on workloads that the book has searched exactly, and Optuna beside it."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from chapters.own_workload import adaptive
from lib import forms
from lib.analysis import ranges, scaling
from lib.fields import spec
from lib.measuring.experiment import Collection
from lib.methods.spaces import intervals
from lib.records import results, store
from lib.records.store import DATA, record
from lib.studies.cells import NUMBER, Cell
from lib.studies.plans import STUDIES, USUAL
from lib.studies.study import Study
from lib.wording import named, percent, with_interval
from lib.workloads.catalogue import workload

SIZES = 2, 1024  # the smallest and the largest batch size that a replay may search
SPLITS = 3, 4, 5, 6  # of which there are exact searches, too
NETWORKS = "digits-mlp", "digits-cnn"
METHODS = "momentum", "sgd", "adam"
MINUTES = 30.0
# Batch sizes by which a few exact searches are judged, as many as a plan begins with
FEW = 8, 64, 512
DRAWS = 2000
NEAR = 1.25  # how far from the exact searches' critical batch size is near


@spec
class Replay:
    """One run of a rule on one split: what it found at every batch size, and at what cost."""

    rule: Literal["adaptive", "tpe-median"]
    workload: Literal[*NETWORKS]
    algorithm: Literal[*METHODS]
    split: NUMBER

    def measure(self) -> pd.DataFrame:
        """The plan, trained anew into a folder of its own.

        A row per batch size: batch_size, steps (K*), searches, trials, taken (steps, of all trials);
        and of the whole run critical, critical_low, critical_high, runs (tuned runs).
        """
        plan = adaptive.Plan(self.workload, self.algorithm, SIZES, split=self.split)
        # Its waves are many, and each has a bar
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            adaptive.run(plan, MINUTES, Path(folder))
        found = adaptive.estimate(plan.searches())
        rows = [
            {
                "batch_size": size,
                "steps": plan.steps(size),
                "searches": len(steps),
                "trials": len(plan.of(size)),
                "taken": sum(trial.taken for trial in plan.of(size)),
            }
            for size, steps in plan.searches().items()
        ]
        ends = {"critical": found.critical, "critical_low": found.low, "critical_high": found.high}
        return pd.DataFrame(rows).assign(**ends, runs=plan.runs())


class Replays(Collection):
    """Records whose names tell all fields, and hold no digest."""

    def record(self, what: Replay, data: Path = DATA) -> Path:
        return data / self.name / self.file(what)


def planned(rule: str = "adaptive") -> list[Replay]:
    """All replays of a rule."""
    pairs = [(name, method) for name in NETWORKS for method in METHODS]
    return [Replay(rule, *pair, split) for pair in pairs for split in SPLITS]


REPLAYS = Replays(
    "adaptive",
    "replays",
    "{0.rule}-{0.workload}-{0.algorithm}-split-{0.split}.csv".format,
    planned,
    "Search digits adaptively where exact searches are on record, into data/adaptive/.",
)


@functools.cache
def exact() -> dict[tuple[str, str], scaling.Curve]:
    """The curve of all exact searches on splits of their own, by workload and method."""
    found = {}
    for pair in itertools.product(NETWORKS, METHODS):
        searches = scaling.steps_to_result(results.read(exactly(*pair)))
        found[pair] = scaling.curve_of(searches)
    return found


def exactly(name: str, method: str) -> Study:
    """All exact searches on splits of their own."""
    cells = (c for s in STUDIES.values() for c in s.cells if _fits(c, name, method))
    return Study("exact", "", tuple(dict.fromkeys(cells)))


def whole_range(name: str, method: str) -> scaling.Effect:
    """ln of the critical batch size of the exact searches with momentum over its whole range."""
    low = ranges.low_momentum().cells
    asked = name, method, 0.0
    of_curve = (cell for cell in low if (cell.workload, cell.algorithm, cell.sparsity) == asked)
    below = results.read(Study("low", "", tuple(of_curve)))
    joined = ranges.whole(results.read(exactly(name, method)), below)
    return scaling.critical(scaling.curve_of(scaling.steps_to_result(joined)))


def drawn(curve: scaling.Curve, searches: int, draws: int = DRAWS) -> np.ndarray:
    """ln of the critical batch size [draws] by so many exact searches of a curve, each of a split of
    its own: c1/B + c2, fitted to their mean ln K* at the batch sizes FEW.

    Searches are drawn at random, none twice in one draw, from those that met the goal at all of
    these sizes; of one search, every one of them once.  They are among those that the whole curve is
    made of.
    """
    few = curve.at(FEW)
    met = few.logs.notna().all(axis=1) & ~few.missed.any(axis=1)
    logs = few.logs[met].to_numpy()
    if searches == 1:
        return forms.log_critical(few.sizes, logs)
    random = np.random.default_rng(0)
    chosen = random.random((draws, len(logs))).argsort(axis=1)[:, :searches]
    return forms.log_critical(few.sizes, logs[chosen].mean(axis=1))


def luck(curves: Iterable[scaling.Curve], searches: int) -> tuple[float, float]:
    """How near so many exact searches (`drawn`) come to the critical batch size of their whole
    curve, that of all its searches and batch sizes (`scaling.critical`).

    Returns the share of draws within NEAR of it, the mean over curves; and the standard deviation
    of ln C between the draws of a curve, root mean square over curves.
    """
    near, variances = [], []
    for curve in curves:
        found = drawn(curve, searches)
        near.append(np.mean(np.abs(found - scaling.critical(curve).value) <= np.log(NEAR)))
        variances.append(found.var(ddof=1))
    return float(np.mean(near)), float(np.sqrt(np.mean(variances)))


def _fits(cell: Cell, name: str, method: str) -> bool:
    """Whether it is an exact search of such a curve, dense and as usual, that is on record."""
    if (cell.workload, cell.algorithm) != (name, method) or not cell.split or cell.race:
        return False
    usual = all(getattr(cell, field) == value for field, value in USUAL.items())
    return usual and cell.sparsity == 0 and store.exists(record(cell))


def summary(rule: str) -> pd.DataFrame:
    """A row per workload and method: exact (low, high, searches), of the rule's runs critical (the
    geometric mean), lowest, highest, runs (tuned runs, mean) and most, splits, near (runs within
    NEAR), covered (runs whose interval holds the exact value).
    """
    found = REPLAYS.results(planned(rule))
    if found.empty:
        return found
    by = found.groupby(["workload", "algorithm"], sort=False)
    return pd.DataFrame([_row(*key, own.groupby("split").first()) for key, own in by])


def _row(name: str, method: str, each: pd.DataFrame) -> dict:
    """A row of `summary`; each: a row per split."""
    known, logs = scaling.critical(exact()[name, method]), np.log(each.critical)
    above = each.critical_low <= np.exp(known.value)
    below = np.exp(known.value) <= each.critical_high
    return {
        "workload": workload(name).title,
        "method": named(method),
        **known.row("exact"),
        "searches": known.n,
        "critical": float(np.exp(logs.mean())),
        "lowest": float(each.critical.min()),
        "highest": float(each.critical.max()),
        "runs": float(each.runs.mean()),
        "most": float(each.runs.max()),
        "splits": len(each),
        "near": int((np.abs(logs - known.value) <= np.log(NEAR)).sum()),
        "covered": int((above & below).sum()),
    }


def told() -> dict:
    """What the page says of all replays together; nothing of what has no record."""
    mine, other = summary("adaptive"), summary("tpe-median")
    if mine.empty or other.empty:
        return {"replays": 0, "held": 0}
    curves = list(exact().values())
    one, scatter = luck(curves, 1)
    three, of_three = luck(curves, 3)
    return {
        "exact_least": int(mine.searches.min()),
        "exact_most": int(mine.searches.max()),
        "replays": int(mine.splits.sum()),
        "near": int(mine.near.sum()),
        "held": int(mine.covered.sum()),
        "runs_most": float(mine.most.max()),
        "optuna": int(other.splits.sum()),
        "optuna_near": int(other.near.sum()),
        "few": list(FEW),
        "one_near": percent(one),
        "one_scatter": scatter,
        "three_near": percent(three),
        "three_scatter": of_three,
        **_conditions(),
    }


def _conditions() -> dict:
    """The goal, the least momentum that was drawn, and what the whole range of it changes."""
    name, method = NETWORKS[0], "momentum"
    work = workload(name)
    return {
        "replayed_goal": percent(min(work.goals)),
        "momentum_low": intervals(work.space, method)["momentum"].low,
        "whole_network": work.title,
        "whole_range": with_interval(*whole_range(name, method).row().values()),
    }


FORMATS = {"tuned runs": "{:.0f}", "Optuna: tuned runs": "{:.0f}"}


def table() -> pd.DataFrame:
    """The table of the page: exact searches, the adaptive plan and Optuna side by side."""
    mine, other = summary("adaptive"), summary("tpe-median")
    shown = pd.DataFrame(
        {
            "network": mine.workload,
            "method": mine.method,
            "exact": list(map(with_interval, mine.exact, mine.exact_low, mine.exact_high)),
            "adaptive, mean (runs)": _means(mine),
            "within a quarter": _of(mine.near, mine.splits),
            "interval holds it": _of(mine.covered, mine.splits),
            "tuned runs": mine.runs,
        }
    )
    beside = pd.DataFrame(
        {
            "network": other.workload,
            "method": other.method,
            "Optuna, mean (runs)": _means(other),
            "Optuna: within a quarter": _of(other.near, other.splits),
            "Optuna: tuned runs": other.runs,
        }
    )
    return shown.merge(beside, "left", ["network", "method"])


def _means(frame: pd.DataFrame) -> list[str]:
    return list(map(with_interval, frame.critical, frame.lowest, frame.highest))


def _of(counts: pd.Series, splits: pd.Series) -> list[str]:
    return list(map("{} of {}".format, counts, splits))
