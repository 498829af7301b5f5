"""What the page on the reader's own workload says, as numbers and words."""

from __future__ import annotations

import pandas as pd

from chapters.own_workload import adaptive, answers, bends
from lib.wording import brief, named, span, with_interval
from lib.workloads.catalogue import Workload


def findings(
    trials: pd.DataFrame,
    table: pd.DataFrame,
    plan: adaptive.Plan | None,
    work: Workload,
    algorithm: str,
    price: float,
) -> dict:
    """All values of the page's sentences.

    Args:
        trials: at their goal, of one curve.
        table: `answers.points` of them.
        plan: of an adaptive search, or None.
        work: the workload.
        algorithm: the training method.
        price: of the machine for an hour.
    """
    found = bends.estimate(answers.searches(trials))
    use = answers.choice(table, found)
    own = table[table.batch_size == use.row.batch_size].iloc[0]
    spent = sum(head["wall_s"] for head in trials.attrs["provenance"])
    smallest, biggest = int(trials.batch_size.min()), int(trials.batch_size.max())
    return {
        "title": work.title,
        "method": named(algorithm),
        "goal": work.asks.written(trials.goal.iloc[0]),
        "use": int(use.row.batch_size),
        "alike": span((use.low, use.high)),
        "spread": use.low < use.high,
        "largest": use.largest,
        "measure": work.asks.measure,
        "fitted": found is not None,
        "measured": with_interval(own.steps, own.low, own.high),
        "there": int(own.replicates),
        "settings": answers.settings(use.row, answers.tuned_of(table)),
        "edge": bool(use.row.edges),
        "edges": [name.replace("_", " ") for name in use.row.edges],
        "steps": round(use.row.steps),
        "time": lasting(use.row.time),
        "price": brief(use.row.time / 3600 * price),
        "per_hour": brief(price),
        "sizes": len(table),
        "smallest": smallest,
        "biggest": biggest,
        "trials": len(trials),
        "spent": lasting(spent),
        **_critical(found, smallest, biggest),
        "runs": plan.runs() if plan else None,
    }


def _critical(found: bends.Estimate | None, smallest: int, biggest: int) -> dict:
    """Whether the critical batch size is known, whether it lies inside the sizes, or above."""
    if found is None:
        names = ("critical", "critical_low", "critical_high", "searches")
        return {"inside": False, "above": False, **dict.fromkeys(names)}
    return {
        "inside": smallest < found.critical < biggest,
        "above": found.critical >= biggest,
        "critical": found.critical,
        "critical_low": found.low,
        "critical_high": found.high,
        "searches": found.searches,
    }


def lasting(seconds: float) -> str:
    """A time in the largest unit of which there is one: "3.4 minutes"."""
    units = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
    unit = next((name for name, long in units.items() if seconds >= long), "seconds")
    return f"{brief(seconds / units[unit])} {unit}"
