"""The analysis recovers what was planted, and says so when it cannot know."""

import itertools

import numpy as np
import pandas as pd
import pytest

from lib.analysis import scaling
from lib.analysis.scaling import fits, regimes
from lib.measuring import sweeps
from lib.records import on_record
from lib.studies import plans
from lib.workloads.catalogue import workload

SIZES = 2.0 ** np.arange(0, 15)


def table(steps, goal=0.04, hits=5, last=None, replicate=0, batch_size=16):
    steps = np.asarray(steps, float)
    last = last or (np.nanmax(steps) if not np.isnan(steps).all() else 100)
    return pd.DataFrame({
        "workload": "w", "algorithm": "sgd", "sparsity": 0.0, "batch_size": batch_size,
        "replicate": replicate, "hits": hits, "goal": goal, "steps": steps, "steps@0.04": steps, "steps@0.1": steps / 2,
        "status": np.where(np.isnan(steps), "stopped", "complete"), "last_step": last,
    })  # fmt: skip


@pytest.mark.parametrize(("n", "k"), [(5, 1), (5, 2), (6, 3), (7, 7), (8, 5)])
def test_best_of_k_against_enumeration(n, k):
    draws = [min(draw) for draw in itertools.combinations(range(n), k)]
    expected = np.bincount(draws, minlength=n) / len(draws)
    assert np.allclose(scaling.best_of_k_pmf(n, k), expected)


def test_best_of_k_refuses_impossible_searches():
    for k in (0, 6):
        with pytest.raises(ValueError, match=f"k: {k} is not allowed.* 1 to 5"):
            scaling.best_of_k_pmf(5, k)


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
    assert row.steps == 10 and row.censored and row.upper == 64 and row.hits_seen == 2


def test_infeasible_trials_are_counted_and_never_averaged():
    frame = table([30, np.nan, 10, np.nan])
    frame.loc[1, "status"] = "infeasible"
    row = scaling.steps_to_result(frame).iloc[0]
    assert (row.steps, row.infeasible, row.hits_seen) == (10, 1, 2)
    nobody = scaling.steps_to_result(table([np.nan] * 4)).iloc[0]
    assert np.isnan(nobody.steps) and nobody.hits_seen == 0


def test_goals_of_the_ladder():
    frame = table([30, 10])
    assert scaling.goals(frame) == [0.04, 0.1]
    for goal in (0.1, np.float64(0.1), np.float32(0.1)):
        assert scaling.steps_to_result(frame, goal).steps.item() == 5
    for goal in (0.2, "0.04"):
        with pytest.raises(ValueError, match=f"goal: {goal!r} is not allowed; it must be one of 0.04, 0.1"):
            scaling.at_goal(frame, goal)


def test_no_k_is_not_taken_for_the_default():
    frame = table([30, 10])
    for search in (scaling.steps_to_result, scaling.resampled):
        with pytest.raises(ValueError, match="k: 0 is not allowed; it must be a whole number from 1 to 2"):
            search(frame, 0.04, k=0)


def test_replicates_are_joined_not_pooled():
    frame = pd.concat([table([30, 10]), table([20, 50], replicate=1), table([90, 40], replicate=2)])
    joined = scaling.across_replicates(scaling.steps_to_result(frame)).iloc[0]
    assert (joined.low, joined.steps, joined.high, joined.replicates) == (10, 20, 40, 3)


def test_searches_of_one_cell_are_joined_however_many_hits_they_waited_for():
    frame = pd.concat([table([40, 90], replicate=0), table([80, 90], replicate=1, hits=2)])
    joined = scaling.across_replicates(scaling.steps_to_result(frame))
    assert joined.steps.tolist() == [60] and joined.replicates.tolist() == [2]
    assert scaling.scatter(scaling.steps_to_result(frame)) == pytest.approx(np.log(2) / np.sqrt(2))


def test_trials_that_met_no_goal_are_no_curve():
    lost = table([np.nan, np.nan]).assign(best_error=[0.3, 0.25])
    with pytest.raises(ValueError, match=r"goal: none of 2 trials met any of 0.04, 0.1; .* error was 0.25, so that easier"):
        scaling.all_goals(lost)


