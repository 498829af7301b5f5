"""The tables of the page on methods of pruning, and what their masks keep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch

from chapters.pruning_methods.searches import USUAL
from lib.analysis import scaling
from lib.engine import flattening, pruning, vocabulary
from lib.measuring import one_cell
from lib.studies.cells import Cell
from lib.wording import brief, named, percent
from lib.workloads import catalogue, models
from lib.workloads.tasks import TASKS

# GraSP at either temperature, and what both are compared with
GRASPS = ["grasp", "grasp-200", "connection-sensitivity"]


def title(workload: str) -> str:
    """A workload as the pages name it, a reader's own, too."""
    return catalogue.workload(workload).title


def curves(trials: pd.DataFrame) -> pd.DataFrame:
    """Points of the first figure, of every network and method that met a goal."""
    met = trials[trials.filter(like="steps@").notna().any(axis=1)]
    parts = [
        scaling.label(scaling.all_goals(trials[own])).assign(method=method, network=title(name))
        for name, method in met[["workload", "method"]].drop_duplicates().itertuples(index=False)
        for own in [(trials.workload == name) & (trials.method == method)]
    ]
    return pd.concat(parts)


def steps(trials: pd.DataFrame, workload: str) -> pd.DataFrame:
    """Steps to the goal of one pruned network: a row per batch size, a column per method."""
    own = trials[(trials.workload == workload) & (trials.sparsity > 0)]
    found = scaling.steps_to_result(own)
    return found.pivot_table(index="batch_size", columns="pruning", values="steps")


def over_usual(drawn: dict[tuple, scaling.Curve]) -> pd.DataFrame:
    """Critical batch sizes after every criterion over those after connection sensitivity:
    `scaling.beside`.
    """
    return scaling.beside(drawn, lambda key: (*key[:2], USUAL, key[3]))


def bends(drawn: dict[tuple, scaling.Curve], chosen, networks: list[str]) -> pd.DataFrame:
    """Critical batch sizes after GraSP at either temperature, and their ratio, a row per network.

    Args:
        drawn: of `scaling.summaries`.
        chosen: the page's parameters.
        networks: workloads.
    """
    rows = []
    for name in networks:
        found = [drawn.get((name, chosen.algorithm, m, chosen.sparsity)) for m in GRASPS]
        both = found[0] is not None and found[1] is not None
        ratio = scaling.critical_ratio(found[1], found[0]) if both else None
        ends = list(map(brief, ratio.row("ratio").values())) if ratio else []
        rows.append(
            {
                "network": title(name),
                **{named(m): _critical(curve) for m, curve in zip(GRASPS, found, strict=True)},
                "temperature 200 over one": "{} ({} to {})".format(*ends) if ends else None,
            }
        )
    return pd.DataFrame(rows)


def _critical(curve: scaling.Curve | None) -> str | None:
    return f"{np.exp(scaling.critical(curve).value):,.0f}" if curve else None


def grasp_masks(chosen, per_class: int, temperature: float) -> list[torch.Tensor]:
    """GraSP's masks [P] of ones and zeros, one per initialisation.

    Args:
        chosen: the page's parameters.
        per_class: examples of each class that the score takes.
        temperature: by which outputs are divided before the loss.
    """
    work = catalogue.workload(chosen.workload)
    train, masks = work.train(), []
    for seed in range(chosen.masks):
        net = models.fresh(work.model, seed)
        pick = pruning.class_balanced(train.y, per_class, seed)
        x, y = flattening.cast(train.x[pick], torch.float32), train.y[pick]
        weights = flattening.flatten(net)
        scores = pruning.grasp(net, weights, x, y, TASKS[work.task], temperature)
        masks.append(pruning.global_mask(scores, chosen.sparsity))
    return masks


def in_common(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> float:
    """The share of what one mask keeps that the other keeps, too: mean over initialisations."""
    pairs = zip(ours, theirs, strict=True)
    return float(np.mean([float((one * other).sum() / one.sum()) for one, other in pairs]))


def kept(chosen) -> pd.DataFrame:
    """What every method's masks keep: method, seed, layer, place, kept, size of every layer."""
    net = models.build(catalogue.workload(chosen.workload).model)
    rows = (row for method in vocabulary.METHODS for row in _layers(chosen, method, net))
    return pd.DataFrame(rows, columns="method seed layer place kept size".split())


def _layers(chosen, method: str, net) -> Iterator[tuple]:
    cell = Cell(
        chosen.workload,
        chosen.batch_sizes[0],
        chosen.algorithm,
        chosen.sparsity,
        method,
        trials=max(chosen.trials, chosen.masks),
    )
    seeds = list(range(chosen.masks))
    for seed, mask in enumerate(one_cell.start(cell, seeds).mask):
        for place, (name, left, size) in enumerate(pruning.layer_densities(mask, net)):
            yield method, seed, name, place, left, size


def densities(layers: pd.DataFrame) -> pd.DataFrame:
    """Mean share of weights kept: a row per method, a column per layer, first layer first."""
    weights = layers[layers.layer.str.endswith("weight")]
    shares = weights.assign(density=weights.kept / weights["size"])
    return shares.groupby(["method", "place"]).density.mean().unstack()


def by_layer(layers: pd.DataFrame) -> pd.DataFrame:
    """What the methods keep of the first and the last layer's weights, and of biases."""
    biases = layers[~layers.layer.str.endswith("weight")]
    left = biases.groupby(["method", "seed"]).kept.sum().groupby("method").mean()
    shares = densities(layers).reindex(vocabulary.METHODS).map(lambda share: percent(share, 0))
    return pd.DataFrame(
        {
            "criterion": shares.index,
            "weights kept in the first layer": shares.iloc[:, 0].to_numpy(),
            "in the last": shares.iloc[:, -1].to_numpy(),
            "biases kept": left.reindex(shares.index, fill_value=0).map("{:.0f}".format).to_numpy(),
        }
    )
