"""Verdicts and comparisons follow from planted curves, in either direction, network by network."""

import numpy as np
import pandas as pd
import pytest

from chapters.limits import claims as limits
from chapters.limits import families
from chapters.limits.families import FAMILIES, WIDTH
from chapters.messages import message_results
from chapters.messages.claims import groups
from chapters.three_regimes import claims as three_regimes
from chapters.which_method import claims as which_method
from lib import claims
from lib.analysis import ranges, scaling
from lib.claims import NO, SHOWN, UNCLEAR, YES
from lib.claims.claim import REGISTRY, judged
from lib.claims.judging import registered
from lib.engine.vocabulary import last_check
from lib.measuring import sweeps
from lib.messages import Messages
from lib.studies.search import Search
from lib.studies.study import Study
from tests.conftest import recorded
from tests.test_curves import scattered

SIZES = (1, 4, 16, 64, 256, 1024)


def test_a_key_tells_its_paper_and_its_number_or_is_refused_by_name():
    keys = list(registered())
    assert keys[0] == "L1" and keys.index("S9") < keys.index("S10") < keys.index("T1")
    assert {key[0] for key in keys} <= set(claims.PAPERS)
    for key in ("X1", "L", "", "12"):
        with pytest.raises(ValueError, match=f"key: {key!r} is not allowed; .*L, M, S"):
            claims.claim.claim(key, "a title", above=1.0)
    assert list(registered()) == keys
    assert "summary" not in {rule.read for rule in registered().values()}  # such is a finding


def line(c1, c2, sizes=SIZES):
    """c1/B + c2 by batch size B."""
    return {b: c1 / b + c2 for b in sizes}


def searched(steps, algorithm="momentum", searches=5, scatter=0.01, seed=0, goal=0.04, **more):
    """Searches of one trial each, scattered about these steps by batch size; more: other columns."""
    random = np.random.default_rng(seed)
    sizes = np.repeat([*steps], searches)
    scattered = np.repeat([*steps.values()], searches) * random.lognormal(0, scatter, len(sizes))
    number = np.tile(np.arange(searches), len(steps))
    columns = {"batch_size": sizes, "replicate": number, "split": number, "steps": scattered}
    more[f"steps@{goal:g}"] = scattered
    return recorded(pd.DataFrame(columns), algorithm=algorithm, goal=goal, **more)


def curves_of(*curves):
    return scaling.curves(pd.concat(curves))


# For every claim: its methods, with c1 and c2 for which the records support it, and for which they contradict it.
BETTER, WORSE, SAME = (2000, 5), (8000, 160), (2000, 40)
CASES = {
    "O1": ({"lars-warmup": SAME, "clars": BETTER}, {"lars-warmup": BETTER, "clars": SAME}),
    "O2": ({"nesterov": SAME, "lars": SAME, "adam": BETTER, "lamb": SAME},
           {"nesterov": WORSE, "lars": SAME, "adam": WORSE, "lamb": SAME}),
    "O3": ({"momentum": SAME, "adam": BETTER, "kfac": BETTER}, {"momentum": BETTER, "adam": SAME, "kfac": SAME}),
    "O4": ({"momentum": WORSE, "momentum-ema": SAME}, {"momentum": SAME, "momentum-ema": WORSE}),
    "O5": ({"momentum": WORSE, "kfac": SAME}, {"momentum": SAME, "kfac": WORSE}),
    "O6": ({"muon": BETTER, "adam": SAME}, {"muon": SAME, "adam": BETTER}),
    "O7": ({"sgd": SAME, "momentum": SAME, "muon": SAME, "adam": SAME}, {"sgd": WORSE, "momentum": WORSE, "adam": SAME}),
    "O8": ({"adam": SAME, "soap": BETTER, "soap-10": BETTER}, {"adam": BETTER, "soap": SAME, "soap-10": SAME}),
    "O9": ({"soap": BETTER, "soap-10": BETTER, "adam": SAME}, {"soap": SAME, "soap-10": SAME, "adam": BETTER}),
}  # fmt: skip