def curve(steps):
    return pd.DataFrame({"batch_size": SIZES, "steps": steps, "goal": 0.04, "sparsity": 0.0})


def test_pure_curves():
    perfect, flat = scaling.regimes(curve(1e6 / SIZES)), scaling.regimes(curve(np.full(15, 50.0)))
    assert perfect.perfect_end == SIZES[-1] and not perfect.leaves_perfect and not perfect.reaches_plateau
    assert flat.perfect_end == 1 and flat.useful_end == 1 and flat.reaches_plateau


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


def test_sizes_below_the_start_and_a_rise_at_the_end_are_told_apart():
    """A small size that wastes examples is not on the line of perfect scaling, and a largest that costs steps is no floor."""
    steps = 1e6 / SIZES
    steps[0] *= 3
    labelled = scaling.label(curve(steps))
    assert labelled.regime.tolist() == [scaling.BEFORE] + [scaling.PERFECT] * 14
    steps[-1] *= 4
    found = scaling.regimes(curve(steps))
    assert found.start == 2 and found.rises and not found.reaches_plateau and not scaling.regimes(curve(1e6 / SIZES)).rises


def test_a_curve_without_a_floor_bends_nowhere_and_rules_no_pool(monkeypatch):
    straight = pd.DataFrame([[400.0, 100.0, 25.0]], columns=[4, 16, 64])
    found = scaling.redrawn(straight)
    assert np.isinf(found.critical.item()) and found.c1.item() == pytest.approx(1600, rel=1e-3)
    assert scaling.redrawn(straight * 0 + 50.0).critical.item() == 0
    random = np.random.default_rng(9)
    sizes = 4.0 ** np.arange(6)
    curves = {f"w{i}": pd.DataFrame((100 / sizes + 1) * random.lognormal(0, 0.3, (300, 6)), columns=sizes) for i in range(5)}
    curves["w0"] = curves["w0"][sizes[:3]]  # below its bend: no floor in many draws
    drawn = {(w, "sgd", "none", s): c for w, c in curves.items() for s in (0.0, 0.9)}
    drawn |= {("w0", "sgd", "none", 0.9): curves["w1"]}
    both = pd.DataFrame([[400.0, 100.0, 25.0]] * 40, columns=[4, 16, 64])
    assert scaling.span_of(scaling.ratios(both, both, "critical")) == (0, np.inf)  # nothing is known
    pairs = scaling.against_dense(drawn, "critical")
    found = []
    for far in (6, 8, 16):
        monkeypatch.setattr(scaling, "FAR", far)
        found.append(scaling.pooled(drawn, "critical", pairs))
    assert np.isfinite(found).all() and found[0] == pytest.approx(found[2], rel=0.02)


def test_equal_bends_differ_by_chance_as_much_as_their_ranges_say():
    """The largest of twenty equal bends over the smallest, in fresh draws of the same noise, stays below the factor."""
    random, sizes = np.random.default_rng(10), 4.0 ** np.arange(7)

    def noisy(draws):
        return pd.DataFrame((64 / sizes + 1) * random.lognormal(0, 0.2, (draws, 7)), columns=sizes)

    limit = scaling.by_chance([noisy(300) for _ in range(20)])
    bends = np.stack([scaling.redrawn(noisy(300)).critical for _ in range(20)])
    assert (bends.max(0) / bends.min(0) < limit).mean() == pytest.approx(0.95, abs=0.04)


def test_cells_that_stop_at_other_hits_lie_on_one_curve():
    labelled = scaling.label(curve(1e6 / SIZES).assign(hits=np.where(SIZES > 64, 2, 5)))
    assert np.allclose(labelled.perfect, labelled.steps)


def test_a_curve_is_one_row_per_batch_size():
    with pytest.raises(ValueError, match="one row per size"):
        scaling.regimes(pd.concat([curve(SIZES), curve(SIZES)]))


