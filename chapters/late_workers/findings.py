"""What the page on late workers says, as numbers and words, and its table.

Values come with their 90 % intervals.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.late_workers import experiments, late_results
from chapters.late_workers.late_results import JUDGED, SIZES, WORK
from lib.analysis.scaling import Curve
from lib.wording import brief, named, percent, ranged, with_interval


def findings(
    trials: pd.DataFrame,
    curves: dict[tuple, Curve],
    turns: dict[str, pd.DataFrame],
    delays: pd.DataFrame,
) -> dict:
    """All values of the page's sentences.

    Args:
        trials: of `late_results.measured`.
        curves: of `late_results.curves`.
        turns: of `late_results.without_waiting`, by method.
        delays: the records of `experiments.DELAYS`.
    """
    growth = late_results.growth(curves)
    plain = growth[(growth.workload == WORK) & (growth.algorithm == "sgd")]
    fixed = plain[plain.delays == "fixed"].set_index("staleness")
    drawn = plain[plain.delays == "uniform"].iloc[-1]
    last = fixed.iloc[-1]
    own = trials[trials.workload == WORK]
    searches = own.groupby(["algorithm", "delays", "staleness"]).replicate.nunique()
    deep, shallow = ((f"digits-mlp-64x{n}", "sgd", "fixed", JUDGED) for n in (4, 1))
    depth = late_results.slower(curves, deep, shallow)
    workers = JUDGED + 1
    ratios = {m: table.set_index("workers").ratio for m, table in turns.items()}
    return {
        "small": SIZES[0],
        "large": SIZES[-1],
        "goal": percent(own.goal.iloc[0]),
        "methods": [named(m) for m in turns],
        "searches_least": int(searches.min()),
        "searches_most": int(searches.max()),
        "trials": int(trials.trials.min()),
        "latest": int(last.name),
        "latest_large": float(last.large),
        "latest_small": float(last.small),
        "latest_theory": float(last.floor),
        "theory_off": float(np.exp(np.abs(np.log(fixed.large / fixed.floor)).max())),
        "most_gradients": [f"{brief(own.max())} ({named(m)})" for m, own in ratios.items()],
        "workers": workers,
        "late": JUDGED,
        "bound": late_results.floor(JUDGED) / workers,
        "turn_ratios": [f"{brief(own[workers])} ({named(m)})" for m, own in ratios.items()],
        "sgd_over_adam": late_results.over_adam(curves, 0),
        "sgd_over_adam_late": late_results.over_adam(curves, JUDGED),
        "drawn": int(drawn.staleness),
        "drawn_large": _large(drawn),
        "mean": int(drawn.staleness // 2),
        "mean_large": _large(fixed.loc[drawn.staleness // 2]),
        "depth": ranged(*depth.row("").values()),
        "depth_searches": depth.n,
        "in_turn_percent": float(100 * experiments.in_turn(delays)),
    }


def _large(row: pd.Series) -> str:
    """What a delay costs at the largest batch size."""
    return ranged(row.large, row.large_low, row.large_high)


def without_waiting(turns: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Gradients over those of one synchronous batch, a row per number of workers.

    turns: of `late_results.without_waiting`, by method.
    """
    workers = turns["sgd"].workers
    bounds = [brief(late_results.floor(count - 1) / count) for count in workers]
    table = pd.DataFrame({"theory, at most": bounds}, workers)
    for name, own in turns.items():
        values = own[["ratio", "ratio_low", "ratio_high"]].to_numpy()
        told = pd.Series([with_interval(*row) for row in values], own.workers)
        table[named(name)] = told.reindex(workers, fill_value="—")
    return table.reset_index()
