"""A language model: its searches on record, its curves, and the data of its page."""

from __future__ import annotations

import itertools
import math
import operator
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

from chapters.language_model import experiments
from lib import BookError, whole
from lib.analysis import scaling
from lib.measuring import runner, sweeps
from lib.methods import method as known_method
from lib.records import results
from lib.records.searches import recorded
from lib.records.store import SMOKE
from lib.studies import plans, study
from lib.studies.study import Study
from lib.workloads import texts
from lib.workloads.catalogue import EASIER, WORKLOADS, workload

BEGAN = runner.began()
METHODS = ("adam", "muon", "momentum", "sgd")
MAIN = "adam"  # the method that others are compared with
# Limit for a trial at batch size 1, divided by the root of other batch sizes: larger batches take
# fewer steps, which cost more
STEPS = 40_000


def read(chosen) -> SimpleNamespace:
    """All records of the text that the page's parameters name; budget "smoke" takes a made-up text.

    work: the workload; trials: from `at_their_goals`; rungs: n-gram models on the characters that
    networks predict: n, nats; followed: the fastest trial's noise scales, by step, and layers: what
    pruning leaves, both empty for a reader's own text; stopped: sentences that say so if the
    minutes ran out before all searches ended.

    Raises BookError if they ran out before the first search ended.
    """
    sizes, name = chosen.batch_sizes, chosen.workload
    if chosen.budget == "smoke":
        sizes, name = [1, 2, 4, 8, 16], write_toy(SMOKE / "toy.txt")
    work = workload(name)
    counts = chosen.searches, chosen.trials
    planned = grid(work.name, sizes, chosen.methods, *counts, beyond=chosen.budget != "cached")
    trials, stopped = _within_minutes(planned, chosen)
    if work.folder == "own":
        rungs = experiments.climb(texts.read(work.name).ids, 4)
    else:
        rungs = experiments.NGRAMS.results()
    tables = [kept.results() for kept in (experiments.FOLLOWED, experiments.LAYERS)]
    followed, layers = (rows[rows.workload == work.name] for rows in tables)
    return SimpleNamespace(
        work=work,
        trials=at_their_goals(trials, work.name),
        rungs=rungs[rungs.asked == "windows"].drop_duplicates("n"),
        followed=followed.sort_values("step"),
        layers=layers,
        stopped=stopped,
    )


def _within_minutes(planned: Study, chosen) -> tuple[pd.DataFrame, list[str]]:
    """The trials of the searches that end within the page's minutes, if these are limited, and a
    sentence for the reader if some searches are missing.
    """
    if chosen.budget != "full" or not chosen.minutes:
        return sweeps.results(planned, chosen.budget), []
    from lib.engine.checkpoint import OutOfTime  # imports PyTorch, which is slow

    try:
        return sweeps.results(planned, "full", until=BEGAN + 60 * chosen.minutes), []
    except OutOfTime:
        number = len(planned.searches)
        ended = number - len(results.missing(planned))
        when = f"after {chosen.minutes} minutes and {ended} of {number} searches"
        if not ended:
            raise BookError(f"minutes: stopped {when}; run the same command to continue") from None
        return results.read(planned), [f"Stopped {when}. Run the same command to continue."]


WORDS = (
    ("cat", "dog", "old man", "child", "grey bird"),
    ("saw", "heard", "followed", "liked"),
    ("a house", "a river", "the moon", "a long road", "nobody"),
)


def write_toy(file: Path) -> str:
    """Write a text of a few words, the same every time; returns the workload's name with goals."""
    draw = random.Random(0)
    lines = (f"the {' '.join(map(draw.choice, WORDS))}.\n" for _ in range(900))
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole(file) as stream:
        stream.write("".join(lines).encode())
    return f"{file}:2.3,2.5,2.7"


