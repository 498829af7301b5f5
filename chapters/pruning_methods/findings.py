"""The values of the sentences on pruning criteria."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.pruning_methods import pruning_tables as tables
from chapters.pruning_methods.pruning_tables import title
from chapters.pruning_methods.searches import USUAL
from lib.engine import pruning
from lib.wording import brief, named, percent

BOUND = 1.25  # as in the rules of claims: a ratio beyond it either way is an effect


def findings(
    trials: pd.DataFrame, summary: pd.DataFrame, ratios: pd.DataFrame, layers: pd.DataFrame, chosen
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        trials: of `searches.results`, at goals.
        summary: of `scaling.summaries`.
        ratios: of `pruning_tables.over_usual`.
        layers: of `pruning_tables.kept`.
        chosen: the page's parameters.
    """
    smaller, larger = ratios[ratios.ratio_high < 1 / BOUND], ratios[ratios.ratio_low > BOUND]
    surest = _surest(ratios)
    own, soft = (ratios[ratios.pruning == method] for method in (surest, "grasp-200"))
    mine = trials[trials.workload == chosen.workload]
    same = summary[(summary.workload == chosen.workload) & (summary.pruning == USUAL)]
    return {
        "differs": bool(surest),
        "way": named(surest) if surest else None,
        "differs_on": [title(name) for name in own.workload],
        "times_smaller": float(1 / own.ratio_high.max()),
        "soft_told": surest == "grasp" and bool(len(soft)),
        "soft_clear": int((soft.ratio_high < 1 / BOUND).sum()),
        "soft_all": len(soft),
        "network": title(chosen.workload),
        "networks": [title(name) for name in trials.workload.unique()],
        "algorithm": named(chosen.algorithm),
        "sparsity": f"{chosen.sparsity:g}",
        "goal": percent(mine.goal.iloc[0]) if len(mine) else None,
        "ratios": len(ratios),
        "smaller": len(smaller),
        "larger": len(larger),
        "smaller_on": _listed(smaller, "ratio_high", "at most"),
        "larger_on": _listed(larger, "ratio_low", "at least"),
        "critical": float(same[same.sparsity > 0].critical.median()),
        **_saved(tables.steps(trials, chosen.workload)),
        **_grasp(chosen),
        **_layers(layers, surest or USUAL),
        "masks": chosen.masks,
    }


def _surest(ratios: pd.DataFrame) -> str:
    """The method whose intervals lie below the bound on every network; "" without one."""
    highest = ratios.groupby("pruning").ratio_high.max()
    return highest.idxmin() if len(highest) and highest.min() < 1 / BOUND else ""


def _listed(rows: pd.DataFrame, end: str, bound: str) -> list[str]:
    """Which method on which network, and what its ratio is bounded by."""
    found = rows[["pruning", "workload", end]].itertuples(index=False, name=None)
    return [
        f"{named(method)} on {title(network)} ({bound} {brief(value)} times)"
        for method, network, value in found
    ]


def _saved(wide: pd.DataFrame) -> dict[str, object]:
    """By what factor larger batches save steps with each method, where all have both."""
    shared = wide.dropna()
    known = len(shared) > 1 and len(wide.columns) > 1
    saved = (shared.iloc[0] / shared.iloc[-1]).sort_values() if known else pd.Series(dtype=float)
    worst = shared.get(saved.index[0]) if known else None
    return {
        "saving_known": known,
        "saved_least": float(saved.min()),
        "saved_most": float(saved.max()),
        "saved_worst": named(saved.index[0]) if known else None,
        "saved_later": float(worst.iloc[1] / worst.iloc[-1]) if known else None,
        "second": int(shared.index[1]) if known else None,
        "saved_best": named(saved.index[-1]) if known else None,
    }


def _grasp(chosen) -> dict[str, object]:
    """What GraSP's masks share if one thing is changed at a time."""
    (more, low), (fewer, high) = pruning.GRASP["grasp"], pruning.GRASP["grasp-200"]
    ours, between, theirs = (
        tables.grasp_masks(chosen, *way) for way in ((more, low), (fewer, low), (fewer, high))
    )
    return {
        "more_examples": more,
        "fewer_examples": fewer,
        "temperature_low": low,
        "temperature_high": high,
        "same_examples": percent(tables.in_common(ours, between)),
        "same_temperature": percent(tables.in_common(between, theirs)),
    }


def _layers(layers: pd.DataFrame, method: str) -> dict[str, object]:
    """What all methods keep, and how one method differs by layer from connection sensitivity."""
    sums = layers.groupby(["method", "seed"])[["kept", "size"]].sum().iloc[0]
    density = tables.densities(layers)
    off = np.abs(np.log(density.loc[method] / density.loc[USUAL]))
    return {
        "kept": int(sums["kept"]),
        "parameters": int(sums["size"]),
        "layer_way": named(method),
        "layer_factor": float(np.exp(off.max())),
    }
