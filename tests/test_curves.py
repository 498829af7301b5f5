"""Curves and their fits: what was planted is recovered and covered, and what is unknown is called so."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares
from scipy.stats import norm, t

from lib import forms
from lib.analysis import ranges, scaling
from lib.claims.claim import REGISTRY, judged
from lib.claims.judging import registered
from lib.records import results, selection
from lib.studies import plans
from lib.studies.search import Search
from lib.workloads.catalogue import workload
from tests.conftest import recorded

POINT = [*scaling.CURVE, "batch_size"]
SIX, ELEVEN = 4.0 ** np.arange(1, 7), 2.0 ** np.arange(11)


@pytest.mark.parametrize(("n", "k"), [(6, 3), (7, 7)])
def test_best_of_k_against_enumeration(n, k):
    draws = [min(draw) for draw in itertools.combinations(range(n), k)]
    assert np.allclose(scaling.steps.best_of_k_pmf(n, k), np.bincount(draws, minlength=n) / len(draws))


def searched(steps, splits=(0, 0, 0), workload="w"):
    """A point's searches of two trials each, with these steps to result, on these splits."""
    pairs = enumerate(zip(steps, splits, strict=True))
    rows = [(k * times, n, split) for n, (k, split) in pairs for times in (1, 2)]
    trials = pd.DataFrame(rows, columns=["steps", "replicate", "split"])
    return scaling.steps_to_result(recorded(trials, workload=workload, batch_size=16))


def test_a_point_is_the_geometric_mean_of_its_searches_and_its_interval_students_t():
    row = scaling.across_replicates(searched([10, 20, 40])).iloc[0]
    low, high = t.interval(0.9, 2, np.log(20), np.log(2) / np.sqrt(3))
    assert (row.steps, row.low, row.high) == pytest.approx((20, np.exp(low), np.exp(high)))
    assert (row.replicates, row.missed, row.borrowed) == (3, 0, False)


DIGITS_MLP = scaling.SCATTER["digits", "fully connected"]


@pytest.mark.parametrize(
    ("name", "scatter"), [("digits-mlp-16x2", DIGITS_MLP), ("w", scaling.ONE_SPLIT)]
)
def test_a_point_with_one_search_borrows_the_scatter_of_the_nearest_workload(name, scatter):
    row = scaling.across_replicates(searched([20], [0], workload=name)).iloc[0]
    reach = np.log([row.high / 20, 20 / row.low])
    assert row.borrowed and reach == pytest.approx(norm.ppf(0.95) * scatter)


@pytest.mark.parametrize(("searches", "kept"), [(5, [10, 80, 160]), (4, [10, 20, 40])])
def test_searches_on_splits_of_their_own_go_before_several_on_one(searches, kept):
    """One per split, since searches that share one err together; all on split 0 where those are
    more cells."""
    rows = searched([10, 20, 40, 80, 160], [0, 0, 0, 3, 4])
    rows = rows[rows.replicate < searches]
    assert np.exp(scaling.curve_of(rows).logs[16]).tolist() == pytest.approx(kept)
    assert scaling.across_replicates(rows).replicates.tolist() == [3]


def test_perfect_scaling_begins_at_a_curves_own_smallest_batch_size():
    sizes = np.array([8, 2, 4])
    curves = [pd.DataFrame({"batch_size": sizes, "steps": 10 * k / sizes, "goal": 0.04, "sparsity": k}) for k in (0.0, 0.5)]
    rows = scaling.with_perfect(pd.concat(curves).assign(steps=lambda rows: rows.steps + 3))
    assert rows.perfect.to_numpy() == pytest.approx((rows.sparsity * 5 + 3) * 2 / rows.batch_size)


def scatter(searches):
    """Standard deviation of ln K* between the independent searches of a point that met the goal,
    pooled over points."""
    parts = [
        rows[scaling.apart(rows.replicate.to_numpy(), rows.split.to_numpy())]
        for _, rows in searches.groupby(POINT)
    ]
    met = pd.concat(parts).dropna(subset="steps")
    points = np.log(met.steps).groupby([met[name] for name in POINT])
    squares = (points.var(ddof=0) * points.size()).sum()
    return float(np.sqrt(squares / (len(met) - points.ngroups)))