def grid(name: str, batch_sizes, methods, searches: int, trials: int, beyond: bool) -> Study:
    """`searches` searches of the language model `name` with every method at every batch size.

    For the book's text these are the planned ones, including pruned networks; of an exact search
    and a race, the one on record.  beyond: also searches neither planned nor on record.
    """
    point = operator.attrgetter("replicate", "batch_size", "algorithm")
    points = set(itertools.product(range(searches), batch_sizes, methods))
    planned = [
        cell
        for cell in itertools.chain(*(plan.searches for plan in plans.STUDIES.values()))
        if cell.workload in (name, name + EASIER)
        and cell.trials == trials
        and point(cell) in points
    ]
    # If several share a point, the first on record, or else the last
    chosen = [*planned, *reversed(recorded(planned).values())]
    cells = {(point(cell), cell.sparsity): cell for cell in chosen}
    # A reader's text has one split
    number = "search" if workload(name).has_splits else "replicate"
    product = study.grid(
        **{number: range(searches), "batch_size": batch_sizes},
        trials=trials,
        hits=1,
        race=3.0,  # a cautious one: no record shows what races do on texts
        algorithm=methods,
        workload=name,
    )
    product = (
        replace(c, max_steps=math.ceil(STEPS / math.sqrt(c.batch_size))) for c in product
    )
    more = [cell for cell in product if (point(cell), 0.0) not in cells]
    more = more if beyond or not planned else recorded(more).values()
    return Study(name, workload(name).title, (*cells.values(), *more))


def at_their_goals(trials: pd.DataFrame, name: str) -> pd.DataFrame:
    """The trials with every search of a pruned network read at the easier goal, if the book has
    that workload: the goal a search waits for does not affect the steps before it.
    """
    easier = name + EASIER
    if easier not in WORKLOADS:
        return trials
    pruned, least = trials.sparsity > 0, WORKLOADS[easier].goal
    harder = [f"steps@{g:g}" for g in scaling.goals(trials) if g < least]
    masked = {column: trials[column].mask(pruned) for column in harder}
    return trials.assign(**masked, workload=trials.workload.mask(pruned, easier))


def titles(rows: pd.DataFrame) -> list[str]:
    """The curve of every row: "Adam", "Adam, sparsity 0.9"."""
    return [
        known_method(algorithm).title + (f", sparsity {sparsity:g}" if sparsity else "")
        for algorithm, sparsity in zip(rows.algorithm, rows.sparsity)
    ]


def main_of(trials: pd.DataFrame) -> pd.DataFrame:
    """The dense network's trials with MAIN, or else with the method that was searched most."""
    dense = trials[trials.sparsity == 0]
    names = dense.algorithm.value_counts()
    return dense[dense.algorithm == (MAIN if MAIN in names else names.index[0])]


def goal(trials: pd.DataFrame) -> float:
    """The goal at which curves are read: the hardest that `main_of` met at three batch sizes.
    Raises BookError if no trial met any goal.
    """
    main = main_of(trials)
    if (hardest := scaling.fitting(main)) is None:
        raise BookError(
            f"goals: no trial met any; the lowest error of {len(main)} trials is "
            f"{main.best_error.min():.3g}. Set easier goals"
        )
    return hardest


def pruned_goal(trials: pd.DataFrame) -> float:
    """The hardest goal met by both the dense network and the pruned one, if there is one."""
    return max(goal(trials), scaling.fitting(trials[trials.sparsity > 0]) or 0)


def curves(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.all_goals` with `curve` (`titles`)."""
    points = scaling.all_goals(trials)
    return points.assign(curve=titles(points))


def fits(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` of dense networks at `goal`, with `curve`."""
    dense = trials[trials.sparsity == 0]
    rows, _ = scaling.summaries(scaling.at_goal(dense, goal(trials)))
    return rows.assign(curve=titles(rows))


def pruned_over_dense(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.steps_ratio` of the pruned network over the dense one to `pruned_goal`, and missed:
    whether a search of the pruned network missed it, which makes the ratio a lower bound.
    """
    curves = scaling.curves(scaling.at_goal(trials, pruned_goal(trials)), least=1)
    dense = curves[tuple(main_of(trials)[scaling.CURVE].iloc[0])]
    (pruned,) = (curve for key, curve in curves.items() if key[3])
    ratios = scaling.steps_ratio(pruned, dense)
    return ratios.assign(missed=ratios.batch_size.map(pruned.missed.any()).astype(bool))
