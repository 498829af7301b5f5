"""The searches of pruned networks, from the page's parameters."""

from __future__ import annotations

import pandas as pd

from lib.engine.vocabulary import METHODS
from lib.measuring import sweeps
from lib.records import on_record, store
from lib.studies import plans
from lib.studies.study import Study

USUAL = "connection-sensitivity"
IMAGES = "mnist-simple-cnn"  # shown beside the digits, as the book's studies have it
DENSE = "dense"


def results(chosen) -> pd.DataFrame:
    """All trials, with `method`: that of pruning, or DENSE.

    A network beside the one that was asked for is shown if that has records and the other is pruned
    in more ways than the usual one.
    """
    levels = {**dict.fromkeys(METHODS, chosen.sparsity), DENSE: 0.0}
    found = {
        (network, method): sweeps.results(_grid(chosen, method, level, network), chosen.budget)
        for network in _networks(chosen)
        for method, level in levels.items()
    }
    known = {network for (network, _), trials in found.items() if len(trials)}
    otherwise = {
        network
        for (network, method), trials in found.items()
        if len(trials) and method not in (DENSE, USUAL) and chosen.workload in known
    }
    shown = {chosen.workload, *otherwise}
    frames = [f.assign(method=method) for (name, method), f in found.items() if name in shown]
    joined = pd.concat([f.assign() for f in frames if len(f)] or frames, ignore_index=True)
    joined.attrs.update(
        missing=store.Shared(cell for f in frames for cell in f.attrs["missing"]),
        cells_planned=sum(f.attrs["cells_planned"] for f in frames),
        provenance=store.Shared(head for f in frames for head in f.attrs["provenance"]),
    )
    return joined


def _networks(chosen) -> list[str]:
    """The network asked for; both on digits and one on images if it is one of these, and no toy."""
    if chosen.workload not in plans.DIGITS or chosen.budget == "smoke":
        return [chosen.workload]
    digits = sorted(plans.DIGITS, key=lambda name: name != chosen.workload)
    return [*digits, IMAGES] if chosen.budget == "cached" else digits


def _grid(chosen, method: str, level: float, network: str) -> Study:
    pruning = USUAL if method == DENSE else method
    if network == IMAGES != chosen.workload:
        return _planned(chosen, pruning, level, network)
    # Poor methods end early
    short = {} if pruning == USUAL else {"hits": 2, "max_steps": 20_000}
    return on_record.grid(
        network,
        chosen.batch_sizes,
        [chosen.algorithm],
        [level],
        trials=chosen.trials,
        pruning=pruning,
        **short,
    )


def _planned(chosen, pruning: str, level: float, network: str) -> Study:
    """What the book's studies have of a network, at the batch sizes of all methods."""
    asked = {c.batch_size for c in plans.study("mnist-methods").cells}
    fields = {"algorithm": chosen.algorithm, "pruning": pruning, "sparsity": level, "stop": "goal"}
    every = on_record.gathered(workload=network, **fields).cells
    return Study(network, network, tuple(cell for cell in every if cell.batch_size in asked))
