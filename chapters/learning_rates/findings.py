"""What the page on the learning rate says, as numbers and words, and its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.learning_rates import measured, predictions, searched
from chapters.learning_rates.measured import (
    ABOUT,
    DEFINED,
    EASY,
    FROM_ONE,
    ONE,
    RIVALS,
    SOONER,
    beside,
    curves,
    name_of,
    of,
)
from lib.measuring import sweeps
from lib.page import told
from lib.records import results
from lib.wording import brief, named, number, percent, with_interval
from lib.workloads.catalogue import workload

SATURATING = ("sgd", "momentum", "muon")  # methods whose rates were predicted to take the form
WORDS = {DEFINED: "as defined", SOONER: "also those ended sooner", EASY: "easiest goal"}


def series() -> list[dict[str, object]]:
    """Every curve's law, for figures of other pages: name, method, data (set), sparsity, points
    ([batch size, best rate]), eta_inf, b_eta; of `ENOUGH` searches.
    """
    found = measured.on_record()[DEFINED]
    return [
        {
            "name": name_of(row),
            "method": row["algorithm"],
            "data": workload(row["workload"]).dataset,
            "sparsity": row["sparsity"],
            "points": of(found["points"], row)[["batch_size", "rate"]].to_numpy().tolist(),
            "eta_inf": row["eta_inf"],
            "B_eta": row["b_eta"],
        }
        for row in curves(found).to_dict("records")
    ]


def searches(chosen) -> tuple[pd.DataFrame, dict]:
    """The searches behind the page, and `measured.tables` by reading, the curve asked for first:
    the book's, or those of a reader's own.
    """
    study = searched.asked(chosen)
    if chosen.budget == "smoke" or not set(study.searches) <= set(searched.planned()):
        frame = sweeps.results(study, chosen.budget)
        cells = study.smoke().searches if chosen.budget == "smoke" else study.searches
        return frame, measured.by_reading(frame, cells)
    if chosen.budget == "full":
        sweeps.results(study, "full")
    every = measured.on_record()
    first = {"workload": chosen.workload, "algorithm": chosen.algorithm}
    for own in every.values():
        for name, table in own.items():
            asked = (table[[*first]] == first).all(axis=1)
            own[name] = pd.concat([table[asked], table[~asked]])
    return results.of_searches(searched.whole()), every


def findings(every: dict, far: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        every: of `searches`.
        far: of `flow.far_below`.
    """
    found, easy = every[DEFINED], every[EASY]
    own, sgd, adam = (curves(found, *names) for names in (SATURATING, ("sgd",), ("adam",)))
    points, costs = beside(found, "points", *SATURATING), beside(easy, "costs", "sgd")
    off = np.log(points.rate / points.saturating) if len(points) else pd.Series([np.nan])
    by = np.exp(costs.groupby("rule").cost.mean()) if len(costs) else {}
    named_costs = {
        "half": "half",
        "twice": "twice",
        "one": ONE,
        "linear": "linear from one size",
        "root": "square root from one size",
    }
    flow = far.over.dropna().quantile([0.5, 0.05, 0.95]).tolist() if len(far) else [None] * 3
    counts = found["curves"].reindex(columns=["searches", "soon", "edge"]).sum().astype(int)
    return told.plain(
        {
            "curves": len(own),
            "methods": [named(name) for name in dict.fromkeys(own.algorithm)],
            "networks": [workload(name).title for name in dict.fromkeys(own.workload)],
            "off": percent(float(np.sqrt((off**2).mean()))) if len(points) else None,
            "rho": _between(sgd[sgd.sparsity == 0], "rho"),
            "within": _within(beside(easy, "points", "sgd")),
            "fold": _between(curves(easy, "sgd"), "fold"),
            "adam": len(adam),
            "adam_exponent": _between(adam, "exponent"),
            "spread": _spread(beside(easy, "tuning", "sgd")),
            **{name: by.get(rule) for name, rule in named_costs.items()},
            **dict(zip(("flow", "flow_low", "flow_high"), flow)),
            **counts,
        }
    )


def _between(own: pd.DataFrame, name: str) -> list[float] | None:
    return [float(own[name].min()), float(own[name].max())] if len(own) else None


def _within(points: pd.DataFrame) -> float | None:
    """The largest factor between two products of steps and best rate of one curve."""
    products = (points.steps * points.rate).groupby([points[name] for name in ABOUT])
    return float((products.max() / products.min()).max()) if len(points) else None