def test_what_single_searches_borrow_is_what_the_records_say():
    """Also which data sets and kinds of network have enough searches on splits of their own."""
    searches = scaling.steps_to_result(results.of_searches(selection.curves()))
    works = {name: workload(name) for name in searches.workload.unique()}
    kinds = {name: (work.dataset, scaling.steps.kind_of(work.model)) for name, work in works.items()}
    searches["kind"] = searches.workload.map(kinds)
    own_split = searches[searches.split > 0]
    splits = own_split.groupby(["kind", *POINT]).split.nunique() - 1
    spare = splits.groupby("kind").sum()
    for kind in spare[spare >= 200].index:
        rows = own_split[own_split.kind == kind]
        rows = rows[rows.sparsity.isin(plans.DENSE_AND_SPARSE)]
        assert scatter(rows) == pytest.approx(scaling.SCATTER[kind], abs=0.1)
    # On few splits, but beyond chance
    cifar = searches[(searches.workload == "cifar-10-resnet-8") & (searches.sparsity == 0)]
    assert scatter(cifar) == pytest.approx(scaling.SCATTER["cifar-10", "convolutional"], abs=0.1)
    digits = searches[searches.workload.isin(plans.DIGITS) & (searches.split == 0)]
    assert scatter(digits) == pytest.approx(scaling.ONE_SPLIT, abs=0.03)


# --- planted curves -------------------------------------------------------------------------------

DENSE, SPARSE = (1300.0, 20.0), (4000.0, 40.0)  # c1, c2
SCATTER = 0.3  # of ln K*: of a search as a whole, of its order of the data, and of a single cell


def scattered(logs, sizes, limit=np.inf, splits=None):
    """The curve of searches [n, m], missed where they exceed a limit; on splits of their own, or on
    these."""
    n = range(len(logs))
    index = pd.MultiIndex.from_arrays([n, splits or n], names=scaling.SEARCH)
    tables = np.minimum(logs, limit), logs > limit
    frames = (pd.DataFrame(table, index, np.asarray(sizes, int)) for table in tables)
    return scaling.Curve(*frames, scatter=0.45)


def planted(random, constants, shared, limit=np.inf):
    """A curve of searches [n] at SIX whose ln K* scatters about c1/B + c2; what takes more than
    `limit` steps is missed."""
    c1, c2 = constants
    logs = np.log(c1 / SIX + c2) + shared + random.normal(0, SCATTER, shared.shape)
    return scattered(logs, SIX, np.log(limit))


TIMES = 150
SLACK = 1.645 * np.sqrt(0.9 * 0.1 / TIMES)  # of a share of TIMES, at 90 %: about 86 to 94 %


@pytest.mark.parametrize(("n", "limit"), [(3, 1100.0), (10, np.inf)], ids=["missed", "met"])
def test_intervals_cover_what_was_planted(n, limit):
    """For a critical batch size, ratios of two, and steps over steps; `missed`: some 7 % of
    searches."""
    truths = np.log([65, 100 / 65, (1000 + 40) / (325 + 20)])
    random, covered = np.random.default_rng(0), np.zeros(3)
    for _ in range(TIMES):
        shared = random.normal(0, SCATTER, (n, 1)) + random.normal(0, SCATTER, (n, len(SIX)))
        dense, sparse = (planted(random, ends, shared, limit) for ends in (DENSE, SPARSE))
        steps = scaling.steps_ratio(sparse, dense).effect[0]
        effects = [scaling.critical(dense), scaling.critical_ratio(sparse, dense), steps]
        covered += [effect.low <= truth <= effect.high for effect, truth in zip(effects, truths)]
    assert (abs(covered / TIMES - 0.9) <= 0.04 + SLACK).all()


def test_a_point_that_every_search_missed_still_bends_the_curve():
    """Left out, the smallest batch would seem never tried; as a bound, it keeps the critical
    batch size from falling."""
    shared = np.random.default_rng(0).normal(0, 0.1, (8, 6))
    limits = np.inf, 500.0
    full, cut = (planted(np.random.default_rng(1), SPARSE, shared, limit) for limit in limits)
    assert cut.missed[4].all() and not cut.met[0] and len(cut.points()) == 5
    assert scaling.critical(cut).value == pytest.approx(scaling.critical(full).value, abs=0.25)


