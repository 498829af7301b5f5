"""The answers from searches of a reader's own workload: a batch size, its settings, its cost."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import AfterValidator
from scipy.optimize import nnls

from chapters.own_workload import adaptive
from lib import BookError, require
from lib.analysis import hardware, scaling
from lib.analysis.surface import Surface, fit
from lib.measuring import runner, sweeps
from lib.methods import method, spaces
from lib.methods.optimisers import Optimiser
from lib.page import parameters
from lib.records import selection
from lib.wording import brief, joined, named, percent, ranged
from lib.workloads.catalogue import Workload, workload

EXAMPLE = "chapters/own/next_letter.py:next_letter"  # the page's default
BEGAN = runner.began()
NEAR = 1.25  # factor on the shortest time that counts as equally fast in such searches
UNSURE = 4  # least ratio of a goal to its standard error without a warning
EASY = 1.25  # least ratio of a constant answer's cost to a goal without a warning
SPLITS = 2.0  # ratio of the ends of C's interval: beyond, another split is offered
LAWS = 0.85  # share of the minutes after which the setting advised by then, if any, is tried
WIDE = 4.0  # ratio of the ends of the critical batch size's interval: beyond, nothing is advised
GROWS = 1.25  # factor from the smallest size's best rate to the largest's that counts as growth
DEPARTS = 0.2  # departure of a batch size's ln K* from the law that is reported


def _device(value: Any) -> str:
    import torch  # slow to import, and needed to train only

    try:
        torch.zeros(1, device=value)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        require(
            False, "device", value, f"cpu, or a device that PyTorch can use here ({reason})"
        )
    return value


DEVICE = Annotated[Any, AfterValidator(_device)]


def fitting(chosen: Any, sizes: Collection[int]) -> list[int]:
    """The chosen batch sizes, or else those of `sizes` for which the workload and its other splits
    have examples.  Raises ValueError as `parameters.fit`, and for splits with the same data.
    """
    names = [chosen.workload, *getattr(chosen, "also", ())]
    works = [workload(name) for name in names]
    apart = len({work.tensors or work.name for work in works}) == len(works)
    require(apart, "also", " ".join(names[1:]), "splits with different data", workload=names[0])
    if chosen.batch_sizes is None:
        return [size for size in sizes if size <= min(work.train_size for work in works)]
    both = SimpleNamespace(batch_sizes=chosen.batch_sizes, workload=names)
    parameters.fit(both, "batch_sizes")
    return chosen.batch_sizes


@dataclass(frozen=True)
class Answer:
    """The results of one workload's searches with one method.

    Attributes:
        work: the workload.
        algorithm: the training method.
        trials: on record, at the goal.
        goal: the error to reach.
        surface: the laws fitted to trials that met the goal.
        plan: of an adaptive search, else None.
        table: a row per batch size, from `points`.
        notes: sentences on how the goal was determined, if an exploration did.
    """

    work: Workload
    algorithm: str
    trials: pd.DataFrame
    goal: float
    surface: Surface
    plan: adaptive.Plan | None
    table: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def met(self) -> pd.DataFrame:
        """The rows of the batch sizes at which some trial met the goal."""
        return self.table[self.table.met > 0]

    @property
    def withheld(self) -> str:
        """Why no batch size is advised; "" if one is."""
        _, low, high = self.surface.critical
        if len(self.met) < adaptive.ENOUGH:
            where = f"the goal was met at {len(self.met)} of the batch sizes"
            return f"{where}, and {adaptive.ENOUGH} are needed"
        sizes = self.met.batch_size
        # A wide interval does not matter if it lies entirely below or above the batch sizes
        if high > WIDE * low and low < sizes.max() and high > sizes.min():
            ends = f"{brief(low)} to {brief(high)}"
            return f"the critical one may lie anywhere from {ends} examples"
        if self.plan and self.plan.refuted:
            lowest, fresh = math.exp(adaptive.SAFER[-1]), self.plan.tried()
            missed = f"{fresh.isna().sum()} of {len(fresh)} trainings from other initialisations"
            return f"{missed} miss the goal even at {brief(lowest)} times the best rate"
        use = self.choice()
        if self.horizon and use.steps < self.optimiser.warm_up(self.horizon):
            size = f"{use.batch_size:,.0f}"
            return f"the goal is met before the warm-up ends, at batch size {size}"
        return ""

    @property
    def untried(self) -> str:
        """`withheld`, or that an adaptive search ended before it trained the advised setting."""
        if self.withheld or self.plan is None or len(self.plan.tried()):
            return self.withheld
        size = f"{self.choice().batch_size:,.0f}"
        return f"batch size {size} has not been tried from other initialisations"

    @property
    def optimiser(self) -> Optimiser | None:
        """PyTorch's optimiser, if the method is one."""
        return method(self.algorithm).optimiser

    @property
    def horizon(self) -> int | None:
        """The number of steps that a schedule spans at the advised batch size."""
        if self.plan is None or not self.plan.scheduled:
            return None
        return math.ceil(self.plan.limit(self.choice().steps, self.surface.scatter))

    def choice(self) -> pd.Series:
        """The row of the smallest batch size that takes at most NEAR times the shortest time."""
        return self.met[self.met.time <= NEAR * self.met.time.min()].iloc[0]


