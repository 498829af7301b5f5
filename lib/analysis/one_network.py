"""What one network's curve says: where doublings stop to pay, how it moves with the goal, the
search space and the trials.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.methods import WITH_MOMENTUM

CONSTANTS = ("c1", "c2", "critical")
COUNTS = (10, 25, 50, 100)  # trials of a search
LINE = ["goal", "sparsity", "c1", "c2", "critical", "critical_low", "critical_high"]


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
    logs = pd.Series(
        np.log2(np.asarray(steps, float)), np.log2(np.asarray(batch_size, float))
    ).sort_index()
    near = int(np.abs(logs.index - np.log2(at)).argmin()) if np.isfinite(at) and at > 0 else 0
    return _saved(logs.iloc[: near + 1]), _saved(logs.iloc[near:])


def _saved(logs: pd.Series) -> float:
    if len(logs) < 2:
        return np.nan
    return float(1 - 2 ** ((logs.iloc[-1] - logs.iloc[0]) / (logs.index[-1] - logs.index[0])))


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
        lines = [scaling.fit(own.sizes, own.means) for own in scaling.alike(curve, below)]
        steps = scaling.steps_ratio(curve, below).ratio
        found = {
            name: getattr(lines[0], name)[0] / getattr(lines[1], name)[0] for name in ("c1", "c2")
        }
        found |= {
            "critical": np.exp(critical.value),
            "smallest": steps.iloc[0],
            "largest": steps.iloc[-1],
            "n": critical.n,
        }
        rows.append({**dict(zip(scaling.CURVE, key)), **found})
    return pd.DataFrame(
        rows, columns=[*scaling.CURVE, "c1", "c2", "critical", "smallest", "largest", "n"]
    )


def before_and_after(
    published: dict[tuple, scaling.Curve], whole: dict[tuple, scaling.Curve]
) -> pd.DataFrame:
    """Curves of the published range of momentum beside those of the whole one, on the searches that
    both have.

    Columns: those of CURVE; critical_published, critical_whole (examples), ratio, ratio_low,
    ratio_high (whole over published); and of `scaling.tests_of_form`, once for each range: chi2,
    freedom, p_value, exponent, depart; n (searches).
    """
    rows = []
    for key, after in whole.items():
        before, after = scaling.paired(scaling.alike(published[key], after))
        forms = [scaling.tests_of_form({key: curve}) for curve in (before, after)]
        critical = {
            f"critical_{name}": np.exp(scaling.critical(c).value)
            for name, c in (("published", before), ("whole", after))
        }
        row = {
            **dict(zip(scaling.CURVE, key)),
            **critical,
            **scaling.critical_ratio(after, before).row("ratio"),
            "n": after.n,
        }
        for name, form in zip(("published", "whole"), forms):
            row |= {f"{c}_{name}": form[c].iloc[0] if len(form) else np.nan for c in FORM}
        rows.append(row)
    return pd.DataFrame(rows)


FORM = ("chi2", "freedom", "p_value", "exponent", "depart")


# --- how a curve depends on its search ------------------------------------------------------------


def by_first_trials(trials: pd.DataFrame, counts: Sequence[int] = COUNTS) -> pd.DataFrame:
    """Every curve from the first trials of each search, as if it had been a search of so many.

    A search whose first trials all missed, or were stopped when another met the goal, is a bound;
    counts at which more than MOST_LOST of the searches are bounds are left out. Columns: those of
    CURVE; count; c1, c2, critical (examples), each with _low and _high; n (searches).
    """
    rows = []
    for count in counts:
        for key, curve in scaling.curves(trials[trials.trial < count]).items():
            if curve.missed.to_numpy().mean() <= MOST_LOST:
                ends = {
                    k: v
                    for name, e in zip(CONSTANTS, constants(curve))
                    for k, v in e.row(name).items()
                }
                rows.append({**dict(zip(scaling.CURVE, key)), "count": count, **ends, "n": curve.n})
    return pd.DataFrame(rows)


MOST_LOST = 0.6


def constants(curve: scaling.Curve) -> list[scaling.Effect]:
    """ln of CONSTANTS."""
    return [*scaling.estimate(_log_line, curve), scaling.critical(curve)]


def _log_line(own: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """ln of c1 and c2 [k, 2] of batch sizes and ln K* [k, m]."""
    line = scaling.fit(*own)
    return np.log(np.stack([line.c1, line.c2], 1).clip(1e-9))


def constants_over_dense(curves: dict[tuple, scaling.Curve]) -> pd.DataFrame:
    """c1 and c2 of every sparse curve over the dense one's, at the batch sizes of both: CURVE, c1,
    c2, each with _low and _high.
    """
    rows = []
    for key, sparse in curves.items():
        dense = curves.get(scaling.dense_key(key))
        if (
            key[3] > 0
            and dense is not None
            and len((both := scaling.alike(sparse, dense))[0].sizes) >= 3
        ):
            found = scaling.estimate(lambda a, b: _log_line(a) - _log_line(b), *both)
            rows.append(
                {**dict(zip(scaling.CURVE, key)), **found[0].row("c1"), **found[1].row("c2")}
            )
    return pd.DataFrame(
        rows, columns=[*scaling.CURVE, "c1", "c1_low", "c1_high", "c2", "c2_low", "c2_high"]
    )


def by_best_of(trained: pd.DataFrame, goal: float, counts: Sequence[int] = COUNTS) -> pd.DataFrame:
    """The curve of every network in the median over all searches of so many of its trials.

    trained: trials that went on after others had met the goal, so that all order statistics are
    known. Columns: workload, count, c1, c2, critical (examples).  A batch size at which the median
    search missed the goal is left out.
    """
    rows = []
    for (name, own), count in itertools.product(trained.groupby("workload"), counts):
        each = own.groupby("batch_size")[f"steps@{goal:g}"]
        steps = pd.Series(
            {size: scaling.best_of_k(of.to_numpy(float), count)[1] for size, of in each}
        )
        logs = np.log(steps[np.isfinite(steps)])
        line, critical = (
            scaling.fit(logs.index, logs),
            np.exp(scaling.log_critical(logs.index, logs.to_numpy()[None])),
        )
        rows.append(
            {
                "workload": name,
                "count": count,
                "c1": line.c1[0],
                "c2": line.c2[0],
                "critical": critical[0],
            }
        )
    return pd.DataFrame(rows)
