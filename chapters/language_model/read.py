"""What the page on the language model reads, from its parameters."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from chapters.language_model import branches, experiments, ngrams, pruned_layers, text_results
from lib.measuring import sweeps
from lib.probes import tracks
from lib.records.store import SMOKE
from lib.studies.study import Study
from lib.workloads import catalogue, own_text


@dataclass(frozen=True)
class Read:
    """Records of one text; all but the searches are empty for a reader's own.

    Attributes:
        work: the workload.
        grid: the searches asked for.
        trials: theirs, pruned networks' at their goals.
        rungs: n-gram models of the text: n, nats, error.
        followed: the fastest trial's noise scales (`lib.probes.tracks`).
        layers: what pruning leaves (`pruned_layers`).
        sized: searches of models of other widths.
        checks: of branches (`branches`).
    """

    work: catalogue.Workload
    grid: Study
    trials: pd.DataFrame
    rungs: pd.DataFrame
    followed: pd.DataFrame
    layers: pd.DataFrame
    sized: pd.DataFrame
    checks: pd.DataFrame


def read(chosen) -> Read:
    """All records; a toy is of a text that is made up, so that no corpus is needed."""
    toy, beyond = chosen.budget == "smoke", chosen.budget != "cached"
    work = catalogue.workload(own_text.toy(SMOKE / "toy.txt") if toy else chosen.workload)
    sizes = [1, 2, 4, 8, 16] if toy else chosen.batch_sizes
    asked = (chosen.methods, chosen.searches, chosen.trials)
    grid = text_results.grid(work.name, sizes, *asked, beyond)
    trials = text_results.at_their_goals(sweeps.results(grid, chosen.budget))
    nothing = pd.DataFrame()
    if work.source:
        rungs = ngrams.table(own_text.rungs(work.name, 4))
        return Read(work, grid, trials, _windows(rungs), *[nothing] * 4)
    return Read(
        work,
        grid,
        trials,
        _windows(ngrams.results()),
        _of(work, tracks.FOLLOWED.results(experiments.followed())),
        _of(work, pruned_layers.results()),
        sweeps.results(text_results.of_widths()),
        _of(work, branches.results()),
    )


def _windows(rungs: pd.DataFrame) -> pd.DataFrame:
    """The rungs of the sequences that models are asked for, one of each order."""
    return rungs[rungs.asked == "windows"].drop_duplicates("n") if len(rungs) else rungs


def _of(work: catalogue.Workload, rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows.workload == work.name] if len(rows) else rows
