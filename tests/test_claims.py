"""Verdicts and comparisons follow from planted curves, in either direction, network by network."""

import itertools

import numpy as np
import pandas as pd
import pytest

from chapters.limits import claims as limits
from chapters.limits import families, family_curves
from chapters.limits.families import FAMILIES, WIDTH
from chapters.messages import message_results
from chapters.messages.claims import groups
from chapters.sparsity import claims as sparsity
from chapters.three_regimes import claims as three_regimes
from chapters.three_regimes import one_network
from chapters.which_method import claims as which_method
from lib import claims
from lib.analysis import method_results, scaling
from lib.claims import AGAINST, FOR
from lib.claims.claim import REGISTRY, judged
from lib.claims.judging import registered
from lib.engine.vocabulary import last_check
from lib.measuring import sweeps
from lib.messages.settings import Messages
from lib.studies.cells import Cell
from lib.studies.study import Study

SIZES = (1, 4, 16, 64, 256, 1024)


def searched(algorithm, c1, c2, searches=5, sizes=SIZES, sparsity=0.0, trials=40, hits=40, seed=0):
    """Trials whose steps scatter above c1/B + c2; of each search the first hits are known."""
    random = np.random.default_rng([seed, len(algorithm)])
    cells = []
    for b, search in itertools.product(sizes, range(searches)):
        steps = np.sort((c1 / b + c2) * random.lognormal(0, 0.1, trials))
        known = np.where(np.arange(trials) < hits, steps, np.nan)
        cells.append(pd.DataFrame({
            "workload": "digits-mlp", "algorithm": algorithm, "pruning": "connection-sensitivity", "sparsity": sparsity,
            "batch_size": b, "trials": trials, "replicate": search, "split": search, "goal": 0.04, "trial": range(trials),
            "status": "complete", "last_step": np.nanmax(known), "steps": known, "steps@0.04": known,
        }))  # fmt: skip
    return pd.concat(cells, ignore_index=True)


def curves_of(*curves):
    return scaling.curves(pd.concat(curves))


def test_ratios_to_sgd_are_those_planted_and_an_interval_holds_them():
    found = method_results.over(curves_of(searched("sgd", 2000, 40), searched("adam", 2000, 10), searched("momentum", 4000, 40)))
    assert set(found.algorithm) == {"adam", "momentum"} and set(found.what) == set(method_results.QUANTITIES)
    ratio = found.set_index(["algorithm", "what"])
    planted = {"adam": (2000, 10), "momentum": (4000, 40)}
    for name, (c1, c2) in planted.items():
        assert ratio.loc[(name, "critical"), "ratio"] == pytest.approx((c1 / c2) / 50, rel=0.15)
        exact = [(c1 / b + c2) / (2000 / b + 40) for b in SIZES]
        for what, ends in (("small", exact[:2]), ("large", exact[-2:])):
            row = ratio.loc[name, what]
            assert row.ratio == pytest.approx((ends[0] * ends[1]) ** 0.5, rel=0.1)
            assert row.ratio_low < row.ratio < row.ratio_high and row.n == row.searches == 5
    assert method_results.over(curves_of(searched("adam", 2000, 10))).empty  # with none to divide by


# For every claim: its methods with c1 and c2 such that the records are for it, and such that they are against it.
BETTER, WORSE, SAME = (2000, 5), (8000, 160), (2000, 40)
CASES = {
    "O1": ({"lars-warmup": SAME, "clars": BETTER}, {"lars-warmup": BETTER, "clars": SAME}),
    "O2": ({"nesterov": SAME, "lars": SAME, "adam": BETTER, "lamb": SAME},
           {"nesterov": WORSE, "lars": SAME, "adam": WORSE, "lamb": SAME}),
    "O3": ({"momentum": SAME, "adam": BETTER, "kfac": BETTER}, {"momentum": BETTER, "adam": SAME, "kfac": SAME}),
    "O4": ({"momentum": WORSE, "momentum-ema": SAME}, {"momentum": SAME, "momentum-ema": WORSE}),
    "O5": ({"momentum": WORSE, "kfac": SAME}, {"momentum": SAME, "kfac": WORSE}),
    "O6": ({"muon": BETTER, "adam": SAME}, {"muon": SAME, "adam": BETTER}),
    "O7": ({"sgd": SAME, "momentum": SAME, "adam": SAME}, {"sgd": WORSE, "momentum": WORSE, "adam": SAME}),
    "O8": ({"adam": SAME, "soap": BETTER, "soap-10": BETTER}, {"adam": BETTER, "soap": SAME, "soap-10": SAME}),
    "O9": ({"soap": BETTER, "soap-10": BETTER, "adam": SAME}, {"soap": SAME, "soap-10": SAME, "adam": BETTER}),
}  # fmt: skip


