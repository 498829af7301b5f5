"""The values of the sentences on pruned networks, and the tables; printed values have their 90 %
intervals.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from chapters.sparsity.claims import critical_ratios, sparsest
from lib.analysis import ranges, scaling, splits
from lib.analysis.scaling import Curve, Effect
from lib.claims import FOR, UNDECIDED, Claim, front, judging
from lib.claims.names import curve_title, is_lee2021, title
from lib.page.multiples import arranged
from lib.probes.unseen import UNSEEN
from lib.studies import plans
from lib.wording import between, brief, named, percent, ranged, span


def findings(
    trials: pd.DataFrame,
    curves: Curves,
    relative: pd.DataFrame,
    bends: pd.DataFrame,
    curve: str,
    levels: list[float],
    judged: Mapping[str, Claim],
) -> dict:
    """All values of the page's sentences.

    Args:
        trials: all that are compared, each workload at its goal.
        curves: theirs, of `scaling.summaries`.
        relative: of `relative_steps`.
        bends: of `beside_dense`.
        curve: the name of the curve that the figures begin with.
        levels: the sparsities asked for.
        judged: all claims.
    """
    pairs = sparsest(curves)
    means = [scaling.mean_steps_ratio(*both) for both in pairs.values()]
    costs = [mean.row("cost")["cost"] for mean in means]
    pruned = trials[trials.sparsity > 0].workload.unique()
    over = scaling.steps_over_dense(curves)
    sparse = over[over.sparsity == over.sparsity.max()]
    own = [both for key, both in pairs.items() if is_lee2021(key[0])]
    return {
        "no_less_for": len(judged["L4"].decided(FOR)),
        "no_less_all": len(judged["L4"].measured),
        "no_less_open": sum(g.verdict == UNDECIDED for g in judged["L4"].measured),
        "pairs_measured": bool(costs),
        "cost_least": min(costs, default=None),
        "cost_most": max(costs, default=None),
        "cost_most_single": bool(means) and max(means, key=lambda mean: mean.value).n == 1,
        "networks": _each(title(name).split(", ")[0] for name in pruned)
        or ["no pruned network yet"],
        "costlier": int((sparse.ratio > 1).sum()),
        "compared": len(sparse),
        "sparsest": f"{over.sparsity.max():g}" if len(over) else None,
        "bend_pairs": len(bends),
        "bend_larger": int((bends.ratio_low > 1).sum()),
        "bend_smaller": int((bends.ratio_high < 1).sum()),
        "no_less": f"{judged['L4'].threshold:g}",
        "much_larger": f"{judged['L5'].threshold:g}",
        "longest": max(c.max_steps for c in plans.study("digits-sparsest").cells),
        "hard_draw": front.harder_than(),
        "own_curves": len(own),
        "own_single": sum(min(c.n for c in both) < scaling.ENOUGH for both in own),
        **_protocol(trials),
        **_first_curve(relative, curve, levels),
        **_momentum(judged["L5"]),
        **_hard_splits(trials),
    }


def _protocol(trials: pd.DataFrame) -> dict[str, list[str]]:
    """Goals and numbers of trials of the networks in the first figure."""
    own = trials[trials.workload.isin(PAPERS)].groupby("workload", sort=False)
    goals = own.goal.first()
    tried = own.trials.agg(list).map(lambda counts: between(*counts))
    return {
        "goals": _each(f"{percent(goal)} on {_data_set(name)}" for name, goal in goals.items()),
        "tried": _each(f"{count} on {_data_set(name)}" for name, count in tried.items()),
    }


def _each(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _data_set(name: str) -> str:
    """What a network is trained on, as its title says."""
    return title(name).partition(" on ")[2]


def _first_curve(relative: pd.DataFrame, curve: str, levels: list[float]) -> dict:
    """What the highest sparsity asked for costs on the curve that is drawn first."""
    own = relative[(relative.curve == curve) & relative.sparsity.isin(levels)]
    most = own[(own.sparsity == own.sparsity.max()) & (own.sparsity > own.sparsity.min())].relative
    return {
        "curve": curve,
        "level": f"{own.sparsity.max():g}",
        "all_dearer": bool(len(most) > 0 and most.min() > 1),
        "steps_least": float(most.min()),
        "steps_most": float(most.max()),
    }


def _momentum(claim: Claim) -> dict:
    """On which networks pruning raises the critical batch size with momentum, and by how much."""
    groups = [g for g in claim.groups if g.own or ", momentum" in g.name]
    larger = [g for g in groups if g.low > 1]
    above = sum(g.low > claim.threshold for g in groups)
    below = sum(g.high < claim.threshold for g in groups)
    names = [f"{_plain(g.name)} ({brief(g.effect)} times)" for g in larger]
    return {
        "raised_on": names or ["no network"],
        "raised_compared": len(groups),
        "not_twice": below,
        "twice": above or "none",
    }


def _plain(name: str) -> str:
    """A network without its method, and without a comma."""
    return name.removesuffix(", momentum").replace(", easier goal", " at the easier goal")


def _hard_splits(trials: pd.DataFrame) -> dict:
    """What the splits cost on which a pruned network of digits is hard to train."""
    digits = trials[trials.workload.isin(plans.DIGITS)]
    pruned = digits[(digits.sparsity > 0) & (digits.sparsity == digits.sparsity.max())]
    hard = pd.concat([_on_one_split(pruned, split) for split in plans.HARD_SPLITS])
    lacking = hard[hard.lacking > 0]
    met = hard[hard.lacking == 0]
    return {
        "splits_lacking": bool(len(lacking) and len(met)),
        "hard_splits": list(plans.HARD_SPLITS),
        "harder": between(met.factor.min(), met.factor.max()) if len(met) else None,
        "few_searched": [named(a) for a in lacking.algorithm.unique()],
    }


def _on_one_split(trials: pd.DataFrame, split: int) -> pd.DataFrame:
    """How long searches take on one of our splits, a row per curve that was searched on others,
    too: CURVE, lacking (batch sizes not searched on this one), factor.

    factor: K* on this split over the geometric mean on the others, itself the geometric mean over
    batch sizes; a search that missed the goal counts as its last step; NaN if none is on this one.
    """
    rows = []
    for key, own in scaling.steps_to_result(trials).groupby(scaling.CURVE) if len(trials) else ():
        logs = np.log(own.steps.fillna(own.last_step))
        mine = own.split == split
        here, others = (logs[some].groupby(own.batch_size).mean() for some in (mine, ~mine))
        if len(others):
            off = here - others
            rows.append((key, {"lacking": int(off.isna().sum()), "factor": np.exp(off.mean())}))
    return scaling.by_curve(rows, ["lacking", "factor"])


# --- tables ---------------------------------------------------------------------------------------


Curves = dict[tuple, Curve]
# Those of Lee et al. (2021), and below them this book's smallest
PAPERS = ("mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8", *plans.DIGITS)
METHODS = ("sgd", "momentum", "nesterov")


def told(effect: Effect) -> str:
    """A ratio whose logarithm was estimated: "1.5 (1.2–1.8)"."""
    return ranged(*effect.row().values())


# --- what the figures draw ------------------------------------------------------------------------


def of_several_sparsities(trials: pd.DataFrame, workload: str, algorithm: str) -> pd.DataFrame:
    """The trials of networks and methods with more than one sparsity, and of those asked for."""
    network = [trials[c] for c in ("workload", "algorithm")]
    several = trials.sparsity.groupby(network).transform("nunique") > 1
    asked = (trials.workload == workload) & (trials.algorithm == algorithm)
    return trials[several | asked]


def relative_steps(trials: pd.DataFrame, curves: Curves) -> pd.DataFrame:
    """Points of these trials, each by its curve's name, with relative, relative_low and
    relative_high: steps over the densest network's at the same batch size.

    curves: of `scaling.summaries`. Without a curve to divide by, the quotient of the points, and no
    range.
    """
    points = scaling.across_replicates(scaling.steps_to_result(trials))
    network = scaling.CURVE[:3]
    lowest = points.groupby(network).sparsity.transform("min")
    ratios = []
    for key, least in {*zip(points[scaling.CURVE].itertuples(index=False, name=None), lowest)}:
        densest = curves.get((*key[:3], least))
        if key in curves and densest is not None:
            rows = scaling.steps_ratio(curves[key], densest).to_dict("records")
            ratios += [(key, row) for row in rows]
    columns = {f"ratio{end}": f"relative{end}" for end in ("", "_low", "_high")}
    known = scaling.by_curve(ratios, ["batch_size", *columns]).rename(columns=columns)
    known = known.astype(dict.fromkeys(columns.values(), float) | {"batch_size": int})
    dense = points.loc[points.sparsity == lowest, [*network, "batch_size", "steps"]]
    dense = dense.rename(columns={"steps": "below"})
    rows = points.merge(dense, "left", [*network, "batch_size"])
    rows = rows.merge(known, "left", [*scaling.CURVE, "batch_size"])
    rows["relative"] = rows.relative.fillna(rows.steps / rows.below)
    rows = rows.dropna(subset="relative")
    return rows.assign(curve=scaling.curve_names(rows))


def panels(
    trials: pd.DataFrame, summary: pd.DataFrame, workload: str, algorithm: str
) -> pd.DataFrame:
    """What the first figure draws: a panel for each of these networks and methods.

    Args:
        trials: each workload at its goal.
        summary: of `scaling.summaries`, of these trials.
        workload, algorithm: those asked for, shown in any case.

    Returns:
        points of curves (kind "point") and critical batch sizes (kind "mark"), with panel, in the
        order of the panels.
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