def test_fit_recovers_planted_constants():
    fit = scaling.fit_hyperbola(SIZES, 5e4 / SIZES + 80)
    assert (fit.c1, fit.c2, fit.critical, fit.r2) == pytest.approx((5e4, 80, 625, 1), rel=1e-6) and fit.identified
    assert fit.predict(np.array([625.0])) == pytest.approx(160, rel=1e-6)
    assert not scaling.fit_hyperbola(SIZES, 1e6 / SIZES + 1e-3).identified
    with pytest.raises(ValueError, match="2 points are not enough"):
        scaling.fit_hyperbola([1, 2], [3, 2])


@pytest.mark.parametrize(
    ("batch_size", "steps", "message"),
    [
        ([1, 2, 4], [8, np.nan, 2], "steps: nan is not allowed"),
        ([1, 2, 4], [8, np.inf, 2], "steps: inf is not allowed"),
        ([0, 2, 4], [8, 4, 2], "batch_size: 0 is not allowed"),
        ([1, 2, 4], [8, 4], "steps: 2 values for 3 batch sizes are not allowed"),
    ],
)
def test_fit_refuses_what_was_not_reached(batch_size, steps, message):
    with pytest.raises(ValueError, match=message):
        scaling.fit_hyperbola(batch_size, steps)


def fitted(cells, name):
    """The 5 to 95 % range of a constant of the fit, as the chapters draw it."""
    return scaling.span_of(scaling.redrawn(scaling.resampled(pd.concat(cells), 0.04, draws=60, widened=0))[name])


def test_fit_intervals_cover_the_planted_bend():
    """Nominally 90 % for the critical batch size; the bounds allow for draws that all come from one pool of 40."""
    covered = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        cells = [table((5e3 / b + 20) * random.lognormal(1, 0.5, 40), hits=40, batch_size=b) for b in SIZES[:9]]
        low, high = fitted(cells, "critical")
        covered.append(low <= 5e3 / 20 <= high)
    assert 0.80 <= np.mean(covered) <= 0.99


def test_best_of_k_is_unbiased_for_an_independent_search():
    """Averaged over pools of 40, P(best of 20 <= x) is that of 20 fresh trials: 1 - (1 - F(x))^20."""
    x, found = 0.03, []
    for seed in range(400):
        steps = np.sort(np.random.default_rng(seed).uniform(size=40))
        found.append(scaling.best_of_k_pmf(40, 20)[steps <= x].sum())
    assert np.mean(found) == pytest.approx(1 - (1 - x) ** 20, abs=0.06)


def test_regime_intervals_hold_the_point_and_are_reproducible():
    random = np.random.default_rng(1)
    frame = pd.concat([table((5e3 / b + 20) * random.lognormal(0, 0.1, 40), hits=40, batch_size=b) for b in SIZES[:11]])
    first, again = (scaling.regime_intervals(frame, 0.04, draws=200) for _ in range(2))
    assert first == again
    low, high = first["perfect_end"]
    assert low <= scaling.regimes(scaling.steps_to_result(frame)).perfect_end <= high


def test_cost_of_sparsity():
    a, b = curve(10 / SIZES), curve(30 / SIZES).assign(sparsity=0.9)
    assert np.allclose(scaling.cost_of_sparsity(pd.concat([a, b])), 3)
    assert scaling.cost_of_sparsity(a).empty


def test_intervals_of_both_constants_cover_what_was_planted():
    """Nominally 90 %.  The best of k is lower than the typical trial by the same factor at every batch size."""
    covered = {"c1": [], "c2": []}
    for seed in range(80):
        random = np.random.default_rng(seed)
        cells = [table((5e3 / b + 20) * random.lognormal(0, 0.3, 40), hits=40, batch_size=b) for b in SIZES[:9]]
        typical = np.exp(np.mean(np.log(random.lognormal(0, 0.3, (4000, 20)).min(1))))
        for name, value in (("c1", 5e3), ("c2", 20)):
            low, high = fitted(cells, name)
            covered[name].append(low <= value * typical <= high)
    assert all(0.75 <= np.mean(v) <= 0.99 for v in covered.values()), {k: np.mean(v) for k, v in covered.items()}