def _spread(tuned: pd.DataFrame) -> float | None:
    """By which factor steps times rate differ between batch sizes, at one rate over the best: the
    root mean square over curves and rates from a third to three times the best.
    """
    if tuned.empty:
        return None
    near = tuned[tuned.over.between(1 / 3, 3)]
    logs = np.log(near.distance)
    rest = logs - logs.groupby([*(near[c] for c in ABOUT), near.over]).transform("mean")
    return float(np.exp(np.sqrt((rest**2).mean())))


# --- tables ---------------------------------------------------------------------------------------


def law_table(every: dict) -> pd.DataFrame:
    """A row per network, method and sparsity: rho in every reading, and what else the law says."""
    rows = []
    for row in curves(every[DEFINED], least=1).to_dict("records"):
        others = {reading: _same(every[reading]["curves"], row) for reading in (SOONER, EASY)}
        rows.append(
            {
                **_named(row),
                "searches": row["n"],
                "η∞": brief(row["eta_inf"]),
                "Bη": brief(row["b_eta"]),
                "C": brief(row["critical"]),
                "ρ (90 %)": _rho(row),
                **{f"ρ, {WORDS[reading]}": _rho(own) for reading, own in others.items()},
                "exponent": brief(row["exponent"]),
                "K* falls": brief(row["fold"]),
                "K*η* falls": brief(row["falls"]),
                "not counted": f"{row['soon'] + row['edge']} of {row['searches']}",
            }
        )
    return pd.DataFrame(rows)


def _same(table: pd.DataFrame, row: dict) -> dict:
    return next(iter(of(table, row).to_dict("records")), {})


def _rho(row: dict) -> str:
    if not np.isfinite(row.get("rho_low", np.nan)):
        return brief(row.get("rho", np.nan))  # without a search, too few sizes have a rate
    return with_interval(row["rho"], row["rho_low"], row["rho_high"])


def _named(row: dict) -> dict[str, str]:
    return {"network": name_of(row), "method": named(row["algorithm"])}


def rules_table(every: dict, reading: str) -> pd.DataFrame:
    """A row per curve: the error of every rule at sizes left out (ln of the rate)."""
    rows = curves(every[reading], least=1).to_dict("records")
    return pd.DataFrame(
        [
            {**_named(row), **{rule: number(round(row[rule], 3)) for rule in RIVALS}}
            for row in rows
        ]
    )


def costs_table(every: dict, reading: str) -> pd.DataFrame:
    """A row per curve: times the steps at the best rate, in the geometric mean over sizes, at half
    and twice of it, and at the rate that each rule gives; ≥ where it is a bound.
    """
    rows = []
    order = ["half", "twice", ONE, *FROM_ONE, *RIVALS]
    for row in curves(every[reading], least=1).to_dict("records"):
        costs = of(every[reading]["costs"], row)
        cells = {rule: _times(own) for rule, own in costs.groupby("rule")}
        rows.append({**_named(row), **{rule: cells.get(rule, "—") for rule in order}})
    return pd.DataFrame(rows)


def _times(costs: pd.DataFrame) -> str:
    """The geometric mean of costs, ≥ where one is a bound."""
    mean = brief(float(np.exp(costs.cost.mean())))
    return f"≥ {mean}" if costs.bound.any() else mean


def predictions_table(every: dict) -> pd.DataFrame:
    """What was predicted, and what came in every reading."""
    planned = {}
    for cell in searched.planned():
        key = (cell.workload, cell.algorithm, cell.sparsity)
        planned.setdefault(cell.algorithm, set()).add(key)
    rows = []
    for key, text in predictions.texts().items():
        method = predictions.JUDGED[key][1]
        came = {
            WORDS[reading]: predictions.outcome(every[reading], key, len(planned[method]))
            for reading in (DEFINED, SOONER, EASY)
        }
        rows.append({"": key, "predicted": text, **came})
    return pd.DataFrame(rows)


def cases_table(every: dict) -> pd.DataFrame:
    """What came of every prediction on every curve, as defined."""
    said = {True: "as predicted", False: "not as predicted", None: "a bound"}
    rows = [
        {"": key, "on": what, "measured": number(value), "verdict": said[fine]}
        for key in predictions.JUDGED
        for what, value, fine in predictions.cases(every[DEFINED], key)
    ]
    return pd.DataFrame(rows)


def aside_table() -> pd.DataFrame:
    """What came of the rates that were predicted for splits kept aside."""
    said = {True: "as predicted", False: "not as predicted"}
    rows = [
        {"on": what, "measured": number(value), "verdict": said[fine]}
        for what, value, fine in predictions.aside()
    ]
    return pd.DataFrame(rows or [{"on": "not yet measured", "measured": "", "verdict": ""}])