def answered(
    chosen: Any,
    sizes: list[int],
    sparsity: float,
    since: float | None = BEGAN,
    **options: Any,
) -> Answer:
    """The answer from the records; searches are trained first if the budget is "full".

    Args:
        chosen: parameters of the page.
        sizes: batch sizes: all those of an exact search, or the outermost of an adaptive one.
        sparsity: share of weights removed.
        since: when the minutes begin, as for `adaptive.run`.
        options: for `sweeps.run`.

    Raises BookError if nothing is on record, and if no trial met any goal.
    """
    work, algorithm = workload(chosen.workload), chosen.algorithm
    ends = min(sizes), max(sizes)
    full, notes = chosen.budget == "full", ()
    if chosen.search == "exact" or chosen.budget == "smoke":
        written = not (work.facts and work.facts.within)
        allowed = f"adaptive with budget full or cached; or name goals: {work.name}:0.1,0.2"
        require(written, "search", chosen.search, allowed, budget=chosen.budget)
        grid = selection.grid(work.name, sizes, [algorithm], [sparsity], trials=chosen.trials)
        trials = sweeps.results(grid, chosen.budget, **options)
        plan = None
    else:
        begin = functools.partial(
            adaptive.Plan, algorithm=algorithm, ends=ends, sparsity=sparsity
        )
        began = time.time() if since is None else since
        run = functools.partial(adaptive.run, train=full, since=began, **options)
        name, minutes = work.name, LAWS * chosen.minutes
        plan = run(begin(name), minutes)
        if plan.within and len(plan.trials):
            within, name = plan.within, plan.explored()
            plan = run(begin(name), minutes)
            work = plan.work
            goal_found = work.asks.written(min(work.goals))
            notes += (
                f"The hardest goal, {goal_found}, is within {percent(within.share)} of the best of "
                f"{adaptive.RACED} trainings of {within.steps:,} steps.",
            )
        if plan.stopped and _advised(plan, algorithm) is None:
            plan = run(begin(name), chosen.minutes)
        advised = functools.partial(_advised, plan, algorithm)
        run(plan, chosen.minutes, waves=plan.proofs(advised))
        if full and plan.stopped and (plan.trials.empty or plan.met().empty):
            best = f" (best: {_reached(work, plan.trials.best_error)})" if plan.searches else ""
            raise BookError(
                f"minutes: {chosen.minutes} ran out before any trial met a goal{best}; run the "
                "same command to continue"
            )
        if len(plan.trials) and len(plan.met()):
            return searched(plan, algorithm, notes)
        trials = hardware.adaptive(work.name, cells=plan.searches)
    if trials.empty:
        raise BookError(
            f"budget: no such search of {work.name} with {algorithm} from batch size "
            f"{ends[0]} to {ends[1]} is on record; train it with -p budget full"
        )
    hardest = goal(trials, work)
    trials = scaling.at_goal(trials, hardest)
    surface = fit(winners(trials), ["steps"])
    table = points(trials, surface, None)
    return Answer(work, algorithm, trials, hardest, surface, None, table, notes)


def searched(plan: adaptive.Plan, algorithm: str, notes: tuple[str, ...] = ()) -> Answer:
    """The answer from an adaptive search in which some training met a goal."""
    trials = hardware.adaptive(plan.work.name, cells=plan.searches)
    trials, surface = scaling.at_goal(trials, plan.goal), plan.surface()
    table = points(trials, surface, plan)
    return Answer(plan.work, algorithm, trials, plan.goal, surface, plan, table, notes)


