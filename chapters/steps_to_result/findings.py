"""What the page on the protocol says, as numbers and words, its table, and what its figures draw."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from chapters.steps_to_result import both_splits, race, split_figures
from lib.analysis import rate_rules, scaling, splits
from lib.claims import front
from lib.measuring import sweeps
from lib.page import charts, told
from lib.probes.unseen import FOLDS, UNSEEN
from lib.records import results
from lib.records.on_record import grid
from lib.studies import plans, races
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.wording import named, percent
from lib.workloads.catalogue import workload
from lib.workloads.tasks import TASKS

RACES = (
    ("race", "images"),
    ("losses", "images"),
    ("losses", "slow"),
    ("race", "digits"),
    ("losses", "digits"),
)
UNRACED = (None, races.WATCHED)
FC, CNN = "mnist-fc-128x3", "mnist-simple-cnn"  # searched on both splits


def around(cell: Cell) -> pd.DataFrame:
    """The trials of a cell at every batch size that is planned to run to a goal."""
    planned = [c for study in plans.STUDIES.values() for c in study.cells if c.stop == "goal"]
    sizes = {c.batch_size for c in planned if c.workload == cell.workload}
    sizes = sorted({cell.batch_size, *sizes})
    return sweeps.results(
        grid(cell.workload, sizes, [cell.algorithm], [cell.sparsity], trials=cell.trials)
    )


def judged_races() -> dict[str, dict]:
    """What races would have changed in exact searches, as `claims.kept` takes it."""
    found = race.searches()
    tables = {"apart": race.table(found), "used": race.used(found)}
    return {name: table.to_dict("list") for name, table in tables.items()}


def findings(
    cell: Cell, frame: pd.DataFrame, every: pd.DataFrame, judged: Mapping[str, dict]
) -> dict:
    """All values of the page's sentences.

    Args:
        cell: the search that is shown.
        frame: its trials.
        every: of `around`, or `frame`.
        judged: of `judged_races`.
    """
    work = workload(cell.workload)
    return told.plain(
        {
            "workload": work.title,
            "method": named(cell.algorithm),
            "batch_size": cell.batch_size,
            "sparsity": f"{cell.sparsity:g}",
            "goal": TASKS[work.task].written(work.goal),
            **_search(frame),
            **_best_rates(every),
            **_splits(),
            **_races(pd.DataFrame(judged["used"])),
            **_left_out(pd.DataFrame(judged["apart"])),
            **splits.unseen(UNSEEN.results(), "digits-mlp"),
        }
    )


def _search(frame: pd.DataFrame) -> dict:
    """What a search found, and what it cost."""
    result, head = scaling.steps_to_result(frame).iloc[0], frame.attrs["provenance"][0]
    most, last, cost = frame.max_steps.iloc[0], head["steps"], float(head["trial_steps"])
    alone = frame.steps.fillna(most).where(frame.cause != "diverged", frame.last_step).sum()
    low, _, high = scaling.best_of_k(frame.steps.to_numpy(), max(1, len(frame) // 2))
    reached = bool(result.steps == result.steps)
    return {
        "reached": reached,
        "trials": len(frame),
        "steps": int(result.steps) if reached else None,
        "hits": result.hits_seen,
        "last": last,
        "cost": cost,
        "most": most,
        "exhaustive": alone,
        "saved": alone / cost,
        "infeasible": (frame.status == "infeasible").sum(),
        "half_known": reached and low <= last,
        "half_low": int(low) if reached else None,
        "half_high": int(min(high, last)),
        "half_beyond": high > last,
    }


def _best_rates(every: pd.DataFrame) -> dict:
    """How the effective learning rate of the fastest trials moves with the batch size."""
    slow = every.assign(slowness=1 - every.momentum.fillna(0)).dropna(subset="steps")
    best = rate_rules.winners(rate_rules.built_up(slow)).set_index("batch_size")
    rates = rate_rules.effective(best)
    known = len(rates) > 2
    trend = pd.Series(rates.index).corr(pd.Series(rates.to_numpy()), "spearman") if known else 0
    small, large = (list(rates.items())[n] if known else (None, None) for n in (0, -1))
    return {
        "rates_move": trend > 0.5,
        "rate_small": small[1],
        "rate_small_at": small[0],
        "rate_large": large[1],
        "rate_large_at": large[0],
        "trend": f"{trend:.2f}",
    }


def _splits() -> dict:
    """How hard two splits of MNIST are, and what they cost."""
    asked = FOLDS.results()
    known = bool(len(asked))
    hard = _hardness(asked).set_index("name") if known else None
    theirs, ours = (plans.study(name).cells for name in ("mnist-split-fc", "mnist-split"))
    study = Study("both-splits", "Both splits", (*theirs, *both_splits.counterparts(ours)))
    trials = sweeps.results(study)
    goal, times = _over_theirs(trials, 0)
    easy_goal, easy_times = _over_theirs(trials, -1)
    return {
        "draws": splits.DRAWS,
        "hard": known and hard.percentile["this book"] > 50,
        "hard_draw": front.harder_than(),
        "fc": workload(FC).title,
        "fc_theirs": 100 * hard.error["Lee et al."] if known else None,
        "fc_ours": 100 * hard.error["this book"] if known else None,
        "both_splits": known and FC in times,
        "fc_goal": goal.get(FC),
        "fc_times": times.get(FC),
        "fc_easy_goal": easy_goal.get(FC),
        "fc_easy_times": easy_times.get(FC),
        "cnn": workload(CNN).title,
        "cnn_goal": goal.get(CNN),
        "cnn_times": times.get(CNN),
    }


def _over_theirs(trials: pd.DataFrame, end: int) -> tuple[dict[str, str], dict[str, float]]:
    """Goals of `both_splits.over_theirs`, and K* on our split over that on theirs, by network."""
    if not len(trials):
        return {}, {}
    found = both_splits.over_theirs(trials, end)
    return dict(found.goal.map(percent)), dict(found.ratio)


def _hardness(asked: pd.DataFrame) -> pd.DataFrame:
    """`both_splits.of_splits` by the networks of FC."""
    share = splits.shares(asked, FC)
    return both_splits.of_splits(share, splits.drawn(share))


def _races(used: pd.DataFrame) -> dict:
    """What the races in use change and save."""
    rows = used.set_index(["rule", "data"]).reindex(pd.MultiIndex.from_tuples(RACES))
    known = bool(rows.a.notna().all())
    goals, losses, slow, small, small_losses = rows.fillna(0).itertuples()
    raced = [c for s in plans.STUDIES.values() for c in s.cells if c.race not in UNRACED]
    heads = results.read(Study("raced", "Races", tuple(dict.fromkeys(raced)))).attrs["provenance"]
    return {
        "races_known": known,
        "goals_a": goals.a,
        "goals_same": goals.unchanged,
        "goals_searches": goals.cells,
        "goals_cost": goals.cost,
        "losses_a": losses.a,
        "losses_same": losses.unchanged,
        "losses_searches": losses.cells,
        "losses_cost": losses.cost,
        "worst": max(goals.worst_factor, losses.worst_factor),
        "slow_methods": [named(name) for name in races.SLOW_TO_START],
        "slow_changed": round(slow.cells * (1 - slow.unchanged)),
        "slow_searches": slow.cells,
        "digits_changed": 1 - small.unchanged,
        "digits_changed_by_losses": 1 - small_losses.unchanged,
        "raced": len(heads),
        "raced_again": sum("raced_again" in head for head in heads),
        "wider": races.WIDER,
    }


def _left_out(apart: pd.DataFrame) -> dict:
    """What races by losses change on images whose own searches had no part in choosing a."""
    digits = [name for name in apart.left_out if workload(name).dataset == "digits"]
    rows = apart[(apart.rule == "losses") & ~apart.left_out.isin(digits)]
    known = len(rows) > 0
    return {
        "left_same": rows.unchanged.min() if known else None,
        "left_lost": rows.lost.sum(),
        "left_worst": rows.worst_factor.max() if known else None,
    }


def of_draws() -> alt.LayerChart:
    """The figure of how hard random draws of validation images are, and the two splits."""
    asked = FOLDS.results()
    if not len(asked):
        return charts.nothing("No folds are on record.")
    among = splits.drawn(splits.shares(asked, FC))
    return split_figures.draws(both_splits.histogram(among), _hardness(asked))


def by_workload(judged: Mapping[str, dict]) -> pd.DataFrame:
    """Races judged on each workload, whose factor was chosen on all others."""
    rows = pd.DataFrame(judged["apart"])
    rows["rungs"] = rows.rule.map({"race": "goals", "losses": "goals and losses"})
    rows["left out"] = [workload(name).title for name in rows.left_out]
    columns = {
        "a": "a",
        "cells": "searches",
        "unchanged": "unchanged",
        "lost": "lost",
        "worst_factor": "most steps over before",
        "cost": "trial-steps over before",
    }
    table = rows[["rungs", "left out", *columns]].rename(columns=columns)
    return table.assign(unchanged=table.unchanged.map(percent))
