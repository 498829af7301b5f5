"""What pages state besides the judged claims, each computed once for these records and cached: how
much is on record, and every curve.

Also a local extension of Sphinx, which computes this while a build begins to run pages.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lib.analysis import hardware, method_results, ranges, scaling
from lib.claims import judging
from lib.claims.claim import Finding
from lib.claims.judging import kept
from lib.claims.names import REPEATS
from lib.records import searches, selection, store
from lib.studies import plans
from lib.studies.study import Study
from lib.wording import DATA_SETS, between, span
from lib.workloads.catalogue import workload


def scope() -> dict:
    """searches, trials and core_hours on record, each search once; networks and data_sets (names)
    in them.
    """
    return kept("scope", _scope)


def _scope() -> dict:
    planned = (search for study in plans.STUDIES.values() for search in study.searches)
    files = searches.recorded(dict.fromkeys(planned))
    rows = searches.table().drop_duplicates("record")
    rows = rows[rows.record.isin(f.relative_to(store.DATA).as_posix() for f in files)]
    trained = [workload(name) for name in {search.workload for search in files.values()}]
    titles = {data_set(work.dataset) for work in trained}
    return {
        "searches": len(files),
        "trials": int(rows.trials.sum()),
        "core_hours": float(rows.core_seconds.sum() / 3600),
        "networks": len({(work.dataset, work.model) for work in trained}),
        "data_sets": [title for title in DATA_SETS.values() if title in titles],
    }


def _kept(compute: Callable[[], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
    """A function whose table is computed once for this code and these data."""

    @functools.wraps(compute)
    def table() -> pd.DataFrame:
        return pd.DataFrame(kept(compute.__name__, lambda: compute().to_dict("list")))

    return table


MEASURED = "range sizes replicates critical critical_low critical_high identified"
CRITICAL = [*scaling.CURVE, "goal", *MEASURED.split()]


@_kept
def critical() -> pd.DataFrame:
    """Every curve that pages compare, a row each, with its critical batch size.

    Columns: workload, algorithm, pruning, sparsity; goal (error at which it is read); range (of
    momentum: "whole" or "published"); sizes, replicates (numbers of batch sizes and independent
    searches); critical (examples), critical_low, critical_high (90 %); identified (whether critical
    lies inside the batch sizes measured).
    """
    summary = judging.summary()
    joined = ranges.whole_curves(judging.searches())
    keys = summary[scaling.CURVE].itertuples(index=False, name=None)
    names = ["whole" if key in joined else "published" for key in keys]
    return summary.assign(range=names)[CRITICAL]


FREE = ("pruning", "max_steps")  # settings in which the searches drawn may differ
# Studies of many methods, which most pages leave to a separate chapter
METHODS = ("digits-which", "digits-which-more", "digits-which-sparse")


def gathered(*more: Study) -> Study:
    """The searches to draw: those of the curves in `critical`, so that each curve has one critical
    batch size, those of `more`, and those of METHODS for other curves.
    """
    compared = selection.curves(*more).searches
    keys = set(map(selection.curve, compared))
    study = selection.curves(*more, *map(plans.study, METHODS), free=FREE)
    others = (search for search in study.searches if selection.curve(search) not in keys)
    return replace(study, searches=(*compared, *others))


COLLAPSED = [*scaling.CURVE, *"goal batch_size value at level replicates".split()]


@_kept
def collapsed() -> pd.DataFrame:
    """Every curve of `gathered` whose critical batch size lies inside the batch sizes measured,
    with the two numbers fitted to it: value = level (1 + at / batch size).

    A row per point whose goal no search missed, with columns COLLAPSED.  value: steps to result;
    at: C in examples, level: c2 in steps, as in `scaling.summaries`; replicates: searches.
    """
    rows = scaling.at_goals(ranges.whole(judging.to_goals(gathered()), judging.low()))
    summary, _ = scaling.summaries(rows)
    once = summary.identified & ~summary.workload.isin(REPEATS)
    lines = summary[once].rename(columns={"c2": "level"})
    lines = lines.assign(at=lines.c1 / lines.level)[[*scaling.CURVE, "at", "level"]]
    points = scaling.across_replicates(scaling.steps_to_result(rows))
    points = points[points.missed == 0].rename(columns={"steps": "value"})
    return points.merge(lines, on=scaling.CURVE)[COLLAPSED]


RUN = ("mnist-simple-cnn", "momentum")  # the papers' own network
DENSE = f"workload == '{RUN[0]}' and algorithm == '{RUN[1]}' and sparsity == 0"
# Cores on 10-gigabit links
DEVICES = hardware.Hardware(devices=64, bandwidth=1e9, latency=2e-5)


@_kept
def one_run() -> pd.DataFrame:
    """What one dense training to its goal takes, a row per batch size that most searches share.

    goal, batch_size, steps, replicates (number of searches); seconds, the least, on `fast` cores;
    price in core-seconds, the least, on `cheap` cores; with times measured on one core (`timings`)
    and the exchange of gradients as in `hardware.step_time`; soonest, cheapest (whether this may be
    the best size by seconds or price: the 5 to 95 % range over drawn searches).  Empty if no step
    was timed.
    """
    from lib.probes import timings  # both import PyTorch, which is slow
    from lib.workloads import models

    dense = judging.points(judging.searches()).query(DENSE)
    timed = timings.one_core(RUN[0])
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

COST = "L3"  # the claim on what pruning costs


def facts(judged: Mapping[str, Finding]) -> dict[str, object]:
    """What several pages state, as printed in sentences; ranges are over networks with
    `scaling.ENOUGH` searches.

    fastest, cheapest: batch sizes that may be the best in `one_run`; None if nothing was timed.
    momentum: critical batch size over SGD's.  pruned: the cost of pruning.  noise: critical batch
    size over noise scale, of the networks noise_on.
    """
    run = one_run()
    noise = [g for g in judged["M1"].measured if math.isfinite(g.high)]
    return {
        "fastest": best_sizes(run, "soonest"),
        "cheapest": best_sizes(run, "cheapest"),
        "momentum": effects(judged["S7"]),
        "pruned": effects(judged[COST]),
        "noise": between(*(g.effect for g in noise)),
        "noise_on": list(dict.fromkeys(g.name.rpartition(", ")[0] for g in noise)),
    }


def measured_again() -> dict[str, int]:
    """How many of the searches measured again have steps, by data set (on_digits, on_images), and
    how many of these gave the same steps (same_on_digits, same_on_images).
    """
    from lib.probes import replays  # slow to import

    rows = replays.every().dropna(subset=["recorded", "again"], how="all")
    where = rows.workload.str.startswith("digits").map({True: "on_digits", False: "on_images"})
    same = rows.equal_result.groupby(where).agg(["size", "sum"])
    return same["size"].to_dict() | same["sum"].add_prefix("same_").to_dict()


def effects(claim: Finding) -> str:
    """The least and the greatest of a claim's effects on networks with `scaling.ENOUGH` searches
    that are not marked as unfit to decide; for the cost of pruning over all batch sizes, though its
    rule uses only the least certain one.
    """
    if claim.key == COST:
        return between(*pruned_over_dense().ratio)
    return between(*(g.effect for g in claim.groups if g.repeated and g.decides))


def best_sizes(run: pd.DataFrame, what: str) -> str | None:
    """The range of the best batch size, "16–64"; what: "soonest" or "cheapest" of `one_run`."""
    if run.empty:
        return None
    sizes = run.batch_size[run[what]]
    return span((sizes.min(), sizes.max()))


@_kept
def pruned_over_dense() -> pd.DataFrame:
    """Steps of networks that lost 90 % of their weights before training over the dense ones', a row
    per batch size of every curve of several searches: as from `scaling.steps_over_dense`.
    """
    rows = scaling.steps_over_dense(judging.curves()).drop(columns="effect")
    usual = rows.pruning == "connection-sensitivity"
    return rows[usual & (rows.sparsity == 0.9) & (rows.n >= scaling.ENOUGH)]


def data_set(name: str) -> str:
    """A data set's title, whatever split the name refers to; a reader's own unchanged."""
    return next((title for stem, title in DATA_SETS.items() if name.startswith(stem)), name)


# --- before a build -------------------------------------------------------------------------------


def setup(app) -> dict:
    """Tell `lib.page.sphinx` what to do while the chapters run that need neither the trials, as
    nearly all do, nor the claims' verdicts.
    """
    os.environ[judging.BUILD] = str(Path(app.doctreedir).parent)
    app.before_chapters = _read, _judge
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read() -> None:
    with contextlib.suppress(Exception):  # the chapters will report it
        judging.searches()
        method_results.compared()


def _judge() -> None:
    with contextlib.suppress(Exception):
        for compute in (judging.judge, critical, collapsed, scope, pruned_over_dense):
            compute()
