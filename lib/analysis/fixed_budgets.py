"""Results of searches whose trials all ran to a budget: the best error within any budget of steps
or examples.
"""

from __future__ import annotations

import functools

import pandas as pd

from lib.engine.vocabulary import last_check
from lib.records import results
from lib.studies import plans

# Studies whose trials all ran to a budget
BUDGETS = ("digits-budget", "mnist-budget", "fashion-mnist-budget")
SPLITS = ("mnist-budget-splits", "fashion-mnist-budget-splits")  # further searches of theirs
PARTS = {"best": "validation", "test": "test", "sent": "sent"}


@functools.cache
def whole(splits: bool = False) -> pd.DataFrame:
    """All trials of BUDGETS on record, one search per network; splits: also those of SPLITS."""
    names = BUDGETS + splits * SPLITS
    return pd.concat([results.read(plans.study(name)) for name in names], ignore_index=True)


def within(trials: pd.DataFrame) -> pd.DataFrame:
    """One row per trial and budget: validation (lowest error so far), test (error at that check),
    sent (elements).

    trials: from `lib.records.results.read`, searches with stop "budget".  Further columns: budget
    (in steps, powers of two), examples (budget x batch size), checked (the last check within the
    budget, up to which all three count).  Diverged and dead trials have the status "infeasible".
    """
    parts = list(trials.filter(regex=f"^({'|'.join(PARTS)})@"))
    keys = [name for name in trials if "@" not in name and name not in PARTS.values()]
    if not parts:
        return pd.DataFrame(columns=[*keys, "budget", "examples", *PARTS.values()])
    kinds = [kind for kind in PARTS if any(name.startswith(f"{kind}@") for name in parts)]
    table = trials[[*keys, *parts]].reset_index(drop=True).reset_index(names="row")
    long = pd.wide_to_long(table, kinds, "row", "budget", sep="@").reset_index()
    long = long.rename(columns=PARTS).sort_values(["budget", "row"])
    long = long[long.budget <= long.max_steps]
    long = long.dropna(subset="validation").drop(columns="row")
    last = functools.cache(last_check)  # the same few budgets in all rows
    long["checked"] = list(map(last, long.budget, long.checks))
    long["examples"] = long.budget * long.batch_size
    return long.reset_index(drop=True)


def chosen(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The trial with the lowest validation error in every group of rows of `within`, without
    infeasible trials.
    """
    standing = rows[rows.status != "infeasible"] if len(rows) else rows
    if standing.empty:
        return standing.reindex(columns=[*dict.fromkeys([*rows, *by])])
    least = standing.groupby(by, sort=False).validation.idxmin()
    return standing.loc[least].reset_index(drop=True)
