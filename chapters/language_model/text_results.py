"""A language model: its searches on record, its curves in sequences and tokens, and how its best
learning rates move.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.language_model import studies
from lib import Told, forms
from lib.analysis import goals, rate_rules, scaling
from lib.analysis.scaling import Effect
from lib.methods import method as known_method
from lib.records.on_record import recorded_of
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import EASIER, WORKLOADS, workload
from lib.workloads.texts import CONTEXT

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
    batch_sizes, methods = list(batch_sizes), list(methods)
    planned: dict[tuple, list[Cell]] = {}
    for cell in itertools.chain.from_iterable(study.cells for study in studies.STUDIES):
        if cell.workload in (name, name + EASIER) and cell.trials == trials:
            point = (cell.replicate, cell.sparsity, cell.batch_size, cell.algorithm)
            planned.setdefault(point, []).append(cell)
    points = list(itertools.product(range(searches), [0.0], batch_sizes, methods))
    points += [
        p for p in planned if p[1] and p[0] < searches and p[2] in batch_sizes and p[3] in methods
    ]
    cells = []
    for point in points:
        known = planned.get(point) or [_cell(name, point, trials)]
        recorded = next(recorded_of(known), None)
        if recorded or point in planned or beyond or not planned:
            cells.append(recorded or known[-1])
    return Study(name, workload(name).title, tuple(cells))


def _cell(name: str, point: tuple, trials: int) -> Cell:
    replicate, sparsity, size, algorithm = point
    split = 0 if workload(name).source else replicate  # a text of a reader's own has one
    return Cell(
        name,
        size,
        algorithm,
        sparsity,
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


def at_their_goals(trials: pd.DataFrame) -> pd.DataFrame:
    """The table with every search of a pruned network read as one that waited for the easier goal,
    where the book has such.

    What a search waits for changes nothing before that goal is met, so that some may have waited
    for a harder one.
    """
    easier = trials.workload.where(trials.workload.str.endswith(EASIER), trials.workload + EASIER)
    pruned = (trials.sparsity > 0) & easier.isin(WORKLOADS)
    least = WORKLOADS[easier[pruned].iloc[0]].goal if pruned.any() else -math.inf
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
    dense = trials[trials.sparsity == trials.sparsity.min()]
    names = dense.algorithm.value_counts()
    return dense[dense.algorithm == (MAIN if MAIN in names else names.index[0])]


def goal(trials: pd.DataFrame) -> float:
    """The goal at which curves are read: the hardest that `main_of` met at three batch sizes; a
    search that missed it is a bound.

    Raises Told if no trial met any goal.
    """
    return _fitting(main_of(trials))


def _fitting(trials: pd.DataFrame) -> float:
    """`goals.fitting`.  Raises Told if no trial met any goal."""
    found = goals.fitting(trials)
    if found is None:
        raise Told(
            f"goals: no trial met any; the lowest error of {len(trials)} trials is "
            f"{trials.best_error.min():.3g}. Set easier goals"
        )
    return found


@dataclass(frozen=True)
class Curves:
    """The curves that the page draws and describes.

    Attributes:
        goal: of `goal`.
        easy: the goal at which the pruned network stands beside: the hardest that either met at
            most batch sizes.
        main: trials of `main_of` at the goal.
        name: that curve's.
        points: of `curves`.
        fits: of `fits`.
        dense: of `over_main`, of dense networks at the goal.
        sparse: the same, of pruned networks at the easier goal.
    """

    goal: float
    easy: float
    main: pd.DataFrame
    name: str
    points: pd.DataFrame
    fits: pd.DataFrame
    dense: pd.DataFrame
    sparse: pd.DataFrame

    @property
    def here(self) -> pd.DataFrame:
        """The lines at the goal."""
        return self.fits[self.fits.goal == self.goal]

    @property
    def first(self) -> pd.Series | None:
        """The main curve's line; None if it has too few batch sizes."""
        own = self.here[self.here.curve == self.name]
        return own.iloc[0] if len(own) else None


def read_curves(trials: pd.DataFrame) -> Curves:
    """The curves of a language model's trials.  Raises ValueError if no trial met any goal."""
    dense = trials.sparsity == trials.sparsity.min()
    hard = easy = goal(trials)
    if not dense.all():
        easy = max(hard, _fitting(trials[~dense]))
    main = scaling.at_goal(main_of(trials), hard)
    beside = over_main(scaling.at_goal(trials[dense], hard))
    every = over_main(scaling.at_goal(trials, easy))
    return Curves(
        goal=hard,
        easy=easy,
        main=main,
        name=titles(main)[0],
        points=curves(trials),
        fits=fits(trials),
        dense=beside,
        sparse=every[~every.curve.isin(beside.curve)],
    )


