"""The error at the goal on unseen images: dense winners beside pruned ones of the same searches."""

from __future__ import annotations

import pandas as pd

from lib.analysis.scaling import SEARCH
from lib.wording import percent


def pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Test errors of one workload, a row per search: dense, pruned, means over the batch sizes that
    both met; none without either.

    rows: of `lib.probes.unseen`.
    """
    tests = rows.set_index(["sparsity", "batch_size", *SEARCH]).test.unstack("sparsity")
    if tests.shape[1] != 2:
        return tests[:0]
    both = tests.set_axis(["dense", "pruned"], axis=1).dropna()
    return both.groupby([*SEARCH]).mean()


def told(rows: pd.DataFrame, workload: str) -> dict[str, str]:
    """Of one workload: goal, unseen_dense and unseen_pruned, in percent; a dash each where nothing
    is measured.
    """
    own = rows[rows.workload == workload] if len(rows) else rows
    each = pairs(own) if len(own) else own
    shares = [own.goal.iloc[0], *each.mean()] if len(each) else []
    texts = [percent(round(share, 3)) for share in shares] or ["—"] * 3
    return dict(zip(("unseen_goal", "unseen_dense", "unseen_pruned"), texts))
