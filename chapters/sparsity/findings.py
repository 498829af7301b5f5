"""Values in the sentences on pruned networks, tables, and data of the figures; printed values have
90 % intervals.
"""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import SEARCH, Curve
from lib.claims import Claim, front, judging
from lib.claims.names import curve_title, is_lee2021, pooled_images, title
from lib.measuring import sweeps
from lib.page import charts, shared_figures, tips
from lib.page.estimates import times
from lib.probes.unseen import UNSEEN
from lib.studies import plans
from lib.wording import between, named, ranged

Curves = dict[tuple, Curve]
# Networks of Lee et al. (2021), then this book's smallest
PAPERS = ("mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8", *plans.DIGITS)
METHODS = ("sgd", "momentum", "nesterov")
USUAL = "connection-sensitivity"
CRITERIA = ("digits-methods", "mnist-methods")  # studies of other criteria, a search a point
BOUND = 1.25  # as in the rules of claims: a ratio beyond it either way is an effect


def findings(curves: Curves, critical: Mapping[tuple, scaling.Effect], cost: Claim) -> dict:
    """Values in the sentences on connection sensitivity, except those on higher sparsities; curves:
    all; critical: from `claims.critical_ratios`; cost: claim L3, judged on all records.
    """
    ratios = scaling.steps_over_dense(curves)
    sparse = ratios[ratios.sparsity == ratios.sparsity.max()]
    bends = [effect.row("ratio") for effect in critical.values()]
    return {
        "cost": front.effects(cost),
        "pairs_measured": len(ratios) > 0,
        "costlier": int((sparse.ratio > 1).sum()),
        "compared": len(sparse),
        "sparsest": f"{ratios.sparsity.max():g}" if len(ratios) else None,
        "bend_pairs": len(bends),
        "bend_larger": sum(bend["ratio_low"] > 1 for bend in bends),
        "bend_smaller": sum(bend["ratio_high"] < 1 for bend in bends),
    }


def on_winners() -> dict[str, object]:
    """Values in the sentence on winners: luckier (from `luck`), tested (networks whose winners were
    tested on unseen images), worse (how many of these clearly err more if pruned), and more (the
    largest mean difference, in points).
    """
    unseen = of_winners(UNSEEN.results())
    return {
        "luckier": luck(),
        "worse": int((unseen.more_low > 0).sum()),
        "tested": len(unseen),
        "more": 100 * float(unseen.more.max()),
    }


def luck() -> str:
    """The cost of pruning 90 % of the weights by the fifth trial of a search to meet 6 %, over
    the cost by the first, with SGD on the digits, and its interval over networks and splits: at the
    batch sizes at which both a pruned and a dense search have a fifth one.
    """
    point = ["workload", "split", "batch_size"]
    rows = judging.searches()
    rows = rows[rows.workload.isin(plans.DIGITS) & (rows.algorithm == "sgd")]
    orders = judging.orders().query("goal == 0.06")[["record", "k1", "k5"]]
    hits = rows.merge(orders, on="record")
    hits["later"] = np.log(hits.k5 / hits.k1)
    later = hits.pivot_table("later", point, "sparsity")
    searches = (later[0.9] - later[0.0]).dropna().groupby(point[:2]).mean()
    return ranged(*scaling.mean_of(searches).row().values())


def sparser_still(longer: pd.DataFrame, published: pd.DataFrame) -> str | None:
    """How many times as many steps the networks in `longer` take as their dense ones, which are in
    `published`.
    """
    networks = longer[["workload", "algorithm"]].drop_duplicates()
    dense = published[published.sparsity == 0].merge(networks)
    curves = scaling.curves(pd.concat([dense, longer]))
    pairs = [pair for _, *pair in scaling.with_partner(curves, scaling.dense_key)]
    factors = [np.exp(scaling.mean_steps_ratio(*pair).value) for pair in pairs]
    return between(*factors) if factors else None


# --- figures --------------------------------------------------------------------------------------


