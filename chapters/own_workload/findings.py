"""What the searches of a reader's own workload answer: a batch size, its settings, its cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import AfterValidator
from scipy.optimize import nnls

from chapters.own_workload import adaptive
from lib import Told, require
from lib.analysis import hardware, scaling
from lib.measuring import sweeps
from lib.methods import spaces
from lib.page import parameters
from lib.records import selection
from lib.wording import brief, joined, named, percent
from lib.workloads.catalogue import Workload, workload

NEAR = 1.25  # times the shortest time: as fast, for what such searches can tell
OUTER = 0.05  # share of a hyperparameter's range, on its own scale, that is its edge
UNSURE = 4  # times its standard error, a goal is told apart from others near it
EASY = 1.25  # times a goal costs what asks for nothing: hardly anything has to be learned
STEEP = 1.5  # times faster than in proportion to the batch, which no curve falls
# Columns of `points` that are no hyperparameters
ABOUT = ["batch_size", "steps", "low", "high", "replicates", "seconds", "time", "edges"]


def _device(value: Any) -> str:
    import torch  # slow to import, and needed to train only

    try:
        torch.zeros(1, device=value)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        allowed = f"cpu, or a device on which torch computes here ({reason})"
        require(False, "device", value, allowed)
    return value


DEVICE = Annotated[Any, AfterValidator(_device)]


def fitting(chosen: Any, every: Collection[int]) -> list[int]:
    """The batch sizes chosen, or else those of `every` that the workload has examples for.  Raises
    ValueError as `parameters.fit`.
    """
    if chosen.batch_sizes is None:
        return [size for size in every if size <= workload(chosen.workload).train_size]
    parameters.fit(chosen, "batch_sizes")
    return chosen.batch_sizes


def trained(
    chosen: Any, sizes: list[int], **where: Any
) -> tuple[pd.DataFrame, adaptive.Plan | None]:
    """The trials of an adaptive search and its plan, or of one exact search a batch size and None;
    trained first if the budget is "full".  where: options of `sweeps.run`.

    Raises Told where nothing is on record of an adaptive search.
    """
    if chosen.search == "exact" or chosen.budget == "smoke":
        curve = chosen.workload, sizes, [chosen.algorithm], [chosen.sparsity]
        grid = selection.grid(*curve, trials=chosen.trials)
        return sweeps.results(grid, chosen.budget, **where), None
    ends = min(sizes), max(sizes)
    plan = adaptive.Plan(chosen.workload, chosen.algorithm, ends, sparsity=chosen.sparsity)
    adaptive.run(plan, chosen.minutes, train=chosen.budget == "full", **where)
    if not plan.cells:
        raise Told(
            f"budget: no record is kept of an adaptive search of {plan.work.name} with "
            f"{chosen.algorithm} from batch size {ends[0]} to {ends[1]}; train it with "
            f"-p budget full, or choose -p search exact"
        )
    return hardware.adaptive(plan.work.name, cells=plan.cells), plan


def searches(trials: pd.DataFrame) -> dict[int, list[float]]:
    """Steps to the goal of every search that met it, by batch size."""
    each = trials.groupby(["batch_size", "replicate"]).steps.min().dropna()
    return each.groupby("batch_size").agg(list).to_dict()


def points(trials: pd.DataFrame, work: Workload, algorithm: str) -> pd.DataFrame:
    """A row per batch size that met the goal: batch_size, steps (geometric mean of its searches),
    low, high (90 %, NaN of fewer than three sizes), replicates (searches), seconds (of a step), the
    fastest trial's hyperparameters, and edges (those that lie at an end of their range).
    """
    known = searches(trials)
    tuned = spaces.intervals(work.space, algorithm, work.decay)
    best = trials.loc[trials.dropna(subset="steps").groupby("batch_size").steps.idxmin()]
    found = best[["batch_size", *tuned]].reset_index(drop=True)
    steps = np.array([float(np.exp(np.mean(np.log(steps)))) for steps in known.values()])
    counts = np.array(list(map(len, known.values())))
    guess = adaptive.estimate(known)
    reach = guess.reach(counts) if guess else np.nan
    timed = hardware.step_seconds(trials).set_index("batch_size").seconds
    places = pd.DataFrame(
        {name: at.place(found[name].astype(float)) for name, at in tuned.items()}
    )
    outer = (places < OUTER) | (places > 1 - OUTER)
    return found.assign(
        steps=steps,
        low=steps / reach,
        high=steps * reach,
        replicates=counts,
        seconds=found.batch_size.map(timed),
        edges=[list(outer.columns[row]) for row in outer.to_numpy()],
    )


def choice(table: pd.DataFrame, found: adaptive.Estimate | None) -> pd.DataFrame:
    """The rows of `points` that take at most NEAR times the shortest time, with time (s to the
    goal); the first is the one to use.

    Steps are those of the fitted law where there is one, and a step takes a + b B seconds with
    a, b >= 0, fitted, since single timings scatter.
    """
    sizes, seconds = table.batch_size, table.seconds
    (fixed, each), _ = nnls(np.stack([1 / seconds, sizes / seconds], 1), np.ones(len(table)))
    steps = found.steps(sizes) if found else table.steps
    timed = table.assign(steps=steps, seconds=fixed + each * sizes)
    timed["time"] = timed.steps * timed.seconds
    return timed[timed.time <= NEAR * timed.time.min()]


def goal(trials: pd.DataFrame, work: Workload) -> float:
    """The goal to read curves at.  Raises Told, with what was reached, if no trial met any."""
    found = scaling.fitting(trials)
    if found is not None:
        return found
    dense = trials[trials.sparsity == trials.sparsity.min()]
    if dense.status.eq("infeasible").all():
        told = f"all {len(dense)} diverged or died: rescale the inputs"
        raise Told(f"goals: no trial met any; {told}")
    reached = dense.groupby("batch_size").best_error.min()
    told = [f"{error:.3g} at batch size {size}" for size, error in reached.dropna().items()]
    met = f"goals: no trial met any; the lowest error of {len(dense)} trials is "
    met += f"{dense.best_error.min():.3g} ({joined(told)}). "
    digit = 10.0 ** (math.floor(math.log10(reached.max() or 1.0)) - 1)
    easy = float(f"{math.ceil(reached.max() / digit - 1e-9) * digit:.2g}")  # to two digits, up
    if work.facts and easy >= work.facts.chance:
        same = f"an answer that is the same for all examples costs {work.facts.chance:.3g}"
        raise Told(f"{met}Set a larger max_steps before an easier goal: {same}")
    easier = f"Set goals=({work.asks.given(easy):g},), which all of these came to"
    raise Told(f"{met}{easier}, or a larger max_steps")


def doubts(
    table: pd.DataFrame, law: adaptive.Estimate | None, trials: pd.DataFrame, work: Workload
) -> list[str]:
    """What to know before the answer (`points`, their fit and trials) is used, a sentence or two
    each: steps that cannot be or that the fit misses, missed goals, a validation set too small for
    the goal, an easy goal.
    """
    written, goal, hardest = work.asks.written, trials.goal.iloc[0], min(work.goals)
    found = []
    for one, other in itertools.pairwise(table.itertuples()):
        if one.steps * one.batch_size > STEEP * other.steps * other.batch_size:
            found.append(
                f"From batch size {one.batch_size:,} to {other.batch_size:,} steps fall "
                f"{brief(one.steps / other.steps)} times, which no curve does: search more at the "
                f"smaller one before you trust the critical batch size."
            )
    if law:
        fitted = law.steps(table.batch_size)
        off = table.batch_size[(fitted < table.low) | (fitted > table.high)]
        found += [
            f"At batch size {size:,} the fitted curve lies outside the measured interval."
            for size in off
        ]
    if goal > hardest:
        met = trials.dropna(subset=f"steps@{hardest:g}").batch_size.nunique()
        found.append(
            f"The hardest goal, {written(hardest)}, was met at {met or 'none'} of "
            f"{trials.batch_size.nunique()} batch sizes. All below is for {written(goal)}."
        )
    if choice(table, law).batch_size.max() == table.batch_size.max():
        found.append(
            f"No batch larger than {table.batch_size.max():,} was tried; one may be as fast."
        )
    missed = trials[~trials.batch_size.isin(table.batch_size)]
    if len(missed):
        where = joined([f"{size:,}" for size in sorted(missed.batch_size.unique())])
        found.append(f"No trial met {written(goal)} at batch size {where}.")
        if missed.status.eq("budget").any():
            found[-1] += " The limit of steps (max_steps) came first: raise it."
    known = work.facts
    if known and work.asks.counted:
        spread = math.sqrt(goal * (1 - goal) / known.values)
        if goal < UNSURE * spread:
            found.append(
                f"The validation set has {known.values:,} examples. At a goal of {written(goal)}, "
                f"chance alone moves the error by {percent(spread)}. Validate on more."
            )
        if goal > known.chance / EASY:
            found.append(
                f"The goal of {written(goal)} is easy: answers that are all the same miss "
                f"{percent(known.chance)}."
            )
    return found


def settings(row: pd.Series, edge: str) -> dict[str, str]:
    """The hyperparameters of a row of `points` by names in words, `edge` after those at an edge."""
    found = {}
    for name, value in row.drop(ABOUT, errors="ignore").items():
        # What lies near one, by its distance from it
        near_one = 0.9 <= value < 1
        told = f"{1 - float(f'{1 - value:.2g}'):.6g}" if near_one else f"{value:.2g}"
        found[name.replace("_", " ")] = told + edge * (name in row.edges)
    return found


def best(table: pd.DataFrame) -> pd.DataFrame:
    """The fastest trial's hyperparameters at every batch size, * at an edge of its range."""
    shown = pd.DataFrame([settings(row, "*") for _, row in table.iterrows()])
    shown.insert(0, "batch size", table.batch_size)
    shown.insert(1, "steps", table.steps)
    shown["a step takes (ms)"] = (1000 * table.seconds).map(brief)
    shown["time to the goal (s)"] = (table.steps * table.seconds).map(brief)
    return shown