@pytest.mark.parametrize("constants, side", [((1e5, 1e-3), "above"), ((1e-3, 20.0), "below")])
def test_a_curve_without_a_bend_bounds_its_critical_batch_size(constants, side):
    random = np.random.default_rng(0)
    bend = scaling.critical(planted(random, constants, random.normal(0, 0.1, (5, 6))))
    assert getattr(bend, side) and np.isinf(bend.high if side == "above" else bend.low)


def test_a_ratio_over_rungs_is_open_where_one_of_them_has_no_bend():
    random = np.random.default_rng(0)
    bent = planted(random, DENSE, random.normal(0, 0.1, (5, 6)))
    straight = scattered(12 - 1.5 * np.log(SIX) + random.normal(0, 0.1, (5, 6)), SIX, np.inf)
    assert np.isfinite(scaling.shared_ratio([bent, bent], [bent, bent]).high)
    assert np.isinf(scaling.shared_ratio([bent, straight], [bent, bent]).high)
    assert np.isinf(scaling.shared_ratio([bent, bent], [bent, straight]).low)


def searches(steps, n, random, scatter=0.2, level=0.3):
    """ln K* [n, m] of searches that each have a level of their own, and scatter about it."""
    levels = level * random.standard_normal((n, 1))
    return np.log(steps) + levels + scatter * random.standard_normal((n, len(steps)))


@pytest.mark.parametrize("n", [3, 20])
def test_a_form_is_rejected_as_often_as_it_should_be(n):
    random, scatter = np.random.default_rng(0), np.linspace(0.4, 0.15, 6)  # small batches have more
    shares = []
    for exponent in (1.0, 0.75):
        steps = DENSE[0] / SIX**exponent + DENSE[1]
        tests = [forms.test_form(SIX, searches(steps, n, random, scatter)) for _ in range(200)]
        shares.append(np.mean([test.p_value < 0.1 for test in tests]))
    assert 0.06 <= shares[0] <= 0.16 and shares[1] > (0.9 if n == 20 else 0.2)


def test_a_size_that_no_shared_search_has_lies_on_the_form():
    logs = np.log(1000 / SIX + 10) + np.zeros((4, 1))
    lacking = scattered(logs, SIX)
    lacking.logs.iloc[:3, -1] = np.nan
    ratio = scaling.critical_ratio(lacking, scattered(logs[:3], SIX))
    assert ratio.value == pytest.approx(0, abs=1e-3)


def test_a_curve_is_of_one_protocol():
    with pytest.raises(ValueError, match="precision"):
        scaling.of_searches(searched([10, 20], [0, 1]).assign(precision=["a", "b"]))


def test_the_fit_is_that_of_scipy():
    random = np.random.default_rng(3)
    for exponent in (0.7, 1.0, 1.3):  # also where the form is not exact
        logs = np.log(900 / ELEVEN**exponent + 12) + random.normal(0, 0.1, 11)

        def residuals(p, logs=logs):
            return p[0] + np.logaddexp(0, p[1] - np.log(ELEVEN)) - logs

        expected = least_squares(residuals, [np.log(12), np.log(75)])
        fit = forms.fit(ELEVEN, logs)
        assert fit.loss[0] == pytest.approx(2 * expected.cost, rel=1e-6)
        assert [fit.floor[0], fit.bend[0]] == pytest.approx(expected.x, abs=1e-3)


def test_a_planted_departure_is_found_with_its_size():
    """A sharp corner, max(c1/B, c2), is off every c1/B + c2; a fit to the corner itself tells by
    how much."""
    sizes = ELEVEN[::2]  # fits no exponent, which is what takes time
    corner = np.maximum(1e3 / sizes, 20)
    truth = np.exp(np.sqrt(forms.fit(sizes, np.log(corner)[None]).loss[0] / len(sizes)))
    random = np.random.default_rng(0)
    tests = [forms.test_form(sizes, searches(corner, 12, random)) for _ in range(100)]
    assert truth > 1.1 and np.median([test.depart for test in tests]) == pytest.approx(truth, rel=0.02)
    assert 0.82 < np.mean([test.depart_low < truth < test.depart_high for test in tests]) < 0.98
    assert np.mean([test.p_value < 0.05 for test in tests]) > 0.9