def panels(
    trials: pd.DataFrame, summary: pd.DataFrame, workload: str, algorithm: str
) -> alt.FacetChart:
    """Steps to result against batch size, one panel per network and method that was pruned, and for
    this network in any case: points of curves, and critical batch sizes.

    summary: from `scaling.summaries`.
    """
    networks, methods = dict.fromkeys([*PAPERS, workload]), dict.fromkeys([*METHODS, algorithm])
    points = judging.points(trials).assign(kind="point")
    bends = summary[summary.identified.astype(bool)].assign(kind="mark")
    bends = bends.assign(batch_size=bends.critical, steps=bends.c1 / bends.critical + bends.c2)
    columns = [*scaling.CURVE, "kind", "batch_size", "steps"]
    marks = pd.concat([points[columns], bends[columns]], ignore_index=True)
    names = {(n, m): f"{title(n)}, {named(m)}" for n in networks for m in methods}
    marks = shared_figures.arranged(marks, names)
    pruned = marks.groupby("panel").sparsity.transform("max") > 0
    marks = marks[pruned | (marks.workload == workload)]
    y = alt.Y("steps:Q", scale=charts.log(4, base=10))
    y = y.axis(values=[10.0**n for n in range(6)], format="~s")
    axes = {"x": charts.batch_axis([1, 8, 64, 512, 4096], None), "y": y}
    colour = charts.by_sparsity(sorted(marks.sparsity.unique()))
    size = tips.tip("batch_size:Q", "batch size", ",.0f")
    tooltip = [tips.SPARSITY, size, tips.STEPS]

    def layers(base: alt.Chart) -> list[alt.Chart]:
        base = base.encode(**axes, color=colour)
        dots = base.transform_filter("datum.kind === 'point'")
        diamonds = base.transform_filter("datum.kind === 'mark'")
        diamonds = diamonds.mark_point(shape="diamond", size=90, strokeWidth=2)
        return [
            *shared_figures.small_curve(dots, tooltip),
            diamonds.encode(tooltip=tooltip),
        ]

    columns = ["panel", "sparsity", "batch_size", "steps", "kind"]
    words = f"{shared_figures.STEPS} against batch size"
    return shared_figures.panels(marks[columns], layers, words, least=165)


def over_dense(critical: Mapping[tuple, scaling.Effect]) -> pd.DataFrame:
    """The critical batch sizes of the sparsest curves over the dense ones', for the figure."""
    ratios = ((key, {"n": e.n, **e.row("ratio")}) for key, e in critical.items())
    rows = scaling.by_curve(ratios, "ratio ratio_low ratio_high n".split())
    labels = [f"{named(a)}, sparsity {s:g}" for a, s in zip(rows.algorithm, rows.sparsity)]
    return rows.assign(row=[title(name) for name in rows.workload], label=labels)


# --- other criteria -------------------------------------------------------------------------------


def of_criteria() -> list[pd.DataFrame]:
    """All trials of CRITERIA."""
    return [sweeps.results(plans.study(name)) for name in CRITERIA]


def over_usual(trials: list[pd.DataFrame]) -> pd.DataFrame:
    """Critical batch sizes with every criterion over those with connection sensitivity: from
    `scaling.beside`, with row (the network) and label (the criterion).
    """
    curves = scaling.curves(scaling.at_goals(pd.concat(trials, ignore_index=True)))
    rows = scaling.beside(curves, lambda key: (*key[:2], USUAL, key[3]))
    return rows.assign(row=rows.workload.map(title), label=rows.pruning.map(named))


def on_criteria(ratios: pd.DataFrame) -> dict[str, object]:
    """Values in the sentences on criteria; ratios: from `over_usual`."""
    smaller, larger = ratios[ratios.ratio_high < 1 / BOUND], ratios[ratios.ratio_low > BOUND]
    return {
        "ratios": len(ratios),
        "smaller": len(smaller),
        "larger": len(larger),
    }


# --- the costs, and the winners -------------------------------------------------------------------


def costs(curves: Curves) -> pd.DataFrame:
    """Steps of the sparsest curve over the dense one, a row per network and method, the paper's
    networks first.
    """
    pairs = scaling.sparsest(curves)
    ratios = pooled_images({key: scaling.mean_steps_ratio(*pairs[key]) for key in pairs})
    rows = [
        {
            "network": "★ " * is_lee2021(key[0]) + curve_title(key),
            "steps over dense": times(ratios[key]),
            "searches": min(curve.n for curve in pairs[key]),
        }
        for key in sorted(pairs, key=lambda key: not is_lee2021(key[0]))
    ]
    return pd.DataFrame(rows or [{"network": "no pair yet"}])


def of_winners(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per workload, in the order of the rows.

    rows: from `lib.probes.unseen`. Columns: workload; dense, pruned (test errors, means over
    the batch sizes that both of a search met, and over searches); more, more_low, more_high (the
    difference within a search, 90 % interval); n (searches).
    """
    table = []
    for name, winners in rows.groupby("workload", sort=False):
        point = [*SEARCH, "batch_size"]
        pairs = winners.pivot(index=point, columns="sparsity", values="test").dropna()
        if pairs.shape[1] == 2 and len(pairs):
            means = pairs.set_axis(["dense", "pruned"], axis=1).groupby([*SEARCH]).mean()
            more = scaling.mean_of(means.pruned - means.dense)
            row = {"workload": name, **means.mean(), "n": more.n}
            table.append(row | more.row("more", log=False))
    columns = "workload dense pruned more more_low more_high n".split()
    return pd.DataFrame(table, columns=columns)
