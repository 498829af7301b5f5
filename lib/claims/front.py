"""What pages state besides the judged claims, each computed once from the records and kept as they
are: how much is on record, and every curve.

A local extension of Sphinx, too, which computes this while a build begins to run pages.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from lib.analysis import hardware, method_results, ranges, scaling
from lib.claims import judging
from lib.claims.claim import (
    AGAINST,
    CONTRADICTED,
    FOR,
    OPEN,
    PART,
    REPRODUCED,
    STAND_INS,
    UNDECIDED,
    Claim,
    Group,
)
from lib.claims.judging import kept
from lib.records import searches, store
from lib.records.store import record
from lib.studies import plans
from lib.wording import DATA_SETS, between, ranged, span
from lib.workloads.catalogue import workload


def scope() -> dict:
    """searches, trials and core_hours on record, each search once; networks and data_sets (names)
    that they train.
    """
    return kept("scope", _scope)


def _scope() -> dict:
    every = dict.fromkeys(cell for study in plans.STUDIES.values() for cell in study.cells)
    cells = list(searches.recorded(every).values())
    every = searches.table().drop_duplicates("record")
    heads = every[
        every.record.isin({record(c).relative_to(store.DATA).as_posix() for c in cells})
    ]
    names = {cell.workload for cell in cells}
    trained = {workload(name) for name in names}
    networks = {(w.dataset, w.model) for w in trained}
    found = {data_set(dataset) for dataset, _ in networks}
    return {
        "searches": len(cells),
        "trials": int(heads.trials.sum()),
        "core_hours": float(heads.core_seconds.sum() / 3600),
        "networks": len(networks),
        "data_sets": [title for title in DATA_SETS.values() if title in found],
    }


def _kept(compute: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """A function whose table is computed once for this code and these data."""

    @functools.wraps(compute)
    def found(*given: object) -> pd.DataFrame:
        name = "-".join(map(str, (compute.__name__, *given)))
        return pd.DataFrame(kept(name, lambda: compute(*given).to_dict("list")))

    return found


CRITICAL = """
workload algorithm pruning sparsity goal range sizes replicates critical critical_low critical_high
identified
""".split()


@_kept
def critical() -> pd.DataFrame:
    """Every curve that pages compare, a row each, with its critical batch size.

    Columns: workload, algorithm, pruning, sparsity; goal (error at which it is read); range (of
    momentum: "whole" or "published"); sizes, replicates (counts: batch sizes, independent
    searches); critical (examples), critical_low, critical_high (90 %); identified (whether it lies
    inside the batch sizes measured).
    """
    summary = judging.summary()
    whole = ranges.whole_curves(judging.searches())
    keys = summary[scaling.CURVE].itertuples(index=False, name=None)
    found = ["whole" if key in whole else "published" for key in keys]
    return summary.assign(range=found)[CRITICAL]


@_kept
def curves() -> pd.DataFrame:
    """A row per point of every curve: curve, workload, network (data set and kind), algorithm,
    sparsity, goal, batch_size, steps, replicates (count of searches).
    """
    points = judging.points(judging.searches())
    names = points.workload.map(network)
    place = names.str.partition(",")[0].map([*DATA_SETS.values()].index)
    points = points.assign(
        curve=scaling.curve_names(points),
        network=names,
        place=place,
    )
    order = "place network algorithm workload sparsity batch_size"
    kept = "curve workload network algorithm sparsity goal batch_size steps replicates"
    return points.sort_values(order.split())[kept.split()]


RUN = ("mnist-simple-cnn", "momentum")  # the papers' own network
DENSE = f"workload == '{RUN[0]}' and algorithm == '{RUN[1]}' and sparsity == 0"
DEVICES = hardware.Hardware(
    devices=64, bandwidth=1e9, latency=2e-5
)  # cores on 10-gigabit links


@_kept
def one_run() -> pd.DataFrame:
    """What one dense training takes to its goal, a row per batch size that most searches share.

    goal, batch_size, steps, replicates (count of searches); seconds on `fast` cores, where it is
    soonest; price in core-seconds on `cheap` cores, where that is least; times as measured on one
    core (`timings`), the exchange of gradients as `hardware.step_time` has it; soonest, cheapest
    (whether the best size by seconds or price may be this one: the 5 to 95 % range over drawn
    searches).  Empty where no step was timed.
    """
    from lib.probes import timings  # both bring PyTorch, which is slow to import
    from lib.workloads import models

    dense, timed = curves().query(DENSE), timings.one_core(RUN[0])
    if timed is None or dense.empty:
        return pd.DataFrame()
    dense = dense[dense.replicates >= dense.replicates.max() / 2]
    dense = dense.sort_values("batch_size").set_index("batch_size", drop=False)
    weights = models.parameter_count(models.build(workload(RUN[0]).model))
    step = hardware.best_step(DEVICES, dense.index, weights, timed)
    curve = scaling.curve_of(scaling.steps_to_result(judging.searches().query(DENSE)))
    drawn = scaling.draws(curve)[dense.index]

    def possible(cost: pd.Series) -> pd.Series:
        ends = scaling.span_of((drawn * cost).idxmin(axis=1))
        return dense.batch_size.between(*ends)

    return dense["goal batch_size steps replicates".split()].assign(
        seconds=dense.steps * step.seconds,
        fast=step.fast,
        price=dense.steps * step.price * 3600,
        cheap=step.cheap,
        soonest=possible(step.seconds),
        cheapest=possible(step.price),
    )


# --- facts of several pages -----------------------------------------------------------------------


def facts(judged: Mapping[str, Claim]) -> dict[str, object]:
    """What several pages state, as their sentences print it; ranges are over networks of
    `scaling.ENOUGH` searches.

    fastest, cheapest: batch sizes that may be the best of `one_run`; None if nothing was timed.
    sgd_rate, momentum_rate: growth of the best rate per doubling of the batch.  momentum: critical
    batch size over SGD's.  pruned: steps of networks that lost 90 % of their weights over the dense
    ones'.  noise: critical batch size over noise scale where this is clear; noise_data: there;
    noise_unclear: the others, with their intervals.
    """
    run, noise = one_run(), judged["M1"]
    clear = noise.decided(FOR) + noise.decided(AGAINST)
    rest = [g for g in noise.decided(UNDECIDED) if g.n and g.high < math.inf]
    return {
        "fastest": best_sizes(run, "soonest"),
        "cheapest": best_sizes(run, "cheapest"),
        "sgd_rate": effects(judged["S10"], "SGD"),
        "momentum_rate": effects(judged["S10"], "momentum"),
        "momentum": effects(judged["S7"]),
        "pruned": between(*pruned_over_dense().ratio),
        "noise": between(*(g.effect for g in clear)),
        "noise_data": list(dict.fromkeys(map(_data, clear))),
        "noise_unclear": [f"{ranged(g.effect, g.low, g.high)} with {g.name}" for g in rest],
    }


def tally(judged: Mapping[str, Claim]) -> dict[str, int]:
    """How many claims there are (claims), how many came out in each way, and how many of those
    reproduced are so by fragile verdicts alone (fragile).
    """
    words = Counter(claim.verdict.partition(":")[0] for claim in judged.values())
    fragile = [c for c in judged.values() if c.verdict == REPRODUCED and c.fragile]
    return {
        "claims": len(judged),
        "reproduced": words[REPRODUCED],
        "fragile": len(fragile),
        "in_part": words[PART],
        "contradicted": words[CONTRADICTED],
        "stand_ins": words[STAND_INS],
        "open": words[OPEN],
    }


def effects(claim: Claim, method: str = "") -> str:
    """The least and the most of a claim's effects on networks of `scaling.ENOUGH` searches, of
    those whose name ends with a method.
    """
    several = [g for g in claim.groups if g.n >= scaling.ENOUGH]
    return between(*(g.effect for g in several if g.name.endswith(method)))


def best_sizes(run: pd.DataFrame, what: str) -> str | None:
    """The range of the best batch size, "16–64"; what: "soonest" or "cheapest" of `one_run`."""
    if run.empty:
        return None
    sizes = run.batch_size[run[what]]
    return span((sizes.min(), sizes.max()))


def _data(group: Group) -> str:
    """On which data a group was measured, of its name: "MLP on digits, SGD"."""
    return group.name.rpartition(" on ")[2].partition(",")[0]


@_kept
def pruned_over_dense() -> pd.DataFrame:
    """Steps of networks that lost 90 % of their weights before training over the dense ones', a
    row per curve of several searches and batch size: as of `scaling.steps_over_dense`.
    """
    found = scaling.steps_over_dense(judging.curves()).drop(columns="effect")
    usual = found.pruning == "connection-sensitivity"
    return found[usual & (found.sparsity == 0.9) & (found.n >= scaling.ENOUGH)]


@_kept
def one_search(batch_size: int) -> pd.DataFrame:
    """The trainings of the first search of the dense network of `one_run` at this batch size.

    trial, goal (validation error, a share), step (the first at which that trial met that goal); a
    row per goal met.  Empty where the search is not on record.
    """
    known = judging.searches().query(f"{DENSE} and batch_size == {batch_size}")
    first = known[known.replicate == known.replicate.min()]
    if first.empty:
        return pd.DataFrame(columns=["trial", "goal", "step"])
    tables = [store.read(store.DATA / place)[1] for place in first.record]
    rows = pd.concat(tables, ignore_index=True)  # both halves of a whole range
    rows["trial"] = rows.index
    columns = {f"steps@{goal:g}": goal for goal in workload(RUN[0]).goals}
    rows = rows.rename(columns=columns)
    goals = [goal for goal in columns.values() if goal in rows]
    return rows.melt("trial", goals, "goal", "step").dropna()


def network(name: str) -> str:
    """A workload's data set and kind of network: "MNIST, convolutional"."""
    work = workload(name)
    return f"{data_set(work.dataset)}, {scaling.kind_of(work.model)}"


def data_set(name: str) -> str:
    """A data set's title, whichever split of it the name means; a reader's own as it is."""
    return next((title for known, title in DATA_SETS.items() if name.startswith(known)), name)


# --- before a build -------------------------------------------------------------------------------


def setup(app) -> dict:
    """Tell `lib.page.sphinx` what to do while chapters run that need neither the trials, which
    nearly all want, nor the claims' verdicts.
    """
    os.environ[judging.BUILD] = str(Path(app.doctreedir).parent)
    app.before_chapters = _read, _judge
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read() -> None:
    with contextlib.suppress(Exception):  # the chapters will tell
        judging.searches()
        method_results.compared()


def _judge() -> None:
    with contextlib.suppress(Exception):
        for compute in (judging.judge, critical, curves, scope, pruned_over_dense):
            compute()
