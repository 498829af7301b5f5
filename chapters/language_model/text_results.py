"""A language model: its searches on record, and its curves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pandas as pd

from chapters.language_model import studies
from lib import Told
from lib.analysis import goals, scaling
from lib.methods import method as known_method
from lib.records.on_record import recorded_of
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import EASIER, WORKLOADS, workload

METHODS = ("adam", "muon", "momentum", "sgd")
MAIN = "adam"  # beside which the others are put


def grid(
    name: str,
    batch_sizes: Iterable[int],
    methods: Iterable[str],
    searches: int,
    trials: int,
    beyond: bool,
) -> Study:
    """So many searches of the language model called `name` by every method at every batch size.

    Of the book's own text those that it plans, pruned networks' too; of an exact search and a race
    the one on record.  beyond: also those that it does not plan and that have no record.  Raises
    ValueError as `lib.studies.cells.Cell`.
    """
    asked = list(itertools.product(range(searches), batch_sizes, methods))
    planned: dict[tuple, list[Cell]] = {}
    for cell in itertools.chain.from_iterable(study.cells for study in studies.STUDIES):
        point = (cell.replicate, cell.batch_size, cell.algorithm)
        if cell.workload in (name, name + EASIER) and cell.trials == trials and point in asked:
            planned.setdefault((*point, cell.sparsity), []).append(cell)
    cells = [next(recorded_of(known), known[-1]) for known in planned.values()]
    number = "replicate" if workload(name).source else "search"  # a reader's text has one split
    every = studies.on_text(range(searches), methods, batch_sizes, name, number, trials=trials)
    more = [c for c in every if (c.replicate, c.batch_size, c.algorithm, 0.0) not in planned]
    more = more if beyond or not planned else recorded_of(more)
    return Study(name, workload(name).title, (*cells, *more))


def at_their_goals(trials: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table with every search of a pruned network read as one that waited for the easier goal,
    where the book has such a workload beside the one called `name`.

    What a search waits for changes nothing before that goal is met, so that some may have waited
    for a harder one.
    """
    easier = name + EASIER
    if easier not in WORKLOADS:
        return trials
    pruned, least = trials.sparsity > 0, WORKLOADS[easier].goal
    harder = [f"steps@{g:g}" for g in scaling.goals(trials) if g < least]
    masked = {column: trials[column].mask(pruned) for column in harder}
    return trials.assign(workload=trials.workload.mask(pruned, easier), **masked)


def titles(rows: pd.DataFrame) -> list[str]:
    """The curve of every row: "Adam", "Adam, sparsity 0.9"."""
    return [
        known_method(algorithm).title + (f", sparsity {sparsity:g}" if sparsity else "")
        for algorithm, sparsity in zip(rows.algorithm, rows.sparsity)
    ]


def main_of(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials of the dense network by MAIN, or, where it was not searched, by the method that
    was searched most.
    """
    dense = trials[trials.sparsity == 0]
    names = dense.algorithm.value_counts()
    return dense[dense.algorithm == (MAIN if MAIN in names else names.index[0])]


def goal(trials: pd.DataFrame) -> float:
    """The goal at which curves are read: the hardest that `main_of` met at three batch sizes; a
    search that missed it is a bound.

    Raises Told if no trial met any goal.
    """
    return _fitting(main_of(trials))


def pruned_goal(trials: pd.DataFrame) -> float:
    """The goal at which the pruned network stands beside the dense one: the hardest that both met
    at most batch sizes; `goal` without a pruned network.
    """
    pruned = trials[trials.sparsity > 0]
    return max(goal(trials), _fitting(pruned) if len(pruned) else 0)


def _fitting(trials: pd.DataFrame) -> float:
    """`goals.fitting`.  Raises Told if no trial met any goal."""
    found = goals.fitting(trials)
    if found is None:
        raise Told(
            f"goals: no trial met any; the lowest error of {len(trials)} trials is "
            f"{trials.best_error.min():.3g}. Set easier goals"
        )
    return found


def curves(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.all_goals` with `curve` (`titles`).  Raises ValueError if no trial met any goal."""
    points = scaling.all_goals(trials)
    return points.assign(curve=titles(points))


def fits(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` of dense networks at `goal`, with `curve`."""
    dense = trials[trials.sparsity == 0]
    rows, _ = scaling.summaries(scaling.at_goal(dense, goal(trials)))
    return rows.assign(curve=titles(rows))


def pruned_over_dense(trials: pd.DataFrame) -> pd.DataFrame:
    """Steps of the pruned network over those of the dense one to `pruned_goal`, a row per batch
    size that both have: `scaling.steps_ratio`, and missed: whether a search of the pruned network
    missed the goal there, so that the ratio is a lower bound.
    """
    curves = scaling.curves(scaling.at_goal(trials, pruned_goal(trials)), least=1)
    dense = curves[tuple(main_of(trials)[scaling.CURVE].iloc[0])]
    (pruned,) = (curve for key, curve in curves.items() if key[3])
    found = scaling.steps_ratio(pruned, dense)
    missed = pruned.missed.any()
    return found.assign(missed=found.batch_size.map(missed).astype(bool))
