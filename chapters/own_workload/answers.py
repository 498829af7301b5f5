"""What the searches of a reader's own workload answer: a batch size, its settings, its cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
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
ABOUT = "batch_size", "steps", "low", "high", "replicates", "trials", "seconds", "edges"
STEEP = 1.5  # times faster than in proportion to the batch, which no curve falls


def _device(value: Any) -> str:
    if value == "cpu":
        return value
    import torch  # slow to import, and needed to train only

    try:
        torch.zeros(1, device=value).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise Unfit(f"cpu, or a device on which torch computes here ({reason})") from None
    return value


# The name of a device on which torch computes here
DEVICE = Annotated[Any, AfterValidator(_device)]


def fitting(chosen: Any, every: Collection[int]) -> list[int]:
    """The batch sizes that were chosen, or where there are none those of `every` that the workload
    has examples for.

    Raises:
        ValueError: as `parameters.fit`.
    """
    if chosen.batch_sizes is None:
        return [size for size in every if size <= workload(chosen.workload).train_size]
    parameters.fit(chosen, "batch_sizes")
    return chosen.batch_sizes


def adaptively(
    chosen: Any, sizes: list[int], where: dict, **fields
) -> tuple[pd.DataFrame, adaptive.Plan]:
    """The trials of an adaptive search and its plan, trained first if the budget is "full".

    chosen: the page's parameters.  where: options of `sweeps.run`.  fields: of cells.  Raises Told
    where nothing is on record.
    """
    ends = min(sizes), max(sizes)
    plan = adaptive.Plan(chosen.workload, chosen.algorithm, ends, **fields)
    adaptive.run(plan, chosen.minutes, train=chosen.budget == "full", **where)
    if not plan.cells:
        raise Told(
            f"budget: no record is kept of an adaptive search of {plan.name} with {plan.algorithm} "
            f"from batch size {ends[0]} to {ends[1]}; train it with -p budget full, or choose "
            f"-p search exact"
        )
    return adaptive.table(plan), plan


def exactly(chosen: Any, sizes: list[int], where: dict, sparsity: float, **fields) -> pd.DataFrame:
    """The trials of one search a batch size, as many as asked for; the rest as in `adaptively`."""
    curve = chosen.workload, sizes, [chosen.algorithm], [sparsity]
    grid = on_record.grid(*curve, trials=chosen.trials, **fields)
    return sweeps.results(grid, chosen.budget, **where)


def searches(trials: pd.DataFrame) -> dict[int, list[float]]:
    """Steps to the goal of every search that met it, by batch size."""
    each = trials.groupby(["batch_size", "replicate"]).steps.min().dropna()
    return {int(size): list(own) for size, own in each.groupby("batch_size")}


def points(trials: pd.DataFrame, work: Workload, algorithm: str) -> pd.DataFrame:
    """A row per batch size that met the goal: batch_size, steps (geometric mean of its searches),
    low, high (90 %, NaN of fewer than three sizes), replicates (searches), trials, seconds (of a
    step), the fastest trial's hyperparameters, and edges (those that lie at an end of their range).

    trials: at their goal, of one curve.
    """
    known = searches(trials)
    rows = trials.loc[trials.dropna(subset="steps").groupby("batch_size").steps.idxmin()]
    tuned = spaces.intervals(work.space, algorithm, work.decay)
    found = rows[["batch_size", *tuned]].reset_index(drop=True)
    counts = np.array(list(map(len, known.values())))
    found["steps"] = [float(np.exp(np.mean(np.log(steps)))) for steps in known.values()]
    guess = bends.estimate(known)
    reach = guess.reach(counts) if guess else np.full(len(counts), np.nan)
    found["low"], found["high"] = found.steps / reach, found.steps * reach
    found["replicates"] = counts
    found["trials"] = found.batch_size.map(trials.groupby("batch_size").size())
    timed = hardware.step_seconds(trials).set_index("batch_size").seconds
    found["seconds"] = found.batch_size.map(timed)
    places = pd.DataFrame(
        {name: at.place(found[name].to_numpy(float)) for name, at in tuned.items()}
    )
    outer = (places < OUTER) | (places > 1 - OUTER)
    found["edges"] = [list(outer.columns[row]) for row in outer.to_numpy()]
    return found


def smooth_seconds(table: pd.DataFrame) -> np.ndarray:
    """Seconds of a step [n]: a + b B with a, b >= 0, fitted, since single timings scatter."""
    sizes, seconds = table.batch_size.to_numpy(float), table.seconds.to_numpy(float)
    (fixed, each), _ = nnls(np.stack([1 / seconds, sizes / seconds], 1), np.ones(len(sizes)))
    return fixed + each * sizes


@dataclass(frozen=True)
class Choice:
    """The batch size to use, the smallest one that takes at most NEAR times the shortest time.

    row: of `points`, with time (s to the goal).  low, high: the smallest and the largest batch size
    searched that do.  largest: whether that is the largest of all.
    """

    row: pd.Series
    low: int
    high: int
    largest: bool


def choice(table: pd.DataFrame, found: bends.Estimate | None) -> Choice:
    """What to use.  Steps are those of the fitted law where there is one."""
    steps = found.steps(table.batch_size) if found else table.steps
    timed = table.assign(steps=np.asarray(steps), seconds=smooth_seconds(table))
    timed["time"] = timed.steps * timed.seconds
    near = timed[timed.time <= NEAR * timed.time.min()]
    ends = int(near.batch_size.min()), int(near.batch_size.max())
    return Choice(near.iloc[0], *ends, ends[1] == int(table.batch_size.max()))


def doubts(table: pd.DataFrame, trials: pd.DataFrame) -> list[str]:
    """What in these searches cannot be, or lies at an edge, a sentence each."""
    found = []
    for one, other in zip(table.itertuples(), table.iloc[1:].itertuples()):
        fall, larger = one.steps / other.steps, other.batch_size / one.batch_size
        if fall > STEEP * larger:
            found.append(
                f"From batch size {one.batch_size:,} to {other.batch_size:,} steps fall "
                f"{brief(fall)} times for {brief(larger)} times the batch, which no curve does: the smaller one "
                f"is badly tuned. Do not trust the critical batch size; search more there."
            )
    missed = sorted(set(trials.batch_size) - set(table.batch_size))
    if missed:
        sizes = ", ".join(f"{size:,}" for size in missed)
        found.append(f"No trial met the goal at batch size {sizes}.")
    return found


def law(found: bends.Estimate | None, table: pd.DataFrame) -> pd.DataFrame:
    """The fitted line between the sizes searched: batch_size, steps; empty where there is none."""
    sizes = np.geomspace(table.batch_size.min(), table.batch_size.max(), 50 if found else 0)
    return pd.DataFrame({"batch_size": sizes, "steps": found.steps(sizes) if found else sizes})


def settings(row: pd.Series, tuned: list[str]) -> list[str]:
    """Hyperparameters in words: "learning rate 0.12", and which lie at an edge of their range."""
    at_end = dict.fromkeys(row.edges, " (at an edge)")
    return [
        f"{name.replace('_', ' ')} {setting(row[name])}{at_end.get(name, '')}" for name in tuned
    ]


def setting(value: float) -> str:
    """A value as it is to be set: what lies near one by its distance from it."""
    near_one = 0.9 <= value < 1
    return f"{1 - float(f'{1 - value:.2g}'):.6g}" if near_one else f"{value:.2g}"


def tuned_of(table: pd.DataFrame) -> list[str]:
    """The hyperparameters among the columns of `points`."""
    return [name for name in table if name not in ABOUT]


def best(table: pd.DataFrame) -> pd.DataFrame:
    """The table of the page: the fastest trial's hyperparameters at every batch size, * at an edge
    of its range.
    """
    rows = [row for _, row in table.iterrows()]
    shown = {
        name.replace("_", " "): [setting(row[name]) + "*" * (name in row.edges) for row in rows]
        for name in tuned_of(table)
    }
    both = zip(table.low, table.high)
    ends = ["—" if low != low else f"{brief(low)}–{brief(high)}" for low, high in both]
    return pd.DataFrame(
        {
            "batch size": table.batch_size,
            "steps": table.steps,
            "steps, 90 %": ends,
            "searches": table.replicates,
            "trials": table.trials,
            **shown,
            "a step takes (ms)": [brief(1000 * s) for s in table.seconds],
            "time to the goal (s)": [brief(t) for t in table.steps * table.seconds],
        }
    )
