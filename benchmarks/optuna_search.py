"""Optuna on the workloads of `chapters.own_workload.experiments`, a study per batch size: TPE with a
median pruner, and Hyperband.

    python -m benchmarks.optuna_search      # needs optuna; minutes, into data/adaptive/

Optuna is told more than the adaptive search finds out by itself: the batch sizes at which that
ended up on the same split, and `LIMIT` times the steps that it took there as the limit of every
trial.  The tuned runs of `adaptive.MOST` are shared evenly among the sizes.  A trial ends at the
steps of the best so far, too.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import benchmarks
from chapters.own_workload import adaptive
from chapters.own_workload import experiments as replays
from lib import forms
from lib.engine import trainings
from lib.engine.vocabulary import next_check
from lib.measuring import one_search, runner
from lib.records import store
from lib.studies.search import Search

if TYPE_CHECKING:  # `--help` needs no optuna
    import optuna

LIMIT = 4  # times the steps of the adaptive search
STARTUP = 3  # trials before the pruner judges


def drawn(trial: optuna.Trial, plan: adaptive.Plan) -> dict[str, float]:
    """Hyperparameters from the same space, on the same scales."""
    values = {}
    for name, axis in plan.space.items():
        if axis.scale == "reverse-log":
            values[name] = 1 - trial.suggest_float(
                f"1-{name}", 1 - axis.high, 1 - axis.low, log=True
            )
        else:
            values[name] = trial.suggest_float(name, axis.low, axis.high, log=True)
    return values


def job(what: replays.Replay, size: int, number: int) -> trainings.Job:
    """A trial's training."""
    cell = Search(what.workload, size, what.algorithm, split=what.split, replicate=number)
    return one_search.job(cell)


class Objective:
    """Steps to the goal at one batch size; of a trial that did not meet it, more than it took.

    best: steps of the fastest trial so far, None before one met the goal; taken: steps of all.
    """

    def __init__(self, what: replays.Replay, size: int, limit: int):
        self.what, self.size, self.limit = what, size, limit
        self.plan = adaptive.Plan(what.workload, what.algorithm, replays.SIZES)
        self.best: int | None = None
        self.taken = 0

    def __call__(self, trial: optuna.Trial) -> float:
        training = job(self.what, self.size, trial.number)
        run = trainings.Trial(training, trial.number, drawn(trial, self.plan))
        until = self.best or self.limit
        try:
            return self._trained(trial, run, until)
        finally:
            self.taken += run.steps

    def _trained(self, trial: optuna.Trial, run: trainings.Trial, until: int) -> float:
        import optuna

        error = math.nan
        while run.finite and run.steps < until:
            check = next_check(run.steps, run.job.checks)
            run.run(min(check, until))
            if run.finite and run.steps == check:
                error = run.error()
                trial.report(error, check)
                if trial.should_prune():
                    raise optuna.TrialPruned
                if error <= run.job.goals[0] + trainings.EXACT:
                    self.best = check
                    return float(check)
        lost = not run.finite or math.isnan(error)
        return 2.0 * self.limit if lost else until * (1 + error)


def searched(what: replays.Replay) -> pd.DataFrame:
    """Rows as of `Replay.measure`."""
    import optuna

    adaptive_replay = dataclasses.replace(what, rule="laws")
    _, searched_sizes = store.read(replays.REPLAYS.record(adaptive_replay), adaptive_replay)
    share, rows = adaptive.MOST / len(searched_sizes), []
    pruner = {
        "tpe-median": lambda limit: optuna.pruners.MedianPruner(STARTUP, n_warmup_steps=5),
        "hyperband": lambda limit: optuna.pruners.HyperbandPruner(max_resource=limit),
    }[what.rule]
    for row in searched_sizes.itertuples():
        objective = Objective(what, row.batch_size, math.ceil(LIMIT * row.steps))
        sampler = optuna.samplers.TPESampler(seed=what.split)
        study = optuna.create_study(sampler=sampler, pruner=pruner(objective.limit))
        while objective.taken < share * (objective.best or objective.limit):
            study.optimize(objective, n_trials=1)
        about = {"batch_size": row.batch_size, "steps": float(objective.best or math.nan)}
        counts = {"trials": len(study.trials), "taken": objective.taken}
        rows.append({**about, **counts})
    table = pd.DataFrame(rows)
    met = table.dropna(subset="steps")
    critical = math.nan
    if len(met) >= adaptive.ENOUGH:
        critical = math.exp(forms.fit(met.batch_size, np.log(met.steps)).log_critical[0])
    runs = float((table.taken / table.steps).sum())
    ends = {"critical_low": math.nan, "critical_high": math.nan}
    return table.assign(critical=critical, **ends, runs=runs)


class Searches(replays.Replays):
    """Replays that Optuna searches."""

    def measure(self, what: replays.Replay, data: Path = store.DATA) -> Path:
        take = functools.partial(searched, what)
        return runner.write(self.record(what, data), what, take, "float32", **self.more)


if __name__ == "__main__":
    benchmarks.chosen(__doc__)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    usual = replays.REPLAYS
    record = Searches(usual.name, usual.units, usual.file, usual.planned)
    record.more["optuna"] = optuna.__version__
    lacking = usual.missing(replays.planned())
    planned = [what for rule in ("hyperband", "tpe-median") for what in replays.planned(rule)]
    later = {dataclasses.replace(what, rule=rule) for what in lacking for rule in replays.RULES}
    by_split = sorted(planned, key=lambda what: what.split)
    record.run([what for what in by_split if what not in later])