def costs(curves: Curves, trials: pd.DataFrame) -> pd.DataFrame:
    """Every network and method by itself, the sparsest curve over the dense one, the papers' own
    first.
    """
    ratios = critical_ratios(curves)
    goals = trials.groupby("workload").goal.first()
    rows = []
    pairs = sparsest(curves)
    for key in sorted(pairs, key=lambda key: not is_lee2021(key[0])):
        steps = scaling.steps_ratio(*pairs[key]).ratio
        rows.append(
            {
                "network": "★ " * is_lee2021(key[0]) + curve_title(key),
                "goal": percent(goals[key[0]]),
                "steps over dense": told(scaling.mean_steps_ratio(*pairs[key])),
                "least to most": between(steps.min(), steps.max()),
                "critical batch size over dense": told(ratios[key]) if key in ratios else "—",
                "searches": min(curve.n for curve in pairs[key]),
            }
        )
    return pd.DataFrame(rows or [{"network": "no pair yet"}])


def of_winners(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per workload, in the order of the rows.

    rows: of `lib.probes.unseen`. Columns: workload, goal; dense, pruned (test errors, means over
    searches of `splits.unseen_pairs`); more, more_low, more_high (the difference within a search,
    90 % interval); n (searches).
    """
    found = []
    for name, own in rows.groupby("workload", sort=False):
        each = splits.unseen_pairs(own)
        if len(each):
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


def by_range_of_momentum(
    curves: Curves, trials: pd.DataFrame, published: pd.DataFrame
) -> pd.DataFrame:
    """Ratios of critical batch sizes where momentum was searched over both ranges.

    Args:
        curves: of `trials`.
        trials: momentum over its whole range where that is measured.
        published: momentum over the published range alone.
    """
    ours = scaling.summaries(published)[1]
    space = trials.groupby(scaling.CURVE).space.first()
    both = sparsest(curves).keys() & sparsest(ours)
    whole = critical_ratios(curves)
    narrow = critical_ratios(ours)
    rows = [
        {
            "critical batch size over dense": curve_title(key),
            "whole range": told(whole[key]),
            "published range": told(effect),
        }
        for key, effect in narrow.items()
        if key in both and space[key] == ranges.WHOLE
    ]
    return pd.DataFrame(
        rows or [{"critical batch size over dense": "not measured over both ranges"}]
    )


def sparser_still(longer: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Curves beyond the usual sparsities over the dense ones of `published`."""
    own = longer[["workload", "algorithm"]].drop_duplicates()
    curves = scaling.curves(pd.concat([published[published.sparsity == 0].merge(own), longer]))
    bent = critical_ratios(curves)
    rows = []
    for key, curve, dense in scaling.with_partner(curves, scaling.dense_key):
        missed, of = (int(table.to_numpy().sum()) for table in (curve.missed, curve.logs.notna()))
        rows.append(
            {
                "network": curve_title(key),
                "steps over dense": told(scaling.mean_steps_ratio(curve, dense)),
                "critical batch size over dense": told(bent[key]) if key in bent else "—",
                "searches that missed the goal": f"{missed} of {of}",
            }
        )
    return pd.DataFrame(rows or [{"network": "not measured"}])
