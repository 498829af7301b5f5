"""A language model: its searches on record, and its curves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from chapters.language_model import studies
from lib import Told, forms
from lib.analysis import goals, scaling
from lib.methods import method as known_method
from lib.records.on_record import recorded_of
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import EASIER, WORKLOADS, workload

METHODS = ("adam", "muon", "momentum", "sgd")
MAIN = "adam"  # beside which the others are put
# that a search has at batch size 1; at others over the root of the batch size, as the book's have
STEPS = 40_000


def grid(
    name: str,
    batch_sizes: Iterable[int],
    methods: Iterable[str],
    searches: int,
    trials: int,
    beyond: bool = True,
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
    more = [_cell(name, point, trials) for point in asked if (*point, 0.0) not in planned]
    more = more if beyond or not planned else recorded_of(more)
    return Study(name, workload(name).title, (*cells, *more))


def _cell(name: str, point: tuple, trials: int) -> Cell:
    replicate, size, algorithm = point
    split = 0 if workload(name).source else replicate  # a text of a reader's own has one
    return Cell(
        name,
        size,
        algorithm,
        trials=trials,
        hits=1,
        replicate=replicate,
        split=split,
        max_steps=math.ceil(STEPS / math.sqrt(size)),
        race=studies.TEXT_RACE,
    )


def of_widths() -> Study:
    """One dense search with MAIN of each of `studies.TEXT_WIDTHS` at both `studies.TEXT_ENDS`."""
    grids = (grid(w, studies.TEXT_ENDS, [MAIN], 1, 16, beyond=False) for w in studies.TEXT_WIDTHS)
    cells = itertools.chain.from_iterable(one.cells for one in grids)
    return Study("widths", "", tuple(cell for cell in cells if not cell.sparsity))


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


def title(algorithm: str, sparsity: float) -> str:
    """A curve's name: "Adam", "Adam, sparsity 0.9"."""
    return known_method(algorithm).title + (f", sparsity {sparsity:g}" if sparsity else "")


def titles(rows: pd.DataFrame) -> list[str]:
    """The curve of every row, by its algorithm and sparsity."""
    return list(map(title, rows.algorithm, rows.sparsity))


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
    """`scaling.all_goals` with `curve` (`title`).  Raises ValueError if no trial met any goal."""
    points = scaling.all_goals(trials)
    return points.assign(curve=titles(points))


def fits(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` of dense networks at `goal`, with `curve`."""
    dense = trials[trials.sparsity == 0]
    rows, _ = scaling.summaries(scaling.at_goal(dense, goal(trials)))
    return rows.assign(curve=titles(rows))


def over_main(trials: pd.DataFrame, goal: float, pruned: bool = False) -> pd.DataFrame:
    """Steps of every other curve, of dense networks or of pruned ones, over those of `main_of` to a
    goal (`scaling.steps_ratio`).

    A row per curve and batch size that both have: curve, batch_size, ratio, ratio_low, ratio_high
    (90 %), n, and bound: whether a search missed the goal there, so that the ratio leans on the
    last step of that search, which it exceeds.
    """
    here = scaling.at_goal(trials, goal)
    curves = scaling.curves(here, least=1)
    main = tuple(main_of(trials)[scaling.CURVE].iloc[0])
    rows = []
    partner = {key: main for key in curves if (key[3] > 0) == pruned}
    for key, own, other in scaling.with_partner(curves, partner.get):
        found = scaling.steps_ratio(own, other)
        missed = own.missed.any()
        found["bound"] = found.batch_size.map(missed).astype(bool)
        found["curve"] = title(key[1], key[3])
        rows.append(found)
    nothing = pd.DataFrame(columns=["curve"])
    return pd.concat(rows or [nothing], ignore_index=True)


def two_point(sizes: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """ln of the critical batch size [k] of c1/B + c2 through the two points of rows of ln K* [k,
    2].

    Within REACH of the batch sizes, where steps do not fall or fall by no less than the batch
    grows.
    """
    (small, large), (first, last) = sizes, np.exp(logs).T
    c1, c2 = small * large * (first - last), large * last - small * first
    with np.errstate(divide="ignore"):
        found = np.log(np.maximum(c1, 0)) - np.log(np.maximum(c2, 0))
    return found.clip(np.log(small) - forms.REACH, np.log(large) + forms.REACH)


def curves_of_widths(trials: pd.DataFrame) -> dict[int, scaling.Curve]:
    """The curve of each of `studies.TEXT_WIDTHS` that was searched at both `studies.TEXT_ENDS`:
    their first searches.
    """
    if len(trials):
        trials = trials[trials.batch_size.isin(studies.TEXT_ENDS) & (trials.replicate == 0)]
    found = scaling.curves(trials, least=len(studies.TEXT_ENDS))
    by_width = {studies.TEXT_WIDTHS[key[0]]: curve for key, curve in found.items()}
    return dict(sorted(by_width.items()))


def left_of(layers: pd.DataFrame, *names: str) -> float:
    """The share of weights that pruning leaves of parameter tensors whose names end in one of
    these.

    layers: of `pruned_layers`.
    """
    own = layers[layers.name.str.endswith(names)]
    return own.kept.sum() / own["all"].sum()
