"""What the page on the learning rate says, as numbers and words, and its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.learning_rates import measured, predictions, searched
from chapters.learning_rates.measured import ABOUT, DEFINED, EASY, FROM_ONE, ONE, RIVALS, SOONER
from chapters.learning_rates.predictions import name_of
from lib.analysis import rates
from lib.analysis.scaling import ENOUGH
from lib.measuring import sweeps
from lib.page import told
from lib.records import results
from lib.wording import brief, named, number, percent, with_interval

SATURATING = ("sgd", "momentum", "muon")  # methods whose rates were predicted to take the form
WORDS = {DEFINED: "as defined", SOONER: "also those ended sooner", EASY: "easiest goal"}


def series() -> list[dict[str, object]]:
    """Every curve's law, for figures of other pages: name, method, data (set), sparsity, points
    ([batch size, best rate]), eta_inf, b_eta; of `ENOUGH` searches.
    """
    found, listed = measured.on_record()[DEFINED], []
    for row in curves(found).to_dict("records"):
        own = of(found["points"], row)
        listed.append(
            {
                "name": name_of(pd.Series(row)),
                "method": row["algorithm"],
                "data": row["workload"]
                .partition("-fc")[0]
                .partition("-mlp")[0]
                .partition("-cnn")[0],
                "sparsity": row["sparsity"],
                "points": own[["batch_size", "rate"]].to_numpy().tolist(),
                "eta_inf": row["eta_inf"],
                "B_eta": row["b_eta"],
            }
        )
    return listed


def searches(chosen) -> tuple[pd.DataFrame, dict]:
    """The searches behind the page, and `measured.tables` by reading, the curve asked for first: the
    book's, or those of a reader's own.
    """
    study = searched.asked(chosen)
    if chosen.budget == "smoke" or not set(study.cells) <= set(searched.planned()):
        frame = sweeps.results(study, chosen.budget)
        cells = study.smoke().cells if chosen.budget == "smoke" else study.cells
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


def curves(found: dict[str, pd.DataFrame], *methods: str, least: int = ENOUGH) -> pd.DataFrame:
    """The curves of at least so many searches, or as many as any has, of these methods or of all."""
    table = found["curves"]
    if table.empty:
        return table
    least = min(least, table.n.max())
    return table[(table.n >= least) & table.algorithm.isin(methods or set(table.algorithm))]


def of(table: pd.DataFrame, row: dict) -> pd.DataFrame:
    """A curve's rows of a table."""
    return table[(table[ABOUT] == pd.Series(row)[ABOUT]).all(axis=1)]


def beside(found: dict[str, pd.DataFrame], name: str, *methods: str) -> pd.DataFrame:
    """The rows of a table that are of `curves`, with what these say."""
    own = curves(found, *methods)
    if own.empty:
        return found[name].iloc[:0]
    return found[name].merge(own[[*ABOUT, "eta_inf", "b_eta", "critical", "n"]], on=ABOUT)


def fitted(points: pd.DataFrame) -> pd.DataFrame:
    """The forms that Adam's rates may take, fitted to every curve: ABOUT, form, batch_size, rate."""
    parts = []
    for key, own in points.groupby(ABOUT) if len(points) else ():
        sizes = own.batch_size.to_numpy(float)
        x = np.geomspace(sizes.min(), sizes.max(), 50)
        for form in ("saturating", "saturating square root", "surge"):
            one = rates.fit(form, sizes, np.log(own.rate.to_numpy()))
            about = {**dict(zip(ABOUT, key)), "form": form, "batch_size": x}
            parts.append(pd.DataFrame({**about, "rate": np.exp(one.log_rates(x))}))
    return pd.concat(parts) if parts else pd.DataFrame(columns=[*ABOUT, "form", "rate"])


def findings(every: dict, far: pd.DataFrame, missing: int) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        every: of `searches`.
        far: of `theory.far_below`.
        missing: how many searches are not on record.
    """
    found, easy = every[DEFINED], every[EASY]
    own = curves(found, *SATURATING)
    points = beside(found, "points", *SATURATING)
    sgd, easy_sgd = curves(found, "sgd"), curves(easy, "sgd")
    dense = sgd[sgd.sparsity == 0] if len(sgd) else sgd
    costs, tuned = beside(easy, "costs", "sgd"), beside(easy, "tuning", "sgd")
    by = np.exp(costs.groupby("rule").cost.mean()) if len(costs) else pd.Series(dtype=float)
    flow = far.over.dropna().quantile([0.5, 0.05, 0.95]).tolist() if len(far) else [None] * 3
    counts = found["curves"]
    off = np.log(points.rate / points.fitted) if len(points) else pd.Series(dtype=float)
    return told.plain(
        {
            "curves": len(own),
            "methods": [named(name) for name in dict.fromkeys(own.algorithm)]
            if len(own)
            else [],
            "off": percent(float(np.sqrt((off**2).mean()))) if len(off) else None,
            "power_off": _rms(own, "power"),
            "saturating_off": _rms(own, "saturating"),
            "rho": _between(dense, "rho"),
            "exponent": _between(sgd, "exponent"),
            "falls": float(sgd.falls.max()) if len(sgd) else None,
            "fold": _between(sgd, "fold"),
            "easy_falls": float(easy_sgd.falls.max()) if len(easy_sgd) else None,
            "half": by.get("half"),
            "twice": by.get("twice"),
            "one": by.get(ONE),
            "linear": by.get("linear from one size"),
            "root": by.get("square root from one size"),
            "same": by.get("no change"),
            "spread": _spread(tuned),
            "flow": flow[0],
            "flow_low": flow[1],
            "flow_high": flow[2],
            "missing": missing,
            "soon": int(counts.soon.sum()) if len(counts) else 0,
            "edge": int(counts.edge.sum()) if len(counts) else 0,
            "searches": int(counts.searches.sum()) if len(counts) else 0,
            "adam": len(curves(found, "adam")),
            "adam_exponent": _between(curves(found, "adam"), "exponent"),
        }
    )


def _rms(own: pd.DataFrame, rule: str) -> str | None:
    """The error of a rule at sizes left out, in the median over curves, as a share."""
    return percent(float(np.expm1(own[rule].median()))) if len(own) else None


def _between(own: pd.DataFrame, name: str) -> list[float] | None:
    return [float(own[name].min()), float(own[name].max())] if len(own) else None


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
                "B_η": brief(row["b_eta"]),
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
    return with_interval(*(row.get(f"rho{end}", np.nan) for end in ("", "_low", "_high")))


def _named(row: dict) -> dict[str, str]:
    return {"network": name_of(pd.Series(row)), "method": named(row["algorithm"])}


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
    for row in curves(every[reading], least=1).to_dict("records"):
        own = of(every[reading]["costs"], row).groupby("rule")
        cost, bound = np.exp(own.cost.mean()), own.bound.any()
        cells = {rule: f"{'≥ ' * int(bound[rule])}{brief(cost[rule])}" for rule in cost.index}
        order = ["half", "twice", ONE, *FROM_ONE, *RIVALS]
        rows.append({**_named(row), **{rule: cells.get(rule, "—") for rule in order}})
    return pd.DataFrame(rows)


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