@pytest.mark.parametrize("key", CASES)
def test_claims_follow_planted_curves_either_way_and_lack_rows_without_their_methods(key, monkeypatch):
    def judge(*parts):
        curves = curves_of(*parts)
        monkeypatch.setattr(which_method, "curves", lambda whole=True: curves)
        monkeypatch.setattr(which_method, "ladders", lambda: at_goals(curves))
        return told(key).groups

    for planted, verdict in zip(CASES[key], (YES, NO)):
        parts = [searched(line(*ends), name, seed=n) for n, (name, ends) in enumerate(planted.items())]
        groups = judge(*parts)
        assert {(group.verdict, group.n) for group in groups} == {(verdict, 5)}
        for n in range(len(parts)):
            assert len(judge(*parts[:n], *parts[n + 1 :])) < len(groups)


def test_gaps_pair_runs_of_one_seed_that_sent_what_they_were_asked_for(tmp_path):
    kinds = Messages(4, "dense", 1.0, False), Messages(4, "top-k", 0.05)
    rules = {"trials": 3, "stop": "budget", "max_steps": 64}
    cells = [Search("digits-mlp", 64, messages=m, replicate=r, **rules) for m in kinds for r in (0, 1)]
    rows = message_results.best(sweeps.results(Study("t", "t", cells), "full", folder=tmp_path))
    ends = rows[rows.budget == 64].set_index(["method", "replicate"]).sort_index()
    assert rows.over.to_numpy() == pytest.approx(1) and 60 < last_check(64) <= 64
    for method, elements in (("dense", 8970), ("Top-k", 448)):
        assert ends.sent[method].to_numpy() == pytest.approx(last_check(64) * elements)
    gap = message_results.gaps(rows, "Top-k").set_index("replicate").gap
    expected = 100 * (ends.test["Top-k"] - ends.test["dense"])
    assert gap.to_dict() == pytest.approx(expected.to_dict()) and len(gap) == 2


def planted(losses, name="mnist-lenet-5", **more):
    """Points lost by Top-k with three seeds, trained for twice d/k steps."""
    return pd.DataFrame({"gap": losses, "workload": name, "replicate": range(len(losses)), "density": 0.001, "budget": 2048,
                         "method": "Top-k", "rival": "dense", "edge": False, "edge_rival": False} | more)  # fmt: skip


def test_a_network_is_judged_by_longer_runs_once_all_seeds_have_them():
    usual = pd.concat([planted([5.0, 5.1, 4.9]), planted([5.0, 5.1, 4.9], "mnist-fnn-3")])
    longer = planted([0.1, 0.2, 0.0]).assign(budget=8192)
    by = message_results.longest(usual, longer).groupby("workload")
    ends = by.agg({"budget": "max", "gap": "mean"}).T
    assert ends["mnist-lenet-5"].to_list() == pytest.approx([8192, 0.1])
    assert ends["mnist-fnn-3"].to_list() == pytest.approx([2048, 5.0])
    assert set(message_results.longest(usual, longer[longer.replicate < 2]).budget) == {2048}


def words(gap):
    claim = judged(REGISTRY["T4"][0], groups(gap))
    return claim.theirs, claim.ours


def test_claims_judge_planted_gaps_by_network():
    little, much = planted([0.1, 0.2, 0.0]), planted([5.0, 5.1, 4.9])
    network = {"workload": "fashion-mnist-fnn-3"}
    assert [words(gap)[0] for gap in (little, much)] == [YES, NO]
    assert words(pd.concat([little, much.assign(**network)])) == (YES, NO)
    assert words(little.assign(**network)) == (claims.UNTESTED, YES)
    wide = planted([0.5, 0.9, 0.1])  # below one by 1.645 standard errors, not by Student's 2.92
    assert wide.gap.mean() + 1.645 * wide.gap.sem() < 1 and words(wide)[0] == UNCLEAR
    (only,) = groups(planted([0.1]))
    assert only.n == 1 and only.high == np.inf and words(planted([0.1]))[0] == UNCLEAR


TWOS = 2 ** np.arange(11)