def findings(
    table: pd.DataFrame,
    law: adaptive.Estimate | None,
    plan: adaptive.Plan | None,
    chosen: Any,
    goal: float,
) -> dict:
    """All values of the page's sentences; table: of `points`, at the goal."""
    work, use = workload(chosen.workload), choice(table, law).iloc[0]
    words = settings(use, " (at an edge)")
    smallest, biggest = table.batch_size.min(), table.batch_size.max()
    return {
        "title": work.title,
        "method": named(chosen.algorithm),
        "goal": work.asks.written(goal),
        "use": int(use.batch_size),
        "settings": [f"{name} {value}" for name, value in words.items()],
        "time": lasting(use.time),
        "price": brief(use.time / 3600 * chosen.price),
        "per_hour": brief(chosen.price),
        "sizes": len(table),
        "there": int(use.replicates),
        "inside": law is not None and bool(smallest < law.critical < biggest),
        **{name: getattr(law, name, None) for name in ("low", "high", "searches")},
        "runs": plan.runs() if plan else None,
    }


def lasting(seconds: float) -> str:
    """A time in the largest unit of which there is one: "3.4 minutes"."""
    units = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
    unit = next((name for name, long in units.items() if seconds >= long), "seconds")
    return f"{brief(seconds / units[unit])} {unit}"
