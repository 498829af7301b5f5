"""A language model: its searches on record, its curves in sequences and tokens, and how its best
learning rates move.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lib.analysis import advice, rate_rules, scaling
from lib.analysis.scaling import forms
from lib.methods import method as known_method
from lib.records import store
from lib.records.store import record
from lib.studies import plans
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
    names = (name, name + EASIER)
    for cell in (
        c
        for study in plans.TEXT
        for c in plans.study(study).cells
        if c.workload in names and c.trials == trials
    ):
        planned.setdefault(
            (cell.replicate, cell.sparsity, cell.batch_size, cell.algorithm), []
        ).append(cell)
    points = [
        (n, 0.0, size, one) for n in range(searches) for size in batch_sizes for one in methods
    ]
    points += [
        p for p in planned if p[1] and p[0] < searches and p[2] in batch_sizes and p[3] in methods
    ]
    cells = []
    for point in points:
        known = planned.get(point, [])
        chosen = next(
            (c for c in known if store.exists(record(c))),
            known[-1] if known else _cell(name, point, trials),
        )
        if known or beyond or not planned or store.exists(record(chosen)):
            cells.append(chosen)
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
        race=plans.TEXT_RACE,
    )


def of_widths() -> Study:
    """One dense search with MAIN of every width of `plans.TEXT_WIDTHS` at both `plans.TEXT_ENDS`."""
    cells = (
        c
        for name in plans.TEXT_WIDTHS
        for c in grid(name, plans.TEXT_ENDS, [MAIN], 1, 16, beyond=False).cells
    )
    return Study("widths", "", tuple(c for c in cells if not c.sparsity))


def at_their_goals(trials: pd.DataFrame) -> pd.DataFrame:
    """The table with every search of a pruned network read as one that waited for the easier goal,
    where the book has such.

    What a search waits for changes nothing before that goal is met, so that some may have waited
    for a harder one.
    """
    easier = trials.workload.where(trials.workload.str.endswith(EASIER), trials.workload + EASIER)
    pruned = (trials.sparsity > 0) & easier.isin(WORKLOADS)
    harder = [
        f"steps@{g:g}"
        for g in scaling.goals(trials)
        if pruned.any() and g < WORKLOADS[easier[pruned].iloc[0]].goal
    ]
    return trials.assign(
        workload=trials.workload.mask(pruned, easier), **{c: trials[c].mask(pruned) for c in harder}
    )


def title(algorithm: str, sparsity: float) -> str:
    """A curve's name: "Adam", "Adam, sparsity 0.9"."""
    return known_method(algorithm).title + (f", sparsity {sparsity:g}" if sparsity else "")


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

    Raises ValueError if no trial met any goal.
    """
    return advice.fitting_goal(main_of(trials))


def goal_beside(trials: pd.DataFrame, sparse: pd.DataFrame) -> float:
    """The goal at which `sparse` trials stand beside `main_of` the table: the hardest that either
    met at most batch sizes.
    """
    return max(goal(trials), advice.fitting_goal(sparse))


def curves(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.all_goals` with `curve` (`title`) and `tokens` of a batch.  Raises ValueError if no
    trial met any goal.
    """
    points = scaling.all_goals(trials)
    names = [title(*which) for which in zip(points.algorithm, points.sparsity)]
    return points.assign(curve=names, tokens=CONTEXT * points.batch_size)


