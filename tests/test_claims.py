"""Verdicts follow from planted curves, in either direction; what a path says is what was planted in it."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lib import claims
from lib.analysis import family_curves, followed_paths, scaling
from lib.probes import portraits

SIZES = 2.0 ** np.arange(11)


def trials(sparsity, c1, c2, algorithm="momentum", seed=0, sizes=SIZES, spread=0.1):
    """Cells of 40 trials, searched eight times, whose steps scatter around 2 (c1/B + c2): the best of half lies near c1/B + c2."""
    random = np.random.default_rng(seed)
    cells = []
    for b, replicate in itertools.product(sizes, range(8)):
        steps = (c1 / b + c2) * random.lognormal(0, spread, 40)
        cells.append(pd.DataFrame({
            "workload": "w", "algorithm": algorithm, "pruning": "connection-sensitivity", "sparsity": sparsity,
            "batch_size": int(b), "trials": 40, "replicate": replicate, "goal": 0.04, "trial": range(40), "status": "complete",
            "last_step": steps.max(), "steps": steps, "steps@0.04": steps,
        }))  # fmt: skip
    return pd.concat(cells)


def judged(*curves):
    frame = pd.concat(curves)
    summary, drawn = scaling.summaries(frame, draws=100)
    return frame, summary, drawn


def test_no_worse_and_later_hold_fail_or_stay_open_with_the_planted_bend():
    for factor, no_worse, later in (
        (4, "holds", "holds"),
        (1, "holds", "does not hold"),
        (0.2, "does not hold", "does not hold"),
    ):
        _, _, drawn = judged(trials(0.0, 6400, 100), trials(0.9, 6400 * factor, 100, seed=1))
        ends, bends = (scaling.against_dense(drawn, n) for n in ("perfect_end", "critical"))
        assert claims.no_worse(bends)["verdict"] == no_worse
        pooled = [scaling.pooled(drawn, n, bends) for n in ("perfect_end", "critical")]
        assert claims.later_with_momentum(ends, bends, *pooled)["verdict"] == later
        assert bends.ratio.iloc[0] == pytest.approx(factor, rel=0.25)
    ten = bends.iloc[[0] * 10].assign(ratio_low=[0.6] * 5 + [1.1] * 5, ratio_high=[0.9] * 5 + [2.0] * 5)
    assert claims.no_worse(ten)["verdict"] == "holds in part"  # half of them are worse, if not much
    assert claims.no_worse(ten.assign(ratio_low=0.0, ratio_high=np.inf))["verdict"] == "cannot be judged"
    empty, none = scaling.against_dense({}, "critical"), scaling.pooled({}, "critical", bends[:0])
    assert claims.no_worse(empty)["verdict"] == "cannot be judged"
    assert claims.later_with_momentum(empty, empty, none, none)["verdict"] == "cannot be judged"


def test_pairs_together_tell_what_none_tells_alone():
    """Sixteen pairs whose ranges are wide: their median is the planted ratio, its range less than half as wide."""
    curves = [
        trials(s, 6400 * (3 if s else 1), 100, seed=10 * i + bool(s), spread=0.5).assign(workload=f"w{i}")
        for i in range(16)
        for s in (0.0, 0.9)
    ]
    _, _, drawn = judged(*curves)
    bends = scaling.against_dense(drawn, "critical")
    low, middle, high = scaling.pooled(drawn, "critical", bends)
    assert low < 3 < high and middle == pytest.approx(3, rel=0.2)
    alone = np.log(bends.ratio_high / bends.ratio_low).median()
    assert alone / 5 < np.log(high / low) < alone / 2


def test_harder_holds_only_if_every_pair_is():
    def verdict(*levels, lost=0):
        """Of levels, each (ratio, low, high) a point, many draws each."""
        rows = [{"sparsity": s, "ratio": m, "ratio_low": low, "ratio_high": high, "draws": np.geomspace(low, high, 101)}
                for s, points in enumerate(levels, start=1) for m, low, high in points]  # fmt: skip
        columns = ["sparsity", "ratio", "ratio_low", "ratio_high", "draws"]
        return claims.harder(pd.DataFrame(rows, columns=columns), lost)

    more, wide, fewer, alike = (2.0, 1.5, 2.7), (1.2, 0.9, 1.6), (0.5, 0.4, 0.6), (1.0, 0.9, 1.1)
    assert verdict([more] * 9)["verdict"] == verdict([more] * 9, [wide, more, more])["verdict"] == "holds"
    assert verdict([more] * 30 + [fewer])["verdict"] == "holds"  # one in thirty is what chance leaves
    assert verdict([more] * 30 + [fewer] * 9)["verdict"] == "holds in part"
    assert verdict([more] * 9, [fewer] * 9)["verdict"] == verdict([more] * 9, [alike] * 9)["verdict"] == "holds in part"
    assert verdict([fewer] * 9)["verdict"] == "does not hold"
    assert verdict([alike] * 9)["verdict"] == verdict()["verdict"] == "cannot be judged"
    assert "Left out are 3 points" in verdict([more], lost=3)["ours"]


def test_the_trend_is_seen_where_it_is_and_not_where_it_is_not():
    frame, summary, drawn = judged(
        *(trials(s, 2000 * (1 + s), 100 * (1 + s), seed=i) for i, s in enumerate((0.0, 0.5, 0.9)))
    )
    points = scaling.on_one_line(scaling.across_replicates(scaling.steps_to_result(frame)), summary)
    cell = frame[["workload", "algorithm", "pruning", "sparsity"]].iloc[-1].to_dict() | {"batch_size": 4}
    lost = scaling.missed(pd.DataFrame([{**cell, "max_steps": 1500, "steps": np.nan}, {**cell, "steps": 7.0}]), summary)
    assert lost.predicted.tolist() == pytest.approx([1.9 * (2000 / 4 + 100)], rel=0.3)
    trend = claims.irrespective(points, summary, lost)
    assert trend["verdict"] == claims.regimes(summary, scaling.expected_regimes(summary, drawn))["verdict"] == "holds"
    assert f"1 cells that missed the goal in {1500 / lost.predicted[0]:.3g} times the steps" in trend["ours"]
    assert "Not counted" not in claims.irrespective(points, summary, lost[:0])["ours"]
    assert points.off.median() < 0.2
    _, *straight = judged(trials(0.0, 1e6, 1e-3, spread=0.01))
    assert claims.regimes(straight[0], scaling.expected_regimes(*straight))["verdict"] == "does not hold"


def test_the_regimes_are_expected_as_often_as_searches_that_scatter_show_them():
    """Against simulation: exact curves, their points scattered; and more of them than power laws would show."""
    frame, summary, drawn = judged(*(trials(0.0, 6400, 100, f"a{i}", seed=i, spread=0.7) for i in range(12)))
    expected = scaling.expected_regimes(summary, drawn)
    whole = pd.concat([trials(0.0, 6400, 100, f"a{i}", seed=100 + i, spread=0.7) for i in range(40)])
    shown = scaling.all_three(scaling.summaries(whole, draws=10)[0]).mean()
    assert 0.2 < shown < 0.95 and expected.trend.mean() == pytest.approx(shown, abs=0.25)
    assert expected.power.mean() < 0.1
    assert claims.regimes(summary, expected)["verdict"] == "holds"
    none = summary.assign(reaches_plateau=False)
    assert claims.regimes(none, expected)["verdict"] == "does not hold"
    assert claims.regimes(summary[:1], expected[:1].assign(trend=0.04, power=0.9))["verdict"] == "cannot be judged"


def test_theory_is_judged_by_what_it_predicts():
    forms = {"c1/B + c2": 1.2, "c1/B": 3.0, "c1/B^p": 1.5, "c1/B^p + c2": 1.18, "c2 (1 + (Bc/B)^a)^(1/a)": 1.3}

    def verdict(algorithms, **changes):
        rows = [{"form": f, "factor": changes.get(a, {}).get(f, x), "algorithm": a, "workload": "digits-mlp"}
                for a in algorithms for f, x in forms.items()]  # fmt: skip
        return claims.theory(pd.DataFrame(rows, columns=["form", "factor", "algorithm", "workload"]), 0.98)["verdict"]

    assert verdict(["sgd", "momentum", "nesterov"]) == "holds"
    assert verdict(["sgd", "momentum", "nesterov"], sgd={"c1/B^p + c2": 1.05}) == "holds in part"
    assert verdict(["sgd", "momentum", "nesterov"], sgd={"c1/B^p": 1.1}) == "does not hold"
    assert verdict(["sgd", "momentum", "nesterov"], momentum={"c1/B^p": 1.1}) == "holds"  # one of three
    assert verdict([]) == "cannot be judged"


def path(sparsity, trial=0, **values):
    steps = np.array([1, 2, 4, 8])
    own = {"lipschitz": 2.0, "along": 1.5, "spectral": 6.0, "square": 0.5, "trace": 30.0, "noise_scale": 60.0, **values}
    return pd.DataFrame({
        "workload": "w", "algorithm": "sgd", "batch_size": 64, "sparsity": sparsity, "trial": trial, "step": steps,
        "loss": [2.0, 1.5, 1.0, 0.5], **own,
    })  # fmt: skip


def test_paths_over_the_dense_one():
    over = followed_paths.over_dense(pd.concat([path(0.0), path(0.0, 1), path(0.9, lipschitz=1.0, square=0.25, trace=15.0)]))
    assert len(over) == 1 and over.lipschitz.iloc[0] == pytest.approx(0.5) and over.noisy.iloc[0] == pytest.approx(0.25)
    assert over.theory.iloc[0] == pytest.approx(0.5 * 0.5 / 0.25)
    assert claims.rougher(over)["verdict"] == "cannot be judged"  # a single path
    many = pd.concat([over] * 20)
    assert claims.rougher(many)["verdict"] == "does not hold"
    assert claims.rougher(many.assign(lipschitz=2.0))["verdict"] == "holds"
    other = over.assign(lipschitz=2.0, workload="v")
    assert claims.rougher(pd.concat([many, other]))["verdict"] == "does not hold"
    told = claims.rougher(pd.concat([many, *[other] * 3]))
    assert told["verdict"] == "holds in part" and "it would be: does not hold" in told["ours"]  # workloads count, not paths


def test_means_along_a_path_are_over_its_steps():
    """Three points, of which the first stands for a step of ten, the second for five and the last for four."""
    three = path(0.0).iloc[:3].assign(step=[1, 3, 11], lipschitz=[1024.0, 1.0, 1.0], square=[10.0, 0.0, 0.0])
    mean = followed_paths.typical(three).iloc[0]
    assert mean.lipschitz == pytest.approx(2.0)
    assert mean.theory == pytest.approx(1.0 * 2 * 30 / 1.0**2)
    assert followed_paths.typical(three[:1]).lipschitz.item() == pytest.approx(1024)  # a path of one point


def test_means_along_a_path_do_not_depend_on_where_one_looks():
    """A quantity that falls as a power of the step, at six points and at all of them."""
    steps = np.arange(1, 1001)
    every = pd.concat([path(0.0).iloc[[0]]] * 1000).assign(step=steps, lipschitz=steps**-0.5)
    few = every[every.step.isin(np.geomspace(1, 1000, 6).round())]
    assert followed_paths.typical(few).lipschitz.item() == pytest.approx(followed_paths.typical(every).lipschitz.item(), rel=0.15)


def test_twins_are_compared_with_their_own_dense_trial():
    dense = pd.concat([path(0.0, 0, lipschitz=2.0), path(0.0, 1, lipschitz=8.0)])
    over = followed_paths.over_twin(dense, pd.concat([path(0.9, 0, lipschitz=1.0), path(0.9, 1, lipschitz=16.0)]))
    assert over.set_index("trial").lipschitz.to_dict() == pytest.approx({0: 0.5, 1: 2.0})


def test_what_the_learning_rate_does_is_told_from_what_sparsity_does():
    """Sparse trials have smaller rates, so that their constant is larger although sparsity makes it smaller."""
    random, rows = np.random.default_rng(0), []
    for batch_size, sparsity in [(b, s) for b in (16, 64, 256) for s in (0.0, 0.9) for _ in range(10)]:
        rate = random.lognormal(-2 - 3 * sparsity, 0.5)
        scale = 0.6 if sparsity else 1.0
        constant = batch_size / rate**0.8 * scale * random.lognormal(0, 0.05)
        rows.append(
            {"workload": "w", "batch_size": batch_size, "sparsity": sparsity, "rate": rate, "lipschitz": constant}
        )
    frame = pd.DataFrame(rows)
    assert frame[frame.sparsity > 0].lipschitz.median() > frame[frame.sparsity == 0].lipschitz.median()
    law = followed_paths.rate_law(frame)
    for name, planted in (("power", -0.8), ("factor", 0.6)):
        low, middle, high = law[name]
        assert low < planted < high and middle == pytest.approx(planted, rel=0.1)
    assert law["r2"][1] > 0.99


def test_effective_learning_rates_are_those_of_the_trials():
    trials = path(0.0).iloc[[0]].assign(replicate=0, learning_rate=0.02, momentum=0.9)
    assert followed_paths.at_rates(path(0.0), trials).rate.tolist() == pytest.approx([0.2])


def test_the_noise_scale_of_a_run_weighs_steps_and_predicts_the_bend():
    varying = path(0.0, trace=np.array([10.0, 20, 40, 80]), square=np.array([1.0, 1, 1, 2]))
    ratio, weights = varying.trace / varying.square, np.array([0.5, 1.5, 3, 2])
    progress = weights / (1 + ratio / 64)
    found = followed_paths.noise_scales(varying).iloc[0]
    assert found.noise_scale == pytest.approx((ratio * progress).sum() / progress.sum())
    assert found.apart == pytest.approx((varying.trace @ weights) / (varying.square @ weights))
    hidden = followed_paths.noise_scales(varying.assign(square=-1.0)).iloc[0]  # noise hides the gradient
    assert np.isinf(hidden.noise_scale) and np.isinf(hidden.apart)
    _, summary, _ = judged(trials(0.0, 6000, 100, "sgd"))
    for trace, verdict in ((30.0, "holds"), (10.0, "holds in part"), (1.0, "does not hold")):
        bends = followed_paths.predicted_bends(path(0.0, trace=trace), summary)
        assert bends.predicted.iloc[0] == pytest.approx(trace / 0.5) and claims.noise_scale(bends)["verdict"] == verdict
    assert claims.noise_scale(bends.assign(identified=False))["verdict"] == "cannot be judged"


def test_rules_hold_nowhere_somewhere_or_everywhere():
    def spread(linear, root):
        names = ["linear rule"] * 2 + ["square-root rule"] * 2 + ["no change"]
        over = [1.0, linear, 1.0, root, 9.0]
        columns = {"rule": names, "batch_size": [1, 2, 1, 2, 1], "over": np.multiply(over, 3), "beyond": over}
        return pd.DataFrame({"workload": "digits-mlp", **columns}).assign(base=lambda f: f.batch_size == 1)

    rises = pd.DataFrame({"workload": ["digits-mlp"], "power": [0.8], "low": [0.7], "high": [0.9]})
    found = claims.rules(spread(np.inf, 3.0), rises)
    assert found["verdict"] == "holds" and "linear rule at 1 (1) of 1 batch sizes, and misses the goal at batch" in found["ours"]
    more = pd.concat([rises, rises.assign(workload="mnist-simple-cnn", low=-1.0)], ignore_index=True)  # told, not judged
    beside = claims.rules(spread(np.inf, 3.0), more)
    assert beside["verdict"] == "holds" and "no rule was retrained: Simple-CNN on MNIST: 0.80 (-1 to 0.9)." in beside["ours"]
    assert claims.rules(spread(np.inf, 3.0), rises.assign(low=-0.1))["verdict"] == "holds in part"
    assert claims.rules(spread(1.5, 3.0), rises)["verdict"] == "holds in part"
    assert claims.rules(spread(1.5, 1.9), rises.assign(low=-0.1))["verdict"] == "does not hold"
    assert claims.rules(spread(1.5, 1.9)[:2], rises)["verdict"] == "cannot be judged"


def ladder(column, budgets, errors):
    """Validation errors [budgets][batch sizes] as `budgets.ladders` gives them."""
    return pd.DataFrame([
        {"batch_size": b, column: budget, "validation": e, "low": e, "high": e + 0.004, "unsure": 0.001}
        for budget, row in zip(budgets, errors, strict=True)
        for b, e in zip((1, 4, 16, 64, 256), row, strict=True)
    ])  # fmt: skip


def test_budgets_that_favour_either_end():
    def verdict(*ladders, enough=(True, True)):
        return claims.budget_decides(dict(enumerate(ladders)), dict.fromkeys(range(len(ladders)), enough))["verdict"]

    steps = ladder("budget", (16, 4096), ((0.5, 0.4, 0.3, 0.2, 0.1), (0.014, 0.014, 0.014, 0.014, 0.01)))
    epochs = ladder("examples", (256, 65536), ((0.1, 0.2, 0.3, 0.4, 0.5), (0.01, 0.01, 0.01, 0.014, 0.014)))
    for_small = steps, steps.rename(columns={"budget": "examples"})
    assert verdict((steps, epochs)) == claims.HOLDS
    assert verdict(for_small) == claims.PART
    assert verdict((epochs.rename(columns={"examples": "budget"}), epochs)) == claims.PART
    assert verdict((steps[steps.batch_size < 64], epochs)) == claims.OPEN
    smaller = ladder("budget", (16, 4096), ((0.5, 0.4, 0.3, 0.2, 0.1), (0.04, 0.014, 0.014, 0.014, 0.01)))
    assert verdict((smaller, epochs)) == claims.PART  # a tenth of the difference is left
    assert verdict((steps.assign(unsure=0.02), epochs)) == claims.PART  # the validation set leaves more open than that
    assert verdict((smaller, epochs), enough=(False, True)) == claims.HOLDS  # where the smallest batch has not had its steps
    assert verdict((steps, epochs), enough=(False, False)) == claims.PART  # none can tell whether the difference goes
    assert verdict((steps, epochs), for_small) == claims.PART  # every workload must agree
    assert verdict((steps, epochs), (steps[steps.batch_size < 64], epochs)) == claims.HOLDS  # but for those not measured


def test_accuracy_is_lost_where_a_slope_says_so_and_open_where_it_is_blunt():
    kept, lost, blunt = (0.0, -0.001, 0.001), (0.01, 0.005, 0.015), (0.0, -0.01, 0.01)
    verdicts = [
        claims.no_accuracy_lost(dict(enumerate(s)), {}, [0, 1])["verdict"]
        for s in ([kept], [lost], [kept, lost], [kept, blunt], [(np.nan,) * 3])
    ]
    assert verdicts == [claims.HOLDS, claims.FAILS, claims.PART, claims.OPEN, claims.OPEN]
    assert claims.no_accuracy_lost({0: kept}, {}, [])["verdict"] == claims.OPEN  # its smallest batch has not had its steps
    assert claims.no_accuracy_lost({0: kept, 1: lost}, {}, [0])["verdict"] == claims.PART  # lost even so


def test_smoothing_helps_more_where_all_ranges_say_so():
    more, less, blunt = (0.01, 0.005, 0.015), (-0.01, -0.015, -0.005), (0.0, -0.01, 0.01)
    verdicts = [
        claims.smoothing_helps({("w", share): s for share, s in enumerate(rates)})["verdict"]
        for rates in ([more, more], [less], [less, blunt], [more, blunt], [more, less], [blunt], [(np.nan,) * 3], [])
    ]
    assert verdicts == [claims.HOLDS, claims.FAILS, claims.FAILS, claims.PART, claims.PART, *[claims.OPEN] * 3]


def test_the_region_of_good_metaparameters():
    def share(first, last):
        rows = [{"batch_size": b, "share": s, "low": s - 0.05, "high": s + 0.05} for b, s in
                zip((1, 4, 16, 64, 256), np.linspace(first, last, 5), strict=True)]  # fmt: skip
        return pd.DataFrame(rows)

    def region(steps, epochs):
        both = [share(*steps).assign(kind="fixed steps"), share(*epochs).assign(kind="fixed epochs")]
        return pd.concat(both)

    def verdict(*shares):
        return claims.region(pd.concat([s.assign(workload=str(i)) for i, s in enumerate(shares)]))["verdict"]

    assert verdict(region((0.1, 0.8), (0.8, 0.1))) == claims.HOLDS
    assert verdict(region((0.1, 0.8), (0.1, 0.8))) == claims.PART
    assert verdict(region((0.8, 0.1), (0.1, 0.8))) == claims.FAILS
    assert verdict(region((0.1, 0.8), (0.8, 0.1)), region((0.8, 0.1), (0.1, 0.8))) == claims.PART
    assert claims.region(pd.DataFrame())["verdict"] == claims.OPEN


def test_the_trend_depends_on_the_method_where_a_bend_lies_apart():
    for factors, verdict in (((1, 1, 1), "holds"), ((1, 1, 8), "holds in part"), ((1, 8, 8), "does not hold")):
        names = ("synflow", "grasp", "magnitude")
        pruned = [
            trials(0.9, 6400, 100 / f, seed=5 + i).assign(pruning=n) for i, (f, n) in enumerate(zip(factors, names))
        ]
        _, summary, drawn = judged(trials(0.0, 3200, 50, seed=2), trials(0.9, 6400, 100), *pruned)
        bends = scaling.against_sensitivity(drawn, "critical").set_index("pruning").loc[list(names)].reset_index()
        assert bends.ratio.to_numpy() == pytest.approx(factors, rel=0.25)
        assert claims.whatever_the_method(summary[summary.sparsity > 0], bends)["verdict"] == verdict
    bent = summary.assign(residual=np.where(summary.pruning == "synflow", 1.8, summary.residual))
    told = claims.whatever_the_method(bent[bent.sparsity > 0], bends)["ours"]
    assert "2 of 3 curves" in told and "SynFlow (off by 1.80)" in told
    unknown = bends.assign(ratio_low=0.0, ratio_high=np.inf)
    assert claims.whatever_the_method(summary[summary.sparsity > 0], unknown)["verdict"] == "cannot be judged"
    none = scaling.against_sensitivity({}, "critical")
    assert claims.whatever_the_method(summary[:0], none)["verdict"] == "cannot be judged"


def test_limits_and_the_bound():
    bends = pd.DataFrame({"critical": [10.0, 100.0], "critical_low": [8.0, 80.0], "critical_high": [12.0, 120.0],
                          "workload": ["a", "b"], "algorithm": "sgd", "goal": 0.1, "identified": True})  # fmt: skip
    sizes, random = 4.0 ** np.arange(6), np.random.default_rng(0)
    noisy = [pd.DataFrame((1 + c / sizes) * random.lognormal(0, 0.1, (200, 6)), columns=sizes) for c in (10, 100)]
    bends["curves"] = [SimpleNamespace(draws=curve) for curve in noisy]
    assert claims.limits_differ(bends)["verdict"] == claims.HOLDS
    assert claims.limits_differ(bends.assign(critical=[50.0, 60.0]))["verdict"] == claims.OPEN  # no more than chance
    line = pd.DataFrame(np.outer(np.ones(20), 1 / sizes), columns=sizes)
    straight = [SimpleNamespace(draws=line)] * 2  # none bends inside its sizes
    assert claims.limits_differ(bends.assign(curves=straight))["verdict"] == claims.OPEN
    assert claims.limits_differ(bends.assign(identified=[True, False]))["verdict"] == claims.OPEN
    assert claims.limits_differ(bends.assign(critical_high=200.0, critical_low=5.0))["verdict"] == claims.PART
    x = np.array([0.01, 0.1, 0.5])
    shapes = pd.DataFrame({"above": [0.0, 0.1], "convex": [1.0, 1.0]})
    held = claims.bounds(pd.DataFrame({"x": x, "value": (1 - x) ** 2 - 0.01}), shapes)
    assert held["verdict"] == claims.HOLDS and "line in 1 and is convex throughout in 2" in held["ours"]
    assert claims.bounds(pd.DataFrame({"x": x, "value": 1 - x}), shapes)["verdict"] == claims.FAILS
    effects = pd.DataFrame({"family": ["digits: width", "MNIST: width"], "first": "a", "last": "b", "ratio": [2.0, 0.5],
                            "ratio_low": [1.5, 0.4], "ratio_high": [3.0, 0.7], "inside": True})  # fmt: skip
    assert claims.no_rule_for_size(effects)["verdict"] == claims.PART  # one range on a wrong side is no more than chance allows
    assert claims.no_rule_for_size(pd.concat([effects] * 2))["verdict"] == claims.HOLDS
    many = pd.concat([effects, *[effects.assign(ratio_low=0.5, ratio_high=2.0)] * 3])
    assert claims.no_rule_for_size(many)["verdict"] == claims.OPEN  # two of eight are no more than chance allows
    assert claims.no_rule_for_size(effects.assign(family=["digits: width", "digits: depth"]))["verdict"] == claims.FAILS
    told = claims.no_rule_for_size(effects.assign(ratio_high=[3.0, 1.4]))
    assert told["verdict"] == claims.OPEN and "with probability 0.19" in told["ours"]  # one of two
    assert claims.data_size(effects.assign(ratio_low=0.8, ratio_high=1.2))["verdict"] == claims.HOLDS
    assert claims.data_size(effects.assign(ratio_low=3.0, ratio_high=9.0))["verdict"] == claims.FAILS
    assert claims.data_size(effects.assign(ratio_low=[0.8, 3.0], ratio_high=[1.2, 9.0]))["verdict"] == claims.PART
    assert claims.data_size(effects.assign(ratio_low=0.8, ratio_high=9.0))["verdict"] == claims.OPEN


def test_momentum_extends_scaling_where_its_bend_lies_beyond_that_of_sgd():
    for c1, c2, verdict in ((6400, 25, "holds"), (12_800, 25, "holds in part"), (6400, 100, "cannot be judged"),
                            (6400, 400, "does not hold")):  # fmt: skip
        _, _, drawn = judged(trials(0.0, 6400, 100, "sgd"), trials(0.0, c1, c2, seed=1))
        pairs = family_curves.over_sgd(drawn)
        assert pairs.bend.item() == pytest.approx(c1 / c2 / 64, rel=0.25)
        assert pairs.steps.item() == pytest.approx(6400 / c1, rel=0.1)
        middles = (scaling.middle(pairs[draws]) for draws in ("draws", "steps_draws"))
        assert claims.momentum_extends(pairs, *middles)["verdict"] == verdict
    assert family_curves.over_sgd({}).empty
    assert claims.momentum_extends(pairs[:0], *[scaling.middle([])] * 2)["verdict"] == "cannot be judged"


def test_goals_shift_a_curve_unless_they_move_its_bend():
    for factor, verdict in ((1, "holds"), (0.7, "holds in part"), (1 / 8, "does not hold")):
        hard = trials(0.0, 6400, 100)
        easy = trials(0.0, 640 * factor, 10, seed=1)  # a tenth of the steps; its bend is the hard goal's times the factor
        pairs = family_curves.easy_over_hard(hard.assign(**{"steps@0.1": easy.steps}))
        assert (pairs.easy.item(), pairs.hard.item()) == (0.1, 0.04)
        assert pairs.bend.item() == pytest.approx(factor, rel=0.25)
        assert claims.goals_shift(pairs, scaling.middle(pairs.draws))["verdict"] == verdict
    assert family_curves.easy_over_hard(hard).empty and family_curves.easy_over_hard(pd.DataFrame()).empty
    assert claims.goals_shift(pairs[:0], scaling.middle([]))["verdict"] == "cannot be judged"


def test_kinds_of_network_differ_where_their_ranges_leave_one_out():
    def effects(*ends):
        return pd.DataFrame([{"family": "f", "first": "a", "last": "b", "ratio": np.sqrt(low * high), "ratio_low": low,
                              "ratio_high": high, "inside": True} for low, high in ends])  # fmt: skip

    cases = {
        "holds": ((2, 3), (0.2, 0.5)), "holds in part": ((2, 3), (2, 4), (0.5, 2)), "does not hold": ((0.9, 1.1),),
        "cannot be judged": ((0.5, 2),),
    }  # fmt: skip
    for verdict, ends in cases.items():
        assert claims.kinds_differ(effects(*ends))["verdict"] == verdict
    assert claims.kinds_differ(effects((0.9, 1.1), (0.5, 20)))["verdict"] == "cannot be judged"  # one of two may differ


def test_small_batches_diverge_more_only_if_their_ranges_are_apart():
    def run(*lost, last=10):  # of 100 trials at batch sizes 1 and 64
        return pd.concat(pd.DataFrame({"workload": w, "batch_size": b, "status": ["infeasible"] * n + ["budget"] * (100 - n),
                                       "cause": "dead", "last_step": last, "max_steps": 6400 // b})
                         for w, ends in enumerate(lost) for b, n in zip((1, 64), ends))  # fmt: skip

    cases = {"holds": [(60, 5)], "holds in part": [(60, 5), (9, 8)], "does not hold": [(5, 60)], "cannot be judged": [(9, 8)]}
    for verdict, lost in cases.items():
        assert claims.small_batches_diverge(run(*lost))["verdict"] == verdict
    assert claims.small_batches_diverge(run((60, 5), last=101))["verdict"] == "cannot be judged"  # after the shorter budget
    assert claims.small_batches_diverge(pd.DataFrame())["verdict"] == "cannot be judged"


@pytest.mark.parametrize(
    "kind, verdict",
    [("normal", claims.PART), ("logistic", claims.PART), ("signs", claims.FAILS), ("uniform", claims.FAILS),
     ("two peaks", claims.FAILS), ("spike", claims.FAILS), ("aside", claims.FAILS)],
)  # fmt: skip
def test_a_bell_has_one_peak_at_zero_and_is_not_flat(kind, verdict):
    r = np.random.default_rng(0)
    normal = r.normal(size=50_000)
    vector = {
        "normal": normal, "logistic": r.logistic(size=50_000), "signs": np.sign(normal) + 0.1 * r.normal(size=50_000),
        "uniform": r.uniform(-1, 1, 50_000), "two peaks": normal + 1.5 * r.choice([-1, 1], 50_000),
        "spike": np.where(np.arange(50_000) % 3, normal, 0), "aside": normal + 0.5,
    }[kind]  # fmt: skip
    table = portraits.describe(vector).assign(workload="w", compressor="top-k", density=0.001, feedback=True, step=1)
    shapes = portraits.shapes(table)
    assert len(shapes) == 1 and shapes.convex.between(0.5, 1).all()
    assert shapes.far.iloc[0] == pytest.approx(np.abs(vector).max() / vector.std(), rel=1e-6)
    assert claims.bell_shaped(shapes)["verdict"] == verdict
    assert claims.bell_shaped(portraits.shapes(table[:0]))["verdict"] == claims.OPEN
