"""The tables of the page on training methods, and what its figures draw.

`over` is the table of `compared`: every method over SGD, a row per network, method, sparsity and
quantity, with `network`, `method` and `told` in words. Told values come with 90 % intervals.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from chapters.which_method import best_settings, method_figures, quadratic_methods
from lib import claims, wording
from lib.analysis import method_results, noisy_quadratic, scaling
from lib.page import charts
from lib.workloads import catalogue

LARS_SIZE = 256
SEVERAL = 3  # searches from which on titles speak of a method
TRIES = 5  # trials that a small budget allows (AlgoPerf's)
POWERS = pd.DataFrame({"power": [0.0, 0.5, 1.0], "method": ["SGD", "Adam", "K-FAC"]})


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


def in_common(dense: pd.DataFrame, workload: str) -> pd.DataFrame:
    """The rows by which methods are ranked: of networks that every method has, or of a workload
    that is the reader's own.
    """
    mine = dense[dense.workload == workload]
    alone = len(mine) > 0 and mine.n.max() < SEVERAL
    return mine if alone else everywhere(dense)


def everywhere(compared: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods with SEVERAL searches on every network of which any method has them; of one
    search, where none has.

    compared: as of `over`.
    """
    several = compared[compared.n >= SEVERAL]
    rows = several if len(several) else compared
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


def by_batch_size(curves: dict, timed: pd.DataFrame, title: str) -> pd.DataFrame:
    """Steps and, where it was timed, time over SGD's, a row per network, method, batch size and
    kind: ratio, ratio_low, ratio_high and dearer; the network of this title first.
    """
    columns = {f"time{end}": f"ratio{end}" for end in ("", "_low", "_high")}
    about = ["network", "algorithm", "batch_size", "dearer"]
    parts = [timed[[*about, *columns]].rename(columns=columns).assign(kind="time")]
    for key, curve in curves.items():
        below = curves.get((key[0], method_results.BASE, *key[2:]))
        if key[3] == 0 and key[1] != method_results.BASE and below is not None:
            steps = scaling.steps_ratio(curve, below).drop(columns=["n", "effect"])
            parts.append(steps.assign(network=name_of(key[0]), algorithm=key[1], kind="steps"))
    rows = pd.concat(parts)
    rows = rows[~rows.algorithm.isin(charts.VARIANTS)]
    return rows.sort_values("network", key=lambda names: names != title, kind="stable")


def damping_and_rate(fast: pd.DataFrame) -> pd.DataFrame:
    """How K-FAC's damping and rate move with the batch, one a row."""
    moving = []
    for name in ("damping", "learning_rate") if len(fast) else ():
        rows = best_settings.by_size(best_settings.middles(fast, name))
        moving.append(rows.assign(what=name.replace("_", " ")))
    rows = pd.concat(moving or [best_settings.by_size(fast[:0]).assign(what="")])
    return rows.assign(network=[name_of(name) for name in rows.workload])


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


def beside_sgd(over: pd.DataFrame, methods: list[str], title: str) -> pd.DataFrame:
    """Every network and method over SGD, the network of this title first."""
    asked = over[over.sparsity.isin([0, 0.9])]
    level = asked.sparsity.map(lambda s: f", sparsity {s:g}" if s else "")
    asked = asked.assign(column=asked.what.map(method_figures.WORDS) + level)
    wanted = [*method_figures.WORDS.values(), f"{method_figures.WORDS['critical']}, sparsity 0.9"]
    cells = asked.pivot(index=["network", "algorithm"], columns="column", values="told")
    cells = cells.reindex(columns=wanted).fillna("—").rename_axis(columns=None)
    order = sorted(cells.index, key=lambda key: (key[0] != title, key[0], methods.index(key[1])))
    table = cells.loc[order].reset_index()
    named = table.algorithm.map(method_results.title)
    return table.assign(algorithm=named).rename(columns={"algorithm": "times SGD’s"})


