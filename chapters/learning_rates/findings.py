"""What the page on the learning rate says, as numbers and words, and its tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from chapters.learning_rates import measured, predictions, rate_figures, searched
from chapters.learning_rates.measured import Tables, curves, name_of, rows_of, with_curves
from lib import claims
from lib.claims import front
from lib.measuring import sweeps
from lib.page import estimates
from lib.probes import tracks
from lib.records import results
from lib.studies import plans
from lib.wording import brief, named, percent, with_interval

SATURATING = ("sgd", "momentum", "muon")  # methods whose rates were predicted to saturate
WORDS = {
    measured.DEFINED: "as defined",
    measured.SOONER: "also those that ended sooner",
    measured.EASY: "easiest goal",
}
VERDICTS = {True: "as predicted", False: "not as predicted", None: "open"}


def series() -> pd.DataFrame:
    """The points of every curve with a method in SATURATING and `ENOUGH` searches, for the front
    page's figure: workload, algorithm, sparsity, batch_size, rate, eta_inf, b_eta (in examples), n
    (searches), network.
    """
    tables = measured.on_record()[measured.DEFINED]
    constants = curves(tables, *SATURATING)[[*measured.ABOUT, "eta_inf", "b_eta", "n"]]
    points = tables["points"].merge(constants, on=measured.ABOUT)
    return points.assign(network=points.workload.map(measured.title_of))


def searches(chosen) -> tuple[pd.DataFrame, dict[str, Tables]]:
    """The searches behind the page, and `measured.tables` by reading with the chosen curve first:
    the book's, or those of a reader's own searches.
    """
    study, planned = searched.requested(chosen), searched.planned()
    if chosen.budget == "smoke" or not set(study.searches) <= set(planned):
        frame = sweeps.results(study, chosen.budget)
        study = study.smoke() if chosen.budget == "smoke" else study
        return frame, measured.by_reading(frame, study.searches)
    if chosen.budget == "full":
        sweeps.results(study, "full")
    readings = measured.on_record()
    for tables in readings.values():
        for name, table in tables.items():
            last = (table.workload != chosen.workload) | (table.algorithm != chosen.algorithm)
            tables[name] = table.iloc[np.argsort(last.to_numpy(), kind="stable")]
    behind = [*planned, *plans.study(searched.LANGUAGE).searches]
    return results.of_searches(searched.study(behind)), readings


def findings(readings: dict[str, Tables], far: pd.DataFrame) -> dict:
    """All values in the page's sentences.

    Args:
        readings: from `searches`.
        far: from `measured.far_below`.
    """
    tables, easy = readings[measured.DEFINED], readings[measured.EASY]
    saturating, sgd, adam = (
        curves(tables, *names) for names in (SATURATING, ["sgd"], ["adam"])
    )
    points, costs = (
        with_curves(tables, "points", *SATURATING),
        with_curves(easy, "costs", *SATURATING, "adam"),
    )
    misses = [None] * 2
    if len(points):  # the mean of the first over a curve is 0
        logs = np.log(points.rate / points.saturating), saturating.saturating
        misses = [percent(np.expm1(predictions.rms(log))) for log in logs]
    times, drawn, spent = [None] * 5, [], None
    if len(costs):  # for the curve that figures show initially
        times = measured.times(rows_of(costs, costs.iloc[0])).drop("no change")
        drawn = rate_figures.labelled(costs.head(1)).curve.tolist()
        law = costs[costs.rule == measured.ONE].groupby(measured.ABOUT)[["cost"]].mean()
        spent = _ends(np.exp(law), "cost")
    table = predictions_table(readings).iloc[:, 1:]
    failed = table.apply(lambda row: row.str.startswith(predictions.MISS)).sum().tolist()
    noise = over_noise(sgd)
    flow = far.over.quantile([0.5, 0.05, 0.95]).tolist() if len(far) else [None] * 3
    counts = tables["curves"].reindex(columns=["searches", "soon", "edge"]).sum().astype(int)
    return estimates.plain(
        {
            "curves": len(saturating),
            "methods": [named(name) for name in saturating.algorithm.unique()],
            "networks": [*map(measured.title_of, saturating.workload.unique())],
            **dict(zip(("off", "left_out"), misses)),
            "costs": spent,
            **{name: _ends(noise, name) for name in ("noise_c", "noise_b")},
            "nearer_c": int(noise.nearer_c.sum()) if len(noise) else None,
            "followed": len(noise),
            "rho": front.effects(claims.every()["M2"]),
            **_products(with_curves(easy, "points", "sgd")),
            "fold": _ends(curves(easy, "sgd"), "fold"),
            "rho_momentum": _ends(curves(tables, "momentum"), "rho"),
            "adam_exponent": _ends(adam, "exponent"),
            "sgd_exponent": _ends(sgd, "exponent"),
            "adam_easy": _ends(curves(easy, "adam"), "exponent"),
            "muon_exponent": _ends(curves(tables, "muon"), "exponent"),
            "adam_on": [name_of(row) for row in adam.to_dict("records")],
            "drawn": drawn,
            "predicted": len(table),
            **dict(zip(("missed", "soon_missed", "easy_missed"), failed)),
            "spread": _spread(with_curves(easy, "tuning", "sgd")),
            **dict(zip(("half", "twice", "one", "linear", "root"), times)),
            **elsewhere(),
            **dict(zip(("flow", "flow_low", "flow_high"), flow)),
            "flows": len(far),
            "unmet": int(far.over.isna().sum()),
            **counts,
        }
    )


def elsewhere() -> dict:
    """On how many other networks the law was tried (tried) and held (came); by the predictions'
    keys, the largest factor by which its rates were off, and whether they were hit.
    """
    cases, _ = predictions.elsewhere()
    words = {True: predictions.HIT, False: predictions.MISS}
    most = {what[:3]: f"{brief(value)} ({words[fine]})" for what, value, fine in cases}
    came = sum(fine for *_, fine in cases)
    return {"tried": len(cases), "came": came, "R10": most.get("R10"), "R11": most.get("R11")}


def _ends(rows: pd.DataFrame, name: str) -> list[float] | None:
    return [float(rows[name].min()), float(rows[name].max())] if len(rows) else None


def over_noise(sgd: pd.DataFrame) -> pd.DataFrame:
    """The curves of SGD for which paths to the goal are on record, with noise_c and noise_b: the
    noise scale along these paths, of searches that tune everything, over C and over B_eta;
    nearer_c: whether it is nearer to C.
    """
    if sgd.empty:
        return sgd
    noise = tracks.noise_of_curves(tracks.every())
    curves = sgd.join(noise, on=measured.ABOUT, how="inner")
    noise = curves.noise_scale
    curves = curves.assign(noise_c=noise / curves.critical, noise_b=noise / curves.b_eta)
    off = np.log(curves[["noise_c", "noise_b"]]).abs()
    return curves.assign(nearer_c=off.noise_c < off.noise_b)


def _products(points: pd.DataFrame) -> dict:
    """Of the products of steps and best rate of one method's curves: within (the largest factor
    between two of a curve), pruned_sum (pruned over dense, the geometric mean over batch sizes: the
    ends over networks).
    """
    if points.empty:
        return dict.fromkeys(("within", "pruned_sum"))
    logs = np.log(points.steps * points.rate).groupby([points.workload, points.sparsity])
    ratios = np.exp(logs.mean().unstack().diff(axis=1).iloc[:, -1].dropna())
    within = float(np.exp((logs.max() - logs.min()).max()))
    ends = ratios.agg(["min", "max"]).tolist() if len(ratios) else None
    return {"within": within, "pruned_sum": ends}


def _spread(tuned: pd.DataFrame) -> float | None:
    """The factor by which steps times rate differs between batch sizes at the same rate over the
    best: the root mean square over curves and rates from a third to three times the best.
    """
    if tuned.empty:
        return None
    near = tuned[tuned.over.between(1 / 3, 3)].assign(log=lambda rows: np.log(rows.distance))
    off = near.log - near.groupby([*measured.ABOUT, "over"]).log.transform("mean")
    return float(np.exp(np.sqrt((off**2).mean())))


# --- tables ---------------------------------------------------------------------------------------


def _curves(tables: Tables) -> list[tuple[dict, dict[str, str]]]:
    """For every curve, its row and the first cell of a table with a row per curve."""
    return [
        (row, {"curve": f"{name_of(row)}, {named(row['algorithm'])}"})
        for row in curves(tables, least=1).to_dict("records")
    ]


def law_table(readings: dict[str, Tables]) -> pd.DataFrame:
    """A row per network, method and sparsity: the law's constants, rho in two readings, and what
    half and twice the best rate cost.
    """
    rows = []
    easy = readings[measured.EASY]
    for row, names in _curves(readings[measured.DEFINED]):
        constants = {"η∞": "eta_inf", "Bη": "b_eta", "exponent": "exponent", "C": "critical"}
        rows.append(
            {
                **names,
                "searches": row["n"],
                "rates that count": f"{row['searches'] - row['soon'] - row['edge']} of {row['searches']}",
                **{title: brief(row[name]) for title, name in constants.items()},
                "ρ (90 %)": _rho(pd.DataFrame([row])),
                "ρ, easiest goal": _rho(rows_of(easy["curves"], row)),
                **measured.times(rows_of(easy["costs"], row))[[*measured.OFF]],
            }
        )
    return pd.DataFrame(rows)


def _rho(rows: pd.DataFrame) -> str:
    """rho of at most one curve, without an interval if it has one search or few best rates."""
    for rho, *ends in rows[["rho", "rho_low", "rho_high"]].to_numpy():
        return with_interval(rho, *ends) if np.isfinite(ends).all() and ends[0] else brief(rho)
    return brief(np.nan)


def rules_table(tables: Tables) -> pd.DataFrame:
    """A row per curve: every rule's error in ln of the rate, at sizes left out."""
    rows = (
        names | {rule: row[rule] for rule in measured.RIVALS} for row, names in _curves(tables)
    )
    return pd.DataFrame(rows).round(3)