@pytest.mark.parametrize("key", CASES)
def test_claims_follow_planted_curves_either_way_and_lack_rows_without_their_methods(key, monkeypatch):
    def found(curves):
        monkeypatch.setattr(which_method, "curves", lambda whole=True: curves)
        return judged(REGISTRY.claims[key], REGISTRY.functions[key]())

    for planted, verdict in zip(CASES[key], (FOR, AGAINST)):
        parts = {name: searched(name, *constants, seed=n) for n, (name, constants) in enumerate(planted.items())}
        claim = found(curves_of(*parts.values()))
        assert {group.verdict for group in claim.groups} == {verdict} and all(group.n == 5 for group in claim.groups)
        for left_out in parts:
            fewer = found(curves_of(*(curve for name, curve in parts.items() if name != left_out)))
            assert len(fewer.groups) < len(claim.groups)


# --- plans ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    kinds = [Messages(4, "dense", 1.0, False), Messages(4, "top-k", 0.05), Messages(4, "rand-k", 0.05, False)]
    cells = tuple(
        Cell("digits-mlp", 64, trials=3, stop="budget", max_steps=64, messages=m, replicate=r)
        for m in kinds
        for r in (0, 1)
    )
    return sweeps.results(Study("t", "t", cells), "full", folder=tmp_path_factory.mktemp("records"))


@pytest.fixture(scope="module")
def found(trials):
    return message_results.best(trials)


def test_what_was_sent_is_what_was_asked_for(found):
    assert found[found.method != "Gaussian-k"].over.to_numpy() == pytest.approx(1)
    last = found[found.budget == 64].groupby("method").megabytes.first()
    steps = last_check(64)
    assert 60 < steps <= 64
    assert last["dense"] == pytest.approx(steps * 4 * 8970 / 1e6)
    assert last["Top-k"] == pytest.approx(steps * 8 * 448 / 1e6)


def test_gaps_pair_runs_of_one_seed(found):
    gap = message_results.gaps(found, "Top-k")
    assert sorted(gap.replicate) == [0, 1]
    ends = found[found.budget == 64].set_index(["method", "replicate"]).test
    for _, row in gap.iterrows():
        assert row.gap == pytest.approx(100 * (ends["Top-k", row.replicate] - ends["dense", row.replicate]))
    assert (message_results.gaps(found, "Rand-k").gap > message_results.gaps(found, "Top-k").gap).all()
    assert message_results.gaps(found, "Gaussian-k").empty


def planted(losses, name="mnist-lenet-5", **more):
    """Points lost by Top-k at three seeds, trained for twice d/k steps."""
    return pd.DataFrame({"gap": losses, "workload": name, "replicate": range(len(losses)), "density": 0.001, "budget": 2048,
                         "method": "Top-k", "rival": "dense", "edge": False, "edge_rival": False} | more)  # fmt: skip


def verdict(key, gap):
    return judged(REGISTRY.claims[key], groups(gap)).verdict