def fits(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` at every goal, with `goal` and `curve`: a row per curve of three batch
    sizes that met it.
    """
    met = {
        g: trials.groupby("workload")[f"steps@{g:g}"].transform("count") > 0
        for g in scaling.goals(trials)
    }
    found = [
        scaling.summaries(scaling.at_goal(trials[rows], g))[0].assign(goal=g)
        for g, rows in met.items()
    ]
    rows = pd.concat(found, ignore_index=True)
    return rows.assign(curve=[title(*which) for which in zip(rows.algorithm, rows.sparsity)])


def lines(rows: pd.DataFrame, sizes: Iterable[int], points: int = 40) -> pd.DataFrame:
    """The fitted lines of `fits` between the ends of these batch sizes: curve, algorithm, sparsity,
    goal, batch_size, fitted.
    """
    sizes = list(sizes)
    at = np.geomspace(min(sizes), max(sizes), points)
    drawn = [
        pd.DataFrame(
            {
                "curve": r.curve,
                "algorithm": r.algorithm,
                "sparsity": r.sparsity,
                "goal": r.goal,
                "batch_size": at,
                "fitted": r.c1 / at + r.c2,
            }
        )
        for r in rows.itertuples()
    ]
    columns = ["curve", "algorithm", "sparsity", "goal", "batch_size", "fitted"]
    return pd.concat(drawn, ignore_index=True) if drawn else pd.DataFrame(columns=columns)


def best_rates(trials: pd.DataFrame) -> pd.DataFrame:
    """The learning rate of every search's fastest trial, a row per search that met the goal:
    batch_size, replicate, rate.
    """
    met = trials.dropna(subset="steps")
    best = met.loc[met.groupby(["batch_size", "replicate"]).steps.idxmin()]
    return best[["batch_size", "replicate"]].assign(rate=best.learning_rate).reset_index(drop=True)


def rate_power(rates: pd.DataFrame) -> tuple[float, float, float]:
    """The power of the batch size as which `best_rates` grow, by least squares on logarithms, and
    its 5 and 95 % (Student's t).

    Not a number where fewer than three batch sizes were searched.
    """
    if rates.batch_size.nunique() < 3:
        return np.nan, np.nan, np.nan
    from scipy.stats import linregress  # slow to import, and most chapters draw no line

    line = linregress(np.log(rates.batch_size), np.log(rates.rate))
    reach = stdtrit(len(rates) - 2, 0.95) * line.stderr
    return float(line.slope), float(line.slope - reach), float(line.slope + reach)


def nearest_rule(power: float) -> str:
    """The rule of `rate_rules.POWERS` whose power is nearest to this one."""
    return min(rate_rules.POWERS, key=lambda rule: abs(rate_rules.POWERS[rule] - power))


def met_goals(trials: pd.DataFrame) -> pd.DataFrame:
    """How many of the trials met each goal at each batch size: rows by goal, columns by batch size,
    "met of all".
    """
    by = trials.groupby("batch_size")
    found = {
        size: {
            g: f"{own[f'steps@{g:g}'].notna().sum()} of {len(own)}" for g in scaling.goals(trials)
        }
        for size, own in by
    }
    return pd.DataFrame(found).rename_axis(index="goal")


def over_main(trials: pd.DataFrame) -> pd.DataFrame:
    """Steps of every other curve over those of `main_of`, at the trials' goal
    (`scaling.steps_ratio`).

    A row per curve and batch size that both have: curve, batch_size, ratio, ratio_low, ratio_high
    (90 %), n, and bound: whether a search missed the goal there, so that the ratio leans on the
    last step of that search, which it exceeds.
    """
    found = {title(key[1], key[3]): curve for key, curve in scaling.curves(trials, least=1).items()}
    first = main_of(trials)
    main = found.pop(title(first.algorithm.iloc[0], first.sparsity.iloc[0]))
    parts = [
        scaling.steps_ratio(own, main)
        .assign(curve=name)
        .assign(bound=lambda rows, own=own: rows.batch_size.map(own.missed.any()).astype(bool))
        for name, own in found.items()
    ]
    columns = ["curve", "batch_size", "ratio", "ratio_low", "ratio_high", "n", "bound"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def kept_by_races(raced: pd.DataFrame, exact: pd.DataFrame) -> tuple[int, int]:
    """Of the steps to result, at every goal that they met, of searches that abandoned no trial: how
    many the races equal; and all.

    Both of one table a search, as `results.read` has them; a search is told by its batch size,
    replicate and split.
    """
    by = ["batch_size", *scaling.SEARCH]
    found = scaling.at_every_goal(exact).items()
    pairs = [
        own.merge(scaling.steps_to_result(raced, goal), on=by, suffixes=("", "_raced"))
        for goal, own in found
    ]
    both = pd.concat(pairs).dropna(subset="steps")
    return int((both.steps == both.steps_raced).sum()), len(both)


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
    """The curve of each width of `plans.TEXT_WIDTHS` that was searched at both `plans.TEXT_ENDS`:
    their first searches.
    """
    own = (
        trials[trials.batch_size.isin(plans.TEXT_ENDS) & (trials.replicate == 0)]
        if len(trials)
        else trials
    )
    found = scaling.curves(own, least=len(plans.TEXT_ENDS))
    return {
        plans.TEXT_WIDTHS[key[0]]: found[key]
        for key in sorted(found, key=lambda key: plans.TEXT_WIDTHS[key[0]])
    }


def widths(trials: pd.DataFrame) -> pd.DataFrame:
    """`curves_of_widths`, a row each: width, steps at either batch size (by its number), critical,
    low, high (90 %).
    """
    rows = []
    for width, curve in curves_of_widths(trials).items():
        critical = scaling.estimate(lambda own: two_point(*own), curve).row("critical").values()
        rows.append((width, *np.exp(curve.means), *critical))
    return pd.DataFrame(rows, columns=["width", *plans.TEXT_ENDS, "critical", "low", "high"])


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
    network), left (share, the mean over networks), least and most (over networks), and share (of
    all weights that are left).

    rows: of `pruned_layers`.
    """
    by = rows.assign(kind=rows.name.map(kind_of)).groupby(["kind", "trial"])[["kept", "all"]].sum()
    left = (by.kept / by["all"]).groupby("kind").agg(["mean", "min", "max"])
    left.columns = ["left", "least", "most"]
    kept = by.kept.groupby("kind").mean()
    found = left.assign(all=by["all"].groupby("kind").first(), share=kept / kept.sum())
    return found.sort_values("left", ascending=False).reset_index()


def between(nats: float, rungs: pd.DataFrame) -> tuple[int, int]:
    """The longest n-grams that do worse than so many nats, and the shortest that do as well: 0 and
    -1 where there are none.

    rungs: n and nats, of one text and one way of asking.
    """
    worse, better = rungs.n[rungs.nats > nats], rungs.n[rungs.nats <= nats]
    return int(worse.max()) if len(worse) else 0, int(better.min()) if len(better) else -1
