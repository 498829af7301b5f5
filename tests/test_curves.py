"""Curves and their fits: what was planted is recovered and covered, and what is unknown is said so."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t

from lib import forms
from lib.analysis import ranges, scaling
from lib.claims.claim import REGISTRY, judged
from lib.claims.judging import registered
from lib.measuring import sweeps
from lib.records import selection
from lib.studies import plans
from lib.studies.search import Search
from lib.workloads.catalogue import workload
from tests.conftest import recorded

SIZES = 2.0 ** np.arange(0, 15)


def scatter(searches):
    """Standard deviation of ln K* between the independent searches of a point that met the goal, pooled over points."""
    curve = [c for c in (*scaling.CURVE, "batch_size") if c in searches]
    apart = [own[scaling.apart(own.replicate.to_numpy(), own.split.to_numpy())] for _, own in searches.groupby(curve)]
    met = pd.concat(apart).dropna(subset="steps")
    points = np.log(met.steps).groupby([met[c] for c in (*scaling.CURVE, "batch_size") if c in met])
    return float(np.sqrt((points.var(ddof=0) * points.size()).sum() / (len(met) - points.ngroups)))


@pytest.mark.parametrize(("n", "k"), [(6, 3), (7, 7)])
def test_best_of_k_against_enumeration(n, k):
    draws = [min(draw) for draw in itertools.combinations(range(n), k)]
    expected = np.bincount(draws, minlength=n) / len(draws)
    assert np.allclose(scaling.best_of_k_pmf(n, k), expected)


def searched(steps, splits=(0, 0, 0), workload="w"):
    """A point with a search for each of these steps to result, on these splits, of two trials each."""
    pairs = zip(steps, splits, strict=True)
    rows = [(k * times, n, split) for n, (k, split) in enumerate(pairs) for times in (1, 2)]
    return recorded(pd.DataFrame(rows, columns=["steps", "replicate", "split"]), workload=workload, batch_size=16)


def test_a_point_is_the_geometric_mean_of_its_searches_and_its_interval_students_t():
    row = scaling.across_replicates(scaling.steps_to_result(searched([10, 20, 40]))).iloc[0]
    low, high = t.interval(0.9, 2, np.log(20), np.log(2) / np.sqrt(3))
    assert (row.steps, row.low, row.high) == pytest.approx((20, np.exp(low), np.exp(high)))
    assert (row.replicates, row.missed, row.borrowed) == (3, 0, False)


def test_a_point_with_one_search_borrows_the_scatter_of_the_nearest_workload():
    for name, scatter in (("digits-mlp-16x2", scaling.SCATTER["digits", "fully connected"]), ("w", scaling.ONE_SPLIT)):
        row = scaling.across_replicates(scaling.steps_to_result(searched([20], [0], workload=name))).iloc[0]
        assert row.borrowed and np.log([row.high / 20, 20 / row.low]) == pytest.approx(norm.ppf(0.95) * scatter)


def test_searches_on_splits_of_their_own_go_before_several_on_one():
    """One on every split, since those that share one err together; all on split 0 where these are more cells."""
    both = searched([10, 20, 40, 80, 160], [0, 0, 0, 3, 4])
    assert scaling.across_replicates(scaling.steps_to_result(both)).replicates.tolist() == [3]
    kept, few = (scaling.curve_of(scaling.steps_to_result(own)) for own in (both, both[both.replicate < 4]))
    assert np.exp(kept.logs[16]).tolist() == pytest.approx([10, 80, 160])
    assert np.exp(few.logs[16]).tolist() == pytest.approx([10, 20, 40])


def curve(steps):
    return pd.DataFrame({"batch_size": SIZES, "steps": steps, "goal": 0.04, "sparsity": 0.0})


@pytest.mark.parametrize("critical", [64.0, 300.0])
def test_hyperbola_changes_regime_where_it_must(critical):
    """K = c (1 + Bc/B): perfect while (B + Bc) / (1 + Bc) <= 1.2, on the floor while 1 + Bc/B <= 1.2 (1 + Bc/Bmax)."""
    found = scaling.regimes(curve(100 * (1 + critical / SIZES)))
    assert found.perfect_end == SIZES[(SIZES + critical) / (1 + critical) <= 1.2].max()
    assert found.useful_end == SIZES[1 + critical / SIZES <= 1.2 * (1 + critical / SIZES[-1])].min()
    labelled = scaling.label(curve(100 * (1 + critical / SIZES)))
    assert list(dict.fromkeys(labelled.regime)) == [scaling.PERFECT, scaling.DIMINISHING, scaling.MAXIMAL]


def test_what_single_searches_borrow_is_what_the_records_say():
    """Also which data sets and kinds of network have searches enough on splits of their own."""
    searches = scaling.steps_to_result(sweeps.results(selection.curves()))
    kinds = {w: (workload(w).dataset, scaling.kind_of(workload(w).model)) for w in searches.workload.unique()}
    several = searches[searches.split > 0].groupby([*scaling.CURVE, "batch_size"]).split.nunique()
    spare = (several - 1).groupby(several.index.get_level_values("workload").map(kinds)).sum()
    for kind in spare[spare >= 200].index:
        own = searches[(searches.workload.map(kinds) == kind) & (searches.sparsity.isin(plans.DENSE_AND_SPARSE))]
        assert scatter(own[own.split > 0]) == pytest.approx(scaling.SCATTER[kind], abs=0.1)
    cifar = searches[(searches.workload == "cifar-10-resnet-8") & (searches.sparsity == 0)]  # on few splits, but beyond chance
    assert scatter(cifar) == pytest.approx(scaling.SCATTER["cifar-10", "convolutional"], abs=0.1)
    digits = searches[searches.workload.isin(plans.DIGITS) & (searches.split == 0)]
    assert scatter(digits) == pytest.approx(scaling.ONE_SPLIT, abs=0.03)


SIX, ELEVEN = 4.0 ** np.arange(1, 7), 2.0 ** np.arange(11)
DENSE, SPARSE = (1300.0, 20.0), (4000.0, 40.0)  # c1, c2
SCATTER = 0.3  # of ln K*: of a search as a whole, of its order of the data, and of a single cell


def planted(random, constants, shared, limit=np.inf):
    """A curve of searches [n] at SIX whose ln K* scatters about c1/B + c2; what takes more than `limit` steps is missed."""
    c1, c2 = constants
    logs = np.log(c1 / SIX + c2) + shared + random.normal(0, SCATTER, shared.shape)
    return scattered(logs, SIX, np.log(limit))


def scattered(logs, sizes, limit=np.inf, splits=None):
    """The curve of searches [n, m], missed where they exceed a limit; on splits of their own, or on these."""
    n = len(logs)
    index = pd.MultiIndex.from_arrays([range(n), range(n) if splits is None else splits], names=scaling.SEARCH)
    frames = (pd.DataFrame(v, index, np.asarray(sizes, int)) for v in (np.minimum(logs, limit), logs > limit))
    return scaling.Curve(*frames, scatter=0.45)


def pairs(n, limit, times):
    """Dense and sparse curves of the same n searches, again and again."""
    random = np.random.default_rng(0)
    for _ in range(times):
        shared = random.normal(0, SCATTER, (n, 1)) + random.normal(0, SCATTER, (n, len(SIX)))
        yield tuple(planted(random, constants, shared, limit) for constants in (DENSE, SPARSE))


TIMES = 150
SLACK = 1.645 * np.sqrt(0.9 * 0.1 / TIMES)  # of a share of so many, at 90 %: the band itself is 86 to 94 %


@pytest.mark.parametrize(("n", "limit"), [(3, 1100.0), (10, np.inf)], ids=["missed", "met"])
def test_intervals_cover_what_was_planted(n, limit):
    """90 % within 86 to 94 %, for a critical batch size, ratios of two, and steps over steps; `missed`: some 7 % of searches."""
    truths = {"critical": np.log(65), "ratio": np.log(100 / 65), "steps": np.log((1000 + 40) / (325 + 20))}
    hits = dict.fromkeys(truths, 0)
    for dense, sparse in pairs(n, limit, TIMES):
        first = scaling.steps_ratio(sparse, dense).effect[0]
        found = {"critical": scaling.critical(dense), "ratio": scaling.critical_ratio(sparse, dense), "steps": first}
        for name, effect in found.items():
            hits[name] += effect.low <= truths[name] <= effect.high
    for name, count in hits.items():
        assert 0.86 - SLACK <= count / TIMES <= 0.94 + SLACK, name


def test_a_point_that_every_search_missed_still_bends_the_curve():
    """Left out, the smallest batch would be as if never tried; as a bound it keeps the critical batch size from falling."""
    shared = np.random.default_rng(0).normal(0, 0.1, (8, 6))
    whole, cut = (planted(np.random.default_rng(1), SPARSE, shared, limit) for limit in (np.inf, 500.0))
    assert cut.missed[4].all() and not cut.met[0]
    assert scaling.critical(cut).value == pytest.approx(scaling.critical(whole).value, abs=0.25)
    assert len(cut.points()) == 5


@pytest.mark.parametrize("n", [3, 20])
def test_a_form_is_rejected_as_often_as_it_should_be(n):
    random, times = np.random.default_rng(0), 200
    scatter = np.linspace(0.4, 0.15, len(SIX))  # small batches scatter more
    rejected = {1.0: 0, 0.75: 0}
    for exponent in rejected:
        for _ in range(times):
            logs = np.log(DENSE[0] / SIX**exponent + DENSE[1]) + random.normal(0, 0.3, (n, 1))
            logs = logs + random.normal(0, 1, (n, len(SIX))) * scatter
            rejected[exponent] += forms.test_form(SIX, logs).p_value < 0.1
    assert 0.06 <= rejected[1.0] / times <= 0.16
    assert rejected[0.75] / times > (0.9 if n == 20 else 0.2)


def test_the_fit_is_that_of_scipy():
    from scipy.optimize import least_squares

    random, sizes = np.random.default_rng(3), ELEVEN
    for exponent in (0.7, 1.0, 1.3):
        logs = np.log(900 / sizes**exponent + 12) + random.normal(0, 0.1, 11)
        own = forms.fit(sizes, logs, forms.EXPONENTS)

        def off(p, logs=logs):
            return p[0] + np.logaddexp(0, p[2] * (p[1] - np.log(sizes))) - logs

        other = least_squares(off, [np.log(12), np.log(75), 1.0], bounds=([-9, -9, 0.55], [9, 20, 1.6]))
        assert own.loss[0] == pytest.approx(2 * other.cost, rel=1e-3)
        assert [own.floor[0], own.bend[0], own.exponent[0]] == pytest.approx(other.x, abs=0.02)


@pytest.mark.parametrize("constants, side", [((1e5, 1e-3), "above"), ((1e-3, 20.0), "below")])
def test_a_curve_without_a_bend_bounds_its_critical_batch_size(constants, side):
    random = np.random.default_rng(0)
    found = scaling.critical(planted(random, constants, random.normal(0, 0.1, (5, 6))))
    assert getattr(found, side) and np.isinf(found.high if side == "above" else found.low)


def searches(steps, n, random, scatter=0.2, level=0.3):
    """ln K* [n, m] of searches that each have a level of their own, and scatter about it."""
    return np.log(steps) + level * random.standard_normal((n, 1)) + scatter * random.standard_normal((n, len(steps)))


SHORT = ELEVEN[::2]  # no exponent is fitted, which takes the time


def test_a_planted_departure_is_found_with_its_size():
    """A sharp corner, max(c1/B, c2), lies off every c1/B + c2; fitted to the corner itself, by how much is known."""
    corner = np.maximum(1e3 / SHORT, 20)
    known = np.exp(np.sqrt(scaling.fit(SHORT, np.log(corner)[None]).loss[0] / len(SHORT)))
    random = np.random.default_rng(0)
    found = [scaling.test_form(SHORT, searches(corner, 12, random)) for _ in range(100)]
    assert known > 1.1 and np.median([f.depart for f in found]) == pytest.approx(known, rel=0.02)
    assert 0.82 < np.mean([f.depart_low < known < f.depart_high for f in found]) < 0.98
    assert np.mean([f.p_value < 0.05 for f in found]) > 0.9


BENT = 1e3 / ELEVEN + 20
PLANTED = [  # a claim, its verdict, and the curves by sparsity: shifted, a straight power law, a sharp corner
    ("L2", "yes", {0.0: BENT, 0.9: 3e3 / ELEVEN + 50}),
    ("L2", "no", {0.0: BENT, 0.9: 1e3 / ELEVEN**0.6}),
    ("L6", "yes", {0.0: BENT}),
    ("L6", "no", {0.0: 1e3 / ELEVEN**0.6}),
    ("L6", "no", {0.0: np.maximum(1e3 / ELEVEN, 20)}),
]


@pytest.mark.parametrize(("key", "verdict", "planted"), PLANTED)
def test_the_theory_and_the_form_of_pruned_curves_can_fail(key, verdict, planted):
    random = np.random.default_rng(2)
    curves = {
        ("digits-mlp", "sgd", "connection-sensitivity", s): scattered(searches(steps, 20, random, 0.05), ELEVEN)
        for s, steps in planted.items()
    }
    found = judged(registered()[key], REGISTRY.functions[key](curves, pd.DataFrame()))
    assert [group.verdict for group in found.groups] == [verdict]


FIVE = (1, 4, 16, 64, 256)


def in_range(sparsity, searches, steps, sizes=FIVE):
    """Two trials of every search; the faster takes `steps` at every batch size."""
    rows = itertools.product(sizes, range(searches), (steps, steps + 10))
    found = pd.DataFrame(rows, columns=["batch_size", "replicate", "steps"])
    return recorded(found, sparsity=sparsity, split=found.replicate, trials=2, hits=1, space=None)


def joined(published, low):
    """Sparsity -> the least steps and the number of searches and trials, of curves over the whole range."""
    found = ranges.whole(pd.concat(published), pd.concat(low))
    whole = found[found.space == ranges.WHOLE]
    return {s: (own.steps.min(), own.replicate.nunique(), own.trials.max()) for s, own in whole.groupby("sparsity")}


def test_a_search_of_the_whole_range_is_the_union_of_two_where_both_are():
    """Five searches above 0.9, three below: three of either, of twice the trials."""
    both = joined([in_range(0.0, 5, 100), in_range(0.9, 5, 300)], [in_range(0.0, 3, 70), in_range(0.9, 3, 200)])
    assert both == {0.0: (70, 3, 4), 0.9: (200, 3, 4)}


EFFORTS = {"race": 2.5}, {"race": 3.0, "rungs": "losses"}, {"race": 1e6}, {}, {"hits": 5}


def test_of_several_searches_for_one_question_the_one_of_most_effort_answers(monkeypatch):
    """Exact before any race, a wide race before a close one, more hits before fewer."""
    monkeypatch.setattr(selection.searches, "recorded", lambda cells: dict(enumerate(cells)))
    cells = [Search("mnist-simple-cnn", 64, **{"hits": 1} | effort) for effort in EFFORTS]
    other = Search("mnist-simple-cnn", 64, split=1, race=2.5)
    for last, best in enumerate(cells):
        assert set(selection.best([*cells[last::-1], other])) == {best, other}


def test_a_search_with_a_longer_limit_stands_for_the_usual_one_and_a_shorter_does_not():
    """It is the same search up to the workload's own limit, here 40,000 steps."""
    cells = [Search("mnist-simple-cnn", 4, max_steps=most) for most in (80_000, 40_000, 20_000, None)]
    assert [c.max_steps for c in cells if c.is_usual()] == [80_000, None]
    assert all(c.is_usual("max_steps") for c in cells)


KEY = ("digits-mlp", "momentum", "connection-sensitivity", 0.0)


def won(rates, momenta, space=None):
    """Ten batch sizes of one search, two trials each, of which the first wins."""
    found = pd.DataFrame({"batch_size": 2 ** np.arange(10), "learning_rate": rates, "momentum": momenta, "steps": 10})
    slower = found.assign(learning_rate=1e-2, momentum=0.99, steps=20)
    return recorded(pd.concat([found, slower], ignore_index=True), space=space)


def test_an_optimum_planted_at_an_edge_is_marked_on_its_side():
    found = ranges.at_edges(won(np.r_[[0.9] * 3, [0.01] * 7], [0.91] * 10)).set_index("hyperparameter")
    assert found.upper.to_dict() == {"learning_rate": 0.3, "momentum": 0}
    assert found.lower.to_dict() == {"learning_rate": 0, "momentum": 1}
    words = ranges.marks(found.reset_index())[KEY]
    assert words == "30\u00a0% at the upper edge of learning rate; 100\u00a0% at the lower edge of momentum"