def test_redrawn_curves_are_analysed_as_single_ones_are():
    """The array forms of the regimes and of the fit agree with the plain ones, draw by draw."""
    random = np.random.default_rng(3)
    k = (5e3 / SIZES + 20) * random.lognormal(0, 0.25, (60, len(SIZES)))
    perfect, useful, whole = regimes.regime_ends(SIZES, k)
    c1, c2 = fits.hyperbolas(SIZES, k)
    for row, shown, *found in zip(k, whole, perfect, useful, c1, c2):
        plain, fit = scaling.regimes(curve(row)), scaling.fit_hyperbola(SIZES, row)
        assert found[:2] == [plain.perfect_end, plain.useful_end]
        assert shown == scaling.all_three(pd.DataFrame([vars(plain)])).item()
        assert found[2:] == pytest.approx([fit.c1, fit.c2], rel=2e-3)


def test_two_curves_are_compared_at_the_batch_sizes_both_have():
    """A curve that is no hyperbola bends elsewhere on a longer range; against a stretch of itself its ratio is one."""
    random = np.random.default_rng(5)
    long, again = (pd.DataFrame((5e3 / SIZES**0.7 + 20) * random.lognormal(0, 0.02, (200, len(SIZES))), columns=SIZES)
                   for _ in range(2))  # fmt: skip
    short = again[SIZES[SIZES >= 16]]
    apart = np.median(scaling.redrawn(short).critical) / np.median(scaling.redrawn(long).critical)
    assert abs(np.log(apart)) > 0.3
    low, high = scaling.span_of(scaling.ratios(short, long, "critical"))
    assert low < 1 < high < 1.2
    assert len(scaling.ratios(short[SIZES[-2:]], long, "critical")) == 0


def test_a_curve_that_comparisons_share_is_drawn_alike_and_others_independently():
    """Ratios over one noisy curve err together: their mean is as uncertain as that curve, however many they are."""
    noisy = table(100 * np.random.default_rng(7).lognormal(0, 0.3, 80), hits=80)
    shared = [scaling.resampled(noisy.copy(), 0.04)[16] for _ in range(9)]
    others = [scaling.resampled(table(noisy.steps * (1 + i / 1000), hits=80), 0.04)[16] for i in range(9)]
    assert all(below.equals(shared[0]) for below in shared)
    small, large = noisy, table(noisy.steps / 2, hits=80, batch_size=64)
    one, other = (scaling.resampled(pd.concat(cells), 0.04) for cells in ((small, large), (large, small)))
    assert one.equals(other), "the order of the cells is not theirs"
    widths = [np.log(high / low) for low, _, high in map(scaling.middle, (1 / np.array(shared), 1 / np.array(others)))]
    assert widths[0] > 1.5 * widths[1]


def test_ranges_are_the_quantiles_of_the_draws():
    logs = np.random.default_rng(6).normal([1.0, -2.0], [0.1, 0.3], (20_000, 2))
    table = scaling.ranges(pd.DataFrame(logs, columns=[16, 64]), "slope")
    assert table.batch_size.tolist() == [16, 64]
    assert table.slope_low.to_numpy() == pytest.approx([1 - 0.1645, -2 - 0.4935], abs=0.02)
    assert table.slope_high.to_numpy() == pytest.approx([1 + 0.1645, -2 + 0.4935], abs=0.02)


def curve_of_searches(sparsity=0.0, **fields):
    cells = [table(np.arange(1, 9) * (640 / b + 10), batch_size=b) for b in (4, 16, 64, 256)]
    frame = pd.concat(cells).assign(pruning="none", trial=[*range(8)] * 4, trials=8, sparsity=sparsity)
    return frame.assign(**fields)


def test_the_hardest_goal_that_enough_trials_met_at_every_batch_size():
    """At one batch size of four, 4 % is met by the three fastest trials of the first search, and 10 % by five."""
    both = pd.concat([curve_of_searches(), curve_of_searches(replicate=1)])
    few = (both.batch_size == 16) & (both.replicate == 0) & (both.trial >= 3)
    both = both.assign(**{"steps@0.04": both["steps@0.04"].mask(few), "steps@0.1": both["steps@0.1"].mask(few & (both.trial >= 5))})
    alone = both[both.replicate == 0]
    assert [scaling.well_met(alone, hits) for hits in (3, 4, 5, 6)] == [0.04, 0.1, 0.1, None]
    assert [scaling.well_met(both, hits) for hits in (5, 6, 7)] == [0.04, 0.1, None]  # 5.5 and 6.5 on average


