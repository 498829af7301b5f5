"""The values of the sentences on pruned networks, and the tables; printed values have their 90 %
intervals.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import SEARCH, Curve
from lib.claims import Claim, front, judging
from lib.claims.names import curve_title, is_lee2021, title
from lib.page.shared_figures import arranged
from lib.page.told import times
from lib.probes.unseen import UNSEEN
from lib.studies import plans
from lib.wording import between, brief, named, percent, span

Curves = dict[tuple, Curve]
# Those of Lee et al. (2021), and below them this book's smallest
PAPERS = ("mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8", *plans.DIGITS)
METHODS = ("sgd", "momentum", "nesterov")


def findings(curves: Curves, critical: Mapping[tuple, scaling.Effect], cost: Claim) -> dict:
    """What the sentences on connection sensitivity say, but for higher sparsities.

    Args:
        curves: all that are compared, of `scaling.summaries`.
        critical: of `claims.critical_ratios`.
        cost: L3, judged on all records.
    """
    over = scaling.steps_over_dense(curves)
    sparse = over[over.sparsity == over.sparsity.max()]
    ratios = [effect.row("ratio") for effect in critical.values()]
    return {
        "cost": front.effects(cost),
        "pairs_measured": len(over) > 0,
        "costlier": int((sparse.ratio > 1).sum()),
        "compared": len(sparse),
        "sparsest": f"{over.sparsity.max():g}" if len(over) else None,
        "bend_pairs": len(ratios),
        "bend_larger": sum(ratio["ratio_low"] > 1 for ratio in ratios),
        "bend_smaller": sum(ratio["ratio_high"] < 1 for ratio in ratios),
    }


def luck(goal: float = 0.06) -> dict[str, str]:
    """By how many times the fifth trial of a search on the digits meets a goal later than the
    first, with SGD: fifth_dense, fifth_pruned (90 % of weights removed), and luckier, one over the
    other.
    """
    rows = judging.searches()
    rows = rows[rows.workload.isin(plans.DIGITS) & (rows.algorithm == "sgd")]
    orders = judging.orders().query("goal == @goal")[["record", "k1", "k5"]]
    known = rows[["record", "sparsity"]].merge(orders, on="record").dropna()
    later = np.log(known.k5 / known.k1).groupby(known.sparsity).mean()
    dense, pruned = np.exp(later[[0.0, 0.9]])
    return {
        "fifth_dense": brief(dense),
        "fifth_pruned": brief(pruned),
        "luckier": brief(pruned / dense),
    }


def sparser_still(longer: pd.DataFrame, published: pd.DataFrame) -> str | None:
    """How many times as long the networks of `longer` take as their dense ones, which are among
    those published.
    """
    own = longer[["workload", "algorithm"]].drop_duplicates()
    dense = published[published.sparsity == 0].merge(own)
    curves = scaling.curves(pd.concat([dense, longer]))
    pairs = [pair for _, *pair in scaling.with_partner(curves, scaling.dense_key)]
    factors = [np.exp(scaling.mean_steps_ratio(*pair).value) for pair in pairs]
    return between(*factors) if factors else None


# --- what the figures draw ------------------------------------------------------------------------


def panels(
    trials: pd.DataFrame, summary: pd.DataFrame, workload: str, algorithm: str
) -> pd.DataFrame:
    """What the first figure draws: a panel for each of these networks and methods.

    Points of curves (kind "point") and critical batch sizes (kind "mark"), with panel, in the order
    of the panels. summary: of `scaling.summaries`, of these trials. workload, algorithm: those
    asked for, shown in any case.
    """
    networks, methods = (
        [*dict.fromkeys([*known, own])]
        for known, own in ((PAPERS, workload), (METHODS, algorithm))
    )
    points = judging.points(trials).assign(kind="point")
    bends = summary[summary.identified.astype(bool)].assign(kind="mark")
    bends = bends.assign(batch_size=bends.critical, steps=bends.c1 / bends.critical + bends.c2)
    columns = [*scaling.CURVE, "kind", "batch_size", "steps"]
    marks = pd.concat([points[columns], bends[columns]], ignore_index=True)
    panels = {(n, m): f"{title(n)}, {named(m)}" for n in networks for m in methods}
    return arranged(marks, panels)


def beside_dense(critical: Mapping[tuple, scaling.Effect]) -> pd.DataFrame:
    """The critical batch sizes of the sparsest curves over the dense ones', for the figure."""
    ratios = ((key, {"n": e.n, **e.row("ratio")}) for key, e in critical.items())
    rows = scaling.by_curve(ratios, "ratio ratio_low ratio_high n".split())
    labels = [f"{named(a)}, sparsity {s:g}" for a, s in zip(rows.algorithm, rows.sparsity)]
    return rows.assign(row=[title(name) for name in rows.workload], label=labels)


# --- tables ---------------------------------------------------------------------------------------


def costs(curves: Curves, trials: pd.DataFrame) -> pd.DataFrame:
    """Every network and method by itself, the sparsest curve over the dense one, the papers' own
    first.
    """
    goals = trials.groupby("workload").goal.first()
    pairs = scaling.sparsest(curves)
    rows = [
        {
            "network": "★ " * is_lee2021(key[0]) + curve_title(key),
            "goal": percent(goals[key[0]]),
            "steps over dense": times(scaling.mean_steps_ratio(*pairs[key])),
            "searches": min(curve.n for curve in pairs[key]),
        }
        for key in sorted(pairs, key=lambda key: not is_lee2021(key[0]))
    ]
    return pd.DataFrame(rows or [{"network": "no pair yet"}])


def of_winners(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per workload, in the order of the rows.

    rows: of `lib.probes.unseen`. Columns: workload, goal; dense, pruned (test errors, means over
    the batch sizes that both of a search met, and over searches); more, more_low, more_high (the
    difference within a search, 90 % interval); n (searches).
    """
    found = []
    for name, own in rows.groupby("workload", sort=False):
        by = [*SEARCH, "batch_size"]
        both = own.pivot(index=by, columns="sparsity", values="test").dropna()
        if both.shape[1] == 2 and len(both):
            each = both.set_axis(["dense", "pruned"], axis=1).groupby([*SEARCH]).mean()
            more = scaling.mean_of(each.pruned - each.dense)
            about = {"workload": name, "goal": own.goal.iloc[0], **each.mean(), "n": more.n}
            found.append(about | more.row("more", log=False))
    columns = "workload goal dense pruned more more_low more_high n".split()
    return pd.DataFrame(found, columns=columns)


def on_unseen_images() -> pd.DataFrame:
    """Test errors of dense and pruned winners."""
    unseen = of_winners(UNSEEN.results())
    ends = 100 * unseen[["more_low", "more_high"]]
    tenths = functools.partial(percent, places=1)
    return pd.DataFrame(
        {
            "network": unseen.workload.map(title),
            "goal": unseen.goal.map(percent),
            "dense winners err on": unseen.dense.map(tenths),
            "pruned winners err on": unseen.pruned.map(tenths),
            "difference, percentage points": list(map(span, ends.to_numpy())),
            "searches": unseen.n,
        }
    )
