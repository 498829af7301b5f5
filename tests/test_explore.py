"""The page on which a reader chooses what is drawn: its data, and the page in a browser."""


import numpy as np
import pytest

from chapters.explore import explorer
from lib import forms
from lib.analysis import ranges, scaling
from lib.claims import front, judging
from lib.records import results, selection
from lib.studies.study import Study


@pytest.fixture(scope="module")
def trials():
    """The digits' MLP with momentum, pruned in every way."""
    drawn = selection.curves(free=front.FREE).searches
    mlp = (c for c in drawn if (c.workload, c.algorithm) == ("digits-mlp", "momentum"))
    return results.read(Study("mlp", "", mlp))


@pytest.fixture(scope="module")
def tables(trials):
    pruned = trials.pruning.isin(["connection-sensitivity", "grasp"])
    few = trials[trials.sparsity.isin([0.0, 0.9]) & pruned]
    return explorer.tables(few.drop(columns=["steps@0.05", "steps@0.06", "steps@0.08"]))


def of(table, goal, sparsity, pruning="connection-sensitivity"):
    rows = table[(table.goal == goal) & (table.sparsity == sparsity) & (table.pruning == pruning)]
    return rows.sort_values("batch_size") if "batch_size" in rows else rows


@pytest.mark.parametrize(("goal", "sparsity"), [(0.04, 0.0), (0.1, 0.9)])
def test_a_point_is_the_geometric_mean_over_searches(trials, tables, goal, sparsity):
    """The line is fitted to these means."""
    rows = trials[(trials.sparsity == sparsity) & (trials.pruning == "connection-sensitivity")]
    searches = scaling.steps_to_result(rows, goal)
    for point in of(tables[0], goal, sparsity).itertuples():
        means = searches[searches.batch_size == point.batch_size]
        means = means[scaling.apart(means.replicate.to_numpy(), means.split.to_numpy())]
        assert point.searches == len(means) >= 3 and point.missed == means.steps.isna().sum()
        mean = np.exp(np.log(means.steps).mean())
        assert point.missed or point.steps == pytest.approx(mean)
    (line,) = of(tables[1], goal, sparsity).itertuples()
    curve = scaling.curve_of(searches)
    fit = forms.fit(curve.sizes, curve.means)
    assert (line.c1, line.c2) == pytest.approx((fit.c1[0], fit.c2[0])) and line.identified


def test_the_export_has_every_curve_that_pages_compare_with_the_same_numbers():
    exported = explorer.exported()
    compared = exported[exported.compared]
    key = ["workload", "algorithm", "sparsity", "goal", "pruning"]
    points = judging.points(judging.searches())
    curves = points[scaling.CURVE].itertuples(index=False, name=None)
    wide = ranges.whole_curves(judging.searches())
    points["range"] = ["whole" if curve in wide else "published" for curve in curves]
    points["pruning"] = points.pruning.where(points.sparsity > 0, "dense")
    pairs = points.merge(compared, on=[*key, "range", "batch_size"], suffixes=("", "_exported"))
    assert len(pairs) == len(points) == len(compared) > 500
    for name in ("steps", "low", "high", "missed"):
        np.testing.assert_allclose(pairs[name], pairs[f"{name}_exported"])
    summary = judging.summary().assign(pruning=lambda t: t.pruning.where(t.sparsity > 0, "dense"))
    fits = compared.drop_duplicates(key).merge(summary, on=key, suffixes=("", "_page"))
    assert len(fits) == len(summary)
    for name in ("c1", "c2", "critical", "critical_low", "critical_high"):
        np.testing.assert_allclose(fits[name], fits[f"{name}_page"])
    assert set(exported.pruning[exported.sparsity == 0]) == {"dense"}
    ranges_of = set(exported.groupby(scaling.CURVE).range.unique().map(frozenset))
    assert ranges_of == {frozenset({"published"}), frozenset({"published", "whole"})}