def test_two_protocols_are_no_curve():
    both = pd.concat([curve_of_searches(), curve_of_searches(trials=16).query("batch_size > 16")])
    with pytest.raises(ValueError, match=r"trials: \[8, 16\] are not allowed on one curve"):
        scaling.summaries(both)


def test_smoothed_labels_are_another_cell():
    both = pd.concat([table([10, 20]).assign(label_smoothing=s) for s in (0.0, 0.1)])
    assert len(scaling.steps_to_result(both)) == 2


def test_a_search_cut_short_is_one_of_fewer_trials_that_ends_sooner():
    frame = curve_of_searches()
    cut = scaling.cut_short(frame.sample(frac=1, random_state=0), 4, 2)
    for _, cell in cut.groupby("batch_size"):
        full = frame[frame.batch_size == cell.batch_size.iloc[0]].steps.nsmallest(2)
        assert len(cell) == 4 and sorted(cell.steps.dropna()) == list(full) and (cell.last_step == full.max()).all()
        assert (cell["steps@0.1"].dropna() <= full.max()).all()
    summary, _ = scaling.summaries(frame)
    assert scaling.covered(summary, summary.assign(critical=summary.critical_high)).all()
    assert not scaling.covered(summary, summary.assign(critical=summary.critical_high * 1.01)).any()


def test_a_network_three_times_as_slow_is_level_over_the_dense_and_alike_over_its_smallest_batch():
    slow = curve_of_searches(0.9).query("batch_size > 4")  # its smallest batch met no goal
    slow = slow.assign(steps=3 * slow.steps, last_step=3 * slow.last_step)
    frame = pd.concat([curve_of_searches(), slow], ignore_index=True)
    curves = scaling.across_replicates(scaling.steps_to_result(frame)).sample(frac=1, random_state=0)
    found = scaling.relative(curves, scaling.summaries(frame)[1]).set_index(["over", "sparsity", "batch_size"]).sort_index()
    assert len(found) == 2 * 7 and (found.relative_low <= found.relative_high).all()
    over = found.relative[scaling.DENSEST]
    assert (over[0.0] == 1).all() and over[0.9].to_numpy() == pytest.approx(3)
    assert found.relative_low[scaling.DENSEST, 0.9].max() <= 3 <= found.relative_high[scaling.DENSEST, 0.9].min()
    first = found.relative[scaling.SMALLEST]
    assert first[0.0, 4] == first[0.9, 16] == 1 and first[0.0, 64] < first[0.9, 64] < 1
    alone = scaling.relative(curves[curves.sparsity == 0.9], {})
    assert alone.relative_low.isna().all() and len(alone) == 6


def test_a_goal_has_its_place_on_the_ladder_of_its_workload():
    frame = pd.DataFrame({"workload": ["digits-mlp", "mnist-simple-cnn"], "algorithm": "sgd", "goal": [0.05, 0.02]})
    assert scaling.on_ladder(frame).place.tolist() == [1, 0]
    assert scaling.curve_names(frame) == ["MLP on digits, SGD", "Simple-CNN on MNIST, SGD"]


def test_scatter_is_the_spread_between_searches_whatever_their_level():
    random = np.random.default_rng(8)
    cells = [table([level * random.lognormal(0, 0.25)], replicate=r, batch_size=b) for r in range(3)
             for b, level in zip(range(1, 401), np.geomspace(10, 1e4, 400), strict=True)]  # fmt: skip
    curves = scaling.steps_to_result(pd.concat(cells))
    assert scaling.scatter(curves) == pytest.approx(0.25, rel=0.08)
    assert np.isnan(scaling.scatter(curves[curves.replicate == 0]))


