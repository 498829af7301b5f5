"""What searches on the learning rate say, as tables: curves, points, and what rules cost."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from chapters.learning_rates import searched
from chapters.learning_rates.searched import EASIEST, READ, Key, Law
from lib.analysis import rates
from lib.analysis.rates import RIVALS
from lib.analysis.scaling import CURVE, ENOUGH, WITHIN_BUDGETS
from lib.claims.judging import kept
from lib.records import results
from lib.studies.search import Search
from lib.wording import percent
from lib.workloads.catalogue import workload

# How curves are read: the place of the goal, and whether searches that ended too soon count, too
DEFINED, SOONER, EASY = "as defined", "sooner", "easiest goal"
READINGS = {DEFINED: (READ, False), SOONER: (READ, True), EASY: (EASIEST, False)}
BASE = 64  # batch size at which one rate is tuned
OFF = {"half": 0.5, "twice": 2.0}  # times the best rate
ONE = "the law, from one size"
FROM_ONE = {"no change": 0.0, "linear from one size": 1.0, "square root from one size": 0.5}
FORMS = ("saturating", "saturating square root", "surge")  # that rates may have
BINS = 0.5  # width of a bin of ln(rate / best rate) of tuning curves
KINDS = {"cost": float, "bound": bool, "off": float}  # of costs, be there none
ABOUT = ["workload", "algorithm", "sparsity"]


def on_record() -> dict[str, dict[str, pd.DataFrame]]:
    """`tables` of all that is planned, by reading."""
    found = kept("learning-rates", lambda: _as_lists(_on_record()))
    return {
        reading: {name: pd.DataFrame(table) for name, table in own.items()}
        for reading, own in found.items()
    }


def _on_record() -> dict[str, dict[str, pd.DataFrame]]:
    cells = searched.planned()
    trials = results.read(searched.whole(), without=WITHIN_BUDGETS)
    return by_reading(trials, cells)


def _as_lists(found: dict) -> dict:
    return {
        reading: {name: table.to_dict("list") for name, table in own.items()}
        for reading, own in found.items()
    }


def by_reading(trials: pd.DataFrame, cells: list[Search]) -> dict[str, dict[str, pd.DataFrame]]:
    """`tables` of these trials of `lib.records.results.read`, by reading."""
    found = {}
    for reading, (place, soon) in READINGS.items():
        own = searched.at_goals(trials, place) if len(trials) else trials
        found[reading] = tables(searched.laws(own, cells, soon) if len(own) else {})
    return found


def tables(laws: dict[Key, Law]) -> dict[str, pd.DataFrame]:
    """What curves say, in tables that begin with ABOUT.

    curves: n, searches (of batch sizes, all together), soon, edge (how many do not count); C, rho
    with its ends, eta_inf, b_eta, exponent; falls (the product at the smallest batch size over that
    at the largest), fold (the same of K*); rms of every rule, by its name.
    points: batch_size, rate, steps; the rates of FORMS, fitted to all of them, by their names.
    costs: rule, batch_size, cost (ln of steps over those at the best rate), bound, off (ln of the
    rate over the network's best).
    tuning: batch_size, over (rate over the best, middle of a bin), distance (K eta over K* and the
    best rate, the median; NaN where most trials had not met the goal), trials.
    """
    parts = {"curves": [], "points": [], "costs": [], "tuning": []}
    for key, law in laws.items():
        if len(law.best) < 3:
            continue
        found = {
            "curves": pd.DataFrame([_curve(law)]),
            "points": _points(law),
            "costs": pd.concat(_costs(law, rho_of_others(key, laws))).astype(KINDS),
            "tuning": _tuning(law),
        }
        about = {name: value for name, value in zip(CURVE, key) if name in ABOUT}
        for name, table in found.items():
            parts[name].append(table.assign(**about)[[*ABOUT, *table]])
    return {name: pd.concat(own, ignore_index=True) if own else pd.DataFrame(columns=ABOUT)
            for name, own in parts.items()}  # fmt: skip


def rho_of_others(key: Key, laws: dict[Key, Law]) -> float | None:
    """ln of rho in the mean over the other networks of the same method; None if there are none."""
    others = [
        law.rho.value
        for other, law in laws.items()
        if other[0] != key[0] and other[1] == key[1] and law.n >= ENOUGH
    ]
    return float(np.mean(others)) if others else None


def curves(found: dict[str, pd.DataFrame], *methods: str, least: int = ENOUGH) -> pd.DataFrame:
    """The curves of so many searches, or as many as any has, of these methods or of all."""
    table = found["curves"]
    if table.empty:
        return table
    enough = table.n >= min(least, table.n.max())
    return table[enough & table.algorithm.isin(methods or set(table.algorithm))]


def of(table: pd.DataFrame, row: dict) -> pd.DataFrame:
    """A curve's rows of a table, by batch size where it has them."""
    own = table[(table[ABOUT] == pd.Series(row)[ABOUT]).all(axis=1)]
    return own.sort_values("batch_size") if "batch_size" in own else own


def beside(found: dict[str, pd.DataFrame], name: str, *methods: str) -> pd.DataFrame:
    """The rows of a table that are of `curves`, with what these say."""
    own = curves(found, *methods)
    if own.empty:
        return found[name].iloc[:0]
    return found[name].merge(own[[*ABOUT, "eta_inf", "b_eta", "critical"]], on=ABOUT)


def name_of(row: dict) -> str:
    """A network, and how much of it is pruned."""
    title = workload(row["workload"]).title.removesuffix(", easier goal")
    return f"{title}, {percent(row['sparsity'])} pruned" if row["sparsity"] else title


def _curve(law: Law) -> dict[str, object]:
    saturating, free = (
        rates.fit(rule, *law.points) for rule in ("saturating", "free exponent")
    )
    product = law.best + law.steps.mean()[law.best.index]
    steps = law.steps.mean()
    return {
        "n": law.n,
        "searches": int(law.why.size),
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
    fits = {form: np.exp(rates.fit(form, sizes, logs).log_rates(sizes)) for form in FORMS}
    steps = np.exp(law.steps.mean()[law.best.index].to_numpy())
    return pd.DataFrame(
        {"batch_size": sizes.astype(int), "rate": np.exp(logs), "steps": steps, **fits}
    )


def _costs(law: Law, rho: float | None) -> Iterable[pd.DataFrame]:
    """Of rules fitted to the other batch sizes, of rules from one, and of rates that are off."""
    for rule in RIVALS:
        predicted = pd.Series(rates.left_out(rule, *law.points), law.best.index)
        yield _cost(law, rule, predicted.dropna())
    for name, times in OFF.items():
        yield law.cost(law.steps.mean() * 0 + np.log(times), True).assign(
            rule=name, off=np.log(times)
        )
    for rule, predicted in from_one(law, rho).items():
        yield _cost(law, rule, predicted.drop(BASE))


def from_one(law: Law, rho: float | None) -> dict[str, pd.Series]:
    """ln of the rates that rules give from the best one at BASE, by rule and batch size."""
    if BASE not in law.best.index:
        return {}
    x = np.log(law.best.index.to_numpy(float) / BASE)
    found = {
        rule: law.best[BASE] + pd.Series(power * x, law.best.index)
        for rule, power in FROM_ONE.items()
    }
    if rho is not None:
        shape = np.logaddexp(0, rho + law.critical - np.log(law.best.index.to_numpy(float)))
        logs = pd.Series(-shape, law.best.index)
        found[ONE] = law.best[BASE] + logs - logs[BASE]
    return found


def _cost(law: Law, rule: str, predicted: pd.Series) -> pd.DataFrame:
    found = law.cost(predicted)
    off = (predicted - law.best).reindex(found.batch_size).to_numpy()
    return found.assign(rule=rule, off=off)


def _tuning(law: Law) -> pd.DataFrame:
    rows = []
    for (search, size), (drawn, steps, _) in law.trials.items():
        over = drawn - law.rates.at[search, size]
        distance = steps + over - law.steps.at[search, size]
        rows.append(pd.DataFrame({"batch_size": size, "over": over, "distance": distance}))
    every = pd.concat(rows).dropna(subset="over")
    every["over"] = BINS * (every.over / BINS).round()
    every["distance"] = every.distance.fillna(np.inf)
    by = every[every.over.abs() < 3.1].groupby(["batch_size", "over"]).distance
    found = by.agg(distance="median", trials="size").reset_index()
    found["distance"] = np.exp(found.distance).where(np.isfinite(found.distance))
    return found.assign(over=np.exp(found.over)).dropna()
