"""The tables of the page on training methods, and what its figures draw.

`over` is the table of `compared`: every method over SGD, a row per network, method and quantity,
with `network` and `method` in words.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.which_method import method_figures, quadratic_methods
from lib import claims, wording
from lib.analysis import method_results, noisy_quadratic, scaling
from lib.page import charts
from lib.workloads import catalogue

SEVERAL = 3  # searches from which on sentences speak of a method


def name_of(workload: str) -> str:
    """A network's title without its goal, which is told beside."""
    return catalogue.workload(workload).title.removesuffix(", easier goal")


def compared(curves: dict) -> pd.DataFrame:
    """Every method over SGD, named."""
    over = method_results.over(curves)
    return over.assign(
        network=over.workload.map(name_of), method=over.algorithm.map(method_results.title)
    )


def reliable(over: pd.DataFrame, workload: str) -> pd.DataFrame:
    """The rows of which sentences speak: those of a workload that is the reader's own, or of
    SEVERAL searches; all, where none has these.
    """
    mine = over[over.workload == workload]
    if len(mine) and mine.n.max() < SEVERAL:
        return mine
    several = over[over.n >= SEVERAL]
    return several if len(several) else over


def everywhere(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows by which methods are ranked: of methods that every network has."""
    return rows[rows.groupby("algorithm").workload.transform("nunique") == rows.workload.nunique()]


def best_of(common: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """The method that surely raises the critical batch size most, and its rows; SGD and none if
    nothing is measured.

    A method whose smallest batches are dear gains nothing by a larger critical batch size.
    """
    dear = common[common.what == "small"].groupby("algorithm").ratio.max()
    fair = common[(common.what == "critical") & common.algorithm.map(dear).le(1.2)]
    surely = fair.groupby("algorithm").ratio_low.min()  # on every network
    first = surely.idxmax() if len(surely) else method_results.BASE
    return first, fair[fair.algorithm == first]


def beside(trials: pd.DataFrame, above: str, below: str) -> pd.Series:
    """The winner's learning rate with one method over that with another in the same search: the
    geometric mean by workload and batch_size, where SEVERAL searches have both.
    """
    search = ["workload", *scaling.SEARCH, "batch_size"]
    met = trials[trials.algorithm.isin([above, below])].dropna(subset="steps")
    best = met.sort_values("steps", kind="stable").drop_duplicates(["algorithm", *search])
    rates = best.pivot(index=search, columns="algorithm", values="learning_rate").astype(float)
    logs = np.log(rates.reindex(columns=[above, below]))
    ratios = (logs[above] - logs[below]).dropna().groupby(["workload", "batch_size"])
    return np.exp(ratios.mean()[ratios.size() >= SEVERAL])


# --- what figures draw ----------------------------------------------------------------------------


def predictions() -> pd.DataFrame:
    """What the noisy quadratic model says of every method, over SGD."""
    model = noisy_quadratic.power_law(1000)
    found = claims.kept("predictions", lambda: quadratic_methods.predictions(model).to_dict("list"))
    return pd.DataFrame(found)


def measured_dots(over: pd.DataFrame, first: str) -> pd.DataFrame:
    """Methods without their variants, the largest critical batch size first."""
    middle = over[over.what == "critical"].groupby("algorithm").ratio.mean()
    shown = over[~over.algorithm.isin(charts.VARIANTS) | (over.algorithm == first)]
    return shown.assign(place=-shown.algorithm.map(middle)).sort_values("place", kind="stable")


def predicted_dots(predicted: pd.DataFrame) -> pd.DataFrame:
    """The model's ratios, one a row."""
    names = {f"over_{column}": what for what, column in method_figures.COLUMNS.items()}
    renamed = predicted.rename(columns=names)
    long = renamed.melt("algorithm", list(names.values()), "what", "ratio")
    return long.assign(method=long.algorithm.map(wording.named))


def by_batch_size(curves: dict, timed: pd.DataFrame, title: str) -> pd.DataFrame:
    """Steps and, where it was timed, time over SGD's, a row per network, method, batch size and
    kind: ratio, ratio_low, ratio_high and dearer; the network of this title first.
    """
    columns = {f"time{end}": f"ratio{end}" for end in ("", "_low", "_high")}
    about = ["network", "algorithm", "batch_size", "dearer"]
    parts = [timed[[*about, *columns]].rename(columns=columns).assign(kind="time")]
    sgd = scaling.with_partner(curves, lambda key: (key[0], method_results.BASE, *key[2:]))
    for key, *pair in sgd:
        steps = scaling.steps_ratio(*pair).drop(columns=["n", "effect"])
        parts.append(steps.assign(network=name_of(key[0]), algorithm=key[1], kind="steps"))
    rows = pd.concat(parts)
    rows = rows[~rows.algorithm.isin(charts.VARIANTS)]
    return rows.sort_values("network", key=lambda names: names != title, kind="stable")


# --- tables ---------------------------------------------------------------------------------------


def of_model(predicted: pd.DataFrame) -> pd.DataFrame:
    """What the model says, methods that it cannot tell apart in one row."""
    columns = {"over_critical": "critical batch size", "over_c2": "floor c₂", "over_c1": "c₁"}
    rows = predicted.assign(method=predicted.algorithm.map(wording.named))
    for tuned in ("momentum", "average"):
        rows[tuned] = np.where(rows[tuned], "tuned", "—")
    groups = rows.groupby(["power", "momentum", "average"], sort=False)
    names = groups.method.agg(lambda own: "; ".join(dict.fromkeys(own)))
    table = groups[[*columns]].first().rename(columns=columns).reset_index()
    table.insert(0, "method", names.to_numpy())
    return table


def step_times(times: pd.DataFrame) -> pd.DataFrame:
    """A step's time over SGD's, a row per method but variants, and a column per network."""
    rows = times[~times.algorithm.isin([method_results.BASE, *charts.VARIANTS])]
    if not len(rows):
        return rows
    ratios = rows.groupby(["algorithm", "workload"]).ratio
    wide = ratios.agg(lambda own: wording.between(*own)).unstack().fillna("—")
    sides = times.groupby("workload").widest.first().sort_values()
    order = [*quadratic_methods.KINDS, *wide.index].index  # as the model has them, then others
    wide = wide.loc[sorted(wide.index, key=order), sides.index]
    wide.columns = [f"{name_of(name)}, widest layer {side:,}" for name, side in sides.items()]
    return wide.rename_axis("a step’s time over SGD’s").reset_index()