def curves(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.all_goals` with `curve` (`title`) and `tokens` of a batch.  Raises ValueError if no
    trial met any goal.
    """
    points = scaling.all_goals(trials)
    return points.assign(curve=titles(points), tokens=CONTEXT * points.batch_size)


def fits(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` at every goal, with `goal` and `curve`: a row per curve of three batch
    sizes that met it.
    """
    found = []
    for g in scaling.goals(trials):
        met = trials.groupby("workload")[f"steps@{g:g}"].transform("count") > 0
        found.append(scaling.summaries(scaling.at_goal(trials[met], g))[0].assign(goal=g))
    rows = pd.concat(found, ignore_index=True)
    return rows.assign(curve=titles(rows))


def lines(rows: pd.DataFrame, sizes: Iterable[int], points: int = 40) -> pd.DataFrame:
    """The fitted lines of `fits` between the ends of these batch sizes: curve, algorithm, sparsity,
    goal, batch_size, fitted.
    """
    columns = ["curve", "algorithm", "sparsity", "goal"]
    at = pd.DataFrame({"batch_size": np.geomspace(min(sizes), max(sizes), points)})
    drawn = rows[[*columns, "c1", "c2"]].merge(at, how="cross")
    drawn = drawn.assign(fitted=drawn.c1 / drawn.batch_size + drawn.c2)
    return drawn[[*columns, "batch_size", "fitted"]]


def best_rates(trials: pd.DataFrame) -> pd.DataFrame:
    """The learning rate of every search's fastest trial, a row per search that met the goal:
    batch_size, replicate, rate.
    """
    met = trials.dropna(subset="steps")
    best = met.loc[met.groupby(["batch_size", "replicate"]).steps.idxmin()]
    return best[["batch_size", "replicate"]].assign(rate=best.learning_rate).reset_index(drop=True)


def rate_power(rates: pd.DataFrame) -> Effect:
    """The power of the batch size as which `best_rates` grow, by least squares on logarithms.

    Not a number where fewer than three batch sizes were searched.
    """
    own = rates if rates.batch_size.nunique() >= 3 else rates[:0]
    return scaling.slope(np.log(own.batch_size), np.log(own.rate))


def nearest_rule(power: float) -> str:
    """The rule of `rate_rules.POWERS` whose power is nearest to this one."""
    return min(rate_rules.POWERS, key=lambda rule: abs(rate_rules.POWERS[rule] - power))


def met_goals(trials: pd.DataFrame) -> pd.DataFrame:
    """How many of the trials met each goal at each batch size: rows by goal, columns by batch size,
    "met of all".
    """
    goals = scaling.goals(trials)
    by = trials.groupby("batch_size")[[f"steps@{g:g}" for g in goals]]
    told = by.count().astype(str) + " of " + by.size().astype(str).to_numpy()[:, None]
    return told.set_axis(goals, axis=1).T.rename_axis(index="goal", columns=None)


def over_main(trials: pd.DataFrame) -> pd.DataFrame:
    """Steps of every other curve over those of `main_of`, at the trials' goal
    (`scaling.steps_ratio`).

    A row per curve and batch size that both have: curve, batch_size, ratio, ratio_low, ratio_high
    (90 %), n, and bound: whether a search missed the goal there, so that the ratio leans on the
    last step of that search, which it exceeds.
    """
    curves = scaling.curves(trials, least=1)
    found = {title(key[1], key[3]): curve for key, curve in curves.items()}
    main = found.pop(titles(main_of(trials))[0])
    columns = ["curve", "batch_size", "ratio", "ratio_low", "ratio_high", "n", "bound"]
    parts = [pd.DataFrame(columns=columns)]
    for name, own in found.items():
        rows = scaling.steps_ratio(own, main)
        bound = rows.batch_size.map(own.missed.any()).astype(bool)
        parts.append(rows.assign(curve=name, bound=bound)[columns])
    return pd.concat(parts[1:] or parts, ignore_index=True)


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


def widths(trials: pd.DataFrame) -> pd.DataFrame:
    """`curves_of_widths`, a row each: width, steps at either batch size (by its number), critical,
    low, high (90 %).
    """
    rows = []
    for width, curve in curves_of_widths(trials).items():
        critical = scaling.estimate(lambda own: two_point(*own), curve).row("critical").values()
        rows.append((width, *np.exp(curve.means), *critical))
    return pd.DataFrame(rows, columns=["width", *studies.TEXT_ENDS, "critical", "low", "high"])


KINDS = {  # of a decoder's parameter tensors, by how their names begin or end
    "symbol.weight": "embedding of characters",
    "place.weight": "embedding of places",
    "query.weight": "queries and keys",
    "key.weight": "queries and keys",
    "value.weight": "values",
    "out.weight": "attention’s output",
    "up.weight": "feed-forward, first matrix",
    "down.weight": "feed-forward, second matrix",
    "head.weight": "last layer",
}
GAINS = "gains of normalisation"


def kind_of(name: str) -> str:
    """What a decoder's parameter tensor of this name is, in words."""
    return next((words for end, words in KINDS.items() if name.endswith(end)), GAINS)


def left_of_layers(rows: pd.DataFrame) -> pd.DataFrame:
    """What pruning leaves, a row per kind of layer, the fullest first: kind, all (weights of one
    network), left (share, the mean over networks) and share (of all weights that are left).

    rows: of `pruned_layers`.
    """
    by = rows.assign(kind=rows.name.map(kind_of)).groupby(["kind", "trial"])[["kept", "all"]].sum()
    means = by.assign(left=by.kept / by["all"]).groupby("kind").mean()
    found = means.assign(all=means["all"].astype(int), share=means.kept / means.kept.sum())
    return found.sort_values("left", ascending=False).reset_index()
