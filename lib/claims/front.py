"""What pages state besides the judged claims, each computed once from the records and kept as they
are: how much is on record, and every curve.

A local extension of Sphinx, too, which computes this while a build begins to run pages.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pandas as pd

from lib.analysis import hardware, ranges, scaling, splits
from lib.claims import cache, judging
from lib.claims.cache import kept
from lib.probes import unseen
from lib.records import on_record, store
from lib.records.store import record
from lib.studies import plans
from lib.wording import percent
from lib.workloads import datasets
from lib.workloads.catalogue import workload

# By size; text last
DATA_SETS = {
    "digits": "digits",
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
    "tiny-shakespeare": "Tiny Shakespeare",
}


def scope() -> dict:
    """searches, trials and core_hours on record, each search once; networks and data_sets (names)
    that they train.
    """
    return kept("scope", _scope)


def _scope() -> dict:
    every = dict.fromkeys(cell for study in plans.STUDIES.values() for cell in study.cells)
    cells = list(on_record.recorded_of(every))
    heads = [store.head(record(cell)) for cell in cells]
    trained = {workload(name) for name in {cell.workload for cell in cells}}
    found = {data_set(w.dataset) for w in trained}
    return {
        "searches": len(cells),
        "trials": sum(head["rows"] for head in heads),
        "core_hours": sum(head["wall_s"] for head in heads) / 3600,
        "networks": len({(w.dataset, w.model) for w in trained}),
        "data_sets": [title for title in DATA_SETS.values() if title in found],
    }


CRITICAL = [
    *scaling.CURVE,
    *("goal", "range", "sizes", "replicates", "critical", "critical_low", "critical_high"),
    "identified",
]


def critical() -> pd.DataFrame:
    """Every curve that pages compare, a row each, with its critical batch size.

    Columns: workload, algorithm, pruning, sparsity; goal (error at which it is read); range (of
    momentum: "whole" or "published"); sizes, replicates (counts: batch sizes, independent
    searches); critical (examples), critical_low, critical_high (90 %); identified (whether it lies
    inside the batch sizes measured).
    """
    return pd.DataFrame(kept("critical", _critical))


def _critical() -> dict:
    summary = judging.summary()
    whole = ranges.whole_curves(judging.trials())
    keys = summary[scaling.CURVE].itertuples(index=False, name=None)
    table = summary.assign(range=["whole" if key in whole else "published" for key in keys])
    return table[CRITICAL].to_dict("list")


def curves() -> pd.DataFrame:
    """A row per point of every curve: curve, workload, network (data set and kind), algorithm,
    sparsity, goal, batch_size, steps.
    """
    return pd.DataFrame(kept("curves", _curves))


def _curves() -> dict:
    points = judging.points(judging.trials())
    names = points.workload.map(network)
    points = points.assign(curve=scaling.curve_names(points), network=names)
    order = {title: place for place, title in enumerate(DATA_SETS.values())}
    place = points.network.str.partition(",")[0].map(order)
    by = ["place", "network", "algorithm", "workload", "sparsity", "batch_size"]
    points = points.assign(place=place).sort_values(by)
    columns = "curve workload network algorithm sparsity goal batch_size steps".split()
    return points[columns].to_dict("list")


RUN = ("mnist-simple-cnn", "momentum")  # the papers' own network, on the most batch sizes
DEVICES = hardware.Hardware(devices=64, bandwidth=1e9, latency=2e-5)  # cores on 10-gigabit links


def one_run() -> pd.DataFrame:
    """What one dense training takes to its goal, a row per batch size.

    goal, batch_size, steps; seconds on `fast` cores, where it is soonest; price in core-seconds on
    `cheap` cores, where that is least; times as measured on one core (`timings`), the exchange
    of gradients as `hardware.step_time` has it.  Empty where no step was timed.
    """
    return pd.DataFrame(kept("one-run", _one_run))


def _one_run() -> dict:
    from lib.probes import timings  # both bring PyTorch, which is slow to import
    from lib.workloads import models

    points = curves()
    same = points[["workload", "algorithm", "sparsity"]] == [*RUN, 0]
    dense = points[same.all(axis=1)].sort_values("batch_size").set_index("batch_size", drop=False)
    timed = timings.one_core(RUN[0])
    if timed is None or dense.empty:
        return {}
    weights = models.parameter_count(models.build(workload(RUN[0]).model))
    step = hardware.best_step(DEVICES, dense.index, weights, timed)
    found = dense[["goal", "batch_size", "steps"]].assign(
        seconds=dense.steps * step.seconds,
        fast=step.fast,
        price=dense.steps * step.price * 3600,
        cheap=step.cheap,
    )
    return found.to_dict("list")


def one_search(batch_size: int) -> pd.DataFrame:
    """The trainings of one search of the dense network of `one_run` at this batch size.

    trial, goal (validation error, a share), step (the first at which that trial met that goal); a
    row per goal met.  Empty where the search is not on record.
    """
    return pd.DataFrame(kept(f"one-search-{batch_size}", lambda: _one_search(batch_size)))


def _one_search(batch_size: int) -> dict:
    trials = judging.trials()
    about = [*RUN, 0, batch_size]
    same = trials[["workload", "algorithm", "sparsity", "batch_size"]] == about
    columns = {f"steps@{goal:g}": goal for goal in workload(RUN[0]).goals}
    rows = trials[same.all(axis=1)].rename(columns=columns)
    known = [goal for goal in columns.values() if goal in rows]
    return rows.melt("trial", known, "goal", "step").dropna().to_dict("list")


def network(name: str) -> str:
    """A workload's data set and kind of network: "MNIST, convolutional"."""
    work = workload(name)
    return f"{data_set(work.dataset)}, {scaling.kind_of(work.model)}"


def data_set(name: str) -> str:
    """A data set's title, whichever split of it the name means; a reader's own as it is."""
    return next((title for known, title in DATA_SETS.items() if name.startswith(known)), name)


# --- before a build -------------------------------------------------------------------------------


def harder_than() -> list[str]:
    """How hard the book's own draw of MNIST's validation images is, as several networks see it: of
    how many random draws it is harder, "98 % (FC-128×3)"; [] where nothing is on record.
    """
    return kept("draw", _harder_than)["draws"]


def _harder_than() -> dict:
    asked = unseen.FOLDS.results()
    draws = []
    for name in asked.workload.unique() if len(asked) else ():
        share = splits.shares(asked, name)
        error = share[datasets.held_out("mnist", 0)].mean()
        harder = splits.percentile(error, splits.drawn(share)) / 100
        network = workload(name).title.split(" on ")[0]
        draws.append(f"{percent(harder)} ({network})")
    return {"draws": draws}


def setup(app) -> dict:
    """Register with Sphinx, after `lib.page.sphinx` has said whether pages are stale and before it
    runs the chapters.
    """
    os.environ[cache.BUILD] = str(Path(app.doctreedir).parent)
    app.connect("config-inited", _before_chapters, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _before_chapters(app, config) -> None:
    """Read the trials, which nearly all chapters want; what needs no more than these begins while
    claims are judged.
    """
    if app.stale:
        with contextlib.suppress(Exception):  # the chapters will tell
            judging.trials()
        app.meanwhile = _judge


def _judge() -> None:
    with contextlib.suppress(Exception):
        for compute in (judging.judge, critical, curves, scope):
            compute()