def costs_table(tables: Tables) -> pd.DataFrame:
    """A row per curve: steps over those at the best rate, the geometric mean over sizes, at the
    rate of each rule fitted to the other sizes; ≥: a lower bound.
    """
    return pd.DataFrame(
        names | dict(measured.times(rows_of(tables["costs"], row))[measured.RIVALS])
        for row, names in _curves(tables)
    )


def predictions_table(readings: dict[str, Tables]) -> pd.DataFrame:
    """Every prediction, and its outcome in each reading."""
    curves = {(cell.workload, cell.algorithm, cell.sparsity) for cell in searched.planned()}
    rows = []
    for key, (_, judged, what) in predictions.JUDGED.items():
        planned = sum(method == judged for _, method, _ in curves)
        outcomes = {
            WORDS[reading]: predictions.outcome(tables, key, planned)
            for reading, tables in readings.items()
        }
        rows.append({"predicted": f"{key}. {named(judged)}: {what}", **outcomes})
    return pd.DataFrame(rows)


def in_full() -> pd.DataFrame:
    """The full text of every prediction."""
    return pd.DataFrame(predictions.texts().items(), columns=["", "predicted"])


def cases_table(tables: Tables) -> pd.DataFrame:
    """The outcome of every prediction on every curve."""
    return outcomes(
        (f"{key}. {what}", value, fine)
        for key in predictions.JUDGED
        for what, value, fine in predictions.cases(tables, key)
    )


def outcomes(cases: Iterable[tuple[str, float, bool | None]]) -> pd.DataFrame:
    """A table of cases: what was measured, its value, and the verdict (None: a bound)."""
    rows = [(what, value, VERDICTS[fine]) for what, value, fine in cases]
    return pd.DataFrame(rows, columns=["what", "measured", "verdict"])
