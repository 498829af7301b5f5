"""The tables of the page on training methods, and what its figures draw.

`over` is the table of `compared`: every method over SGD, a row per network, method, sparsity and
quantity, with `network`, `method` and `told` in words. Told values come with 90 % intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from chapters.which_method import best_settings, method_figures, quadratic_methods
from lib import claims, wording
from lib.analysis import method_results, noisy_quadratic, scaling
from lib.page import charts
from lib.workloads import catalogue

LARS_SIZE = 256
QUANTITIES = {
    "critical": "critical batch size",
    "small": "steps, two smallest batches",
    "large": "steps, two largest batches",
}


def name_of(workload: str) -> str:
    """A network's title without its goal, which is told beside."""
    return catalogue.workload(workload).title.removesuffix(", easier goal")


def compared(curves: dict) -> pd.DataFrame:
    """Every method over SGD, named."""
    over = method_results.over(curves)
    over = over.assign(
        network=over.workload.map(name_of), method=over.algorithm.map(method_results.title)
    )
    ratios = over[["ratio", "ratio_low", "ratio_high"]].to_numpy()
    return over.assign(told=[wording.with_interval(*row) for row in ratios])


def in_time(curves: dict, times: pd.DataFrame) -> pd.DataFrame:
    """`method_results.in_time`, named."""
    timed = method_results.in_time(curves, times)
    return timed.assign(network=timed.workload.map(name_of))


def in_common(dense: pd.DataFrame, workload: str) -> pd.DataFrame:
    """The rows by which methods are ranked: of networks that every method has, or of a workload
    that is the reader's own.
    """
    mine = dense[dense.workload == workload]
    alone = len(mine) > 0 and mine.searches.max() < method_results.SEVERAL
    return mine if alone else method_results.everywhere(dense)


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


def order_of(over: pd.DataFrame, methods: Iterable[str]) -> list[str]:
    """Methods in the order of tables: as the model has them, then as they were asked for."""
    known = set(over.algorithm)
    return [m for m in dict.fromkeys((*quadratic_methods.KINDS, *methods)) if m in known]


# --- what figures draw ----------------------------------------------------------------------------


def predictions() -> pd.DataFrame:
    """What the noisy quadratic model says of every method, over SGD."""
    model = noisy_quadratic.power_law(1000)
    found = claims.kept("predictions", lambda: quadratic_methods.predictions(model).to_dict("list"))
    return pd.DataFrame(found)


def by_power() -> pd.DataFrame:
    """Floor and critical batch size in the model by the power of the preconditioner."""
    model = noisy_quadratic.power_law(1000)
    powers = np.linspace(0, 1, 9)
    found = claims.kept("powers", lambda: quadratic_methods.by_power(model, powers).to_dict("list"))
    return pd.DataFrame(found)


def measured_dots(dense: pd.DataFrame, first: str) -> pd.DataFrame:
    """Methods without their variants, the largest critical batch size first."""
    middle = dense[dense.what == "critical"].groupby("algorithm").ratio.mean()
    shown = dense[~dense.algorithm.isin(charts.VARIANTS) | (dense.algorithm == first)]
    return shown.assign(place=-shown.algorithm.map(middle)).sort_values("place", kind="stable")


def predicted_dots(predicted: pd.DataFrame) -> pd.DataFrame:
    """The model's ratios, one a row."""
    names = {f"over_{column}": what for what, column in method_figures.COLUMNS.items()}
    renamed = predicted.rename(columns=names)
    long = renamed.melt("algorithm", list(names.values()), "what", "ratio")
    return long.assign(method=long.algorithm.map(wording.named))


def rivals(every: pd.DataFrame) -> pd.DataFrame:
    """The points of networks and sparsities on which more than one method is measured."""
    points = scaling.label(scaling.across_replicates(scaling.steps_to_result(every)))
    level = points.sparsity.map(lambda s: f", sparsity {s:g}" if s else "")
    points = points.assign(curve=points.workload.map(name_of) + level)
    points = points[~points.algorithm.isin(charts.VARIANTS)]
    return points[points.groupby("curve").algorithm.transform("nunique") > 1]


def steps_and_time(timed: pd.DataFrame, title: str) -> pd.DataFrame:
    """Ratios of steps and of time, one a row, the network of this title first."""
    halves = [
        timed.rename(
            columns={kind: "ratio", f"{kind}_low": "ratio_low", f"{kind}_high": "ratio_high"}
        ).assign(kind=kind)
        for kind in ("steps", "time")
    ]
    columns = ["network", "algorithm", "batch_size", "kind", "ratio", "ratio_low", "ratio_high"]
    rows = pd.concat(halves)[[*columns, "dearer"]]
    return rows.sort_values("network", key=lambda names: names != title, kind="stable")


def damping_and_rate(fast: pd.DataFrame) -> pd.DataFrame:
    """How K-FAC's damping and rate move with the batch, one a row."""
    both = {"damping": "damping", "learning_rate": "learning rate"}
    moving = [
        best_settings.by_size(best_settings.middles(fast, name) if len(fast) else fast[:0]).assign(
            what=what
        )
        for name, what in both.items()
    ]
    rows = pd.concat(moving, ignore_index=True)
    return rows.assign(network=[name_of(name) for name in rows.workload])


