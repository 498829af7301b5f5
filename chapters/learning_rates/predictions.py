"""What was predicted before the searches were run, and what came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from chapters.learning_rates.measured import ABOUT, FROM_ONE, ONE, RIVALS
from lib.analysis.scaling import ENOUGH
from lib.wording import number, percent
from lib.workloads.catalogue import workload

FILE = Path(__file__).with_name("predictions.yaml")
HIT, MISS, NOT_YET = "hit", "miss", "not yet measured"
Case = tuple[str, float | None, bool | None]  # what, the number, whether it is as predicted
RHO = {"digits": (0.55, 0.95), "mnist": (0.35, 0.65), "fashion-mnist": (0.35, 0.65)}


class Tables:
    """The tables of a reading (`measured.tables`), of curves of ENOUGH searches."""

    def __init__(self, found: dict[str, pd.DataFrame], method: str):
        curves = found["curves"]
        own = (
            curves[(curves.algorithm == method) & (curves.n >= ENOUGH)]
            if len(curves)
            else curves
        )
        self.curves = own
        self.keys = list(own[ABOUT].itertuples(index=False, name=None))
        self.found = found

    def __iter__(self) -> Iterator[tuple[str, pd.Series]]:
        """The name and the row of every curve."""
        return ((name_of(row), row) for _, row in self.curves.iterrows())

    def of(self, name: str, row: pd.Series) -> pd.DataFrame:
        """A curve's rows of a table."""
        table = self.found[name]
        return table[(table[ABOUT] == row[ABOUT]).all(axis=1)]


def name_of(row: pd.Series) -> str:
    """A network and whether it is pruned."""
    pruned = f", {percent(row.sparsity)} pruned" if row.sparsity else ""
    return f"{workload(row.workload).title.removesuffix(', easier goal')}{pruned}"


def _r1(found: dict) -> Iterator[Case]:
    for name, row in Tables(found, "sgd"):
        least = row[RIVALS].astype(float).idxmin()
        fine = least == "saturating" and row.saturating <= 0.2 and 0.8 <= row.exponent <= 1.25
        yield (
            f"{name}: error {number(row.saturating)} (least: {least}), exponent",
            row.exponent,
            fine,
        )


def _r2(found: dict) -> Iterator[Case]:
    dense = {}
    for name, row in Tables(found, "sgd"):
        low, high = RHO[workload(row.workload).dataset.partition("-lee")[0]]
        yield f"{name}: ρ", row.rho, low <= row.rho <= high
        if not row.sparsity:
            dense[row.workload] = row.rho
        elif row.workload in dense:
            over = row.rho / dense[row.workload]
            yield f"{name}: over dense", over, 1 / 1.5 <= over <= 1.5


def _r3(found: dict) -> Iterator[Case]:
    for name, row in Tables(found, "sgd"):
        if row.fold >= 10:
            yield f"{name}: falls", row.falls, row.falls < 2


def _r4(found: dict) -> Iterator[Case]:
    tables = Tables(found, "sgd")
    for name, row in tables:
        costs = tables.of("costs", row)
        for rule in ("half", "twice"):
            own = costs[costs.rule == rule].sort_values("batch_size")
            times = np.exp(own.cost)
            ends = times.iloc[0] / times.iloc[-1]
            inside = times.between(1.2, 1.8)
            # A bound from below may be more, and only tells against
            known = inside.all() and not own.bound.any()
            fails = (times > 1.8) | (times < 1.2) & ~own.bound
            fine = known and 1 / 1.4 < ends < 1.4
            lost = fails.any() or not own.bound.iloc[[0, -1]].any() and not 1 / 1.4 < ends < 1.4
            what = f"{name}: at {rule} the best, within at {int(inside.sum())} of {len(own)} sizes; mean"
            yield (
                what,
                float(np.exp(own.cost.mean())),
                True if fine else False if lost else None,
            )


def _r5(found: dict) -> Iterator[Case]:
    tables = Tables(found, "adam")
    for name, row in tables:
        rates = tables.of("points", row).sort_values("batch_size").rate
        last = rates.iloc[-1] / rates.iloc[:-1].max()
        worse = row.surge > row["saturating square root"]
        fine = 0.4 <= row.exponent <= 0.85 and last > 0.85 and worse
        yield f"{name}: last over largest {number(last)}, exponent", row.exponent, bool(fine)


def _r6(found: dict) -> Iterator[Case]:
    for name, row in Tables(found, "muon"):
        others = row[["power", "constant", "linear", "square root"]].astype(float).min()
        fine = (
            row.saturating < others and 0.7 <= row.exponent <= 1.15 and 0.45 <= row.rho <= 0.85
        )
        yield f"{name}: exponent {number(row.exponent)}, ρ", row.rho, bool(fine)


def _r7(found: dict) -> Iterator[Case]:
    sgd, tables = Tables(found, "sgd"), Tables(found, "momentum")
    plain = {(row.workload, row.sparsity): row for _, row in sgd}
    for name, row in tables:
        if (beside := plain.get((row.workload, row.sparsity))) is not None:
            ends = [
                own.sort_values("batch_size").rate.tail(3)
                for own in (tables.of("points", row), sgd.of("points", beside))
            ]
            over = float(np.exp(np.log(ends[0]).mean() - np.log(ends[1]).mean()))
            fine = 0.05 <= over <= 0.3 and 0.8 <= row.exponent <= 1.3
            yield f"{name}: exponent {number(row.exponent)}, rate over SGD’s", over, bool(fine)


def _r8(found: dict) -> Iterator[Case]:
    tables = Tables(found, "sgd")
    for name, row in tables:
        costs = tables.of("costs", row)
        by = costs.groupby("rule").cost.mean()
        if ONE in by:
            rms = float(np.sqrt((costs[costs.rule == ONE].off ** 2).mean()))
            rivals = [by[rule] for rule in FROM_ONE if rule != "no change"]
            own = float(np.exp(by[ONE]))
            fine = rms <= 0.25 and own <= 1.15 and by[ONE] < min(rivals)
            yield f"{name}: error {number(rms)}, cost", own, bool(fine)


JUDGED: dict[str, tuple[Callable, str]] = {
    "R1": (_r1, "sgd"),
    "R2": (_r2, "sgd"),
    "R3": (_r3, "sgd"),
    "R4": (_r4, "sgd"),
    "R5": (_r5, "adam"),
    "R6": (_r6, "muon"),
    "R7": (_r7, "momentum"),
    "R8": (_r8, "sgd"),
}


def cases(found: dict, key: str) -> list[Case]:
    """What came of a prediction on every curve of ENOUGH searches."""
    judge, _ = JUDGED[key]
    return list(judge(found))


def outcome(found: dict, key: str, curves: int) -> str:
    """HIT, MISS or NOT_YET, and on how many; curves: how many are planned."""
    verdicts = [fine for _, _, fine in cases(found, key)]
    if not verdicts:
        return NOT_YET
    there = len(Tables(found, JUDGED[key][1]).keys)
    word = HIT if there >= curves and None not in verdicts else "so far"
    word = MISS if False in verdicts else word
    return f"{word}: {verdicts.count(True)} of {len(verdicts)} as predicted"


def texts() -> dict[str, str]:
    """What was predicted, by its key."""
    told = yaml.safe_load(FILE.read_text(encoding="utf-8"))["predictions"]
    return {key: " ".join(text.split()) for key, text in told.items()}
