"""What the searches of a reader's own workload answer: a batch size, its settings, its cost."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import AfterValidator
from scipy.optimize import nnls

from chapters.own_workload import adaptive, bends
from lib import Told
from lib.analysis import hardware
from lib.fields import Unfit
from lib.measuring import sweeps
from lib.methods import spaces
from lib.page import parameters
from lib.records import on_record
from lib.wording import brief
from lib.workloads.catalogue import Workload, workload

NEAR = 1.25  # times the shortest time: as fast, for what such searches can tell
OUTER = 0.05  # share of a hyperparameter's range, on its own scale, that is its edge
# Columns of `points` that are no hyperparameters
ABOUT = "batch_size", "steps", "low", "high", "replicates", "seconds", "time", "edges"
STEEP = 1.5  # times faster than in proportion to the batch, which no curve falls


def _device(value: Any) -> str:
    import torch  # slow to import, and needed to train only

    try:
        torch.zeros(1, device=value)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise Unfit(f"cpu, or a device on which torch computes here ({reason})") from None
    return value


# The name of a device on which torch computes here
DEVICE = Annotated[Any, AfterValidator(_device)]


def fitting(chosen: Any, every: Collection[int]) -> list[int]:
    """The batch sizes that were chosen, or where there are none those of `every` that the workload
    has examples for.  Raises ValueError as `parameters.fit`.
    """
    if chosen.batch_sizes is None:
        return [size for size in every if size <= workload(chosen.workload).train_size]
    parameters.fit(chosen, "batch_sizes")
    return chosen.batch_sizes


def trained(
    chosen: Any, sizes: list[int], **where: Any
) -> tuple[pd.DataFrame, adaptive.Plan | None]:
    """The trials of an adaptive search and its plan, or of one exact search a batch size and None;
    trained first if the budget is "full".

    chosen: the page's parameters.  where: options of `sweeps.run`.  Raises Told where nothing is on
    record of an adaptive search.
    """
    if chosen.search == "exact" or chosen.budget == "smoke":
        curve = chosen.workload, sizes, [chosen.algorithm], [chosen.sparsity]
        grid = on_record.grid(*curve, trials=chosen.trials)
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

    trials: at their goal, of one curve.
    """
    known = searches(trials)
    rows = trials.loc[trials.dropna(subset="steps").groupby("batch_size").steps.idxmin()]
    tuned = spaces.intervals(work.space, algorithm, work.decay)
    found = rows[["batch_size", *tuned]].reset_index(drop=True)
    found["steps"] = [float(np.exp(np.mean(np.log(steps)))) for steps in known.values()]
    counts = np.array(list(map(len, known.values())))
    guess = bends.estimate(known)
    reach = guess.reach(counts) if guess else np.nan
    timed = hardware.step_seconds(trials).set_index("batch_size").seconds
    found["low"] = found.steps / reach
    found["high"] = found.steps * reach
    found["replicates"] = counts
    found["seconds"] = found.batch_size.map(timed)
    places = pd.DataFrame({name: at.place(found[name].astype(float)) for name, at in tuned.items()})
    outer = (places < OUTER) | (places > 1 - OUTER)
    found["edges"] = [list(outer.columns[row]) for row in outer.to_numpy()]
    return found


def choice(table: pd.DataFrame, found: bends.Estimate | None) -> pd.DataFrame:
    """The rows of `points` that take at most NEAR times the shortest time, with time (s to the
    goal); the first, of the smallest batch size, is the one to use.

    Steps are those of the fitted law where there is one, and a step takes a + b B seconds with
    a, b >= 0, fitted, since single timings scatter.
    """
    sizes, seconds = table.batch_size, table.seconds
    (fixed, each), _ = nnls(np.stack([1 / seconds, sizes / seconds], 1), np.ones(len(table)))
    steps = found.steps(sizes) if found else table.steps
    timed = table.assign(steps=steps, seconds=fixed + each * sizes)
    timed["time"] = timed.steps * timed.seconds
    return timed[timed.time <= NEAR * timed.time.min()]


def doubts(table: pd.DataFrame, trials: pd.DataFrame) -> list[str]:
    """What in these searches cannot be, or lies at an edge, a sentence each."""
    found = []
    for one, other in itertools.pairwise(table.itertuples()):
        if one.steps * one.batch_size > STEEP * other.steps * other.batch_size:
            found.append(
                f"From batch size {one.batch_size:,} to {other.batch_size:,} steps fall "
                f"{brief(one.steps / other.steps)} times, which no curve does: the smaller one is "
                f"badly tuned. Do not trust the critical batch size; search more there."
            )
    missed = sorted(set(trials.batch_size) - set(table.batch_size))
    if missed:
        sizes = ", ".join(f"{size:,}" for size in missed)
        found.append(f"No trial met the goal at batch size {sizes}.")
    return found


def settings(row: pd.Series, edge: str) -> dict[str, str]:
    """The hyperparameters of a row of `points` as they are to be set, by their names in words;
    those at an end of their range are followed by `edge`.
    """
    tuned = row.drop([*ABOUT], errors="ignore")
    values = {name: _setting(value) + edge * (name in row.edges) for name, value in tuned.items()}
    return {name.replace("_", " "): value for name, value in values.items()}


def _setting(value: float) -> str:
    """What lies near one by its distance from it."""
    near_one = 0.9 <= value < 1
    return f"{1 - float(f'{1 - value:.2g}'):.6g}" if near_one else f"{value:.2g}"


def best(table: pd.DataFrame) -> pd.DataFrame:
    """The fastest trial's hyperparameters at every batch size, * at an edge of its range."""
    shown = pd.DataFrame([settings(row, "*") for _, row in table.iterrows()])
    about = table[["batch_size", "steps"]].rename(columns={"batch_size": "batch size"})
    return about.join(shown).assign(
        **{
            "a step takes (ms)": (1000 * table.seconds).map(brief),
            "time to the goal (s)": (table.steps * table.seconds).map(brief),
        }
    )