# --- tables ---------------------------------------------------------------------------------------


def of_model(predicted: pd.DataFrame) -> pd.DataFrame:
    """What the model says, methods that it cannot tell apart in one row."""
    table = predicted.assign(
        method=predicted.algorithm.map(wording.named),
        momentum=np.where(predicted.momentum, "tuned", "—"),
        average=np.where(predicted.average, "tuned", "—"),
    )
    columns = {
        "over_critical": "critical batch size",
        "over_c2": "floor c₂",
        "over_c1": "c₁",
    }
    table = table.groupby(["power", "momentum", "average"], sort=False).agg(
        {"method": lambda names: "; ".join(dict.fromkeys(names)), **dict.fromkeys(columns, "first")}
    )
    about = ["method", "power", "momentum", "average"]
    table = table.reset_index().rename(columns=columns)
    return table[[*about, *columns.values()]]


def beside_sgd(over: pd.DataFrame, methods: list[str], title: str) -> pd.DataFrame:
    """Every network and method over SGD, the network of this title first."""
    asked = over[over.sparsity.isin([0, 0.9])]
    level = asked.sparsity.map(lambda s: f", sparsity {s:g}" if s else "")
    asked = asked.assign(column=asked.what.map(QUANTITIES) + level)
    wanted = [*QUANTITIES.values(), f"{QUANTITIES['critical']}, sparsity 0.9"]
    cells = asked.pivot(index=["network", "algorithm"], columns="column", values="told")
    cells = cells.reindex(columns=wanted).fillna("—").rename_axis(columns=None).reset_index()
    cells = cells.assign(
        place=cells.algorithm.map(methods.index), later=cells.network != title
    ).sort_values(["later", "network", "place"], kind="stable")
    cells = cells.drop(columns=["place", "later"])
    named = cells.algorithm.map(method_results.title)
    return cells.assign(algorithm=named).rename(columns={"algorithm": "times SGD’s"})


def in_order(wide: pd.DataFrame, methods: Iterable[str]) -> pd.DataFrame:
    """The rows of these methods that a table has, in their order; its index holds the methods."""
    known = [name for name in methods if name in wide.index]
    return wide.loc[known]


def step_times(times: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """A step's time over SGD's, a row per method and a column per network."""
    rows = times[times.algorithm != method_results.BASE]
    if not len(rows):
        return rows
    ranges = {
        key: wording.between(*own.ratio)
        for key, own in rows.groupby(["algorithm", "workload"], sort=False)
    }
    wide = pd.Series(ranges).unstack()
    wide = in_order(wide, [*methods, *wide.index.difference(methods)])
    sides = times.drop_duplicates("workload").set_index("workload").widest
    wide = wide.reindex(columns=sides.sort_values().index)
    wide.columns = [f"{name_of(name)}, widest layer {sides[name]:,}" for name in wide.columns]
    wide = wide.fillna("—")
    return wide.rename_axis(index="a step’s time over SGD’s").reset_index()


def of_few_trials(known: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """What a search of few trials costs, a row per method and a column per network."""
    few = method_results.with_few_trials(known[known.sparsity == 0])
    few = few.assign(cost=few.steps / few.least)
    price = few.pivot_table(
        index="algorithm",
        columns="workload",
        values="cost",
        aggfunc="median",
    )
    wide = in_order(price, [method_results.BASE, *methods])
    goals = few.groupby("workload").goal.first()
    wide = wide.rename(index=method_results.title)
    wide.columns = [
        f"{name_of(name)}, error ≤ {wording.percent(goals[name])}" for name in wide.columns
    ]
    return wide.rename_axis("times the steps").reset_index()


def on_networks(curves: dict, above: str, below: str, of: Callable) -> pd.DataFrame:
    """A quantity of one method over another, a row per network: network, ratio, ratio_low and
    ratio_high.
    """
    found = method_results.between(curves, above, below, of)
    return pd.DataFrame(
        [{"network": name_of(name), **effect.row("ratio")} for name, effect in found.items()]
    )


def lars(curves: dict) -> pd.DataFrame:
    """What LARS and its variants cost at the batch size LARS_SIZE, over momentum and over SGD."""

    def steps(above, below):
        shared = above.logs.columns.intersection(below.logs.columns)
        return scaling.mean_steps_ratio(above, below, [LARS_SIZE]) if LARS_SIZE in shared else None

    parts = [
        on_networks(curves, above, below, steps).assign(
            method=method_results.title(above), case=f"times {wording.named(below)}’s steps"
        )
        for above in ("lars", "lars-warmup", "clars")
        for below in ("momentum", "sgd")
    ]
    paid = pd.concat(parts, ignore_index=True)
    if not len(paid):
        return paid
    ratios = paid[["ratio", "ratio_low", "ratio_high"]].to_numpy()
    paid = paid.assign(told=[wording.with_interval(*row) for row in ratios])
    wide = paid.pivot(index=["network", "method"], columns="case", values="told")
    return wide.fillna("—").reset_index()
