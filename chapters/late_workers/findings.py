"""What the page on late workers says, as numbers and words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.late_workers import late_quadratic, late_results
from chapters.late_workers.late_results import WORK
from chapters.late_workers.late_tables import LARGE, SMALL, model, of_kind
from lib.analysis.scaling import Curve
from lib.wording import brief, named, percent


def findings(
    trials: pd.DataFrame,
    curves: dict[tuple, Curve],
    turns: dict[str, pd.DataFrame],
    counted: pd.DataFrame,
    algorithm: str,
    staleness: int,
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        trials: of `late_results.measured`.
        curves: of `late_results.curves`.
        turns: of `late_results.without_waiting`, by method.
        counted: of `delays.summary`.
        algorithm: the method of the first figure.
        staleness: steps by which gradients are late where methods are compared.
    """
    growth = late_results.growth(curves)
    plain, shown = (of_kind(growth, "fixed", m) for m in ("sgd", algorithm))
    own = trials[trials.workload == WORK]
    searches = own.groupby(["algorithm", "delays", "staleness"]).replicate.nunique()
    off = np.exp(np.abs(np.log(plain.large / plain.floor)).max())
    last, end = plain.iloc[-1], shown.iloc[-1]
    return {
        "small": SMALL,
        "large": LARGE,
        "goal": percent(own.goal.iloc[0]),
        "methods": [named(m) for m in turns],
        "searches_least": int(searches.min()),
        "searches_most": int(searches.max()),
        "trials": int(trials.trials.min()),
        "latest": int(last.staleness),
        "latest_large": float(last.large),
        "latest_small": float(last.small),
        "soonest": int(plain.staleness.iloc[1]),
        "soonest_small": float(plain.small.iloc[1]),
        "theory_off": float(off),
        "most_gradients": [f"{brief(t.ratio.max())} ({named(m)})" for m, t in turns.items()],
        "method": named(algorithm),
        "predicted": algorithm == "sgd",
        "shown_late": int(end.staleness),
        "shown_large": float(end.large),
        "shown_theory": float(end.floor),
        "staleness": staleness,
        **_in_turn(turns, staleness + 1),
        "sgd_over_adam": late_results.over_adam(curves, 0),
        "sgd_over_adam_late": late_results.over_adam(curves, staleness),
        "momentum_saves": late_quadratic.momentum_saves(model(), 0),
        "momentum_saves_late": late_quadratic.momentum_saves(model(), 1),
        "in_turn_percent": float(100 * counted.share[counted.pause == 0].min()),
        **_depth(curves),
    }


def _in_turn(turns: dict[str, pd.DataFrame], workers: int) -> dict[str, object]:
    """What so many workers that take turns compute over one synchronous batch: theory's bound, and
    what was measured.
    """
    ratios = {m: t.set_index("workers").ratio.get(workers) for m, t in turns.items()}
    return {
        "workers": workers,
        "bound": late_results.floor(workers - 1) / workers,
        "turn_ratios": [f"{brief(r)} ({named(m)})" for m, r in ratios.items() if r is not None],
    }


def _depth(curves: dict[tuple, Curve]) -> dict[str, object]:
    """What a delay costs on four hidden layers over what it costs on one."""
    deep, shallow = (
        (work, "sgd", "fixed", late_results.JUDGED)
        for work in ("digits-mlp-64x4", "digits-mlp-64x1")
    )
    found = late_results.slower(curves, deep, shallow)
    ratio = found.row("depth") if found else dict.fromkeys(("depth", "depth_low", "depth_high"))
    return {
        "judged_late": late_results.JUDGED,
        "depth_measured": found is not None,
        "depth_searches": found.n if found else None,
        **ratio,
    }
