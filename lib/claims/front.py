"""What the front page shows besides the judged claims, kept as they are: how much is on record, and every curve on one line."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import method_results, scaling, text_results
from lib.claims.ledger import kept, usual
from lib.probes import method_times
from lib.records import results, store
from lib.records.places import DATA, record
from lib.studies import plans
from lib.workloads.catalogue import workload

DATA_SETS = {"digits": "digits", "mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar-10": "CIFAR-10",
             "tiny-shakespeare": "Tiny Shakespeare"}  # by size; text last
NEAR = 1.5  # the factor within which a point counts as on the line


def scope() -> dict:
    """searches, trials and core_hours on record, each search once; networks and data_sets (names) that they train."""
    return kept("scope", _scope)


def _scope() -> dict:
    every = dict.fromkeys(cell for study in plans.STUDIES.values() for cell in study.cells)
    cells = [cell for cell in every if record(cell, DATA).exists()]
    heads = [store.head(record(cell, DATA)) for cell in cells]
    trained = {workload(name) for name in dict.fromkeys(cell.workload for cell in cells)}
    found = {data_set(w.dataset) for w in trained}
    return {
        "searches": len(cells),
        "trials": sum(head["rows"] for head in heads),
        "core_hours": sum(head["wall_s"] for head in heads) / 3600,
        "networks": len({(w.dataset, w.model) for w in trained}),
        "data_sets": [title for title in DATA_SETS.values() if title in found],
    }


def curves() -> pd.DataFrame:
    """A row per point of every curve: curve, network (data set and kind), algorithm, sparsity, batch_size, steps, x, y, over.

    x: batch size over the curve's critical one; y: steps over its floor; over: steps over what the line 1 + 1/x says.
    """
    return pd.DataFrame(kept("curves", _curves))


def _curves() -> dict:
    trials, summary, _ = usual()
    points = scaling.on_one_line(scaling.across_replicates(scaling.steps_to_result(trials)), summary)
    points = points.assign(
        curve=scaling.curve_names(points),
        network=[network(name) for name in points.workload],
        over=points.y / (1 + 1 / points.x),
    ).dropna(subset="steps")
    order = {title: place for place, title in enumerate(DATA_SETS.values())}
    points["place"] = [order.get(name.partition(",")[0], len(order)) for name in points.network]
    points = points.sort_values(["place", "network", "algorithm", "workload", "sparsity", "batch_size"])
    columns = ["curve", "workload", "network", "algorithm", "sparsity", "batch_size", "steps", "x", "y", "over"]
    return points[columns].to_dict("list")


def network(name: str) -> str:
    """A workload's data set and kind of network: "MNIST, convolutional"."""
    work = workload(name)
    return f"{data_set(work.dataset)}, {scaling.kind_of(work.model)}"


def data_set(name: str) -> str:
    """A data set's title, whichever split of it the name means; a reader's own as it is."""
    return next((title for known, title in DATA_SETS.items() if name.startswith(known)), name)


def near(points: pd.DataFrame) -> float:
    """The share of points of `curves` that lie within a factor NEAR of the line."""
    return float((np.log(points.over).abs() < np.log(NEAR)).mean())


def quickest() -> dict:
    """The method that takes the least time at the largest batch size of every network that all methods were searched on.

    method: its title, "" where that differs between networks; times: over SGD's, by network; rivals: how many others.
    """
    return kept("quickest", _quickest)


def _quickest() -> dict:
    drawn = scaling.summaries(method_results.compared())[1]
    over = method_results.over(drawn)
    common = method_results.everywhere(over[over.sparsity == 0])
    least = method_results.quickest(method_results.in_time(drawn, method_times.over_sgd()), common)
    name = method_results.on_every_network(least)
    return {
        "method": method_results.title(name) if name else "",
        "times": least.time.to_list(),
        "rivals": int(least.rivals.min()) if len(least) else 0,
    }


def language_model() -> dict:
    """How the book's language model follows c1/B + c2: off, the typical factor between steps and line, and sizes, its batch sizes.

    Both 0 where too few batch sizes are on record for a line.
    """
    return kept("language-model", _language_model)


def _language_model() -> dict:
    name, sizes = "shakespeare", plans.SHAKESPEARE_BUDGETS
    trials = results.read(text_results.grid(name, sizes, [text_results.MAIN], searches=3, trials=16, beyond=False))
    dense = text_results.main_of(trials) if len(trials) else trials
    lines = text_results.fits(dense) if dense.batch_size.nunique() > 2 else []
    own = lines[lines.goal == text_results.goal(dense)] if len(lines) else []
    return {"off": float(own.residual.iloc[0]), "sizes": int(own.sizes.iloc[0])} if len(own) else {"off": 0.0, "sizes": 0}
