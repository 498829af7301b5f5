"""The adaptive plan on workloads that the book has searched exactly, compared with Optuna."""

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
SPLITS = 3, 4, 5, 6  # these have exact searches, too
# Replayed after the rules were fixed; 7, 8 and one replay of 9 were in the pilot that led to
# fitting goals together
ASIDE = 7, 8, 9, 10
NETWORKS = "digits-mlp", "digits-cnn"
METHODS = "momentum", "sgd", "adam"
MINUTES = 30.0
RULES = {
    "laws": "adaptive, by the two laws",
    "adaptive": "adaptive before, by the fastest of a search",
    "tpe-median": "Optuna: TPE and a median pruner",
    "hyperband": "Optuna: Hyperband",
}
OTHERS = {
    "digits-mlp": "the same, on four other splits of the MLP",
    "digits-cnn": "the same, on four other splits of the small CNN",
}
NEAR = 1.25  # factor from the exact searches' critical batch size that counts as near


@spec
class Replay:
    """One run of a rule on one split: its results at every batch size, and their cost."""

    rule: Literal[*RULES]
    workload: Literal[*NETWORKS]
    algorithm: Literal[*METHODS]
    split: NUMBER

    def measure(self) -> pd.DataFrame:
        """A row per batch size: steps (K*), trials, taken (steps of all trials); the same in every
        row: critical, critical_low, critical_high (90 %) and runs (total cost, in tuned runs).
        """
        plan = adaptive.Plan(self.workload, self.algorithm, SIZES, split=self.split)
        # Hide the progress bars of its many waves
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            adaptive.run(plan, MINUTES, Path(folder))
        surface = plan.surface()
        rows = plan.trials.groupby("batch_size").last_step.agg(trials="size", taken="sum")
        names = ["critical", "critical_low", "critical_high"]
        rows[names] = surface.critical
        return rows.assign(steps=surface.steps(rows.index)[0], runs=plan.runs()).reset_index()


class Replays(Collection):
    """Records whose names contain all fields."""

    def stem(self, what: Replay) -> str:
        return self.file(what)


def planned(rule: str = "laws") -> list[Replay]:
    """All replays of a rule."""
    splits = SPLITS + ASIDE if rule == "laws" else SPLITS
    return [Replay(rule, *key) for key in itertools.product(NETWORKS, METHODS, splits)]


REPLAYS = Replays(
    "adaptive",
    "replays",
    "{0.rule}-{0.workload}-{0.algorithm}-split-{0.split}".format,
    planned,
    "Search digits adaptively where exact searches are on record, into data/adaptive/.",
)
EXPERIMENTS = {"adaptive-replays": REPLAYS}


@functools.cache
def exact(name: str, method: str) -> tuple[float, float]:
    """ln of a dense network's critical batch size from all exact searches, each on one split: the
    mean over the goals that a plan fits together, and the value at the hardest goal.
    """
    cells = [
        cell
        for study in STUDIES.values()
        for cell in study.searches
        if (cell.workload, cell.algorithm, cell.sparsity) == (name, method, 0)
        and cell.split
        and cell.race is None
        and cell.is_usual()
    ]
    trials = results.read(Study("exact", "", searches.recorded(cells).values()))
    goals = sorted(workload(name).goals)[: adaptive.GOALS]
    curves = [scaling.steps_to_result(scaling.at_goal(trials, goal)) for goal in goals]
    logs = [scaling.critical(scaling.curve_of(curve)).value for curve in curves]
    return float(np.mean(logs)), logs[0]


def replayed() -> pd.DataFrame:
    """Results of each current rule's replays: how often within NEAR of the exact searches' critical
    batch size, how often its interval contained that, and the mean cost.
    """
    rules = [r for r in RULES if r != "adaptive" and REPLAYS.results(planned(r)).size]
    replays = REPLAYS.results([replay for rule in rules for replay in planned(rule)])
    runs = replays.drop_duplicates(["rule", "workload", "algorithm", "split"])
    mean, hardest = np.transpose([exact(*key) for key in zip(runs.workload, runs.algorithm)])
    # Only "laws" estimates the mean over goals; other rules are compared at the hardest goal
    truth = np.where(runs.rule == "laws", mean, hardest)
    value, low, high = np.log(runs[["critical", "critical_low", "critical_high"]]).to_numpy().T
    rule = runs.rule.map(RULES).where(~runs.split.isin(ASIDE), runs.workload.map(OTHERS))
    runs = runs.assign(
        near=np.abs(value - truth) <= np.log(NEAR),
        hardest=np.abs(value - hardest) <= np.log(NEAR),
        held=(low <= truth) & (truth <= high),
        rule=pd.Categorical(rule, [RULES["laws"], *OTHERS.values(), *[*RULES.values()][1:]]),
    )
    columns = {
        "replays": ("near", "size"),
        "within a quarter of C": ("near", "sum"),
        "of C at the hardest goal": ("hardest", "sum"),
        "interval holds C": ("held", "sum"),
        "cost (tuned runs)": ("runs", "mean"),
    }
    groups = runs.groupby("rule", observed=True, as_index=False)
    rows = groups.agg(**columns).astype({"rule": str, "interval holds C": float})
    rows.loc[rows.rule.str.startswith("Optuna"), "interval holds C"] = np.nan
    return rows.round(0)