def _advised(plan: adaptive.Plan, algorithm: str) -> tuple[int, float, float] | None:
    """The setting that the page advises: batch size, learning rate, and the steps that a schedule
    spans, or after which a training is given up; None if it advises nothing.
    """
    if plan.trials.empty or plan.met().empty:
        return None
    answer = searched(plan, algorithm)
    if answer.withheld:
        return None
    use = answer.choice()
    return int(use.batch_size), use.learning_rate, answer.horizon or adaptive.HORIZON * use.steps


def others(
    chosen: Any, names: Sequence[str], sizes: list[int], sparsity: float, **options: Any
) -> list[Answer]:
    """The answers for these workloads with this share of weights removed; each search gets the
    minutes anew.
    """
    choices = [SimpleNamespace(**vars(chosen) | {"workload": name}) for name in names]
    return [answered(choice, sizes, sparsity, None, **options) for choice in choices]


def together(answers: Sequence[Answer]) -> tuple[float, float, float]:
    """The critical batch size from several splits with its 90 % interval: the weighted mean of
    ln C, with an interval at least as wide as the splits' range.
    """
    values, low, high = np.log([answer.surface.critical for answer in answers]).T
    weights = ((high - low) / 2) ** -2
    mean = weights @ values / weights.sum()
    reach = max(weights.sum() ** -0.5, np.ptp(values) / 2)
    return tuple(np.exp([mean, mean - reach, mean + reach]))


def winners(trials: pd.DataFrame) -> pd.DataFrame:
    """The fastest trial of every search that met the goal."""
    met = trials.dropna(subset="steps")
    return met.loc[met.groupby(["batch_size", "replicate"]).steps.idxmin()]


def points(trials: pd.DataFrame, surface: Surface, plan: adaptive.Plan | None) -> pd.DataFrame:
    """A row per batch size that met the goal; for an adaptive search also for all powers of two
    between these that were not tried.

    Columns: batch_size, steps, low, high (90 %), met (trials), seconds (of a step), time (to the
    goal, s), the hyperparameters to use: the fastest trial's in an exact search, those of the law
    in an adaptive one, with rate_low and rate_high (90 %).

    A step takes a + b B seconds with a, b >= 0, fitted, since single timings scatter.
    """
    counts = trials.dropna(subset="steps").batch_size.value_counts()
    timed = hardware.step_seconds(trials)
    scaled = np.stack([1 / timed.seconds, timed.batch_size / timed.seconds], 1)
    (fixed, per_example), _ = nnls(scaled, np.ones(len(timed)))
    shade = 0.0
    if plan:
        low, high = np.log2([counts.index.min(), counts.index.max()])
        powers = 2 ** np.arange(math.ceil(low), math.floor(high) + 1)
        sizes = np.union1d(np.setdiff1d(powers, trials.batch_size), counts.index)
        shade, *_ = plan.safe()
        rates = surface.rates(sizes) * math.exp(shade)
        rates = dict(zip(["learning_rate", "rate_low", "rate_high"], rates))
        hparams = pd.DataFrame(plan.held | rates)
    else:
        best = winners(trials).sort_values("steps").drop_duplicates("batch_size")
        best = best.sort_values("batch_size", ignore_index=True)
        sizes, work = best.batch_size.to_numpy(), workload(best.workload[0])
        hparams = best[[*spaces.intervals(work.space, best.algorithm[0], work.decay)]]
    steps, low, high = surface.steps(sizes) * math.cosh(shade)
    about = {"steps": steps, "low": low, "high": high, "seconds": fixed + per_example * sizes}
    table = pd.DataFrame({"batch_size": sizes, **about}).join(hparams)
    met = counts.reindex(sizes, fill_value=0).to_numpy()
    return table.assign(met=met, time=table.steps * table.seconds)


def _reached(work: Workload, errors: pd.Series) -> str:
    """The best of these errors, written like a goal."""
    return work.asks.written(float(f"{errors.min():.3g}"))


