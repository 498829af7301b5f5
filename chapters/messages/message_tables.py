"""The tables of the page on sparse messages."""

from __future__ import annotations

import pandas as pd

from chapters.messages import message_results
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


def lines(shown: pd.DataFrame, density: float) -> pd.DataFrame:
    """Lines of `message_figures.panels`: test error (mean over seeds) and epochs per network,
    method and budget, at one density and of dense messages.

    shown: of `message_results.best`.
    """
    sizes = shown.workload.map(lambda name: catalogue.workload(name).train_size)
    drawn = (shown.method == "dense") | (shown.density == density)
    rows = shown.assign(epochs=shown.examples / sizes)[drawn & (shown.budget >= 16)]
    found = rows.groupby(["network", "method", "budget"])
    return found.agg(epochs=("epochs", "first"), error=("test", "mean")).reset_index()


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


def ends(table: pd.DataFrame, density: float) -> pd.DataFrame:
    """`losses` at one density as the page shows them."""
    own = table[table.density == density]
    return pd.DataFrame(
        {
            "network": own.network,
            "method": own.method,
            "points over dense": own.gap.map(brief),
            "90 %": [f"{brief(e.low)} to {brief(e.high)}" for e in own.effect],
            "seeds": [e.n for e in own.effect],
            "best rate at an edge": own.edge,
            "sent / k": own.sent.map(brief),
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


def ranged(row: dict[str, float]) -> str:
    """A value with its interval: 1.1 (0.53 to 2.3)."""
    value, low, high = map(brief, row.values())
    return f"{value} ({low} to {high})"
