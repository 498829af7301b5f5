"""The tables of the page on sparse messages."""

from __future__ import annotations

import pandas as pd

from chapters.messages import message_results
from chapters.messages.grids import title
from lib.measuring import sweeps
from lib.studies import plans
from lib.wording import brief
from lib.workloads import catalogue

# What one change may change
USUAL = {"feedback": True, "by_layer": False, "aggregation": "exact", "warm_up": 0}
WORDS = {
    "feedback": "no feedback",
    "by_layer": "k per layer",
    "aggregation": "the authors' aggregation",
    "warm_up": "density warm-up",
}
KINDS = {
    "top-k": "Top-k",
    "rand-k": "Rand-k",
    "dgc-k": "DGC-k",
    "redsync": "RedSync",
    "gaussian-k": "Gaussian-k",
    "gaussian-k-band": "Gaussian-k, made to end on the band",
    "gaussian-k-paper": "Gaussian-k, one-sided",
}
JOINT = {
    "network": "network",
    "batch_size": "batch size",
    "density": "density",
    "model": "pruning alone",
    "messages": "messages alone",
    "both": "both",
    "over": "both / product",
    "beyond": "both / sum",
}


def lines(shown: pd.DataFrame, densities: list[float]) -> pd.DataFrame:
    """Lines of `message_figures.errors`: mean and range over seeds, dense messages at every
    density.

    Args:
        shown: of `message_results.best`.
        densities: those that the figure has.
    """
    dense = shown[shown.method == "dense"]
    at_each = [dense.assign(density=density) for density in densities]
    every = pd.concat([shown[shown.method != "dense"], *at_each])
    sizes = every.workload.map(lambda name: catalogue.workload(name).train_size)
    every = every.assign(epochs=every.examples / sizes)
    by = every[every.budget >= 16].groupby(["network", "method", "density", "budget"])
    found = by.agg(
        epochs=("epochs", "first"),
        error=("test", "mean"),
        low=("test", "min"),
        high=("test", "max"),
        megabytes=("megabytes", "mean"),
        seeds=("replicate", "nunique"),
        rate=("learning_rate", "median"),
    )
    return found.reset_index()


def sent(trials: pd.DataFrame) -> pd.DataFrame:
    """What Gaussian-k and DGC-k send a step over k, from one budget to the next: network, method,
    density, budget (step), middle (median over learning rates and seeds), low, high and runs.
    """
    runs = message_results.between_budgets(trials).query("method in ['Gaussian-k', 'DGC-k']")
    by = runs.groupby(["network", "method", "density", "budget"]).over
    return by.agg(middle="median", low="min", high="max", runs="size").reset_index()


def losses(shown: pd.DataFrame, networks: list[str]) -> pd.DataFrame:
    """Test error lost to dense messages, a row per network, density and method.

    Args:
        shown: of `message_results.best`.
        networks: titles, in the order of the rows.

    Returns:
        the columns of `message_results.means` and network, method, gap (points), edge (searches
        whose best rate was the lowest or highest) and sent (over k).
    """
    rivals = [name for name in message_results.NAMES.values() if name != "dense"]
    every = [message_results.gaps(shown, name) for name in rivals]
    lost = [own for own in every if len(own)]
    if not lost:
        return pd.DataFrame(columns=["network", "density", "method", "gap", "edge", "sent"])
    means = message_results.means(pd.concat(lost))
    key = ["method", "workload", "density"]
    more = {"edge": ("edge", "sum"), "sent": ("over", "mean"), "network": ("network", "first")}
    table = means.join(pd.concat(lost).groupby(key).agg(**more), on=key)
    table["place"] = table.network.map(networks.index)
    table["gap"] = [effect.value for effect in table.effect]
    return table.sort_values(["place", "density", "gap"], ignore_index=True)


def ends(table: pd.DataFrame) -> pd.DataFrame:
    """`losses` as the page shows them."""
    return pd.DataFrame(
        {
            "network": table.network,
            "density": table.density,
            "method": table.method,
            "points over dense": table.gap.map(brief),
            "90 %": [f"{brief(e.low)} to {brief(e.high)}" for e in table.effect],
            "seeds": [e.n for e in table.effect],
            "best rate at an edge": table.edge,
            "sent / k": table.sent.map(brief),
        }
    )


def variants(trials: pd.DataFrame) -> dict[float, pd.DataFrame]:
    """Test errors on FNN-3 on MNIST with one thing changed, by density: test, noise, over, seeds of
    every variant.

    Args:
        trials: of the comparison of methods, which has some of them.
    """
    studied = sweeps.results(plans.study("message-variants"))
    pool = pd.concat([part for part in (studied, trials) if len(part)])
    pool = pool[(pool.workload == "mnist-fnn-3") & (pool.compressor != "dense")]
    found = message_results.best(pool, USUAL).query("budget == budget.max()")
    names = [_variant(row) for row in found.to_dict("records")]
    by = found.assign(variant=names).groupby(["density", "variant"])
    means = by.agg(
        test=("test", "mean"),
        noise=("noise", "mean"),
        over=("over", "mean"),
        seeds=("replicate", "nunique"),
    )
    return {density: means.loc[density] for density in means.index.unique("density")}


def _variant(row: dict) -> str:
    changed = [WORDS[field] for field, usual in USUAL.items() if row[field] != usual]
    return ", ".join([KINDS[row["compressor"]], *changed])


def of_variants(sides: dict[float, pd.DataFrame]) -> pd.DataFrame:
    """`variants` side by side, the lowest error at the smallest density first."""
    nearest = sides[min(sides)].sort_values("test")
    columns = {"seeds": nearest.seeds}
    for density, side in sides.items():
        errors = (100 * side[["test", "noise"]].astype(float)).map(brief)
        columns[f"test error at {density:g}"] = errors.test + " ± " + errors.noise + " %"
        columns[f"sent / k at {density:g}"] = side.over.map(brief)
    wide = pd.DataFrame(columns).reindex(nearest.index)
    return wide.rename_axis("variant").reset_index()


def joint_curves(trials: pd.DataFrame, first: str) -> pd.DataFrame:
    """`message_results.joint_curves` with place, the name in the figure's menu.

    Args:
        trials: of pruned and dense networks.
        first: the workload whose places come first.
    """
    curves = message_results.joint_curves(trials)
    curves = curves.sort_values(
        "workload", key=lambda names: names != first, kind="stable", ignore_index=True
    )
    at = zip(curves.workload, curves.batch_size, curves.goal, strict=True)
    places = [f"{title(w)}, batch size {b:,}, error ≤ {100 * g:g} %" for w, b, g in at]
    return curves.assign(place=places)


def joint_costs(costs: pd.DataFrame) -> pd.DataFrame:
    """`message_results.joint_costs` as the page shows them."""
    named = costs.sort_values(["workload", "batch_size"])
    named = named.assign(network=named.workload.map(title))
    for name in list(JOINT)[3:]:
        named[name] = named[name].astype(float).map(brief)
    return named[[*JOINT]].rename(columns=JOINT)


def ranged(row: dict[str, float]) -> str:
    """A value with its interval: 1.1 (0.53 to 2.3)."""
    value, low, high = map(brief, row.values())
    return f"{value} ({low} to {high})"