def curve(c1, c2, searches=12, seed=0, scatter=0.05, odd=None):
    """A curve near c1/B + c2; odd: a batch size and the factor by which it is off."""
    size, factor = odd or (0, 1.0)
    steps = (c1 / TWOS + c2) * np.where(TWOS == size, factor, 1.0)
    logs = np.log(steps) + np.random.default_rng(seed).normal(0, scatter, (searches, len(TWOS)))
    return scattered(logs, TWOS, splits=[0] * searches)


def pair(name, sparse, algorithm="momentum", level=0.9, **options):
    key = (name, algorithm, "connection-sensitivity")
    return {(*key, 0.0): curve(6400, 100, **options), (*key, level): sparse}


def told(key, *given, **named):
    return judged(registered()[key], REGISTRY[key][1](*given, **named))


def at_goals(curves):
    """Every curve as a ladder of one rung."""
    return {key: [curve] for key, curve in curves.items()}


@pytest.mark.parametrize("factor, less, much", [(4, YES, YES), (1, YES, NO), (0.2, NO, NO)])
def test_critical_batch_sizes_are_compared_at_the_highest_sparsity_by_network(factor, less, much):
    curves = pair("mnist-simple-cnn", curve(2 * 6400 * factor, 200, seed=1))
    curves |= {("mnist-simple-cnn", "momentum", "connection-sensitivity", 0.5): curve(6400 / 9, 100)}
    summary = pd.DataFrame([*curves], columns=scaling.CURVE)
    summary = summary.assign(critical=64 + 8 * summary.sparsity, goal=0.02, identified=True)
    whole = summary.assign(space=ranges.WHOLE)
    (group,) = told("L4", at_goals(curves), summary, whole).groups
    assert group.note == "C at 2 % error, on all sizes: 71, dense 64"
    assert group.effect == pytest.approx(factor, rel=0.1) and (group.verdict, group.n, group.theirs) == (less, 12, True)
    (group,) = told("L5", at_goals(curves), summary, whole).groups
    assert group.verdict == much
    assert told("L5", at_goals(curves), summary, summary).groups[0].verdict == SHOWN


def test_the_cost_of_sparsity_is_judged_at_its_least_sure_batch_size():
    cases = {
        YES: curve(3 * 6400, 300, seed=1),
        NO: curve(3 * 6400, 300, seed=1, odd=(64, 0.2)),
        UNCLEAR: curve(3 * 6400, 300, seed=1, odd=(64, 0.42)),
    }
    for verdict, sparse in cases.items():
        (group,) = told("L3", pair("digits-mlp", sparse)).groups
        assert group.verdict == verdict
        assert verdict == YES or group.note == "batch size 64"


DOUBLED = 2.0 ** np.arange(0, 11)


def verdicts(key, **provided):
    return {group.name: group.verdict for group in told(key, **provided).groups}


def curves(*parts):
    return scaling.summaries(pd.concat(parts))[1]


MLP, SGD = "MLP on digits, momentum", "MLP on digits, SGD"


@pytest.mark.parametrize(("steps", "verdict"), [
    (1600 / DOUBLED + 25, YES), (1600 / DOUBLED**0.5, NO), (np.full(11, 30.0), NO), (1600 / DOUBLED, NO),
    (25 * np.maximum(64 / DOUBLED, 1), YES),
])  # fmt: skip
def test_three_regimes_are_a_steep_beginning_and_a_flat_end(steps, verdict):
    table = searched(dict(zip(DOUBLED, steps)), "sgd", searches=3)
    assert verdicts("L1", curves=curves(table), searches=table) == {SGD: verdict}


@pytest.mark.parametrize("steps, often", [(40 * (1 + 32 / DOUBLED), True), (2000 / DOUBLED**0.5, False)])
def test_exact_curves_pass_the_rule_of_three_regimes_and_others_do_not(steps, often):
    """By its own power, and by curves drawn and judged one by one."""
    clear = []
    for seed in range(40):
        rows = searched(dict(zip(DOUBLED, steps)), "sgd", scatter=0.08, seed=seed)
        (group,) = three_regimes.three_regimes(curves(rows), rows)
        clear.append(group.low > 0)
    assert np.mean(clear) > 0.8 if often else np.mean(clear) < 0.05
    (yes, no), *others = group.power
    assert not often or yes > 0.8 > 0.05 > max(no, *(share for share, _ in others))


