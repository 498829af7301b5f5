"""What was predicted before the searches were run, and what came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from chapters.learning_rates import searched
from chapters.learning_rates.measured import ONE, RIVALS, curves, name_of, of
from lib.analysis.scaling import ENOUGH, WITHIN_BUDGETS
from lib.claims.judging import kept
from lib.records import results
from lib.records.searches import recorded
from lib.studies.study import Study
from lib.wording import number
from lib.workloads.catalogue import workload

FILE = Path(__file__).with_name("predictions.yaml")
HIT, MISS, NOT_YET = "hit", "miss", "not yet measured"
ASIDE = 104, 105, 106  # splits of SGD
RHO = {True: (0.55, 0.95), False: (0.35, 0.65)}  # on the digits, and elsewhere
Case = tuple[str, float, bool | None]  # on what, a number, and whether it is as predicted
Tables = dict[str, pd.DataFrame]  # of `measured.tables`


def texts() -> dict[str, str]:
    """What was predicted, by its key."""
    told = yaml.safe_load(FILE.read_text(encoding="utf-8"))["predictions"]
    return {key: " ".join(text.split()) for key, text in told.items()}


def each(found: Tables, method: str) -> Iterator[tuple[str, dict]]:
    """The name and the row of every curve of ENOUGH searches of a method."""
    rows = curves(found, method).to_dict("records")
    return ((name_of(row), row) for row in rows if row["n"] >= ENOUGH)


def _r1(found: Tables, method: str) -> Iterator[Case]:
    for name, row in each(found, method):
        least = min(RIVALS, key=row.get)
        fine = least == "saturating" and row[least] <= 0.2 and 0.8 <= row["exponent"] <= 1.25
        error = f"error {number(row['saturating'])}, the least: {least}"
        yield f"{name}: {error}; exponent", row["exponent"], fine


def _r2(found: Tables, method: str) -> Iterator[Case]:
    rho = {(row["workload"], row["sparsity"]): row["rho"] for _, row in each(found, method)}
    for name, row in each(found, method):
        low, high = RHO[workload(row["workload"]).dataset == "digits"]
        yield f"{name}: ρ", row["rho"], low <= row["rho"] <= high
        if row["sparsity"] and (dense := rho.get((row["workload"], 0.0))):
            yield (
                f"{name}: ρ over dense",
                row["rho"] / dense,
                1 / 1.5 <= row["rho"] / dense <= 1.5,
            )


def _r3(found: Tables, method: str) -> Iterator[Case]:
    for name, row in each(found, method):
        if row["fold"] >= 10:
            yield f"{name}: K*η* falls", row["falls"], row["falls"] < 2


def _r4(found: Tables, method: str) -> Iterator[Case]:
    for name, row in each(found, method):
        costs = of(found["costs"], row)
        for rule in ("half", "twice"):
            own = costs[costs.rule == rule]
            times, bound = np.exp(own.cost.to_numpy()), own.bound.to_numpy(bool)
            inside = (times >= 1.2) & (times <= 1.8)
            alike = 1 / 1.4 < times[0] / times[-1] < 1.4
            # What is a bound from below may be more
            lost = (times > 1.8) | (times < 1.2) & ~bound
            lost = lost.any() or not alike and not bound[[0, -1]].any()
            fine = False if lost else None if bound.any() else bool(inside.all() and alike)
            what = (
                f"{name}: {rule} the best, inside at {inside.sum()} of {len(own)} sizes; mean"
            )
            yield what, float(np.exp(own.cost.mean())), fine


def _r5(found: Tables, method: str) -> Iterator[Case]:
    for name, row in each(found, method):
        best = of(found["points"], row).rate
        last = best.iloc[-1] / best.iloc[:-1].max()
        fine = row["surge"] > row["saturating square root"] and 0.4 <= row["exponent"] <= 0.85
        yield (
            f"{name}: last rate {number(last)}; exponent",
            row["exponent"],
            fine and last > 0.85,
        )


def _r6(found: Tables, method: str) -> Iterator[Case]:
    for name, row in each(found, method):
        rest = min(row[rule] for rule in ("power", "constant", "linear", "square root"))
        fine = row["saturating"] < rest and 0.7 <= row["exponent"] <= 1.15
        fine = fine and 0.45 <= row["rho"] <= 0.85
        yield f"{name}: exponent {number(row['exponent'])}; ρ", row["rho"], fine


def _r7(found: Tables, method: str) -> Iterator[Case]:
    plain = {(row["workload"], row["sparsity"]): row for _, row in each(found, "sgd")}
    for name, row in each(found, method):
        sgd = plain.get((row["workload"], row["sparsity"]))
        if sgd:
            over = _largest(found, row) / _largest(found, sgd)
            fine = 0.05 <= over <= 0.3 and 0.8 <= row["exponent"] <= 1.3
            yield f"{name}: exponent {number(row['exponent'])}; rate over SGD’s", over, fine


def _largest(found: Tables, row: dict) -> float:
    """The mean best rate of a curve at its three largest batch sizes."""
    logs = np.log(of(found["points"], row).rate.tail(3))
    return float(np.exp(logs.mean()))


def _r8(found: Tables, method: str) -> Iterator[Case]:
    for name, row in each(found, method):
        costs = of(found["costs"], row)
        cost = np.exp(costs.groupby("rule").cost.mean())
        if ONE in cost:
            off = costs.off[costs.rule == ONE]
            error = float(np.sqrt((off**2).mean()))
            rest = cost[["linear from one size", "square root from one size"]].min()
            own = float(cost[ONE])
            fine = error <= 0.25 and own <= 1.15 and own < rest
            yield f"{name}: error {number(error)}; cost", own, bool(fine)


def aside() -> list[Case]:
    """What came of the rates that were predicted for splits kept aside, on every network whose
    searches are all on record.
    """
    return [tuple(case) for case in kept("learning-rates-aside", lambda: {"": _aside()})[""]]


def _aside() -> list[Case]:
    rates = yaml.safe_load(FILE.read_text(encoding="utf-8"))["kept aside"]["rates"]
    cells = [c for c in searched.planned() if c.algorithm == "sgd" and c.split in ASIDE]
    study = Study("aside", "", recorded(cells).values())
    trials = results.read(study, without=WITHIN_BUDGETS)
    laws = searched.laws(searched.at_goals(trials, searched.EASIEST), cells)
    cases = []
    for (name, _, _, sparsity), law in laws.items():
        predicted = np.log(pd.Series(rates[f"{name} {sparsity}"])).rename_axis("batch_size")
        if law.n < len(ASIDE):
            continue
        off = law.best - predicted
        error = float(np.sqrt((off**2).mean()))
        cost = float(np.exp(law.cost(predicted).cost.mean()))
        fine = error <= 0.25 and off.abs().max() <= np.log(1 / 0.6) and cost <= 1.15
        row = {"workload": name, "sparsity": sparsity}
        cases.append((f"{name_of(row)}: error {number(error)}; cost", cost, bool(fine)))
    return cases


JUDGED: dict[str, tuple[Callable[[Tables, str], Iterator[Case]], str]] = {
    "R1": (_r1, "sgd"),
    "R2": (_r2, "sgd"),
    "R3": (_r3, "sgd"),
    "R4": (_r4, "sgd"),
    "R5": (_r5, "adam"),
    "R6": (_r6, "muon"),
    "R7": (_r7, "momentum"),
    "R8": (_r8, "sgd"),
}


def cases(found: Tables, key: str) -> list[Case]:
    """What came of a prediction on every curve of ENOUGH searches."""
    judge, method = JUDGED[key]
    return list(judge(found, method))


def outcome(found: Tables, key: str, planned: int) -> str:
    """HIT, MISS or NOT_YET, and on how many; planned: curves."""
    verdicts = [fine for _, _, fine in cases(found, key)]
    if not verdicts:
        return NOT_YET
    there = len(list(each(found, JUDGED[key][1])))
    word = HIT if there >= planned and None not in verdicts else "so far"
    word = MISS if False in verdicts else word
    return f"{word}: {verdicts.count(True)} of {len(verdicts)} as predicted"
