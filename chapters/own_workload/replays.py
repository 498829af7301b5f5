"""The adaptive plan on workloads that the book has searched exactly, and Optuna beside it."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from chapters.own_workload import adaptive, bends
from lib.analysis import scaling
from lib.fields import spec
from lib.measuring.experiment import Collection
from lib.records import on_record, results
from lib.records.store import DATA
from lib.studies.cells import NUMBER
from lib.studies.plans import STUDIES, USUAL
from lib.studies.study import Study
from lib.wording import named
from lib.workloads.catalogue import workload

SIZES = 2, 1024  # the smallest and the largest batch size that a replay may search
SPLITS = 3, 4, 5, 6  # of which there are exact searches, too
NETWORKS = "digits-mlp", "digits-cnn"
METHODS = "momentum", "sgd", "adam"
MINUTES = 30.0
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
        found = bends.estimate(plan.searches())
        searches = pd.Series(plan.searches()).map(len)
        rows = pd.DataFrame({"steps": plan.steps(), "searches": searches})
        rows[["trials", "taken"]] = plan.trials.groupby("batch_size").taken.agg(["size", "sum"])
        return (
            rows.rename_axis("batch_size")
            .reset_index()
            .assign(
                critical=found.critical,
                critical_low=found.low,
                critical_high=found.high,
                runs=plan.runs(),
            )
        )


class Replays(Collection):
    """Records whose names tell all fields, and hold no digest."""

    def record(self, what: Replay, data: Path = DATA) -> Path:
        return data / self.name / self.file(what)


def planned(rule: str = "adaptive") -> list[Replay]:
    """All replays of a rule."""
    return [Replay(rule, *key) for key in itertools.product(NETWORKS, METHODS, SPLITS)]


REPLAYS = Replays(
    "adaptive",
    "replays",
    "{0.rule}-{0.workload}-{0.algorithm}-split-{0.split}.csv".format,
    planned,
    "Search digits adaptively where exact searches are on record, into data/adaptive/.",
)


@functools.cache
def exact(name: str, method: str) -> scaling.Effect:
    """ln of the critical batch size of all exact searches of a dense network, each on a split."""
    fields = USUAL | {"workload": name, "algorithm": method, "sparsity": 0.0, "race": None}
    every = dict.fromkeys(cell for study in STUDIES.values() for cell in study.cells if cell.split)
    cells = [cell for cell in every if all(getattr(cell, f) == at for f, at in fields.items())]
    trials = results.read(Study("exact", "", tuple(on_record.recorded_of(cells))))
    return scaling.critical(scaling.curve_of(scaling.steps_to_result(trials)))


def judged(rule: str) -> pd.DataFrame:
    """A row per run of a rule: workload, algorithm, searches (exact ones), near (the exact
    searches' critical batch size, within NEAR) and covered (by the run's interval).
    """
    found = REPLAYS.results(planned(rule))
    if found.empty:
        return found
    each = found.groupby(["workload", "algorithm", "split"], sort=False).first().reset_index()
    known = [exact(*key) for key in zip(each.workload, each.algorithm)]
    exactly = pd.Series(np.exp([one.value for one in known]))
    off = np.abs(np.log(each.critical / exactly))
    return each.assign(
        searches=[one.n for one in known],
        near=off <= np.log(NEAR),
        covered=exactly.between(each.critical_low, each.critical_high),
    )


def told() -> dict:
    """What the page says of all replays together; nothing of what has no record."""
    mine, other = judged("adaptive"), judged("tpe-median")
    if mine.empty or other.empty:
        return {"replays": 0, "held": 0}
    by = mine.groupby(["workload", "algorithm"]).near.agg(["sum", "size"])
    name, method = by["sum"].idxmin()
    return {
        "exact_least": int(mine.searches.min()),
        "replays": len(mine),
        "near": int(mine.near.sum()),
        "held": int(mine.covered.sum()),
        "worst": f"{workload(name).title} with {named(method)}",
        "worst_near": "{} of {}".format(*by.loc[(name, method)]),
        "optuna": len(other),
        "optuna_near": int(other.near.sum()),
    }