@pytest.mark.parametrize(("c1", "c2", "bend", "smallest"), [
    (3200, 25, YES, NO), (1600, 25, NO, YES),
])  # fmt: skip
def test_momentum_beside_sgd_by_its_bend_and_by_its_smallest_batch(c1, c2, bend, smallest):
    parts = [searched(line(c1, c2), seed=1), searched(line(1600, 25), "sgd")]
    table = pd.concat(parts, ignore_index=True)
    provided = {"searches": table, "published_curves": curves(table), "curves": curves(table)}
    assert verdicts("S7", **provided) == verdicts("S7b", **provided) == {MLP: SHOWN}  # only from 0.9 on
    full = table.assign(space=np.where(table.algorithm == "momentum", ranges.WHOLE, None))
    provided = {"searches": full, "published_curves": curves(table), "curves": curves(full)}
    assert verdicts("S7", **provided) == {MLP: bend} and verdicts("S7b", **provided) == {MLP: smallest}


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, YES), (0.6, NO)])
def test_another_goal_moves_the_critical_batch_size_either_way(factor, verdict):
    hard = searched(line(1600, 25, DOUBLED), "sgd", goal=0.05)
    easy = searched(line(1600 * factor, 25, DOUBLED), "sgd")
    table = hard.assign(**{"steps@0.1": easy.steps})
    assert verdicts("S2", searches=table, curves=curves(hard)) == {SGD: verdict}


def of_family(bends, family=WIDTH, searches=8):
    """Trials of a family whose steps lie near c1/B + c2 with these bends."""
    algorithm, members = FAMILIES[family].algorithm, FAMILIES[family].members.values()
    parts = [
        searched(line(100 * bend, 100), algorithm, searches, 0.02, 2 * seed, 0.05, workload=work)
        for seed, (work, bend) in enumerate(zip(members, bends, strict=True))
    ]
    return pd.concat(parts, ignore_index=True)


def test_planted_bends_come_out_with_their_ratio():
    def effect(bends):
        return next(families.effects(of_family(bends), {WIDTH: FAMILIES[WIDTH]}).itertuples())

    estimate = effect([16, 128])
    assert (estimate.first, estimate.last) == ("MLP 16×2", "MLP 256×2")
    assert estimate.ratio == pytest.approx(8, rel=0.1) and estimate.ratio_low < 8 < estimate.ratio_high and estimate.inside
    outside = effect([16, 8000])
    assert not outside.inside and np.isinf(outside.ratio_high)


def test_the_spread_of_equal_critical_batch_sizes_includes_one_about_nine_times_in_ten():
    """The largest of eight over the smallest is well above one by chance alone."""
    covered, sizes = [], 2 ** np.arange(8)
    for seed in range(60):
        logs = np.log(100 * (1 + 64 / sizes)) + np.random.default_rng(seed).normal(0, 0.2, (8, 5, 8))
        curves = [scattered(rows, sizes, splits=[i] * 5) for i, rows in enumerate(logs)]
        value, low, high = families.spread(curves)
        covered.append(low == 1 and value > 1)
    assert np.mean(covered) >= 0.85
    apart = [curve(100 * bend, 100, 20, seed=bend, scatter=0.03) for bend in (16, 160)]
    value, low, high = families.spread(apart)
    assert value == pytest.approx(10, rel=0.1) and 7 < low < 10 < high < 14


@pytest.mark.parametrize("bend, amount", [(16, NO), (64, YES)])
def test_the_ratio_of_a_family_is_that_of_its_last_member_over_its_first(bend, amount, monkeypatch):
    trials = of_family([64, bend], families.MODEL, 20).assign(space=ranges.WHOLE)
    monkeypatch.setattr(limits, "AMOUNTS", limits.KINDS)
    (group,) = told("S8", trials).groups
    assert group.verdict == amount and group.effect == pytest.approx(bend / 64, rel=0.1)
