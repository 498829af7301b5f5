"""The error at the goal on unseen images: dense winners beside pruned ones of the same searches."""

from __future__ import annotations

import pandas as pd

from lib import wording
from lib.analysis import scaling

COLUMNS = "workload goal dense pruned more more_low more_high n".split()


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per workload, in the order of the rows.

    rows: of `lib.probes.unseen`. Columns: workload, goal; dense, pruned (test errors, means over
    searches of means over the batch sizes that both met); more, more_low, more_high (the difference
    within a search, 90 % interval); n (searches).
    """
    found = []
    for name, own in rows.groupby("workload", sort=False):
        keys = ["sparsity", "batch_size", *scaling.SEARCH]
        tests = own.set_index(keys).test.unstack("sparsity")
        if tests.shape[1] == 2:
            both = tests.set_axis(["dense", "pruned"], axis=1).dropna()
            each = both.groupby([*scaling.SEARCH]).mean()
            more = scaling.mean_of(each.pruned - each.dense)
            about = {"workload": name, "goal": own.goal.iloc[0], **each.mean(), "n": more.n}
            found.append(about | more.row("more", log=False))
    return pd.DataFrame(found, columns=COLUMNS)


def told(rows: pd.DataFrame, workload: str) -> dict[str, str]:
    """Of one workload: goal, unseen_dense and unseen_pruned, in percent; a dash each where nothing
    is measured.
    """
    names = ("goal", "dense", "pruned")
    found = table(rows[rows.workload == workload]) if len(rows) else rows
    shares = [round(found[name].iloc[0], 3) for name in names] if len(found) else []
    values = list(map(wording.percent, shares)) or ["—"] * len(names)
    return {f"unseen_{name}": value for name, value in zip(names, values)}