def test_claims_judge_planted_gaps_by_network():
    little, much = planted([0.1, 0.2, 0.0]), planted([5.0, 5.1, 4.9])
    other = {"workload": "fashion-mnist-fnn-3"}
    assert verdict("T4", little) == claims.REPRODUCED and verdict("T4", much) == claims.CONTRADICTED
    assert verdict("T4", pd.concat([little, much.assign(**other)])) == claims.PART
    assert verdict("T4", little.assign(**other)) == f"{claims.STAND_INS}: for"
    assert verdict("T4b", much) == claims.REPRODUCED and verdict("T4b", little) == claims.CONTRADICTED
    wide = planted([0.5, 0.9, 0.1])  # below one by 1.645 standard errors, and not by Student's 2.92
    assert wide.gap.mean() + 1.645 * wide.gap.sem() < 1 and verdict("T4", wide) == claims.OPEN
    (only,) = groups(planted([0.1]))
    assert only.n == 1 and only.high == np.inf and verdict("T4", planted([0.1])) == claims.OPEN


TWOS = 2 ** np.arange(11)


def curve(c1, c2, searches=12, seed=0, scatter=0.05, odd=None):
    """A curve near c1/B + c2; odd: a batch size and the factor by which it is off."""
    steps = (c1 / TWOS + c2) * np.where(TWOS == (odd or (0, 1))[0], (odd or (0, 1))[1], 1.0)
    logs = np.log(steps) + np.random.default_rng(seed).normal(0, scatter, (searches, len(TWOS)))
    index = pd.MultiIndex.from_product([range(searches), [0]], names=["replicate", "split"])
    own = pd.DataFrame(logs, index, TWOS)
    return scaling.Curve(own, own.isna(), 0.3)


def pair(name, sparse, algorithm="momentum", level=0.9, **options):
    key = (name, algorithm, "connection-sensitivity")
    return {(*key, 0.0): curve(6400, 100, **options), (*key, level): sparse}


def told(key, function, curves):
    return judged(registered()[key], function(curves))


@pytest.mark.parametrize(
    ("factor", "less", "much"), [(4, "for", "for"), (1, "for", "against"), (0.2, "against", "against")]
)
def test_critical_batch_sizes_are_compared_at_the_highest_sparsity_by_network(factor, less, much):
    curves = pair("mnist-simple-cnn", curve(2 * 6400 * factor, 200, seed=1))
    curves |= {("mnist-simple-cnn", "momentum", "connection-sensitivity", 0.5): curve(6400 / 9, 100)}
    (group,) = told("L4", sparsity.critical_over_dense, curves).groups
    assert group.effect == pytest.approx(factor, rel=0.1) and (group.verdict, group.n, group.own) == (less, 12, True)
    (group,) = told("L5", sparsity.critical_with_momentum, curves).groups
    assert group.verdict == much
    assert group.note == "direction: " + ("larger" if factor > 1.2 else "smaller" if factor < 0.8 else "not decided")


def test_networks_that_disagree_are_in_part_and_nesterov_is_no_own_row_of_momentum():
    curves = pair("digits-mlp", curve(4 * 6400, 100, seed=1)) | pair("mnist-simple-cnn", curve(6400 / 4, 100, seed=2))
    assert told("L4", sparsity.critical_over_dense, curves).verdict == "contradicted"
    claim = told("L4", sparsity.critical_over_dense, curves | pair("mnist-simple-cnn", curve(6400, 100, seed=3), "sgd"))
    assert claim.verdict == "in part"
    nesterov = pair("mnist-simple-cnn", curve(6400, 100, seed=2), "nesterov") | pair("mnist-simple-cnn", curve(6400, 100), "sgd")
    (group,) = told("L5", sparsity.critical_with_momentum, nesterov).groups
    assert not group.own and group.verdict == "against"


def test_the_cost_of_sparsity_is_judged_at_its_least_sure_batch_size():
    cases = {
        "for": curve(3 * 6400, 300, seed=1),
        "against": curve(3 * 6400, 300, seed=1, odd=(64, 0.2)),
        "not decided": curve(3 * 6400, 300, seed=1, odd=(64, 0.42)),
    }
    for verdict, sparse in cases.items():
        (group,) = told("L3", sparsity.steps_over_dense, pair("digits-mlp", sparse)).groups
        assert group.verdict == verdict
        assert verdict == "for" or group.note == "batch size 64"


DOUBLED = 2.0 ** np.arange(0, 11)


