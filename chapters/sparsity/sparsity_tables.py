"""The tables of the page on pruned networks; printed values have their 90 % intervals."""

from __future__ import annotations

import functools

import pandas as pd

from chapters.sparsity.claims import critical_ratios, sparsest
from lib.analysis import ranges, scaling, splits
from lib.analysis.scaling import Curve, Effect
from lib.claims import judging
from lib.claims.names import curve_title, is_lee2021, title
from lib.page.multiples import arranged
from lib.probes.unseen import UNSEEN
from lib.studies import plans
from lib.wording import between, named, percent, ranged, span

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


# --- tables ---------------------------------------------------------------------------------------


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
    whole, narrow = critical_ratios(curves), critical_ratios(ours)
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
    bent, rows = critical_ratios(curves), []
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
