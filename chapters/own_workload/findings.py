"""What the page on the reader's own workload says, as numbers and words."""

from __future__ import annotations

import pandas as pd

from chapters.own_workload import adaptive, answers, bends
from lib.wording import brief, named, with_interval
from lib.workloads.catalogue import Workload


def findings(
    table: pd.DataFrame,
    law: bends.Estimate | None,
    plan: adaptive.Plan | None,
    work: Workload,
    algorithm: str,
    goal: float,
    price: float,
) -> dict:
    """All values of the page's sentences but those of replays.

    table: of `answers.points`; law: of `bends.estimate`; plan: of an adaptive search; goal: at
    which they are read; price: of the machine for an hour.
    """
    near = answers.choice(table, law)
    use = near.iloc[0]
    sizes = table.batch_size
    smallest, biggest = int(sizes.min()), int(sizes.max())
    words = answers.settings(use, " (at an edge)")
    return {
        "title": work.title,
        "method": named(algorithm),
        "goal": work.asks.written(goal),
        "use": int(use.batch_size),
        "settings": [f"{name} {value}" for name, value in words.items()],
        "measure": work.asks.measure,
        "steps": round(use.steps),
        "fitted": law is not None,
        "measured": with_interval(*table.loc[use.name, ["steps", "low", "high"]]),
        "time": lasting(use.time),
        "price": brief(use.time / 3600 * price),
        "per_hour": brief(price),
        "largest": int(near.batch_size.max()) == biggest,
        "sizes": len(sizes),
        "smallest": smallest,
        "biggest": biggest,
        "inside": law is not None and smallest < law.critical < biggest,
        "above": law is not None and law.critical >= biggest,
        **{name: getattr(law, name, None) for name in ("critical", "low", "high", "searches")},
        "there": int(use.replicates),
        "runs": plan.runs() if plan else None,
    }


def lasting(seconds: float) -> str:
    """A time in the largest unit of which there is one: "3.4 minutes"."""
    units = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
    unit = next((name for name, long in units.items() if seconds >= long), "seconds")
    return f"{brief(seconds / units[unit])} {unit}"
