"""The values of the sentences on pruned networks, and the tables; printed values have their 90 %
intervals.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from chapters.sparsity.claims import critical_ratios, sparsest
from lib.analysis import ranges, scaling
from lib.analysis.scaling import SEARCH, Curve
from lib.claims import FOR, UNDECIDED, Claim, judging
from lib.claims.names import curve_title, is_lee2021, title
from lib.page.shared_figures import arranged
from lib.page.told import times
from lib.probes.unseen import UNSEEN
from lib.studies import plans
from lib.wording import between, named, percent, span

Curves = dict[tuple, Curve]
# Those of Lee et al. (2021), and below them this book's smallest
PAPERS = ("mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8", *plans.DIGITS)
METHODS = ("sgd", "momentum", "nesterov")
# Of the digits, on which pruned networks take several times the steps to the hardest goal, or hardly
# get there
HARD_SPLITS = (9, 13)


def findings(
    trials: pd.DataFrame,
    curves: Curves,
    published: Curves,
    judged: Mapping[str, Claim],
) -> dict:
    """What the sentences say, but for the curve asked for and for higher sparsities.

    Args:
        trials: all that are compared, each workload at its goal.
        curves: theirs, of `scaling.summaries`.
        published: these curves, momentum from the published range alone.
        judged: all claims.
    """
    pairs = sparsest(curves)
    means = [scaling.mean_steps_ratio(*both) for both in pairs.values()]
    costs = [float(np.exp(mean.value)) for mean in means]
    over = scaling.steps_over_dense(curves)
    sparse = over[over.sparsity == over.sparsity.max()]
    critical = [effect.row("ratio") for effect in critical_ratios(curves).values()]
    own = [both for key, both in pairs.items() if is_lee2021(key[0])]
    pruned = trials[trials.sparsity > 0].workload.unique()
    networks = dict.fromkeys(title(name).split(", ")[0] for name in pruned)
    no_less, larger = judged["L4"], judged["L5"]
    judged_pairs = no_less.measured
    momentum = [group for group in larger.groups if group.own or ", momentum" in group.name]
    return {
        "no_less_for": len(no_less.decided(FOR)),
        "no_less_all": len(judged_pairs),
        "no_less_open": sum(group.verdict == UNDECIDED for group in judged_pairs),
        "no_less": f"{no_less.threshold:g}",
        "much_larger": f"{larger.threshold:g}",
        "pairs_measured": bool(costs),
        "cost_least": min(costs, default=None),
        "cost_most": max(costs, default=None),
        "cost_most_single": bool(means) and max(means, key=lambda mean: mean.value).n == 1,
        "networks": [*networks] or ["no pruned network yet"],
        "costlier": int((sparse.ratio > 1).sum()),
        "compared": len(sparse),
        "sparsest": f"{over.sparsity.max():g}" if len(over) else None,
        "bend_pairs": len(critical),
        "bend_larger": sum(ratio["ratio_low"] > 1 for ratio in critical),
        "bend_smaller": sum(ratio["ratio_high"] < 1 for ratio in critical),
        "with_momentum": len(momentum),
        "raised": sum(group.low > 1 for group in momentum),
        "not_twice": sum(group.high < larger.threshold for group in momentum),
        "twice": sum(group.low > larger.threshold for group in momentum) or "none",
        "own_curves": len(own),
        "own_single": sum(min(c.n for c in both) < scaling.ENOUGH for both in own),
        "hard_splits": [*HARD_SPLITS],
        **_protocol(trials),
        **_narrow_range(trials, curves, published),
    }


def _protocol(trials: pd.DataFrame) -> dict[str, list[str]]:
    """Goals, numbers of trials and wide ranges of momentum of the networks in the first figure."""
    own = trials[trials.workload.isin(PAPERS)]
    whole = {key[0] for key in ranges.whole_curves(own)}
    found = {"goals": [], "tried": [], "widely": []}
    for name, rows in own.groupby("workload", sort=False):
        data = title(name).partition(" on ")[2]
        found["goals"].append(f"{percent(rows.goal.iloc[0])} on {data}")
        found["tried"].append(f"{between(*rows.trials.unique())} on {data}")
        found["widely"] += [data] if name in whole else []
    return {name: [*dict.fromkeys(texts)] or ["none"] for name, texts in found.items()}


def _narrow_range(trials: pd.DataFrame, curves: Curves, published: Curves) -> dict:
    """By what factors the published range of momentum alone changes ratios of critical batch
    sizes.
    """
    whole = ranges.whole_curves(trials)
    ratios, narrow = (critical_ratios(found) for found in (curves, published))
    both = [key for key in ratios if key in whole and key in narrow]
    factors = [np.exp(narrow[key].value - ratios[key].value) for key in both]
    return {"both_ranges": bool(factors), "narrow": between(*factors)}


def asked_for(relative: pd.DataFrame, curve: str, levels: list[float]) -> dict:
    """What the highest sparsity asked for costs on a curve of `relative_steps`."""
    own = relative[(relative.curve == curve) & relative.sparsity.isin(levels)]
    most = own[own.sparsity == own.sparsity.max()]
    return {
        "curve": curve,
        "curve_pruned": len(most) > 0,
        "level": f"{most.sparsity.max():g}",
        "steps_least": float(most.relative.min()),
        "steps_most": float(most.relative.max()),
    }


def sparser_still(longer: pd.DataFrame, published: pd.DataFrame) -> dict:
    """How much longer the networks of `longer` take than their dense ones, which are among those
    published, and how many of their searches missed the goal.
    """
    own = longer[["workload", "algorithm"]].drop_duplicates()
    dense = published[published.sparsity == 0].merge(own)
    curves = scaling.curves(pd.concat([dense, longer]))
    pairs = [pair for _, *pair in scaling.with_partner(curves, scaling.dense_key)]
    factors = [np.exp(scaling.mean_steps_ratio(*pair).value) for pair in pairs]
    return {
        "beyond": between(*factors) if factors else None,
        "beyond_missed": sum(int(sparse.missed.sum().sum()) for sparse, _ in pairs),
        "beyond_searches": sum(int(sparse.logs.count().sum()) for sparse, _ in pairs),
    }


# --- what the figures draw ------------------------------------------------------------------------


def relative_steps(curves: Curves) -> pd.DataFrame:
    """Steps over the dense network's, a row per sparse curve and batch size, each by its curve's
    name: CURVE, curve, batch_size, relative, relative_low, relative_high (90 %), replicates
    (searches compared).
    """
    rows = scaling.steps_over_dense(curves).drop(columns="effect")
    rows.columns = rows.columns.str.replace("ratio", "relative")
    return rows.rename(columns={"n": "replicates"}).assign(curve=scaling.curve_names(rows))


def panels(
    trials: pd.DataFrame, summary: pd.DataFrame, workload: str, algorithm: str
) -> pd.DataFrame:
    """What the first figure draws: a panel for each of these networks and methods.

    Points of curves (kind "point") and critical batch sizes (kind "mark"), with panel, in the order
    of the panels. summary: of `scaling.summaries`, of these trials. workload, algorithm: those
    asked for, shown in any case.
    """
    networks, methods = (
        [*dict.fromkeys([*known, own])] for known, own in ((PAPERS, workload), (METHODS, algorithm))
    )
    points = judging.points(trials).assign(kind="point")
    bends = summary[summary.identified.astype(bool)].assign(kind="mark")
    bends = bends.assign(batch_size=bends.critical, steps=bends.c1 / bends.critical + bends.c2)
    columns = [*scaling.CURVE, "kind", "batch_size", "steps"]
    marks = pd.concat([points[columns], bends[columns]], ignore_index=True)
    panels = {(n, m): f"{title(n)}, {named(m)}" for n in networks for m in methods}
    return arranged(marks, panels)


def beside_dense(curves: Curves) -> pd.DataFrame:
    """The critical batch sizes of the sparsest curves over the dense ones', for the figure."""
    shown = {k: curves[k] for key in sparsest(curves) for k in (key, scaling.dense_key(key))}
    rows = scaling.beside(shown, scaling.dense_key)
    labels = [f"{named(a)}, sparsity {s:g}" for a, s in zip(rows.algorithm, rows.sparsity)]
    return rows.assign(row=[title(name) for name in rows.workload], label=labels)


# --- tables ---------------------------------------------------------------------------------------


def costs(curves: Curves, trials: pd.DataFrame) -> pd.DataFrame:
    """Every network and method by itself, the sparsest curve over the dense one, the papers' own
    first.
    """
    goals = trials.groupby("workload").goal.first()
    pairs = sparsest(curves)
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