def searches_of(c1=1600.0, c2=25.0, scatter=0.0):
    """A table of trials: three searches of one trial each that take c1/B + c2 steps, some of them more."""
    rows = [
        {"workload": "digits-mlp", "algorithm": "momentum", "pruning": "connection-sensitivity", "sparsity": 0.0, "batch_size": b,
         "trials": 1, "replicate": r, "split": r, "stop": "goal", "checks": "geometric", "hits": 1, "precision": None,
         "max_steps": None, "space": None, "label_smoothing": 0.0, "goal": 0.04, "status": "met",
         "steps": (c1 / b + c2) * (1 + scatter * r), "last_step": 10**6}
        for b in DOUBLED for r in range(3)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return frame.assign(**{"steps@0.04": frame.steps, "steps@0.1": frame.steps / 4, "best_error": 0.04})


def test_a_doubling_saves_half_on_a_line_of_slope_minus_one_and_nothing_on_a_floor():
    assert one_network.saved_per_doubling(DOUBLED, 1024 / DOUBLED, 32)[0] == pytest.approx(0.5)
    assert one_network.saved_per_doubling(DOUBLED, np.maximum(1024 / DOUBLED, 32), 32) == pytest.approx((0.5, 0))
    mixed = np.random.default_rng(0).permutation(len(DOUBLED))
    curve = 1600 / DOUBLED + 25
    assert one_network.saved_per_doubling(DOUBLED[mixed], curve[mixed], 64) == one_network.saved_per_doubling(DOUBLED, curve, 64)


def verdicts(key, **provided):
    groups = REGISTRY.functions[key](**provided)
    return {group.name: group.verdict for group in judged(REGISTRY.claims[key], groups).groups}


def curves(*parts):
    return scaling.summaries(pd.concat(parts))[1]


MLP, SGD = "MLP on digits, momentum", "sgd"
assert three_regimes.three_regimes is REGISTRY.functions["L1"]


@pytest.mark.parametrize(("steps", "verdict"), [
    (1600 / DOUBLED + 25, "for"), (1600 / DOUBLED**0.5, "against"), (np.full(11, 30.0), "against"), (1600 / DOUBLED, "against"),
])  # fmt: skip
def test_three_regimes_are_judged_by_their_definitions(steps, verdict):
    """Up to 1,024 of 1,350 digits there is no room for a floor beyond."""
    table = searches_of(scatter=0.01)
    scale = pd.Series(steps, DOUBLED)[table.batch_size].to_numpy() / (1600 / table.batch_size + 25)
    own = curves(table.assign(steps=table.steps * scale))
    assert verdicts("L1", curves=own) == {MLP: verdict}


@pytest.mark.parametrize(("c1", "c2", "bend", "smallest"), [
    (3200, 25, "for", "against"), (1600, 25, "against", "for"),
])  # fmt: skip
def test_momentum_beside_sgd_by_its_bend_and_by_its_smallest_batch(c1, c2, bend, smallest):
    table = pd.concat([searches_of(c1, c2, 0.01), searches_of(scatter=0.01).assign(algorithm=SGD)])
    provided = {"trials": table, "published_curves": curves(table), "curves": curves(table)}
    assert verdicts("S7", **provided) == {MLP: bend} and verdicts("S7b", **provided) == {MLP: smallest}


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, "for"), (0.6, "against")])
def test_another_goal_moves_the_critical_batch_size_either_way(factor, verdict):
    hard, easy = searches_of(scatter=0.01), searches_of(1600 * factor, 25, 0.01)
    table = hard.assign(**{"steps@0.05": hard.steps, "steps@0.1": easy.steps}).drop(columns="steps@0.04")
    assert verdicts("S2", trials=table.assign(goal=0.05), curves=curves(hard.assign(goal=0.05))) == {MLP: verdict}