def goal(trials: pd.DataFrame, work: Workload) -> float:
    """The goal to read curves at.  Raises BookError, with what was reached, if no trial met any."""
    met = scaling.fitting(trials)
    if met is not None:
        return met
    dense = trials[trials.sparsity == trials.sparsity.min()]
    doubts = "".join(f" {doubt}." for doubt in work.facts.doubts) if work.facts else ""
    if dense.status.eq("infeasible").all():
        why = f"all {len(dense)} diverged or died: rescale the inputs"
        raise BookError(f"goals: no trial met any; {why}.{doubts}")
    lowest = dense.groupby("batch_size").best_error.min().dropna()
    sizes = joined([f"{size:,}" for size in lowest.index])
    said = f"goals: no trial met any; the best of {len(dense)} trials, at batch size {sizes}, "
    said += f"reached {_reached(work, lowest)}.{doubts} "
    digit = 10.0 ** (math.floor(math.log10(abs(lowest.max()) or 1.0)) - 1)
    easy = float(f"{math.ceil(lowest.max() / digit - 1e-9) * digit:.2g}")  # to two digits, up
    if work.facts and easy > work.facts.chance / EASY:
        same = f"answering all examples alike has error {work.facts.chance:.3g}"
        raise BookError(f"{said}Raise max_steps before easing the goal: {same}")
    easier = f"Set goals=({work.asks.convert(easy):g},)"
    easier += ", met by the best at each batch size" * (len(lowest) > 1)
    raise BookError(f"{said}{easier}, or a larger max_steps")


def doubts(answer: Answer, splits: list[Answer]) -> list[str]:
    """Caveats to the answer, a sentence or two each: oddities of the data, minutes that ran out,
    missed goals, steps that depart from the law, a validation set too small for the goal, an easy
    goal.
    """
    work, facts, trials, plan = answer.work, answer.work.facts, answer.trials, answer.plan
    sizes, goal, hardest = answer.met.batch_size, answer.goal, min(answer.work.goals)
    written = work.asks.written
    sentences = [*answer.notes, *(f"{doubt}." for doubt in (facts.doubts if facts else ()))]
    if plan and plan.stopped:
        runs, most = plan.runs(), plan.runs() + plan.left()
        where = f"after {runs:.0f} of {most:.0f} tuned runs" if plan.raced else "in the race"
        more = f", for about {brief(plan.minutes())} more minutes" if plan.raced else ""
        sentences.append(f"Stopped {where}. The same command continues from there{more}.")
    shade, misses, n = plan.safe() if plan else (0.0, 0, 0)
    if shade:
        first = plan.fresh[: plan.before].get(f"steps@{goal:g}", pd.Series(dtype=float))
        also = f", and {first.isna().sum()} of {len(first)} as first advised"
        sentences.append(
            f"Near the best rate, {misses} of {n} trainings missed the goal"
            f"{also * (not first.empty)}. The rates below "
            f"are {brief(math.exp(shade))} times the best and take {brief(math.cosh(shade))} "
            "times the steps."
        )
    _, low, high = answer.surface.critical
    wide = high > SPLITS * low and high > sizes.min()
    if facts and not splits and not (plan and plan.stopped) and wide:
        sentences.append(
            f"The critical batch size may be anywhere from {brief(low)} to {brief(high)} examples. "
            "Another split of the data tells more: return it from a second function, and add "
            f"-p also {work.name.partition('.py')[0]}.py:another_split to the command."
        )
    if goal > hardest:
        met = trials.dropna(subset=f"steps@{hardest:g}").batch_size.nunique()
        sentences.append(
            f"The hardest goal, {written(hardest)}, was met at {met} of "
            f"{trials.batch_size.nunique()} batch sizes. All below is for {written(goal)}."
        )
    departing = answer.surface.steps(sizes)[0] / answer.surface.steps(sizes, departing=False)[0]
    sentences += [
        f"At batch size {size:,} training takes {brief(factor)} times the steps of the fitted law."
        for size, factor in zip(sizes, departing)
        if abs(math.log(factor)) > DEPARTS
    ]
    if not answer.withheld and answer.choice().batch_size == sizes.max():
        sentences.append(f"No batch larger than {sizes.max():,} was tried; one may be as fast.")
    missed = trials.batch_size[~trials.batch_size.isin(sizes)].value_counts()
    sentences += [
        f"At batch size {size:,}, trainings that met {written(goal)}: 0 of {count}."
        for size, count in sorted(missed.items())
    ]
    if facts and work.asks.counted:
        spread = math.sqrt(goal * (1 - goal) / facts.values)
        if goal < UNSURE * spread:
            sentences.append(
                f"The validation set has {facts.values:,} examples. At a goal of {written(goal)}, "
                f"chance alone moves the error by {percent(spread)}. Validate on more."
            )
        if goal > facts.chance / EASY:
            sentences.append(
                f"The goal of {written(goal)} is easy: giving the same answer to all examples "
                f"misses {percent(facts.chance)}."
            )
    return sentences


