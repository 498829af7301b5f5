"""Results of the searches on the learning rate, as tables: curves, points, and costs of rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from chapters.learning_rates import searched
from chapters.learning_rates.experiments import FLOWS
from chapters.learning_rates.searched import EASIEST, READ, Key, Law
from lib.analysis import rates
from lib.analysis.rates import RIVALS
from lib.analysis.scaling import CURVE, ENOUGH, WITHIN_BUDGETS
from lib.claims.judging import kept
from lib.records import results
from lib.studies.search import Search
from lib.wording import brief, percent
from lib.workloads.catalogue import workload

# How curves are read: the place of the goal, and whether searches that ended too soon count
DEFINED, SOONER, EASY = "as defined", "sooner", "easiest goal"
READINGS = {DEFINED: (READ, False), SOONER: (READ, True), EASY: (EASIEST, False)}
BASE = 64  # batch size at which one rate is tuned
OFF = {"half": 0.5, "twice": 2.0}  # times the best rate
ONE = "the law, from one size"
LINEAR, ROOT = "linear from one size", "square root from one size"
FROM_ONE = {"no change": 0.0, LINEAR: 1.0, ROOT: 0.5}
ROOTED = "saturating square root"
FORMS = ("saturating", ROOTED, "surge")  # fitted to the rates
FORM = {"adam": ROOTED}  # of the law, where it is not the first
BINS = 0.5  # width of a bin of ln(rate / best rate) of tuning curves
ABOUT = ["workload", "algorithm", "sparsity"]
FAR = 0.15, 0.3  # rates between these shares of the best one are far below it
Tables = dict[str, pd.DataFrame]


def on_record() -> dict[str, Tables]:
    """`tables` of all planned searches on record, by reading."""

    def lists() -> dict:
        cells = searched.planned()
        trials = results.read(searched.study(cells), without=WITHIN_BUDGETS)
        return {
            reading: {name: table.to_dict("list") for name, table in tables.items()}
            for reading, tables in by_reading(trials, cells).items()
        }

    return {
        reading: {name: pd.DataFrame(table) for name, table in tables.items()}
        for reading, tables in kept("learning-rates", lists).items()
    }


def by_reading(trials: pd.DataFrame, cells: Iterable[Search]) -> dict[str, Tables]:
    """`tables` of these trials from `lib.records.results.read`, by reading."""
    return {
        reading: tables(searched.laws(searched.at_goals(trials, place), cells, soon))
        for reading, (place, soon) in READINGS.items()
    }


def tables(laws: dict[Key, Law]) -> Tables:
    """Results of curves with at least three batch sizes, in tables that begin with ABOUT.

    curves: n, searches (one per batch size), soon, edge (how many do not count, and why); critical
    (C), rho with its ends, eta_inf, b_eta, exponent; falls (steps times rate at the smallest batch
    size over that at the largest), fold (the same for K*); error of every rule, by its name.
    points: batch_size, rate, steps; the rates of FORMS, fitted to all points, by their names.
    costs: rule, batch_size, cost (ln of steps over those at the best rate), bound, off (ln of the
    rate over the network's best).
    tuning: batch_size, over (rate over the best, middle of a bin), distance (K eta over K* times
    the best rate, the median; infinite ones are left out), trials.
    """
    parts = {"curves": [], "points": [], "costs": [], "tuning": []}
    for key, law in laws.items():
        if len(law.best) < 3:
            continue
        about = {name: value for name, value in zip(CURVE, key) if name in ABOUT}
        costs = pd.concat(_costs(law, *form_and_ratio(key, laws)))
        rows = pd.DataFrame([_curve(law)]), _points(law), costs, _tuning(law)
        for name, table in zip(parts, rows):
            parts[name].append(table.assign(**about)[[*ABOUT, *table]])
    empty = pd.DataFrame(columns=ABOUT)
    return {
        name: pd.concat(tables, ignore_index=True) if tables else empty
        for name, tables in parts.items()
    }


def form_and_ratio(key: Key, laws: dict[Key, Law]) -> tuple[str, float | None]:
    """The law's form for the method, and ln of the batch size at which it bends over C, the mean
    over other networks with this method; None if there are none.
    """
    form = FORM.get(key[1], FORMS[0])
    others = [
        rates.fit(form, *law.points).parameters[0] - law.critical
        for (network, method, *_), law in laws.items()
        if network != key[0] and method == key[1] and law.n >= ENOUGH and len(law.best) > 2
    ]
    return form, float(np.mean(others)) if others else None


def curves(tables: Tables, *methods: str, least: int = ENOUGH) -> pd.DataFrame:
    """The curves with `least` searches (or the most that any has), of these methods or of all."""
    table = tables["curves"]
    if table.empty:
        return table
    enough = table.n >= min(least, table.n.max())
    return table[enough & table.algorithm.isin(methods or set(table.algorithm))]


def rows_of(table: pd.DataFrame, curve: dict) -> pd.DataFrame:
    """A curve's rows of a table, by batch size where it has them."""
    rows = table[(table[ABOUT] == pd.Series(curve)[ABOUT]).all(axis=1)]
    return rows.sort_values("batch_size") if "batch_size" in rows else rows


def with_curves(tables: Tables, name: str, *methods: str) -> pd.DataFrame:
    """The rows of a table that belong to `curves`, with the constants of these."""
    constants = curves(tables, *methods)
    if constants.empty:
        return tables[name].iloc[:0]
    names = ["eta_inf", "b_eta", "critical", "exponent"]
    return tables[name].merge(constants[[*ABOUT, *names]], on=ABOUT)


def times(costs: pd.DataFrame) -> pd.Series:
    """Steps over those at the best rate, by rule: the geometric mean over its rows, in words; ≥
    marks a lower bound.
    """
    rules = costs.groupby("rule")
    means = np.exp(rules.cost.mean()).map(brief)
    means = means.where(~rules.bound.any(), "≥\u00a0" + means)
    return means.reindex([*OFF, ONE, *FROM_ONE, *RIVALS], fill_value="—")


def title_of(network: str) -> str:
    """The page's name for a network, without "easier goal": FC-128x3 has only easier goals here."""
    return workload(network).title.removesuffix(", easier goal")


def name_of(curve: dict) -> str:
    """The page's name for a network, and how much of it is pruned."""
    title, sparsity = title_of(curve["workload"]), curve["sparsity"]
    return f"{title}, {percent(sparsity)} pruned" if sparsity else title


def _curve(law: Law) -> dict[str, object]:
    saturating, free = (
        rates.fit(rule, *law.points) for rule in ("saturating", "free exponent")
    )
    steps = law.steps.mean()
    product = law.best + steps[law.best.index]
    return {
        "n": law.n,
        "searches": law.why.size,
        "soon": int((law.why == rates.SOON).to_numpy().sum()),
        "edge": int((law.why == rates.EDGE).to_numpy().sum()),
        "critical": np.exp(law.critical),
        **law.rho.row("rho"),
        "eta_inf": np.exp(saturating.factor),
        "b_eta": np.exp(saturating.parameters[0]),
        "exponent": free.parameters[1],
        "falls": np.exp(product.iloc[0] - product.iloc[-1]),
        "fold": np.exp(steps.iloc[0] - steps.iloc[-1]),
        **{rule: rates.error(rule, *law.points) for rule in RIVALS},
    }


def _points(law: Law) -> pd.DataFrame:
    sizes, logs = law.points
    columns = {"rate": logs, "steps": law.steps.mean()[law.best.index].to_numpy()}
    columns |= {form: rates.fit(form, sizes, logs).log_rates(sizes) for form in FORMS}
    table = np.exp(pd.DataFrame(columns))
    table.insert(0, "batch_size", sizes.astype(int))
    return table


def _costs(law: Law, form: str, over: float | None) -> Iterator[pd.DataFrame]:
    """Costs of rates that are off, of rules fitted to other sizes, and of rules from one size."""
    left_out = {
        rule: pd.Series(rates.left_out(rule, *law.points), law.best.index) for rule in RIVALS
    }
    from_base = {rule: logs.drop(BASE) for rule, logs in from_one(law, over, form).items()}
    for rule, times in OFF.items():
        yield law.cost(law.rates + np.log(times)).assign(rule=rule, off=np.log(times))
    for rule, predicted in (left_out | from_base).items():
        costs = law.cost_of(predicted)
        off = (predicted - law.best).reindex(costs.batch_size).to_numpy()
        yield costs.assign(rule=rule, off=off)


def from_one(
    law: Law, over: float | None, form: str = "saturating", base: int = BASE
) -> dict[str, pd.Series]:
    """ln of the rates that rules predict from the best rate at batch size `base`, by rule and size.

    over: ln of the batch size at which a law of this form bends, over C; None: unknown.
    """
    if base not in law.best.index:
        return {}
    x = np.log(law.best.index.to_numpy(float))
    shapes = {rule: power * x for rule, power in FROM_ONE.items()}
    if over is not None:
        shapes[ONE] = rates.RULES[form][0](x, over + law.critical)
    logs = {rule: pd.Series(shape, law.best.index) for rule, shape in shapes.items()}
    return {rule: law.best[base] + shape - shape[base] for rule, shape in logs.items()}


def _tuning(law: Law) -> pd.DataFrame:
    trials = law.trials.dropna(subset="over")
    off = BINS * (trials.over / BINS).round()
    trials = trials.assign(over=off, distance=trials.distance.fillna(np.inf))
    bins = trials[off.abs() < 3.1].groupby(["batch_size", "over"]).distance
    medians = bins.agg(distance="median", trials="size").reset_index()
    distance = np.exp(medians.distance)
    medians["distance"] = distance.where(np.isfinite(distance))
    return medians.assign(over=np.exp(medians.over)).dropna()


def far_below() -> pd.DataFrame:
    """Steps times rate of dense SGD's trials with rates within FAR, over the time that gradient
    flow takes to the easiest goal: a row per network, search and batch size (workload, split,
    batch_size), with over, the ratio for the median trial; NaN if it did not meet the goal.
    """
    return pd.DataFrame(kept("rate-flow", lambda: _far_below().to_dict("list")))


def _far_below() -> pd.DataFrame:
    cells = [c for c in searched.planned() if c.algorithm == "sgd" and not c.sparsity]
    laws = searched.laws(searched.recorded(cells, EASIEST), cells)
    flows, parts = FLOWS.results(), []
    for (name, *_), law in laws.items() if len(flows) else ():
        easiest = flows.goal == max(workload(name).goals)
        times = flows[easiest & (flows.workload == name)]
        times = times.groupby("split").time.median()
        trials = law.trials
        far = trials[trials.over.between(*np.log(FAR), inclusive="neither")]
        far = far[far.split.isin(times.index)]
        logs = (far.rate + far.steps).fillna(np.inf)
        logs = logs.groupby([far.split, far.batch_size]).median()
        ratios = np.exp(logs).div(times, level="split").replace(np.inf, np.nan)
        parts.append(ratios.rename("over").reset_index().assign(workload=name))
    columns = ["workload", "split", "batch_size", "over"]
    return pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)
