"""What the page on the protocol says, as numbers and words, and its figure of two splits."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.steps_to_result import both_splits, protocol_figures, race
from lib.analysis import ranges, scaling
from lib.claims.judging import kept
from lib.measuring import sweeps
from lib.page import charts, told
from lib.probes import unseen
from lib.records.selection import grid
from lib.studies import plans, study
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.wording import named, number
from lib.workloads import datasets
from lib.workloads.catalogue import workload
from lib.workloads.tasks import TASKS

FC, CNN = "mnist-fc-128x3", "mnist-simple-cnn"  # searched on both splits
RACES = (
    *(
        f"{rule}_{what}"
        for rule in ("goals", "losses")
        for what in ("searches", "same", "cost")
    ),
    *("worst", "slow_changed", "slow_searches", "left_same", "left_lost", "left_worst"),
)


def around(cell: Cell) -> pd.DataFrame:
    """The trials of a cell at every batch size that is planned to run to a goal."""
    planned = [c for study in plans.STUDIES.values() for c in study.cells if c.stop == "goal"]
    sizes = {c.batch_size for c in planned if c.workload == cell.workload}
    sizes = sorted({cell.batch_size, *sizes})
    return sweeps.results(
        grid(cell.workload, sizes, [cell.algorithm], [cell.sparsity], trials=cell.trials)
    )


def findings(cell: Cell, frame: pd.DataFrame, every: pd.DataFrame) -> dict:
    """All values of the page's sentences.

    Args:
        cell: the search that is shown.
        frame: its trials.
        every: of `around`, or `frame`.
    """
    judged = kept("race", race.judged)
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
            **{name: judged.get(name) for name in RACES},
            "goals_a": study.BY_GOALS["race"],
            "losses_a": study.BY_LOSSES["race"],
            "wider": study.WIDER,
            "slow_methods": [named(name) for name in study.SLOW_TO_START],
        }
    )


def _search(frame: pd.DataFrame) -> dict:
    """What a search found, and what it cost."""
    result = scaling.steps_to_result(frame).iloc[0]
    head = frame.attrs["provenance"][0]
    most = frame.max_steps.iloc[0]
    last = head["steps"]
    cost = float(head["trial_steps"])
    alone = frame.steps.fillna(most).where(frame.cause != "diverged", frame.last_step).sum()
    low, _, high = scaling.best_of_k(frame.steps.to_numpy(), max(1, len(frame) // 2))
    reached = bool(result.steps == result.steps)
    more = " or more" if high > last else ""
    half = f"{number(low)} to {number(min(high, last))} steps{more}"
    return {
        "steps": int(result.steps) if reached else None,
        "trials": len(frame),
        "hits": result.hits_seen,
        "last": last,
        "cost": cost,
        "most": most,
        "saved": alone / cost,
        "half": half if reached and low <= last else None,
    }


def _best_rates(every: pd.DataFrame) -> dict:
    """How the effective learning rate of the fastest trials moves with the batch size, and where
    the trial at its other end is the fastest of all.
    """
    fastest = ranges.winners(every).set_index("batch_size")
    best = ranges.winners(ranges.built_up(every)).set_index("batch_size")
    rates = ranges.effective(best)
    rising = (
        len(rates) > 2 and rates.corr(pd.Series(rates.index, rates.index), "spearman") > 0.5
    )
    first, last = (rates.index[0], rates.idxmax()) if rising else (None, None)
    again = fastest.index[fastest.trial == best.trial[last]].tolist() if rising else []
    return {
        "rates_move": bool(rising),
        "rate_small": rates.get(first),
        "rate_small_at": first,
        "rate_large": rates.get(last),
        "rate_large_at": last,
        "same_trial_at": again if len(again) > 1 else [],
    }


def _splits() -> dict:
    """How hard two splits of MNIST are, and what they cost."""
    asked = unseen.FOLDS.results()
    errors = both_splits.errors(unseen.shares(asked, FC)) if len(asked) else {}
    theirs, ours = (plans.study(name).cells for name in ("mnist-split-fc", "mnist-split"))
    study = Study("both-splits", "Both splits", (*theirs, *both_splits.counterparts(ours)))
    trials = sweeps.results(study)
    found = both_splits.over_theirs(trials) if len(trials) else {}
    nothing = None, None
    fc_goal, fc_times = found.get(FC, nothing)
    cnn_goal, cnn_times = found.get(CNN, nothing)
    return {
        "draws": unseen.DRAWS,
        "hard_draw": harder_than(FC),
        "hard_cnn": harder_than(CNN),
        "fc": workload(FC).title,
        "fc_theirs": 100 * errors["Lee et al."] if errors else None,
        "fc_ours": 100 * errors["this book"] if errors else None,
        "fc_goal": fc_goal,
        "fc_times": fc_times,
        "cnn": workload(CNN).title,
        "cnn_goal": cnn_goal,
        "cnn_times": cnn_times,
    }


def harder_than(name: str) -> float | None:
    """Of which share of random draws this book's draw of MNIST's validation images is harder, as
    this network sees it; None where nothing is on record.
    """
    asked = unseen.FOLDS.results()
    if not len(asked) or name not in set(asked.workload):
        return None
    share = unseen.shares(asked, name)
    error = share[datasets.held_out("mnist", 0)].mean()
    among = unseen.drawn(share)
    # Ties count half
    return float(np.mean([among < error - 1e-12, among <= error + 1e-12]))


def of_draws() -> alt.LayerChart:
    """The figure of how hard random draws of validation images are, and the two splits."""
    asked = unseen.FOLDS.results()
    if not len(asked):
        return charts.nothing("No folds are on record.")
    share = unseen.shares(asked, FC)
    return protocol_figures.draws(unseen.drawn(share), both_splits.errors(share))