def step_times(times: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """A step's time over SGD's, a row per method and a column per network."""
    rows = times[times.algorithm != method_results.BASE]
    if not len(rows):
        return rows
    ratios = rows.groupby(["algorithm", "workload"]).ratio
    wide = ratios.agg(lambda own: wording.between(*own)).unstack().fillna("—")
    sides = times.groupby("workload").widest.first().sort_values()
    wide = _in_order(wide[sides.index], [*methods, *wide.index.difference(methods)])
    wide.columns = [f"{name_of(name)}, widest layer {side:,}" for name, side in sides.items()]
    return wide.rename_axis("a step’s time over SGD’s").reset_index()


def with_few_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """What a search of TRIES trials would have found, by network, method and batch size.

    A search that ended early knows its fastest trials alone, so every network and sparsity is read
    at the hardest goal at which, for all its methods, most searches of most batch sizes know.
    Columns: workload, algorithm, sparsity, batch_size, goal, steps (median over searches of the
    median of a search of so few), least (of whole searches), searches.  Networks without such a
    goal are left out.
    """
    keys = ["workload", "algorithm", "sparsity", "batch_size"]
    parts = [pd.DataFrame(columns=[*keys, "goal", "steps", "least", "searches"])]
    for _, own in trials.groupby(["workload", "sparsity"], sort=False):
        searches = own.groupby([*keys, *scaling.SEARCH])
        for goal in scaling.goals(own):
            steps = searches[f"steps@{goal:g}"]
            few = steps.agg(steps=lambda k: _median(k.to_numpy()), least="min")
            by = few.groupby(keys)
            points = by.median().assign(searches=by.size(), goal=goal).reset_index()
            known = np.isfinite(points.steps)
            if known.groupby(points.algorithm).mean().min() > 0.5:
                parts.append(points[known])
                break
    return pd.concat(parts[1:] or parts, ignore_index=True)


def _median(steps: np.ndarray) -> float:
    """Of the best of TRIES of a search's trials; inf where the search ended before it is known."""
    return float(scaling.best_of_k(steps, min(TRIES, len(steps)))[1])


def of_few_trials(known: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """What a search of few trials costs, a row per method and a column per network."""
    few = with_few_trials(known[known.sparsity == 0])
    few = few.assign(cost=few.steps / few.least)
    price = few.groupby(["algorithm", "workload"]).cost.median().unstack()
    wide = _in_order(price, [method_results.BASE, *methods]).rename(index=method_results.title)
    goals = few.groupby("workload").goal.first().map(wording.percent)
    wide.columns = [f"{name_of(name)}, error ≤ {goals[name]}" for name in wide]
    return wide.rename_axis("times the steps").reset_index()


def _in_order(wide: pd.DataFrame, methods: Iterable[str]) -> pd.DataFrame:
    """The rows of these methods that a table has, in their order; its index holds the methods."""
    return wide.loc[[name for name in methods if name in wide.index]]


def lars(curves: dict) -> pd.DataFrame:
    """What LARS and its variants cost at the batch size LARS_SIZE, over momentum and over SGD."""

    def steps(above: scaling.Curve, below: scaling.Curve) -> scaling.Effect | None:
        shared = above.logs.columns.intersection(below.logs.columns)
        return scaling.mean_steps_ratio(above, below, [LARS_SIZE]) if LARS_SIZE in shared else None

    rows = [
        {
            "network": name_of(work),
            "method": method_results.title(above),
            "case": f"times {wording.named(below)}’s steps",
            "told": wording.with_interval(*effect.row("ratio").values()),
        }
        for above in ("lars", "lars-warmup", "clars")
        for below in ("momentum", "sgd")
        for work, effect in method_results.between(curves, above, below, steps).items()
    ]
    table = pd.DataFrame(rows, columns=["network", "method", "case", "told"])
    wide = table.pivot(index=["network", "method"], columns="case", values="told")
    return wide.fillna("—").rename_axis(columns=None).reset_index()
