"""The error at the goal on unseen images: dense winners beside pruned ones of the same searches."""

from __future__ import annotations

import pandas as pd

from lib import wording
from lib.analysis import scaling

SEARCH = ["replicate", "split"]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per workload, in the order of the rows.

    rows: of `lib.probes.unseen`. Columns: workload, goal; dense, pruned (test errors, means over
    searches of means over the batch sizes that both met); more, more_low, more_high (the difference
    within a search, 90 % interval); n (searches).
    """
    found = []
    for name, own in rows.groupby("workload", sort=False):
        sides = [
            side.set_index(["batch_size", *SEARCH]).test for _, side in own.groupby("sparsity")
        ]
        if len(sides) != 2:
            continue
        both = pd.concat(sides, axis=1, keys=["dense", "pruned"]).dropna().groupby(SEARCH).mean()
        more = scaling.mean_of(both.pruned - both.dense)
        found.append(
            {
                "workload": name,
                "goal": own.goal.iloc[0],
                **both.mean(),
                **more.row("more", log=False),
                "n": more.n,
            }
        )
    return pd.DataFrame(
        found, columns=["workload", "goal", "dense", "pruned", "more", "more_low", "more_high", "n"]
    )


def told(rows: pd.DataFrame, workload: str) -> dict[str, str]:
    """Of one workload: goal, unseen_dense and unseen_pruned, in percent; a dash each where nothing
    is measured.
    """
    found = table(rows[rows.workload == workload]) if len(rows) else rows
    if found.empty:
        return dict.fromkeys(("unseen_goal", "unseen_dense", "unseen_pruned"), "—")
    row = found.iloc[0]
    return {
        f"unseen_{name}": wording.percent(round(row[name], 3))
        for name in ("goal", "dense", "pruned")
    }
