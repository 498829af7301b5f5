"""What one network's curve says: where doublings stop to pay, how it moves with the goal, the
search space and the trials.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import CONSTANTS
from lib.methods import WITH_MOMENTUM

COUNTS = (10, 25, 50, 100)  # trials of a search
MOST_LOST = 0.6  # of the searches of a curve, up to which it is read
LINE = ["goal", "sparsity", "c1", "c2", "critical", "critical_low", "critical_high"]
FORM = ["chi2", "freedom", "p_value", "exponent"]


def lines_by_goal(trials: pd.DataFrame) -> pd.DataFrame:
    """The fit c1/B + c2 of every curve at every goal, where its critical batch size lies within the
    sizes measured: LINE.
    """
    parts = [pd.DataFrame(columns=LINE)]
    for goal in scaling.goals(trials):
        summary, _ = scaling.summaries(scaling.at_goal(trials, goal))
        parts.append(summary[summary.identified.astype(bool)].assign(goal=goal)[LINE])
    return pd.concat([p for p in parts if len(p)] or parts, ignore_index=True)


def saved_per_doubling(batch_size: pd.Series, steps: pd.Series, at: float) -> tuple[float, float]:
    """The share of steps that a doubled batch saves: from the smallest size to the one nearest to
    `at`, and from there on.

    batch_size, steps: [n]; geometric means over the doublings between.  NaN where no two sizes lie
    on that side.
    """
    sizes = np.log2(np.asarray(batch_size, float))
    logs = pd.Series(np.log2(np.asarray(steps, float)), sizes).sort_index()
    near = 0
    if np.isfinite(at) and at > 0:
        near = int(np.abs(logs.index - np.log2(at)).argmin())
    return _saved(logs.iloc[: near + 1]), _saved(logs.iloc[near:])


def _saved(logs: pd.Series) -> float:
    if len(logs) < 2:
        return np.nan
    doublings = logs.index[-1] - logs.index[0]
    slope = (logs.iloc[-1] - logs.iloc[0]) / doublings
    return float(1 - 2**slope)


def slowest_over_fastest(searches: pd.DataFrame) -> float:
    """Steps of the slowest search of a point over those of the fastest: the median over points with
    several; NaN if none has.

    searches: of `scaling.steps_to_result`, those that met the goal.
    """
    met = searches.dropna(subset="steps")
    by = met.groupby(["sparsity", "batch_size"]).steps
    several = (by.max() / by.min())[by.size() > 1]
    return float(several.median()) if len(several) else np.nan


def over_sgd(curves: dict[tuple, scaling.Curve]) -> pd.DataFrame:
    """Every dense curve with momentum over SGD's, at the batch sizes that both have.

    Columns: those of CURVE; critical, c1, c2, smallest, largest (ratios; the last two of steps at
    these batch sizes); n (searches).
    """
    rows = []
    for key, curve in curves.items():
        below = curves.get((key[0], "sgd", *key[2:]))
        if key[3] or key[1] not in WITH_MOMENTUM or below is None:
            continue
        critical = scaling.critical_ratio(curve, below)
        if critical is None:
            continue
        above, base = (scaling.fit(own.sizes, own.means) for own in scaling.alike(curve, below))
        steps = scaling.steps_ratio(curve, below).ratio
        ends = {"smallest": steps.iloc[0], "largest": steps.iloc[-1], "n": critical.n}
        found = {"critical": np.exp(critical.value), **ends}
        rows.append((key, {"c1": (above.c1 / base.c1)[0], "c2": (above.c2 / base.c2)[0], **found}))
    return scaling.by_curve(rows, ["c1", "c2", "critical", "smallest", "largest", "n"])


def before_and_after(
    published: dict[tuple, scaling.Curve], whole: dict[tuple, scaling.Curve]
) -> pd.DataFrame:
    """Curves of the published range of momentum beside those of the whole one, on the searches that
    both have.

    Columns: those of CURVE; critical_published, critical_whole (examples), ratio, ratio_low,
    ratio_high (whole over published); and of `scaling.tests_of_form`, once for each range: chi2,
    freedom, p_value, exponent; n (searches).
    """
    rows = []
    for key, after in whole.items():
        before, after = scaling.paired(scaling.alike(published[key], after))
        row = {**scaling.critical_ratio(after, before).row("ratio"), "n": after.n}
        for name, curve in (("published", before), ("whole", after)):
            row[f"critical_{name}"] = np.exp(scaling.critical(curve).value)
            form = scaling.tests_of_form({key: curve})[FORM].reindex([0]).iloc[0]
            row |= form.add_suffix(f"_{name}").to_dict()
        rows.append({**dict(zip(scaling.CURVE, key)), **row})
    return pd.DataFrame(rows)


# --- how a curve depends on its search ------------------------------------------------------------


def by_first_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """Every curve from the first trials of each search, as if it had been a search of so many.

    A search whose first trials all missed, or were stopped when another met the goal, is a bound;
    counts at which more than MOST_LOST of the searches are bounds are left out. Columns: those of
    CURVE; count; c1, c2, critical (examples), each with _low and _high; n (searches).
    """
    rows = []
    for count in COUNTS:
        for key, curve in scaling.curves(trials[trials.trial < count]).items():
            if curve.missed.to_numpy().mean() <= MOST_LOST:
                row = {**dict(zip(scaling.CURVE, key)), "count": count, "n": curve.n}
                for name, effect in zip(CONSTANTS, scaling.constants(curve)):
                    row |= effect.row(name)
                rows.append(row)
    return pd.DataFrame(rows)


def by_best_of(trained: pd.DataFrame, goal: float) -> pd.DataFrame:
    """The curve of every network in the median over all searches of so many of its trials.

    trained: trials that went on after others had met the goal, so that all order statistics are
    known. Columns: workload, count, c1, c2, critical (examples).  A batch size at which the median
    search missed the goal is left out.
    """
    rows = []
    for name, own in trained.groupby("workload"):
        each = own.groupby("batch_size")[f"steps@{goal:g}"]
        for count in COUNTS:
            steps = each.agg(lambda steps, k=count: scaling.best_of_k(steps.to_numpy(float), k)[1])
            logs = np.log(steps[np.isfinite(steps)])
            sizes = logs.index.to_numpy(float)
            line = scaling.fit(sizes, logs)
            critical = np.exp(scaling.log_critical(sizes, logs.to_numpy()[None]))
            found = line.c1[0], line.c2[0], critical[0]
            rows.append((name, count, *found))
    return pd.DataFrame(rows, columns=["workload", "count", *CONSTANTS])