def of_family(bends, family=WIDTH, searches=8, scatter=0.02):
    """Trials of a family whose best steps lie near c1/B + c2 with these bends, by searches that scatter."""
    random, rows = np.random.default_rng(0), []
    for (member, (work, algorithm)), bend in zip(FAMILIES[family].members.items(), bends, strict=True):
        for b in 2.0 ** np.arange(0, 11, 2):
            for search in range(searches):
                steps = 100 * (1 + bend / b) * random.lognormal(0, scatter) * np.linspace(1, 1.3, 5)
                rows.append(pd.DataFrame({"family": family, "member": member, "workload": work, "algorithm": algorithm,
                                          "pruning": "connection-sensitivity", "sparsity": 0.0, "batch_size": int(b),
                                          "replicate": search, "split": search, "trials": 5, "goal": 0.05, "steps@0.05": steps,
                                          "steps": steps, "status": "complete", "last_step": steps.max(),
                                          "trial": range(5)}))  # fmt: skip
    return pd.concat(rows, ignore_index=True)


def test_planted_bends_come_out_with_their_ratio():
    summary = family_curves.bends(of_family([16, 32, 128]))
    assert summary.critical.to_numpy() == pytest.approx([16, 32, 128], rel=0.1)
    effect = family_curves.effects(summary).iloc[0]
    assert (effect["first"], effect["last"], effect.n, effect.goal) == ("MLP 16×2", "MLP 256×2", 8, 0.05)
    assert effect.ratio == pytest.approx(8, rel=0.1) and effect.ratio_low < 8 < effect.ratio_high and effect.inside
    outside = family_curves.effects(family_curves.bends(of_family([16, 32, 8000])))
    assert not outside.inside.item() and np.isinf(outside.ratio_high.item())


def dense(bends, searches, names=("digits-mlp", "digits-cnn"), algorithm="sgd"):
    """Curves by their keys."""
    found = {}
    for i, (name, bend) in enumerate(zip(names, bends, strict=True)):
        random = np.random.default_rng(i)
        sizes = 2 ** np.arange(11)
        logs = np.log(100 * (1 + bend / sizes)) + random.normal(0, 0.03, (searches, 11))
        index = pd.MultiIndex.from_product([range(searches), [i]], names=["replicate", "split"])
        own = pd.DataFrame(logs, index, sizes)
        found[name, algorithm, "connection-sensitivity", 0.0] = scaling.Curve(own, own.isna(), 0.3)
    return found


def test_the_spread_of_equal_critical_batch_sizes_includes_one_about_nine_times_in_ten():
    """The largest of eight over the smallest is well above one by chance alone."""
    held = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        curves = []
        for i in range(8):
            index = pd.MultiIndex.from_product([range(5), [i]], names=["replicate", "split"])
            means = np.log(100 * (1 + 64 / 2.0 ** np.arange(8)))
            logs = pd.DataFrame(means + random.normal(0, 0.2, (5, 8)), index, 2 ** np.arange(8))
            curves.append(scaling.Curve(logs, logs.isna(), 0.3))
        value, low, high = family_curves.spread(curves)
        held.append(low == 1 and value > 1)
    assert np.mean(held) >= 0.85
    value, low, high = family_curves.spread([*dense([16, 160], 20).values()])
    assert value == pytest.approx(10, rel=0.1) and 7 < low < 10 < high < 14


@pytest.mark.parametrize(
    ("bend", "kind", "amount"), [(16, "for", "against"), (64, "against", "for")]
)
def test_families_are_judged_either_way_and_no_effect_by_the_same_bound(bend, kind, amount, monkeypatch):
    trials = of_family([64, bend], families.MODEL, 20)
    monkeypatch.setattr(family_curves, "results", lambda wanted: trials)
    (group,) = judged(registered()["S5"], limits.kinds()).groups
    assert group.verdict == kind and group.effect == pytest.approx(max(bend / 64, 64 / bend), rel=0.1) and group.low >= 1
    monkeypatch.setattr(limits, "AMOUNTS", limits.KINDS)
    (group,) = judged(registered()["S8"], limits.amounts()).groups
    assert group.verdict == amount and group.effect == pytest.approx(bend / 64, rel=0.1)


def test_side_studies_judge_nothing_without_records(judge):
    keys = "D1 D2 F1 F2 H1 H2 N1 N2 Q1 Q2 V1 V2 W2".split()
    assert keys == sorted({*keys} & {*registered()})
    assert not [told.key for told in judge(pd.DataFrame(), *keys) if told.groups]
