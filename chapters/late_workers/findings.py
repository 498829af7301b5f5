"""What the page on late workers says, as numbers and words, and its tables.

`growth` is the table of `late_results.growth`; values come with their 90 % intervals.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.late_workers import late_quadratic, late_results
from chapters.late_workers.late_results import WORK
from lib.analysis import noisy_quadratic
from lib.analysis.scaling import Curve
from lib.wording import brief, named, percent, with_interval


def findings(
    trials: pd.DataFrame,
    curves: dict[tuple, Curve],
    turns: dict[str, pd.DataFrame],
    counted: pd.DataFrame,
    algorithm: str,
    staleness: int,
) -> dict:
    """All values of the page's sentences.

    Args:
        trials: of `late_results.measured`.
        curves: of `late_results.curves`.
        turns: of `late_results.without_waiting`, by method.
        counted: of `experiments.summary`.
        algorithm: the method of the first figure.
        staleness: steps by which gradients are late where methods are compared.
    """
    growth = late_results.growth(curves)
    plain, shown = (of_kind(growth, "fixed", m) for m in ("sgd", algorithm))
    own = trials[trials.workload == WORK]
    searches = own.groupby(["algorithm", "delays", "staleness"]).replicate.nunique()
    off = np.exp(np.abs(np.log(plain.large / plain.floor)).max())
    last = plain.iloc[-1]
    end = shown.iloc[-1]
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


def _in_turn(turns: dict[str, pd.DataFrame], workers: int) -> dict:
    """What so many workers that take turns compute over one synchronous batch: theory's bound, and
    what was measured.
    """
    ratios = {m: t.set_index("workers").ratio.get(workers) for m, t in turns.items()}
    return {
        "workers": workers,
        "bound": late_results.floor(workers - 1) / workers,
        "turn_ratios": [f"{brief(r)} ({named(m)})" for m, r in ratios.items() if r is not None],
    }


def _depth(curves: dict[tuple, Curve]) -> dict:
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


# --- tables ---------------------------------------------------------------------------------------


LAYERS = {"digits-mlp-64x1": 1, "digits-mlp": 2, "digits-mlp-64x4": 4}
SMALL, LARGE = late_results.SIZES[0], late_results.SIZES[-1]
ENDS = {"small": f"batch {SMALL}", "large": f"batch {LARGE}", "mean": "mean over sizes"}


def told(rows: pd.DataFrame, name: str) -> list[str]:
    """The values of a column with their intervals: "1.5 (1.2–1.8)"."""
    return [with_interval(*row) for row in rows[[name, f"{name}_low", f"{name}_high"]].to_numpy()]


def ends(rows: pd.DataFrame, *names: str) -> dict[str, list[str]]:
    """Columns of a table: those of ENDS called so, told."""
    return {ENDS[name]: told(rows, name) for name in names}


def of_kind(growth: pd.DataFrame, delays: str, algorithm: str | None = None) -> pd.DataFrame:
    """The rows of the MLP on digits with these delays, of one method or of all, least late first."""
    wanted = (growth.workload == WORK) & (growth.delays == delays)
    own = growth[wanted].sort_values("staleness", kind="stable")
    return own if algorithm is None else own[own.algorithm == algorithm]


def model() -> noisy_quadratic.Model:
    """The quadratic model that predictions are made with."""
    return late_quadratic.coarsened(noisy_quadratic.power_law(target=0.1))


def beside_theory(growth: pd.DataFrame) -> pd.DataFrame:
    """SGD's steps over those without delay, predicted and measured, a row per delay."""
    rows = of_kind(growth, "fixed", "sgd")
    quadratic = model()
    timely = late_quadratic.floor(quadratic, 0)
    exact = [late_quadratic.floor(quadratic, late) / timely for late in rows.staleness]
    return pd.DataFrame(
        {
            "steps late": rows.staleness,
            "theory: stable rates": rows.floor.map(brief),
            "quadratic model: unlimited batch": list(map(brief, exact)),
            f"measured: batch {LARGE}": told(rows, "large"),
            f"measured: batch {SMALL}": told(rows, "small"),
        }
    )


def without_waiting(turns: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Gradients over those of one synchronous batch, a row per number of workers.

    turns: of `late_results.without_waiting`, by method.
    """
    workers = turns["sgd"].workers
    bounds = [brief(late_results.floor(count - 1) / count) for count in workers]
    table = pd.DataFrame({"theory, at most": bounds}, workers)
    for name, own in turns.items():
        ratios = pd.Series(told(own, "ratio"), own.workers)
        table[named(name)] = ratios.reindex(workers, fill_value="—")
    return table.reset_index()


def by_method(growth: pd.DataFrame, staleness: int) -> pd.DataFrame:
    """Every method one step late, by this delay, and as late as is measured."""
    fixed = of_kind(growth, "fixed")
    latest = fixed.groupby("algorithm").staleness.transform("max")
    shown = fixed[fixed.staleness.isin([1, staleness]) | (fixed.staleness == latest)]
    about = {"method": shown.algorithm.map(named), "steps late": shown.staleness}
    return pd.DataFrame(about | ends(shown, *ENDS))


def drawn_delays(growth: pd.DataFrame) -> pd.DataFrame:
    """Delays that vary beside the fixed one that is their mean."""
    rows = of_kind(growth, "uniform", "sgd")
    fixed = of_kind(growth, "fixed", "sgd").set_index("staleness", drop=False)
    means = (rows.staleness / 2).map(brief)
    about = {"delays": rows.staleness.map("0 to {}".format), "mean": means}
    table = pd.DataFrame(about | ends(rows, "small", "large"))
    for mean in rows.staleness // 2:
        beside = told(fixed.loc[[mean]], "large")[0]
        own = rows.staleness // 2 == mean
        table[f"fixed delay of {mean}, batch {LARGE}"] = own.map({True: beside, False: "—"})
    return table


def by_depth(growth: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """What one delay costs SGD on networks of one to four hidden layers."""
    alike = (growth.delays == "fixed") & (growth.algorithm == "sgd")
    deep = growth[alike & (growth.staleness == late_results.JUDGED)]
    deep = deep.assign(layers=deep.workload.map(LAYERS)).sort_values("layers")
    goals = deep.workload.map(trials.groupby("workload").goal.first())
    about = {"hidden layers of 64": deep.layers, "goal error": goals.map(percent)}
    return pd.DataFrame(about | ends(deep, *ENDS))


def of_processes(counted: pd.DataFrame) -> pd.DataFrame:
    """How late the gradients of real processes are; counted: of `experiments.summary`."""
    rests = [f"{brief(1000 * pause)} ms per gradient" if pause else "no" for pause in counted.pause]
    return pd.DataFrame(
        {
            "workers": counted.workers,
            "pause of the last worker": rests,
            "gradients": counted.gradients,
            "mean delay": counted["mean"].map(brief),
            "exactly one round late": [f"{brief(100 * share)} %" for share in counted.share],
            "longest delay": counted.longest,
        }
    )
