"""What Shallue et al. (2019) and McCandlish et al. (2018) say about tuning, and the rules that
judge these claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from chapters.learning_rates import measured, searched
from lib.analysis import ranges, rates, scaling
from lib.analysis.fixed_budgets import whole
from lib.claims.claim import Group, claim, finding, interval
from lib.claims.names import REPEATS, is_shallue2019, marked, rows, title
from lib.workloads.catalogue import workload

EFFECTIVE = ("sgd", "momentum", "nesterov")  # methods with an effective learning rate
RULES = ("linear", "square root")  # those that the paper looks at
PUBLISHED = "earlier searches, over the published ranges"

Curve = tuple[tuple, pd.DataFrame, pd.DataFrame, str]
Share = tuple[float, float, float]  # with the ends of its interval


def best_rates(
    trials: pd.DataFrame, methods: Sequence[str] = EFFECTIVE, soon: bool = True
) -> Iterator[Curve]:
    """Every dense curve of these methods: (workload, algorithm); ln of the best effective rate and
    of K* [searches, batch sizes]; a note.

    Curves of the page's searches come first, then those of searches that tuned more.  Of these,
    only trials whose momentum had built up count, but even if their search ended too soon.

    Args:
        trials: of the other searches.
        soon: whether the page's searches count even if they ended too soon.
    """
    cells = [c for c in searched.planned() if c.algorithm in methods and not c.sparsity]
    laws = searched.laws(searched.recorded(cells), cells, soon)
    laws = {key[:2]: law for key, law in laws.items() if law.n >= scaling.ENOUGH}
    for key, law in laws.items():
        yield key, law.rates, law.steps, ""
    earlier = _earlier(trials[trials.algorithm.isin(methods) & (trials.sparsity == 0)])
    for key, curve in earlier.groupby(["workload", "algorithm"], sort=False):
        best = rates.best_rates(curve)
        best = best[best.why != rates.EDGE]
        tables = np.log(best.pivot_table(["rate", "steps"], [*scaling.SEARCH], "batch_size"))
        tables = tables[tables.notna().sum(axis=1) >= 2 * rates.SIZES]
        if key not in laws and len(tables) > 1:
            yield key, tables.rate, tables.steps, PUBLISHED


def _earlier(trials: pd.DataFrame) -> pd.DataFrame:
    """Trials with effective rates; those whose momentum had not built up count as missed."""
    once = trials[~trials.workload.isin(REPEATS)]
    built = ranges.builds_up_in(once) < once.steps / 10
    return once.assign(steps=once.steps.where(built), learning_rate=ranges.effective(once))


def _judged(
    trials: pd.DataFrame,
    statistic: Callable[..., float],
    is_theirs: Callable[[str], bool],
    **options,
) -> list[Group]:
    """A group per curve of `best_rates`: a statistic of its tables, with the jackknife's error."""
    effects, notes = {}, {}
    for key, *tables, note in best_rates(trials, **options):
        effects[key], notes[key] = rates.jackknife(statistic, *tables), note
    whole_range = {key[:2] for key in ranges.whole_curves(trials)}
    whole_range |= {key for key, note in notes.items() if not note}
    return marked(effects, rows(effects, is_theirs, lambda key, effect: notes[key]), whole_range)