def settings(row: pd.Series, answer: Answer) -> dict[str, str]:
    """The hyperparameters in a row of `points`, written out, by their names in words."""
    words = {}
    work = answer.work
    for name in spaces.intervals(work.space, answer.algorithm, work.decay):
        value = row[name]
        # Values near one are rounded by their distance from it
        near_one = 0.9 <= value < 1
        written = f"{1 - float(f'{1 - value:.2g}'):.6g}" if near_one else f"{value:.2g}"
        words[name.replace("_", " ")] = written
    return words


def best(answer: Answer) -> pd.DataFrame:
    """The settings to use at every batch size."""
    rows = []
    for _, row in answer.table.iterrows():
        shown = settings(row, answer)
        if answer.plan:
            rate = {"learning rate": shown.pop("learning rate")}
            rate["rate, 90 %"] = f"{row.rate_low:.2g} to {row.rate_high:.2g}"
            shown = rate | shown
        rows.append(
            {
                "batch size": f"{row.batch_size:,.0f}",
                "steps": f"{row.steps:,.0f}",
                "steps, 90 %": f"{row.low:,.0f} to {row.high:,.0f}",
                **shown,
                "step (ms)": brief(1000 * row.seconds),
                "time (s)": brief(row.time),
                "trainings": f"{row.met:.0f}",
            }
        )
    return pd.DataFrame(rows)


def compared(dense: Answer, pruned: Answer) -> pd.DataFrame:
    """What pruning changes: the critical batch size and, at both ends of the batch sizes, steps and
    best rates, dense and pruned, with the ratio (90 %); only the first if their goals differ.
    """
    surfaces = [dense.surface, pruned.surface]
    ends = dense.met.batch_size.agg(["min", "max"])
    pairs = {"critical batch size": [surface.critical for surface in surfaces]}
    laws = {"steps at the best rate": Surface.steps, "best rate": Surface.rates}
    for name, law in laws.items() if dense.goal == pruned.goal else ():
        for size in ends:
            pairs[f"{name}, batch size {size:,}"] = [
                law(surface, [size])[:, 0] for surface in surfaces
            ]
    rows = []
    for name, pair in pairs.items():
        (plain, sparse), _, high = np.transpose(pair)
        ratio, reach = sparse / plain, np.exp(np.hypot(*np.log(high / [plain, sparse])))
        interval = f"{ratio / reach:.2g} to {ratio * reach:.2g}"
        rows.append((name, brief(plain), brief(sparse), f"{ratio:.2g}", interval))
    return pd.DataFrame(
        rows,
        columns=[
            "",
            "dense, cut short" if dense.plan and dense.plan.stopped else "dense",
            "pruned",
            "ratio",
            "ratio, 90 %",
        ],
    )


def findings(answer: Answer, splits: list[Answer], chosen: Any) -> dict:
    """All values in the page's sentences; splits: the answers for other splits of the data."""
    work, sizes, use = answer.work, answer.met.batch_size, answer.choice()
    critical, low, high = answer.surface.critical
    alike = [answer, *(split for split in splits if split.goal == answer.goal)]
    rates = answer.table.learning_rate
    words = [f"{name} {value}" for name, value in settings(use, answer).items()]
    if answer.horizon:
        words.append(answer.optimiser.describe(answer.horizon))
    return {
        "title": work.title + f" at sparsity {chosen.sparsity:g}" * bool(chosen.sparsity),
        "example": chosen.workload == EXAMPLE,
        "method": named(answer.algorithm),
        "goal": work.asks.written(answer.goal) + " error" * work.asks.counted,
        "withheld": answer.untried,
        "use": int(use.batch_size),
        "settings": words,
        "time": lasting(use.time),
        "price": brief(use.time / 3600 * chosen.price),
        "per_hour": brief(chosen.price),
        "sizes": len(sizes),
        "inside": bool(sizes.min() < critical < sizes.max()),
        "splits": len(alike),
        "easier": len(splits) + 1 - len(alike),
        "together": ranged(*together(alike)) if alike[1:] else None,
        "low": low,
        "high": high,
        "trainings": int(answer.met.met.sum()),
        "runs": answer.plan.runs() if answer.plan else None,
        "tried": len(answer.plan.tried()) if answer.plan else 0,
        "fresh": [*answer.plan.tried().dropna()] if answer.plan else [],
        "grows": bool(rates.iloc[-1] > GROWS * rates.iloc[0]),
        "converted": work.facts.converted if work.facts else (),
    }


def lasting(seconds: float) -> str:
    """A time in the largest unit that does not exceed it: "3.4 minutes"."""
    units = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
    unit = next((name for name, long in units.items() if seconds >= long), "seconds")
    return f"{brief(seconds / units[unit])} {unit}"
