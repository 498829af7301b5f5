"""What was predicted before the searches were run, and what came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from chapters.learning_rates import measured, searched
from chapters.learning_rates.measured import (
    LINEAR,
    ONE,
    RIVALS,
    ROOT,
    ROOTED,
    Tables,
    curves,
    name_of,
    rows_of,
)
from lib.analysis import ranges
from lib.analysis.scaling import ENOUGH
from lib.claims.judging import kept
from lib.studies.plans import study
from lib.wording import number
from lib.workloads.catalogue import workload

FILE = Path(__file__).with_name("predictions.yaml")
HIT, MISS, NOT_YET = "hit", "miss", "not yet measured"
ASIDE = 104, 105, 106  # splits of SGD
RHO = {True: (0.55, 0.95), False: (0.35, 0.65)}  # on the digits, and elsewhere
Case = tuple[str, float, bool | None]  # on what, a number, and whether it is as predicted


def texts() -> dict[str, str]:
    """What was predicted, by its key."""
    written = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    elsewhere = {case.key: written["elsewhere"][case.key] for case in ELSEWHERE.values()}
    entries = written["predictions"] | elsewhere
    return {key: " ".join(text.split()) for key, text in entries.items()}


# Each judges a curve: its row, and all tables


def _r1(row: dict, tables: Tables) -> Iterator[Case]:
    least = min(RIVALS, key=row.get)
    fine = least == "saturating" and row[least] <= 0.2 and 0.8 <= row["exponent"] <= 1.25
    error = f"error {number(row['saturating'])}, the least: {least}"
    yield f"{error}; exponent", row["exponent"], fine


def _r2(row: dict, tables: Tables) -> Iterator[Case]:
    low, high = RHO[workload(row["workload"]).dataset == "digits"]
    yield "ρ", row["rho"], low <= row["rho"] <= high
    dense = _partner(row, tables, sparsity=0.0)
    if row["sparsity"] and dense:
        ratio = row["rho"] / dense["rho"]
        yield "ρ over dense", ratio, 1 / 1.5 <= ratio <= 1.5


def _r3(row: dict, tables: Tables) -> Iterator[Case]:
    if row["fold"] >= 10:
        yield "K*η* falls", row["falls"], row["falls"] < 2


def _r4(row: dict, tables: Tables) -> Iterator[Case]:
    for rule, costs in rows_of(tables["costs"], row).groupby("rule"):
        if rule not in ("half", "twice"):
            continue
        times, bound = np.exp(costs.cost.to_numpy()), costs.bound.to_numpy(bool)
        inside = (times >= 1.2) & (times <= 1.8)
        alike = 1 / 1.4 < times[0] / times[-1] < 1.4
        # What is a bound from below may be more
        refuted = ((times > 1.8) | (times < 1.2) & ~bound).any()
        refuted = refuted or not alike and not bound[[0, -1]].any()
        fine = False if refuted else None if bound.any() else bool(inside.all() and alike)
        sizes = f"inside at {inside.sum()} of {len(costs)} sizes"
        yield f"{rule} the best, {sizes}; mean", float(np.exp(costs.cost.mean())), fine


def _r5(row: dict, tables: Tables) -> Iterator[Case]:
    best = rows_of(tables["points"], row).rate
    last = best.iloc[-1] / best.iloc[:-1].max()
    fine = 0.4 <= row["exponent"] <= 0.85 and last > 0.85
    fine = fine and _errs_less(row["saturating square root"], row["surge"])
    yield f"last rate {number(last)}; exponent", row["exponent"], fine


def _r6(row: dict, tables: Tables) -> Iterator[Case]:
    least = min(row[rule] for rule in ("power", "constant", "linear", "square root"))
    fine = 0.7 <= row["exponent"] <= 1.15 and 0.45 <= row["rho"] <= 0.85
    fine = fine and _errs_less(row["saturating"], least)
    yield f"exponent {number(row['exponent'])}; ρ", row["rho"], fine


def _r7(row: dict, tables: Tables) -> Iterator[Case]:
    if sgd := _partner(row, tables, algorithm="sgd"):
        ratio = _largest(row, tables) / _largest(sgd, tables)
        fine = 0.05 <= ratio <= 0.3 and 0.8 <= row["exponent"] <= 1.3
        yield f"exponent {number(row['exponent'])}; rate over SGD’s", ratio, fine


def _r8(row: dict, tables: Tables) -> Iterator[Case]:
    costs = rows_of(tables["costs"], row)
    times = np.exp(costs.groupby("rule").cost.mean())
    if ONE in times:
        law = costs[costs.rule == ONE]
        error, cost = rms(law.off), float(times[ONE])
        fine = error <= 0.25 and cost <= 1.15 and cost < times[[LINEAR, ROOT]].min()
        yield f"error {number(error)}; times the steps", cost, _open_if(law.bound.any(), fine)


def _partner(row: dict, tables: Tables, **change) -> dict | None:
    """The curve of ENOUGH searches that differs from another in these fields alone."""
    key = {name: row[name] for name in ("workload", "algorithm", "sparsity")} | change
    rows = rows_of(_judged(tables, key["algorithm"]), key)
    return next(iter(rows.to_dict("records")), None)


def _largest(row: dict, tables: Tables) -> float:
    """The mean best rate of a curve at its three largest batch sizes."""
    return float(np.exp(np.log(rows_of(tables["points"], row).rate.tail(3)).mean()))


def _errs_less(error: float, other: float) -> bool | None:
    """Whether an error is the smaller one; None if a curve has too few batch sizes for errors."""
    return _open_if(np.isnan(error + other), not error >= other)


def _open_if(unknown: bool, fine: bool) -> bool | None:
    """None if what holds may not hold: the steps are a lower bound, or an error is not known."""
    return None if unknown and fine else bool(fine)


def rms(logs: pd.Series) -> float:
    return float(np.sqrt((logs**2).mean()))


# By what, curves of which method, and the prediction in short
JUDGED: dict[str, tuple[Callable[[dict, Tables], Iterator[Case]], str, str]] = {
    "R1": (_r1, "sgd", "the law errs least, with a free exponent near one"),
    "R2": (_r2, "sgd", "ρ, pruned and dense alike"),
    "R3": (_r3, "sgd", "steps times best rate hardly fall"),
    "R4": (_r4, "sgd", "what half and twice the rate cost, at every batch size"),
    "R5": (_r5, "adam", "the exponent lies lower, and rates do not fall again"),
    "R6": (_r6, "muon", "the law errs less than simple rules; exponent and ρ"),
    "R7": (_r7, "momentum", "as SGD at a tenth of the rate"),
    "R8": (_r8, "sgd", "one rate, C and ρ give the others"),
}


def _judged(tables: Tables, method: str) -> pd.DataFrame:
    """The curves of ENOUGH searches of a method."""
    rows = curves(tables, method)
    return rows if rows.empty else rows[rows.n >= ENOUGH]


def cases(tables: Tables, key: str) -> list[Case]:
    """What came of a prediction on every curve of ENOUGH searches."""
    judge, method, _ = JUDGED[key]
    return [
        (f"{name_of(row)}: {what}", value, fine)
        for row in _judged(tables, method).to_dict("records")
        for what, value, fine in judge(row, tables)
    ]


def outcome(tables: Tables, key: str, planned: int) -> str:
    """HIT, MISS or NOT_YET, and on how many; planned: curves."""
    method = JUDGED[key][1]
    verdicts = [fine for _, _, fine in cases(tables, key)]
    if not verdicts:
        return NOT_YET
    measured = _judged(tables, method)
    word = HIT if len(measured) >= planned and None not in verdicts else "so far"
    word = MISS if False in verdicts else word
    return f"{word}, {verdicts.count(True)}/{len(verdicts)}"


def aside() -> list[Case]:
    """What came of the rates that were predicted for splits kept aside, on every network whose
    searches are all on record.
    """
    return [tuple(case) for case in kept("learning-rates-aside", lambda: {"": _aside()})[""]]


def _aside() -> list[Case]:
    rates = yaml.safe_load(FILE.read_text(encoding="utf-8"))["kept aside"]["rates"]
    cells = [c for c in searched.planned() if c.algorithm == "sgd" and c.split in ASIDE]
    laws = searched.laws(searched.recorded(cells, searched.EASIEST), cells)
    judged = []
    for (name, _, _, sparsity), law in laws.items():
        if law.n < len(ASIDE):
            continue
        predicted = np.log(pd.Series(rates[f"{name} {sparsity}"])).rename_axis("batch_size")
        off = law.best - predicted
        costs = law.cost_of(predicted)
        error, cost = rms(off), float(np.exp(costs.cost.mean()))
        fine = error <= 0.25 and off.abs().max() <= np.log(1 / 0.6) and cost <= 1.15
        what = f"{name_of({'workload': name, 'sparsity': sparsity})}: error {number(error)}"
        judged.append((f"{what}; times the steps", cost, _open_if(costs.bound.any(), fine)))
    return judged


@dataclass(frozen=True)
class Elsewhere:
    """A network whose rates were predicted from one: by what it is called in FILE, its method, the
    batch size of that one, the form of the law, and how far ln of a rate may be off: as a root mean
    square, and at most; what the predicted rates may cost in steps (inf: not asked).
    """

    key: str
    algorithm: str
    base: int
    form: str
    error: float
    most: float
    cost: float = np.inf


ELSEWHERE = {
    "cifar-10-resnet-8": Elsewhere("R9", "momentum", 128, "saturating", 0.5, 2.5),
    "shakespeare": Elsewhere("R10", "adam", 64, ROOTED, 0.35, 1.8, 1.15),
    "fashion-mnist-fc-128x3-easier": Elsewhere("R11", "adam", 64, ROOTED, 0.35, 1.8, 1.15),
}
OF_ELSEWHERE = ("cifar-10", "cifar-10-gpu", "rates-fc", searched.LANGUAGE)  # studies


def elsewhere() -> tuple[list[Case], pd.DataFrame]:
    """What came of the rates predicted on networks of other kinds whose searches are all on record;
    and by network and batch size the best rate, and what the rules of `measured.from_one` give.
    """
    outcomes = kept("learning-rates-elsewhere", _elsewhere)
    return [tuple(case) for case in outcomes["cases"]], pd.DataFrame(outcomes["rates"])


def _elsewhere() -> dict[str, list]:
    ratios = yaml.safe_load(FILE.read_text(encoding="utf-8"))["elsewhere"]["ratios"]
    planned = [cell for name in OF_ELSEWHERE for cell in study(name).searches]
    cases, tables = [], [pd.DataFrame()]
    for name, expected in ELSEWHERE.items():
        network, title = (name, expected.algorithm, 0), measured.title_of(name)
        cells = [c for c in planned if (c.workload, c.algorithm, c.sparsity) == network]
        trials = searched.recorded(cells, searched.EASIEST)
        if trials.empty:
            continue
        trials = trials.assign(learning_rate=ranges.effective(trials))
        for law in searched.laws(trials, cells, soon=True).values():
            rules = measured.from_one(law, np.log(ratios[name]), expected.form, expected.base)
            off = pd.DataFrame(rules).sub(law.best, axis=0).drop(expected.base)
            errors = off.apply(rms)
            costs = law.cost_of(rules[ONE].drop(expected.base))
            most = float(np.exp(off[ONE].abs().max()))
            fine = errors.idxmin() == ONE and errors[ONE] <= expected.error
            fine = fine and most <= expected.most and np.exp(costs.cost.mean()) <= expected.cost
            fine = _open_if(costs.bound.any() and expected.cost < np.inf, fine)
            law_errs, others_err = number(errors.pop(ONE)), number(errors.min())
            what = f"{title}: error {law_errs}, by other rules {others_err} or more; largest factor"
            cases.append((f"{expected.key}. {what}", most, fine))
            table = np.exp(pd.DataFrame({"best rate": law.best, **rules}))
            table.index = pd.MultiIndex.from_product([[title], table.index])
            tables.append(table.rename_axis(["network", "batch size"]).reset_index())
    return {"cases": cases, "rates": pd.concat(tables).to_dict("list")}
