"""Numbers that several pages state: each computed once from the records and kept, as the judged
claims are.
"""

from __future__ import annotations

import pandas as pd

from lib.analysis import scaling, splits
from lib.claims import judging
from lib.claims.cache import kept
from lib.probes import folds
from lib.wording import percent
from lib.workloads.catalogue import workload

CURVE = [
    *scaling.CURVE,
    "goal",
    "range",
    "sizes",
    "replicates",
    "critical",
    "critical_low",
    "critical_high",
    "identified",
]


def curves() -> pd.DataFrame:
    """Every curve that pages compare, a row each, with its critical batch size.

    Columns: workload, algorithm, pruning, sparsity; goal (error at which it is read); range (of
    momentum: "whole" or "published"); sizes, replicates (counts: batch sizes, independent
    searches); critical (examples), critical_low, critical_high (90 %); identified (whether it lies
    inside the batch sizes measured).
    """
    return pd.DataFrame(kept("critical", _curves)["rows"], columns=CURVE)


def _curves() -> dict:
    trials, summary = judging.trials(), judging.summary()
    whole = trials.groupby(scaling.CURVE).space.first().eq("whole")
    keys = summary[scaling.CURVE].itertuples(index=False, name=None)
    table = summary.assign(range=["whole" if whole[key] else "published" for key in keys])
    return {"rows": table[CURVE].to_dict("records")}


def critical(workload: str, algorithm: str = "momentum", sparsity: float = 0.0) -> pd.Series:
    """The row of `curves` of one curve.  Raises ValueError if there is none."""
    table = curves()
    same = (
        (table.workload == workload) & (table.algorithm == algorithm) & (table.sparsity == sparsity)
    )
    if not same.any():
        raise ValueError(
            f"workload: {workload!r} with {algorithm} at sparsity {sparsity} has no curve; known are "
            f"{', '.join(table.workload.unique())}"
        )
    return table[same].iloc[0]


def harder_than() -> list[str]:
    """How hard the book's own draw of MNIST's validation images is, as several networks see it: of
    how many random draws it is harder, "98 % (FC-128×3)"; [] where nothing is on record.
    """
    return kept("draw", _harder_than)["draws"]


def _harder_than() -> dict[str, list[str]]:
    asked = folds.results()
    shares = {
        workload(name).title.split(" on ")[0]: splits.told(asked, name)["ours_percentile"] / 100
        for name in (asked.workload.unique() if len(asked) else ())
    }
    return {"draws": [f"{percent(share)} ({network})" for network, share in shares.items()]}