def _means(logs: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Batch sizes that have a best rate, and its ln."""
    means = logs.mean().dropna()
    return means.index.to_numpy(float), means.to_numpy()


def rise(logs: pd.DataFrame, steps: pd.DataFrame) -> float:
    """ln of the saturating rule's rate at the largest batch size over that at the smallest."""
    sizes, best = _means(logs)
    ends = rates.fit("saturating", sizes, best).log_rates(sizes[[0, -1]])
    return float(ends[1] - ends[0])


def miss(logs: pd.DataFrame, steps: pd.DataFrame) -> float:
    """The error of the better of RULES at batch sizes left out in turn."""
    return min(rates.error(rule, *_means(logs)) for rule in RULES)


@claim(
    "S10",
    "The best learning rate rises with the batch size",
    paper="The best effective learning rate rises with the batch size.",
    source="Shallue et al. 2019, figure 8",
    rule="On a network of two searches or more, the best effective rate at the largest batch "
    "size is over 1.25 times that at the smallest, by η∞ / (1 + B_η/B) fitted to the best rates.",
    above=1.25,
    truth=4.0,  # by the square-root rule, over batches sixteen times as large
    read="figures",
)
def best_rate(trials):
    return _judged(trials, rise, is_shallue2019)


@claim(
    "S10b",
    "No simple rule gives the best learning rate",
    paper="The best effective learning rate follows neither the linear nor the square-root rule consistently.",
    source="Shallue et al. 2019, figure 8",
    rule="On a network of two searches or more, the linear and the square-root rule, fitted to the "
    "other batch sizes, miss the best rate of one left out by over 1.25 times, as a root mean "
    "square.",
    above=1.25,
    either=True,
    read="figures",
)
def off_the_rules(trials):
    return _judged(trials, miss, is_shallue2019)


@finding(
    "M2",
    "The best learning rate bends at the critical batch size",
    paper="On a quadratic with noise, one step is best at a rate of ε_max/(1 + B_noise/B), and "
    "steps to a goal go as 1 + B_crit/B with B_crit of the size of B_noise: rates bend where "
    "steps do.",
    source="McCandlish et al. 2018",
    read="summary",
    shown="ρ, with SGD: the batch size at which the best rate bends, of η∞ / (1 + B_η/B), over the "
    "critical batch size.",
)
def bends(trials):
    return _judged(trials, rates.log_rho, lambda name: False, methods=("sgd",), soon=False)


@finding(
    "M3",
    "One tuned rate and C give the other rates",
    paper="On a quadratic with noise, one step is best at a rate of ε_max/(1 + B_noise/B): one rate "
    "and B_noise give all others.",
    source="McCandlish et al. 2018",
    ends="least to most",
    read="summary",
    shown="With SGD, the factor between best rates and those predicted from one at batch size 64, C, and "
    "other networks' ρ: root mean square over batch sizes, the least, and the most.",
)
def predicted():
    tables = measured.on_record()[measured.DEFINED]
    for row in measured.curves(tables, "sgd").to_dict("records"):
        costs = measured.rows_of(tables["costs"], row)
        off = costs.off[costs.rule == measured.ONE].abs()
        factors = np.exp([np.sqrt((off**2).mean()), off.min(), off.max()])
        yield Group(measured.name_of(row), *factors.tolist(), row["n"])


@claim(
    "S12",
    "Good hyperparameters: more at fixed steps, fewer at fixed epochs",
    paper="The region of metaparameters that reach the goal grows with the batch size at fixed steps and shrinks at fixed epochs.",
    source="Shallue et al. 2019, figure 9",
    rule="On a network, from the smallest batch to the largest, over 5 % of the trials are gained at fixed steps, and lost at "
    "fixed epochs; shown is the lesser of the two.",
    above=0.05,
    scale="share",
    read="figures",
)
def region_moved():
    return _of_trials(moved)


@claim(
    "S15",
    "In broad searches, more trials fail at small batches",
    paper="In a broad search space more trials fail at small batches than at large ones: with Nesterov momentum on CIFAR-10, "
    "108 of 273 at batch size 2 and 31 of 190 at 4,096, in spaces that vary with the batch size.",
    source="Shallue et al. 2019, counts of trials in the notes to the released data, in our words",
    rule="On a network, the share of trials that fail at the smallest batch exceeds that at the largest by over 5 %, within "
    "equal steps.",
    above=0.05,
    truth=0.23,  # 108 of 273 less 31 of 190
    scale="share",
    read="notes",
)
def failing():
    return _of_trials(lost)


def _of_trials(measure: Callable[[pd.DataFrame], Share | None]) -> list[Group]:
    """A group per network whose trials ran to budgets: a share of trials with its interval."""
    trials, groups = whole(splits=True), []
    for name, searches in trials[trials.label_smoothing == 0].groupby("workload", sort=False):
        least = searches.groupby("batch_size").size().min()
        note = f"{least} trials a batch size"
        if (share := measure(searches)) is not None:
            n = int(searches.groupby("batch_size").split.nunique().min())
            groups.append(interval(title(name), share, n, is_shallue2019(name), note))
    return groups


def moved(trials: pd.DataFrame) -> Share | None:
    """The gain, from the smallest batch to the largest, in the share of a workload's trials that
    reach the goal within fixed steps, or the loss within fixed epochs: the lesser of the two.  None
    below 5 batch sizes.
    """
    small = workload(trials.workload.iloc[0]).train_size < 10_000
    steps, examples = (1024, 2**14) if small else (4096, 2**18)
    at_steps = _shares(trials, trials.steps <= steps)
    at_epochs = _shares(trials, trials.steps <= examples // trials.batch_size)
    if len(at_steps) < 5:
        return None
    changes = _less(at_steps[-1], at_steps[0]), _less(at_epochs[0], at_epochs[-1])
    return min(changes, key=lambda change: change[1])


def lost(trials: pd.DataFrame) -> Share:
    """The share of one workload's trials that fail at the smallest batch size minus that at the
    largest, within equal steps.
    """
    steps = int(trials.groupby("batch_size").max_steps.max().min())
    failed = trials.status.eq("infeasible") & (trials.last_step <= steps)
    shares = _shares(trials, failed)
    return _less(shares[0], shares[-1])


def _shares(trials: pd.DataFrame, counted: pd.Series) -> list[Share]:
    """The share of trials that count, by batch size."""
    counts = counted.groupby(trials.batch_size).agg(["sum", "size"]).astype(int)
    return [scaling.share(*row) for row in counts.to_numpy().tolist()]


def _less(before: Share, after: Share) -> Share:
    """One share minus another, with Newcombe's (1998) interval of the difference."""
    (a, a_low, a_high), (b, b_low, b_high) = before, after
    low, high = np.hypot(a - a_low, b_high - b), np.hypot(a_high - a, b - b_low)
    return a - b, float(a - b - low), float(a - b + high)
