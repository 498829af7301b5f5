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

from chapters.own_workload import adaptive
from lib.analysis import scaling
from lib.fields import spec
from lib.measuring.experiment import Collection
from lib.records import results, searches
from lib.studies.plans import STUDIES
from lib.studies.search import NUMBER
from lib.studies.study import Study
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
        """A row per batch size: steps (K*), searches, trials, taken (steps, of all trials)."""
        plan = adaptive.Plan(self.workload, self.algorithm, SIZES, split=self.split)
        # Its waves are many, and each has a bar
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            adaptive.run(plan, MINUTES, Path(folder))
        found = adaptive.estimate(plan.searches())
        searches = pd.Series(plan.searches()).map(len)
        rows = pd.DataFrame({"steps": plan.steps(), "searches": searches})
        rows[["trials", "taken"]] = plan.trials.groupby("batch_size").taken.agg(["size", "sum"])
        rows["critical"], rows["critical_low"] = found.critical, found.low
        rows["critical_high"], rows["runs"] = found.high, plan.runs()
        return rows.rename_axis("batch_size").reset_index()


class Replays(Collection):
    """Records whose names tell all fields."""

    def stem(self, what: Replay) -> str:
        return self.file(what)


def planned(rule: str = "adaptive") -> list[Replay]:
    """All replays of a rule."""
    return [Replay(rule, *key) for key in itertools.product(NETWORKS, METHODS, SPLITS)]


REPLAYS = Replays(
    "adaptive",
    "replays",
    "{0.rule}-{0.workload}-{0.algorithm}-split-{0.split}".format,
    planned,
    "Search digits adaptively where exact searches are on record, into data/adaptive/.",
)
EXPERIMENTS = {"adaptive-replays": REPLAYS}


@functools.cache
def exact(name: str, method: str) -> scaling.Effect:
    """ln of the critical batch size of all exact searches of a dense network, each on a split."""
    every = (cell for study in STUDIES.values() for cell in study.searches if cell.split)
    dense = (c for c in every if not c.sparsity and c.race is None and c.is_usual())
    cells = [c for c in dense if (c.workload, c.algorithm) == (name, method)]
    trials = results.read(Study("exact", "", searches.recorded(cells).values()))
    return scaling.critical(scaling.curve_of(scaling.steps_to_result(trials)))


def replayed() -> pd.DataFrame:
    """What each rule found in its replays, a row per rule and network: how often within NEAR of the
    critical batch size of the exact searches, how often its interval held that, and its cost.
    """
    found = REPLAYS.results([*planned(), *planned("tpe-median")])
    runs = found.drop_duplicates(["rule", "workload", "algorithm", "split"])
    known = [exact(*key) for key in zip(runs.workload, runs.algorithm)]
    exactly = np.exp([one.value for one in known])
    runs = runs.assign(
        near=np.abs(np.log(runs.critical / exactly)) <= np.log(NEAR),
        held=(runs.critical_low <= exactly) & (exactly <= runs.critical_high),
        network=[workload(name).title for name in runs.workload],
        rule=runs.rule.map(
            {"adaptive": "adaptive", "tpe-median": "Optuna, given the batch sizes"}
        ),
    )
    rows = runs.groupby(["rule", "network"], as_index=False).agg(
        **{
            "replays": ("near", "size"),
            "within a quarter": ("near", "sum"),
            "interval holds it": ("held", "sum"),
            "cost (tuned runs)": ("runs", "mean"),
        }
    )
    told = rows["interval holds it"].astype(object).where(rows.rule == "adaptive", "—")
    return rows.assign(**{"interval holds it": told}).round(0)
