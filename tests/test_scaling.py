"""The analysis recovers what was planted, and says so when it cannot know."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t

from lib.analysis import scaling
from lib.measuring import sweeps
from lib.records import on_record
from lib.studies import plans
from lib.workloads.catalogue import workload

SIZES = 2.0 ** np.arange(0, 15)


def scatter(searches):
    """Standard deviation of ln K* between the independent searches of a point that met the goal, pooled over points."""
    curve = [c for c in (*scaling.CURVE, "batch_size") if c in searches]
    apart = [own[scaling.apart(own.replicate.to_numpy(), own.split.to_numpy())] for _, own in searches.groupby(curve)]
    met = pd.concat(apart).dropna(subset="steps")
    points = np.log(met.steps).groupby([met[c] for c in (*scaling.CURVE, "batch_size") if c in met])
    return float(np.sqrt((points.var(ddof=0) * points.size()).sum() / (len(met) - points.ngroups)))


def table(steps, goal=0.04, hits=5, last=None, replicate=0, batch_size=16):
    steps = np.asarray(steps, float)
    last = last or (np.nanmax(steps) if not np.isnan(steps).all() else 100)
    return pd.DataFrame({
        "workload": "w", "algorithm": "sgd", "sparsity": 0.0, "batch_size": batch_size,
        "replicate": replicate, "hits": hits, "goal": goal, "steps": steps, "steps@0.04": steps, "steps@0.1": steps / 2,
        "status": np.where(np.isnan(steps), "stopped", "complete"), "last_step": last,
    })  # fmt: skip


@pytest.mark.parametrize(("n", "k"), [(6, 3), (7, 7)])
def test_best_of_k_against_enumeration(n, k):
    draws = [min(draw) for draw in itertools.combinations(range(n), k)]
    expected = np.bincount(draws, minlength=n) / len(draws)
    assert np.allclose(scaling.best_of_k_pmf(n, k), expected)


def test_quantiles_against_simulation():
    random = np.random.default_rng(0)
    steps = random.lognormal(5, 1, 60)
    drawn = np.array([random.choice(steps, 20, replace=False).min() for _ in range(4000)])
    exact = scaling.best_of_k(steps, 20)
    for level, value in zip(scaling.LEVELS, exact, strict=True):
        assert np.mean(drawn < value - 1e-9) <= level + 0.02 and np.mean(drawn <= value + 1e-9) >= level - 0.02


def test_what_lies_beyond_the_hits_is_not_invented():
    steps = np.full(100, np.nan)
    steps[:2] = 10, 20
    low, median, high = scaling.best_of_k(steps, 50)
    assert (low, median) == (10, 10) and np.isinf(high)  # P(one of the two is drawn) is about 3/4
    row = scaling.steps_to_result(table(steps, last=64)).iloc[0]
    assert row.steps == 10 and row.last_step == 64 and row.hits_seen == 2


def searched(steps, splits=(0, 0, 0), batch_size=16, **fields):
    """A point with a search for each of these steps to result, on these splits, of two trials each."""
    cells = [table([k, 2 * k], last=2 * k, replicate=r, batch_size=batch_size).assign(split=split, pruning="p", **fields)
             for r, (k, split) in enumerate(zip(steps, splits, strict=True))]  # fmt: skip
    return pd.concat(cells)


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
    slope = labelled.slope.dropna()
    assert len(slope) == 14 and slope.between(-1, 0).all() and slope.is_monotonic_increasing


def test_what_single_searches_borrow_is_what_the_records_say():
    """Also which data sets and kinds of network have searches enough on splits of their own to be listed."""
    searches = scaling.steps_to_result(sweeps.results(on_record.gathered(**plans.USUAL)))
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


POWER = 5e3 / SIZES
ALL = [(POWER + 20, True, True), (POWER, False, True), (np.full(15, 20.0), False, False), (POWER**0.5, False, False)]


@pytest.mark.parametrize(("steps", "shown", "may"), ALL, ids=["all three", "no floor", "no slope", "half a power"])
def test_a_curve_shows_all_three_regimes_may_show_them_beyond_its_sizes_or_lacks_one(steps, shown, may):
    """Without a floor up to the largest size measured one may lie beyond; imperfect scaling from one example on is that."""
    for above in (True, False):
        found = scaling.all_three(SIZES, steps[None], below=False, above=above)
        assert [bool(part[0]) for part in found] == [shown, shown or (may and above)]
    from_16 = scaling.all_three(SIZES[4:], steps[None, 4:], below=True, above=True)
    assert bool(from_16[1][0]), "perfect scaling and a floor may both lie beyond the sizes measured"