def test_a_single_search_is_widened_and_replicates_speak_for_themselves():
    single = pd.concat([table(np.full(8, 640 / b + 10), batch_size=b) for b in (4, 16, 64)])
    drawn = np.log(scaling.resampled(single, 0.04, draws=4000))
    assert drawn.std().to_numpy() == pytest.approx(scaling.UNSEEN, rel=0.05)
    assert drawn.median().to_numpy() == pytest.approx(np.log([170, 50, 20]), abs=0.02)
    several = pd.concat([single, single.assign(replicate=1)])
    large = pd.concat([table(np.full(100, 640 / b + 10), batch_size=b) for b in (4, 16, 64)])
    for fixed in (scaling.resampled(several, 0.04), scaling.resampled(single, 0.04, widened=0), scaling.resampled(large, 0.04)):
        assert (fixed == [170, 50, 20]).all().all()


def test_searches_of_which_every_trial_met_the_goal_are_redrawn():
    """Their steps are whole numbers in the records, and are read as such."""
    trials = pd.concat([table(np.array([640, 700, 900, 950]) // b, batch_size=b) for b in (4, 16, 64)])
    trials = trials.astype({"steps": int, "steps@0.04": int, "last_step": int}).assign(pruning="none")
    summary, drawn = scaling.summaries(trials)
    assert len(summary) == 1 and all((curve > 0).all().all() for curve in drawn.values())
    assert scaling.steps_to_result(trials).steps.dtype == float


def test_what_is_reached_at_equal_steps_is_read_off_the_ladder():
    """The dense network meets the hardest goal after 100 steps, the pruned ones some easier one by then, or none."""
    ladder = workload("digits-mlp").goals

    def cell(sparsity, steps, replicate=0):
        met = {f"steps@{goal:g}": float(k) for goal, k in zip(ladder, steps)}
        return pd.DataFrame({"workload": "digits-mlp", "algorithm": "sgd", "pruning": "p", "sparsity": sparsity, "batch_size": 16,
                             "replicate": replicate, "trial": range(8), "last_step": 500, **met})  # fmt: skip

    trials = pd.concat([cell(0.0, [100, 80, 60, 40, 20]), cell(0.5, [100, 99, 9, 9, 9]), cell(0.7, [300, 200, 100, 50, 20]),
                        cell(0.9, [np.nan] * 5), cell(0.9, [np.nan, 101, 101, 101, 99], replicate=1)])  # fmt: skip
    found = scaling.at_equal_steps(trials).set_index("sparsity").rungs
    assert set(found[0.5]) == {0} and set(found[0.7]) == {2} and set(found[0.9]) == {4, np.inf}
    assert np.mean(found[0.9] == 4) == pytest.approx(0.5, abs=0.12)
    lucky = pd.concat([cell(0.0, [100] * 5), cell(0.9, [200] * 5).assign(**{"steps@0.04": [50.0, *[200.0] * 7]})])
    assert np.mean(scaling.at_equal_steps(lucky).rungs[0] == 0) == pytest.approx(0.5, abs=0.12)  # whether the half holds it
    assert scaling.at_equal_steps(trials[trials.sparsity > 0]).empty


def test_widened_ranges_of_real_searches_hold_what_several_searches_say():
    """Searches of 32 trials up to the second hit, as on images, cut out of the records of digits with their replicates."""
    cells = {"workload": "digits-mlp", "algorithm": "momentum", **plans.USUAL}
    trials = sweeps.results(on_record.gathered(**cells))
    short = scaling.cut_short(trials, 32, 2)
    full = scaling.summaries(trials, 200)[0]
    found = [scaling.covered(scaling.summaries(short[short.replicate == r], 200)[0], full) for r in range(3)]
    assert np.mean(pd.concat(found)) >= 0.8
    assert scaling.unseen(short) == pytest.approx(scaling.UNSEEN, abs=0.06) and scaling.unseen(trials) < 0.12


def test_the_luck_of_a_search_at_an_easy_goal_is_not_its_luck_at_a_hard_one():
    trials = sweeps.results(on_record.gathered(workload="digits-mlp", **plans.USUAL))
    logs = scaling.all_goals(trials).assign(log=lambda c: np.log(c.steps))
    cells = logs.pivot_table(index=[*scaling.CURVE, "batch_size", "replicate"], columns="goal", values="log")
    luck = (cells - cells.groupby([*scaling.CURVE, "batch_size"]).transform("mean")).corr()
    assert 0 < luck.loc[0.04, 0.1] < 0.4 < luck.loc[0.04, 0.05]
