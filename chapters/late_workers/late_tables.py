"""The tables of the page on late workers.

`growth` is the table of `late_results.growth`; values come with their 90 % intervals.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.late_workers import late_quadratic, late_results
from lib.analysis import noisy_quadratic
from lib.wording import brief, named, percent, with_interval

WORK = "digits-mlp"
LAYERS = {"digits-mlp-64x1": 1, "digits-mlp": 2, "digits-mlp-64x4": 4}
SMALL, LARGE = late_results.SIZES[0], late_results.SIZES[-1]


def told(row: pd.Series, name: str) -> str:
    """A value with its interval: "1.5 (1.2–1.8)"."""
    return with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])


def of_kind(growth: pd.DataFrame, delays: str, algorithm: str | None = None) -> pd.DataFrame:
    """The rows of the MLP on digits with these delays, of one method or of all, least late first."""
    wanted = (growth.workload == WORK) & (growth.delays == delays)
    if algorithm is not None:
        wanted &= growth.algorithm == algorithm
    return growth[wanted].sort_values("staleness", kind="stable")


def model() -> noisy_quadratic.Model:
    """The quadratic model that predictions are made with."""
    return late_quadratic.coarsened(noisy_quadratic.power_law(target=0.1))


def beside_theory(growth: pd.DataFrame) -> pd.DataFrame:
    """SGD's steps over those without delay, predicted and measured, a row per delay."""
    rows = of_kind(growth, "fixed", "sgd")
    exact = late_quadratic.growth(model(), (np.inf,), [0, *rows.staleness]).set_index("staleness")
    return pd.DataFrame(
        [
            {
                "steps late": int(row.staleness),
                "theory: stable rates": brief(row.floor),
                "quadratic model: unlimited batch": brief(exact.over[row.staleness]),
                f"measured: batch {LARGE}": told(row, "large"),
                f"measured: batch {SMALL}": told(row, "small"),
            }
            for _, row in rows.iterrows()
        ]
    )


def without_waiting(turns: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Gradients over those of one synchronous batch, a row per number of workers.

    turns: of `late_results.without_waiting`, by method.
    """
    by_method = {m: table.set_index("workers") for m, table in turns.items()}
    rows = []
    for workers in by_method["sgd"].index:
        row = {
            "workers": int(workers),
            "theory, at most": brief(late_results.floor(int(workers) - 1) / workers),
        }
        for m, table in by_method.items():
            row[named(m)] = told(table.loc[workers], "ratio") if workers in table.index else "—"
        rows.append(row)
    return pd.DataFrame(rows)


def _ends(row: pd.Series) -> dict[str, str]:
    """At the smallest and the largest batch size, with intervals."""
    return {f"batch {size}": told(row, at) for size, at in ((SMALL, "small"), (LARGE, "large"))}


def by_method(growth: pd.DataFrame, staleness: int) -> pd.DataFrame:
    """Every method one step late, by this delay, and as late as is measured."""
    fixed = of_kind(growth, "fixed")
    latest = fixed.groupby("algorithm").staleness.transform("max")
    wanted = fixed[fixed.staleness.isin([1, staleness]) | (fixed.staleness == latest)]
    rows = [
        {"method": named(row.algorithm), "steps late": int(row.staleness), **_ends(row)}
        for _, row in wanted.iterrows()
    ]
    mean = [told(row, "mean") for _, row in wanted.iterrows()]
    return pd.DataFrame(rows).assign(**{"mean over sizes": mean})


def drawn_delays(growth: pd.DataFrame) -> pd.DataFrame:
    """Delays that vary beside the fixed one that is their mean."""
    steady = of_kind(growth, "fixed", "sgd").set_index("staleness")
    rows = []
    for _, row in of_kind(growth, "uniform", "sgd").iterrows():
        late = int(row.staleness)
        fixed = told(steady.loc[late // 2], "large")
        about = {"delays": f"0 to {late}", "mean": brief(late / 2), **_ends(row)}
        rows.append(about | {f"fixed delay of {late // 2}, batch {LARGE}": fixed})
    return pd.DataFrame(rows).fillna("—")


def by_depth(growth: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """What one delay costs SGD on networks of one to four hidden layers."""
    alike = (growth.delays == "fixed") & (growth.algorithm == "sgd")
    deep = growth[alike & (growth.staleness == late_results.JUDGED)]
    deep = deep.assign(layers=deep.workload.map(LAYERS)).sort_values("layers")
    goals = deep.workload.map(trials.groupby("workload").goal.first())
    rows = [{**_ends(row), "mean over sizes": told(row, "mean")} for _, row in deep.iterrows()]
    table = pd.DataFrame(rows)
    table.insert(0, "hidden layers of 64", deep.layers.astype(int).to_numpy())
    table.insert(1, "goal error", goals.map(percent).to_numpy())
    return table


def _rest(pause: float) -> str:
    return f"{brief(1000 * pause)} ms per gradient" if pause else "no"


def of_processes(counted: pd.DataFrame) -> pd.DataFrame:
    """How late the gradients of real processes are; counted: of `delays.summary`."""
    return pd.DataFrame(
        {
            "workers": counted.workers.astype(int),
            "pause of the last worker": counted.pause.map(_rest),
            "gradients": counted.gradients.astype(int),
            "mean delay": counted["mean"].map(brief),
            "exactly one round late": [f"{brief(100 * share)} %" for share in counted.share],
            "longest delay": counted.longest.astype(int),
        }
    )
