"""What the page on the protocol says, as numbers and words, and its figure of two splits."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.steps_to_result import both_splits, protocol_figures
from lib.analysis import scaling
from lib.measuring import sweeps
from lib.page import charts, told
from lib.probes import unseen
from lib.records.selection import grid
from lib.studies import plans
from lib.studies.search import Search
from lib.studies.study import Study
from lib.wording import named, number
from lib.workloads.catalogue import workload
from lib.workloads.tasks import TASKS

FC, CNN = "mnist-fc-128x3", "mnist-simple-cnn"  # searched on both splits


def around(cell: Search) -> pd.DataFrame:
    """The trials of a cell at every batch size that is planned to run to a goal."""
    planned = [
        c for study in plans.STUDIES.values() for c in study.searches if c.stop == "goal"
    ]
    sizes = {c.batch_size for c in planned if c.workload == cell.workload}
    sizes = sorted({cell.batch_size, *sizes})
    return sweeps.results(
        grid(cell.workload, sizes, [cell.algorithm], [cell.sparsity], trials=cell.trials)
    )


def findings(cell: Search, frame: pd.DataFrame) -> dict:
    """All values of the page's sentences.

    Args:
        cell: the search that is shown.
        frame: its trials.
    """
    work = workload(cell.workload)
    steps, trials = frame.steps, len(frame)
    low, _, high = scaling.best_of_k(steps.to_numpy(), max(1, trials // 2))
    last = frame.attrs["provenance"][0]["steps"]
    half = f"{number(low)} to {number(min(high, last))} steps{' or more' * bool(high > last)}"
    return told.plain(
        {
            "workload": work.title,
            "method": named(cell.algorithm),
            "batch_size": cell.batch_size,
            "sparsity": f"{cell.sparsity:g}",
            "goal": TASKS[work.task].written(work.goal),
            "steps": int(steps.min()) if steps.notna().any() else None,
            "trials": trials,
            "half": half if low <= last else None,
        }
    )


def of_splits() -> pd.DataFrame:
    """Networks searched on both splits of MNIST: what ours costs over that of Lee et al."""
    theirs, ours = (plans.study(name).searches for name in ("mnist-split-fc", "mnist-split"))
    study = Study("both-splits", "Both splits", (*theirs, *both_splits.counterparts(ours)))
    trials = sweeps.results(study)
    found = both_splits.over_theirs(trials) if len(trials) else {}
    rows = [(workload(name).title, *found[name]) for name in (FC, CNN) if name in found]
    return pd.DataFrame(rows, columns=["network", "goal", "steps, ours over theirs"])


def of_draws() -> alt.LayerChart:
    """The figure of how hard random draws of validation images are, and the two splits."""
    asked = unseen.FOLDS.results()
    if not len(asked):
        return charts.nothing("No folds are on record.")
    share = unseen.shares(asked, FC)
    return protocol_figures.draws(unseen.drawn(share), both_splits.errors(share))