BENT = 1e3 / ELEVEN + 20
PLANTED = [  # claim, verdict, curves by sparsity: shifted, a straight power law, a sharp corner
    ("L2", "yes", {0.0: BENT, 0.9: 3e3 / ELEVEN + 50}),
    ("L2", "no", {0.0: BENT, 0.9: 1e3 / ELEVEN**0.6}),
    ("L6", "yes", {0.0: BENT}),
    ("L6", "no", {0.0: 1e3 / ELEVEN**0.6}),
    ("L6", "no", {0.0: np.maximum(1e3 / ELEVEN, 20)}),
]


@pytest.mark.parametrize(("key", "verdict", "curves"), PLANTED)
def test_the_theory_and_the_form_of_pruned_curves_can_fail(key, verdict, curves):
    random = np.random.default_rng(2)
    named = {
        ("digits-mlp", "sgd", "connection-sensitivity", sparsity): scattered(logs, ELEVEN)
        for sparsity, steps in curves.items()
        for logs in [searches(steps, 20, random, 0.05)]
    }
    claim = judged(registered()[key], REGISTRY[key][1](named, pd.DataFrame()))
    assert [group.verdict for group in claim.groups] == [verdict]


# --- ranges and searches that answer a question ---------------------------------------------------


def in_range(sparsity, searches, steps):
    """Two trials of every search; the faster takes `steps` at every batch size."""
    rows = itertools.product((1, 4, 16, 64, 256), range(searches), (steps, steps + 10))
    trials = pd.DataFrame(rows, columns=["batch_size", "replicate", "steps"])
    more = {"sparsity": sparsity, "split": trials.replicate, "space": None}
    return recorded(trials, trials=2, hits=1, **more)


def test_a_search_of_the_whole_range_is_the_union_of_two_where_both_are():
    """Five searches above 0.9, three below: three of both, with twice the trials."""
    published = pd.concat([in_range(0.0, 5, 100), in_range(0.9, 5, 300)])
    rows = ranges.whole(published, pd.concat([in_range(0.0, 3, 70), in_range(0.9, 3, 200)]))
    by = rows[rows.space == ranges.WHOLE].groupby("sparsity")
    union = by.agg({"steps": "min", "replicate": "nunique", "trials": "max"})
    assert union.T.to_dict("list") == {0.0: [70, 3, 4], 0.9: [200, 3, 4]}


EFFORTS = {"race": 2.5}, {"race": 3.0, "rungs": "losses"}, {"race": 1e6}, {}, {"hits": 5}


def test_of_several_searches_for_one_question_the_one_of_most_effort_answers(monkeypatch):
    """Exact before any race, a wide race before a close one, more hits before fewer."""
    monkeypatch.setattr(selection.searches, "recorded", lambda cells: dict(enumerate(cells)))
    cells = [Search("mnist-simple-cnn", 64, **{"hits": 1} | effort) for effort in EFFORTS]
    second_split = Search("mnist-simple-cnn", 64, split=1, race=2.5)
    for last, best in enumerate(cells):
        assert set(selection.best([*cells[last::-1], second_split])) == {best, second_split}


def test_a_search_with_a_longer_limit_stands_for_the_usual_one_and_a_shorter_does_not():
    """It is the same search up to the workload's own limit, here 40,000 steps."""
    limits = 80_000, 40_000, 20_000, None
    cells = [Search("mnist-simple-cnn", 4, max_steps=limit) for limit in limits]
    assert [c.max_steps for c in cells if c.is_usual()] == [80_000, None]
    assert all(c.is_usual("max_steps") for c in cells)


def test_an_optimum_planted_at_an_edge_is_marked_on_its_side():
    """Ten batch sizes of one search, two trials each, of which the first wins."""
    rates = {"learning_rate": [0.9] * 3 + [0.01] * 7, "momentum": 0.91, "steps": 10}
    winners = pd.DataFrame({"batch_size": ELEVEN[:10], **rates})
    slower = winners.assign(learning_rate=1e-2, momentum=0.99, steps=20)
    trials = pd.concat([winners, slower], ignore_index=True)
    edges = ranges.at_edges(recorded(trials, space=None)).set_index("hyperparameter")
    assert edges.upper.to_dict() == {"learning_rate": 0.3, "momentum": 0}
    assert edges.lower.to_dict() == {"learning_rate": 0, "momentum": 1}
    words = ranges.marks(edges.reset_index())["digits-mlp", "momentum", "connection-sensitivity", 0.0]
    assert words.replace("\u00a0", " ") == (
        "30 % at the upper edge of learning rate; 100 % at the lower edge of momentum"
    )
