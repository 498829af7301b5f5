"""Verdicts follow from planted intervals, effects from planted data, in either direction; what a path says is what was planted."""

import errno
import itertools
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lib import ROOT, claims
from lib.analysis import evidence, family_curves, followed_paths, scaling
from lib.claims import facts, front, ledger, prepared
from lib.probes import portraits
from lib.studies import families, plans
from lib.wording import brief, joined

SIZES = 2.0 ** np.arange(11)
NUMBER = r"\d[\d,.]*"


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


# --- rules ------------------------------------------------------------------------------------------------------------


def planted(rule, *places):
    """Evidence whose intervals lie on the claim's side of the threshold (1), on the other (-1), or on both (0)."""
    sign = 1 if rule.above else -1
    rows = [(f"group {i}", rule.threshold + sign * p, rule.threshold + sign * p - 0.5, rule.threshold + sign * p + 0.5, 7)
            for i, p in enumerate(places)]  # fmt: skip
    return evidence.table(rows)


@pytest.mark.parametrize("rule", claims.RULES.values(), ids=list(claims.RULES))
def test_every_rule_holds_fails_or_stays_open_by_its_threshold(rule):
    for place, verdict in ((1, claims.HOLDS), (-1, claims.FAILS), (0, claims.OPEN)):
        claim = rule.judge(planted(rule, place), hours=2.0)
        assert claim.verdict == verdict and not claim.part and bool(claim.price) == (verdict == claims.OPEN)
    both = rule.judge(planted(rule, 1, -1, 0))
    assert (both.verdict, both.part) == (claims.PART, "for group 0, not for group 1, undecided for group 2")
    assert both.n == 21 and both.effect == pytest.approx(rule.threshold - (1 if rule.above else -1))  # group 1 refutes it
    assert rule.judge(planted(rule)).verdict == rule.judge(evidence.unmeasured("w")).verdict == claims.OPEN
    assert rule.judge(evidence.unmeasured("w")).ours == "Not measured."


def test_an_interval_decides_only_on_one_side_and_groups_only_together():
    assert claims.decide(1.1, 2, 1) == claims.decide(0.5, 0.9, 1, above=False) == claims.HOLDS
    assert claims.decide(1.1, 2, 1, above=False) == claims.decide(0.5, 0.9, 1) == claims.FAILS
    assert claims.decide(1, 2, 1) == claims.decide(0.5, 2, 1) == claims.decide(math.nan, math.nan, 1) == claims.OPEN
    assert claims.together([claims.FAILS, claims.OPEN]) == claims.FAILS and claims.together([]) == claims.OPEN
    assert claims.together([claims.HOLDS, claims.OPEN]) == claims.PART


def test_a_claim_of_any_effect_fails_where_only_effects_are_left_that_do_not_matter():
    assert claims.decide(0.9, 1.2, 1, scale="ratio") == claims.decide(-0.1, 0.1, 0, scale="points") == claims.FAILS
    assert claims.decide(1.05, 1.2, 1, scale="ratio") == claims.HOLDS  # small, but surely there
    assert claims.decide(0.9, 1.3, 1, scale="ratio") == claims.decide(-0.1, 0.3, 0, scale="points") == claims.OPEN
    assert claims.decide(1.9, 2.2, 2, scale="ratio") == claims.OPEN  # claims an effect of some size
    assert claims.decide(-0.1, 0.1, 0, scale="share") == claims.decide(0.9, 1.2, 1, above=False, scale="ratio") == claims.OPEN


def test_what_would_decide_an_open_claim_is_priced_by_how_far_its_interval_has_to_shrink():
    rule = replace(claims.RULES["S14"], threshold=1.0, above=True, lacks="{times} times as many, {cost}")
    half = evidence.table([("w", 2.0, 0.0, 4.0, 5)])  # reaches twice as far as it may: four times as many
    assert rule.judge(half, hours=2.0).price == "It would take 4 times as many, 6 more core-hours."
    near = evidence.table([("w", 1.01, 0.0, 2.0, 5)])
    assert rule.judge(near, hours=2.0).price == "It would take over 100 times as many, over 200 more core-hours."
    two = evidence.table([("a", 2.0, 0.0, 4.0, 5), ("b", 2.0, 0.5, 3.5, 5)])  # the nearer one, and what its records took
    assert rule.judge(two, {"a": 100.0, "b": 4.0}).price == "It would take 2.2 times as many, 5 more core-hours, for b."
    ratio = replace(rule, scale="ratio").judge(evidence.table([("w", 2.0, 0.25, 16.0, 5)]), hours=1.0)
    assert ratio.price == "It would take 9 times as many, 8 more core-hours."


def test_rules_are_one_sentence_and_so_are_findings():
    """At most 25 words and two numbers a sentence, and none that opens with "That"."""
    for rule in claims.RULES.values():
        told = rule.finds.format(effect="1.5", low="1.2", high="2.3", n="20", group="plain SGD")
        for sentence in (rule.says, told):
            assert len(sentence.split()) <= 25 and not sentence.startswith("That ") and sentence.endswith("."), sentence
        assert len(re.findall(NUMBER, told.replace("c₁/B + c₂", ""))) <= 2 and rule.scale in ("ratio", "points", "share")
        assert (ROOT / "chapters" / f"{rule.chapter}.ipynb").exists()


def test_numbers_of_sentences_have_two_digits():
    assert [brief(x) for x in (4.289, 0.0931, 1.0, 0.97, 1.04, 26.2, 2543, math.inf)] == [
        "4.3", "0.093", "1", "0.97", "1.0", "26", "2,500", "∞"]  # fmt: skip
    assert [joined(x) for x in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


# --- the records ------------------------------------------------------------------------------------------------------


def test_every_claim_is_judged_once_and_follows_from_its_effects():
    found = claims.judge()
    waiting = claims.planned()
    assert list(found) == [key for key in claims.RULES if key not in waiting] and {key[0] for key in waiting} <= {"O", "B"}
    for key, c in found.items():
        verdicts = [claims.decide(g.low, g.high, c.threshold, c.above, c.scale) for g in c.groups]
        assert c.verdict == claims.together(verdicts), key
        assert c.groups and c.rule == claims.RULES[key].says and c.ours
        assert bool(c.part) == (c.verdict == claims.PART) and bool(c.price) == (c.verdict == claims.OPEN)
        own = claims.decide(c.low, c.high, c.threshold, c.above, c.scale)
        assert own == c.verdict or (c.verdict == claims.PART and (own != claims.HOLDS or not all(g.n for g in c.groups))), key
        assert all(g.low <= g.effect <= g.high for g in c.groups if g.n), key
        assert max(len(sentence.split()) for sentence in (c.ours, c.price, c.rule)) <= 25, key


def test_what_is_kept_is_read_back_and_made_anew_for_other_code_or_data(tmp_path, monkeypatch):
    calls = []

    def compute():
        calls.append(1)
        return {"low": 0.5, "high": math.inf}

    assert claims.kept("x", compute, (tmp_path,)) == claims.kept("x", compute, (tmp_path,)) == {"low": 0.5, "high": math.inf}
    assert len(calls) == 1 and len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(ledger, "_digest", lambda: "other")
    assert claims.kept("x", compute, (tmp_path,)) and len(calls) == 2

    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        claims.kept("y", broken, (tmp_path,))
    left = [json.loads(file.read_text(encoding="utf-8")) for file in tmp_path.iterdir()]
    assert all(found["low"] == 0.5 for found in left)  # nothing half-written


def no_room(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


HINDRANCES = {  # a cache that cannot be written, by how: of a folder, and of the file that is to be there
    "a file in the folder's place": lambda folder, file, _: folder.write_bytes(b""),
    "a folder in the file's place": lambda folder, file, _: file.mkdir(parents=True),
    "a full disk": lambda folder, file, monkeypatch: monkeypatch.setattr(os, "fsync", no_room),
}


@pytest.mark.parametrize("how", HINDRANCES)
def test_what_cannot_be_kept_is_computed_once_or_kept_elsewhere(how, tmp_path, monkeypatch):
    calls, first = [], tmp_path / "claims"
    HINDRANCES[how](first, first / f"x-{ledger._digest()}.json", monkeypatch)
    monkeypatch.setattr(ledger, "UNWRITTEN", {})

    def compute():
        calls.append(1)
        return {"low": 0.5}

    for _ in range(2):
        assert claims.kept("x", compute, (first,)) == {"low": 0.5}
    assert len(calls) == 1 and not [file for file in tmp_path.rglob("*") if file.is_file() and file != first]
    monkeypatch.undo()
    for _ in range(2):
        assert claims.kept("y", compute, (tmp_path / "claims" / "x" if first.is_file() else first, tmp_path / "b"))
    assert len(calls) == 2


@pytest.mark.parametrize("text", [b"", b'{"low": 0.', b"\xff"])
def test_what_is_kept_but_damaged_is_computed_anew(text, tmp_path):
    (file := tmp_path / f"x-{ledger._digest()}.json").write_bytes(text)
    assert claims.kept("x", lambda: {"low": 0.5}, (tmp_path,)) == {"low": 0.5} == json.loads(file.read_bytes())


def test_what_is_kept_can_be_read_by_others(tmp_path):
    claims.kept("x", dict, (tmp_path,))
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o444 == 0o444


def test_a_build_elsewhere_keeps_there_what_the_book_s_folder_does_not_take(tmp_path, monkeypatch):
    (tmp_path / "book").write_bytes(b"")
    monkeypatch.setattr(ledger, "ROOT", tmp_path / "book")
    monkeypatch.setenv(ledger.BUILD, "")
    prepared.setup(SimpleNamespace(doctreedir=tmp_path / "out" / "_build" / ".doctrees", connect=lambda *_, **__: None))
    assert claims.kept("x", lambda: {"low": 0.5}) == {"low": 0.5}
    assert [file.parent for file in tmp_path.rglob("*.json")] == [tmp_path / "out" / "_build" / "claims"]


def test_what_a_build_prepares_is_all_that_the_front_page_and_the_ledger_read(monkeypatch):
    prepared.prepare()

    def computed(*groups):
        raise AssertionError("computed again")

    monkeypatch.setattr(ledger, "_judged", computed)
    monkeypatch.setattr(ledger, "usual", computed)
    assert claims.judge() and len(facts.curves()) and len(front.curves()) and front.scope() and front.language_model()


def test_judged_claims_are_read_without_pytorch():
    claims.judge()
    ask = "import sys; from lib import claims; claims.judge(); print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert told.stdout.strip() == "False"


def test_what_claims_say_is_what_facts_say():
    """One value per quantity; and the goal of the digits' families is that of the digits' curves."""
    judged = claims.judge()
    table = facts.curves()
    assert not table.duplicated(scaling.CURVE).any()
    inside = table.critical[(table.sparsity == 0) & table.identified.astype(bool)]
    assert inside.max() / inside.min() == pytest.approx(judged["S4"].effect)
    cost = facts.cost_of_sparsity()
    assert cost in judged["L3"].groups and cost.name == "sparsity 0.9"
    mlp = facts.critical("digits-mlp")
    assert mlp.critical_low < mlp.critical < mlp.critical_high and mlp.goal == facts.goals()["digits-mlp"]
    for family in (families.WIDTH, families.DEPTH, families.MODEL, families.ALGORITHM):
        assert families.FAMILIES[family].goal == max(facts.goals()[name] for name in plans.DIGITS), family
    with pytest.raises(ValueError, match="workload: 'x' with momentum at sparsity 0.0 has no curve"):
        facts.critical("x")
    with pytest.raises(ValueError, match="sparsity: 0.1 is not allowed; it must be one of sparsity 0.5"):
        facts.cost_of_sparsity(0.1)


# --- effects ----------------------------------------------------------------------------------------------------------


def test_the_trend_is_seen_where_it_is_and_not_where_it_is_not():
    _, summary, drawn = judged(*(trials(s, 2000 * (1 + s), 100 * (1 + s), seed=i) for i, s in enumerate((0.0, 0.5, 0.9))))
    assert claims.RULES["L2"].judge(evidence.off_the_line(summary)).verdict == "holds"
    bent = summary.assign(residual=np.where(summary.sparsity == 0.9, 1.8, summary.residual))
    told = claims.RULES["L2"].judge(evidence.off_the_line(bent))
    assert (told.verdict, told.part) == ("holds in part", "for sparsity 0.5, not for sparsity 0.9")
    within = evidence.inside_the_sizes(drawn)
    assert within.name.tolist() == ["dense networks on images", "sparse networks on images"] and within.n.tolist() == [1, 2]
    assert within.effect.to_numpy() == pytest.approx(20, rel=0.15)  # 2,000 / 100 of 1 to 1,024
    assert claims.RULES["L1"].judge(within).verdict == "holds"
    for c1, c2, verdict in ((1e6, 1e-3, "does not hold"), (100, 100, "does not hold"), (1e4, 50, "undecided")):
        _, _, other = judged(trials(0.0, c1, c2, spread=0.3))
        assert claims.RULES["L1"].judge(evidence.inside_the_sizes(other)).verdict == verdict
    few = judged(trials(0.0, 2000, 100, sizes=(4, 16, 64, 256)))[2]
    assert evidence.inside_the_sizes(few).empty  # of four batch sizes nothing is said


def test_theory_is_judged_by_what_it_predicts():
    forms = {"c1/B + c2": 1.2, "c1/B": 3.0, "c1/B^p": 1.5, "c1/B^p + c2": 1.18}

    def verdict(**sgd):
        rows = [{"form": f, "factor": sgd.get(a, {}).get(f, x), "algorithm": a, "workload": w, "pruning": "p", "sparsity": 0.0}
                for a in ("sgd", "momentum") for w in "ab" for f, x in forms.items()]  # fmt: skip
        return claims.RULES["L6"].judge(evidence.beside_other_forms(pd.DataFrame(rows))).verdict

    assert verdict() == "holds"
    assert verdict(sgd={"c1/B^p": 1.0}) == "does not hold" or verdict(sgd={"c1/B^p": 1.0}) == "holds in part"
    assert verdict(sgd={"c1/B^p": 1.0}, momentum={"c1/B^p": 1.0}) == "does not hold"
    none = pd.DataFrame(columns=["form", "factor", "algorithm", *"abc"])
    assert claims.RULES["L6"].judge(evidence.beside_other_forms(none)).verdict == "undecided"


def path(sparsity, trial=0, **values):
    steps = np.array([1, 2, 4, 8])
    own = {"lipschitz": 2.0, "along": 1.5, "spectral": 6.0, "square": 0.5, "trace": 30.0, "noise_scale": 60.0, **values}
    return pd.DataFrame({
        "workload": "w", "algorithm": "sgd", "batch_size": 64, "sparsity": sparsity, "trial": trial, "step": steps,
        "loss": [2.0, 1.5, 1.0, 0.5], **own,
    })  # fmt: skip


def test_the_noise_scale_of_a_run_weighs_steps_and_predicts_the_bend():
    varying = path(0.0, trace=np.array([10.0, 20, 40, 80]), square=np.array([1.0, 1, 1, 2]))
    ratio, weights = varying.trace / varying.square, np.array([0.5, 1.5, 3, 2])
    progress = weights / (1 + ratio / 64)
    found = followed_paths.noise_scales(varying).iloc[0]
    assert found.noise_scale == pytest.approx((ratio * progress).sum() / progress.sum())
    assert found.apart == pytest.approx((varying.trace @ weights) / (varying.square @ weights))
    hidden = followed_paths.noise_scales(varying.assign(square=-1.0)).iloc[0]  # noise hides the gradient
    assert np.isinf(hidden.noise_scale) and np.isinf(hidden.apart)
    _, summary, drawn = judged(trials(0.0, 6000, 100, "sgd"))
    for trace, verdict in ((30.0, "holds"), (1.0, "does not hold"), (15.0, "undecided")):
        bends = followed_paths.predicted_bends(path(0.0, trace=trace), summary)
        assert bends.predicted.iloc[0] == pytest.approx(trace / 0.5)
        assert claims.RULES["M1"].judge(evidence.noise_scale_off(bends, drawn)).verdict == verdict
    assert evidence.noise_scale_off(bends.assign(identified=False), drawn).empty


def test_a_rule_for_the_rate_fails_by_the_share_of_batch_sizes_where_it_costs_twice():
    def costs(linear, root):
        beyond = [1.0, *linear, 1.0, *root]
        rules = ["linear rule"] * (1 + len(linear)) + ["square-root rule"] * (1 + len(root))
        base = [True, *[False] * len(linear), True, *[False] * len(root)]
        return evidence.rules_missed(pd.DataFrame({"rule": rules, "beyond": beyond, "base": base}))

    lost, kept = [np.inf] * 9, [1.5] * 9
    judge = claims.RULES["S10b"].judge
    assert judge(costs(lost, lost)).verdict == "holds" and judge(costs(kept, kept)).verdict == "does not hold"
    assert judge(costs(lost, kept)).part == "for the linear rule, not for the square-root rule"
    assert judge(costs([1.5, 3.0], [3.0, 1.5])).verdict == "undecided"
    powers = pd.DataFrame({"workload": ["a"], "power": [1.0], "low": [0.5], "high": [1.5], "trials": [9]})
    assert evidence.growth_of_rate(powers).effect.item() == 2


def ladder(column, budgets, errors):
    """Validation errors [budgets][batch sizes] as `budgets.ladders` gives them."""
    return pd.DataFrame([
        {"batch_size": b, column: budget, "validation": e, "low": e, "high": e + 0.004, "unsure": 0.001}
        for budget, row in zip(budgets, errors, strict=True)
        for b, e in zip((1, 4, 16, 64, 256), row, strict=True)
    ])  # fmt: skip


def test_budgets_that_favour_either_end():
    steps = ladder("budget", (16, 4096), ((0.5, 0.4, 0.3, 0.2, 0.1), (0.012, 0.012, 0.012, 0.012, 0.01)))
    epochs = ladder("examples", (256, 65536), ((0.1, 0.2, 0.3, 0.4, 0.5), (0.01, 0.01, 0.01, 0.012, 0.012)))
    early, late = claims.RULES["S13"].judge, claims.RULES["S13b"].judge
    assert early(evidence.favoured({"w": (steps, epochs)})).verdict == "holds"
    turned = steps, steps.rename(columns={"budget": "examples"})
    assert early(evidence.favoured({"w": turned})).part == "for few steps, not for few epochs"
    assert early(evidence.favoured({"w": (steps, epochs), "v": turned})).verdict == "holds in part"  # every workload must agree
    assert early(evidence.favoured({"w": (steps[steps.batch_size < 64], epochs)})).verdict == "undecided"

    for move, scatter, verdict in ((0.0005, 0.0005, "holds"), (0.003, 0.0005, "does not hold"), (0.001, 0.005, "undecided")):
        noise = scatter * np.random.default_rng(0).normal(size=11)
        found = pd.DataFrame({"workload": "w", "batch_size": SIZES, "validation": 0.02 + move * np.log2(SIZES) + noise})
        assert late(evidence.left_by_large_budgets(found)).verdict == verdict
        turned = late(evidence.left_by_large_budgets(found.assign(validation=0.04 - found.validation)))
        assert turned.verdict == verdict  # either end may be the better one
    assert late(evidence.left_by_large_budgets(found[:2])).verdict == "undecided"


def test_the_region_of_good_metaparameters_is_judged_by_its_lesser_move():
    def share(first, last, kind):
        rows = [{"batch_size": b, "share": s, "low": s - 0.05, "high": s + 0.05, "trials": 100, "kind": kind} for b, s in
                zip((1, 4, 16, 64, 256), np.linspace(first, last, 5), strict=True)]  # fmt: skip
        return pd.DataFrame(rows)

    def verdict(*shares):
        both = [pd.concat([share(*s, "fixed steps"), share(*e, "fixed epochs")]).assign(workload=str(i))
                for i, (s, e) in enumerate(shares)]  # fmt: skip
        return claims.RULES["S12"].judge(evidence.region_moved(pd.concat(both))).verdict

    up, down = (0.1, 0.8), (0.8, 0.1)
    assert verdict((up, down)) == "holds" and verdict((up, up)) == verdict((down, up)) == "does not hold"
    assert verdict((up, down), (down, up)) == "holds in part" and verdict((up, (0.5, 0.48))) == "undecided"
    assert evidence.region_moved(pd.DataFrame()).empty


def test_momentum_extends_scaling_where_its_bend_lies_beyond_that_of_sgd():
    for c1, c2, extends, equal in ((6400, 25, "holds", "holds"), (12_800, 25, "holds", "does not hold"),
                                   (6400, 100, "does not hold", "holds"), (6400, 400, "does not hold", "holds")):  # fmt: skip
        _, _, drawn = judged(trials(0.0, 6400, 100, "sgd"), trials(0.0, c1, c2, seed=1))
        pairs = family_curves.over_sgd(drawn)
        assert pairs.bend.item() == pytest.approx(c1 / c2 / 64, rel=0.25)
        assert pairs.steps.item() == pytest.approx(6400 / c1, rel=0.1)
        bend, steps = (evidence.over_sgd(pairs, name, evidence.data_set) for name in ("draws", "steps_draws"))
        assert claims.RULES["S7"].judge(bend).verdict == extends
        if c2 < 400:
            assert claims.RULES["S7b"].judge(evidence.folded(steps)).verdict == equal
    assert evidence.over_sgd(family_curves.over_sgd({}), "draws", evidence.title).empty


def test_goals_shift_a_curve_unless_they_move_its_bend():
    for factor, verdict in ((1, "holds"), (0.7, "holds"), (1 / 8, "does not hold")):
        hard = trials(0.0, 6400, 100)
        easy = trials(0.0, 640 * factor, 10, seed=1)  # a tenth of the steps; its bend is the hard goal's times the factor
        pairs = family_curves.easy_over_hard(hard.assign(**{"steps@0.1": easy.steps}))
        assert (pairs.easy.item(), pairs.hard.item()) == (0.1, 0.04)
        assert pairs.bend.item() == pytest.approx(factor, rel=0.25)
        assert claims.RULES["S2"].judge(evidence.folded(evidence.pooled([("all", list(pairs.draws))]))).verdict == verdict
    assert family_curves.easy_over_hard(hard).empty and family_curves.easy_over_hard(pd.DataFrame()).empty


def test_small_batches_lose_more_trials_only_if_the_difference_is_clear():
    def run(*lost, last=10):  # of 100 trials at batch sizes 1 and 64
        return pd.concat(pd.DataFrame({"workload": str(w), "batch_size": b, "status": ["infeasible"] * n + ["budget"] * (100 - n),
                                       "cause": "dead", "last_step": last, "max_steps": 6400 // b})
                         for w, ends in enumerate(lost) for b, n in zip((1, 64), ends))  # fmt: skip

    judge = claims.RULES["S15"].judge
    cases = {"holds": [(60, 5)], "holds in part": [(60, 5), (9, 8)], "does not hold": [(5, 60)], "undecided": [(9, 8)]}
    for verdict, lost in cases.items():
        assert judge(evidence.lost_trials(run(*lost))).verdict == verdict
    assert judge(evidence.lost_trials(run((60, 5), last=101))).verdict == "undecided"  # after the shorter budget
    assert evidence.lost_trials(pd.DataFrame()).empty


def test_slopes_are_told_in_points():
    found = evidence.slopes({"a": (0.01, 0.005, 0.015), ("b", 0.1): (0.0, -0.01, 0.01), "c": (np.nan,) * 3})
    assert found.name.tolist() == ["a", "b, smoothing 0.1"] and found.effect.tolist() == [1, 0]
    assert claims.RULES["S9"].judge(found).part == "for a, undecided for b, smoothing 0.1"
    assert claims.RULES["S14"].judge(found).verdict == "does not hold"


def test_what_top_k_leaves_is_held_against_the_bound():
    x = np.array([0.01, 0.1, 0.5])
    for left, verdict in (((1 - x) ** 2 - 0.01, "holds"), ((1 - x) ** 2, "holds"), (1 - x, "does not hold")):
        assert claims.RULES["T3"].judge(evidence.under_the_bound(pd.DataFrame({"x": x, "value": left}))).verdict == verdict


@pytest.mark.parametrize(
    "kind, bell",
    [("normal", 1), ("logistic", 1), ("signs", 0), ("uniform", 0),
     ("two peaks", 0), ("spike", 0), ("aside", 0)],
)  # fmt: skip
def test_a_bell_has_one_peak_at_zero_and_is_not_flat(kind, bell):
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
    found = evidence.bells(pd.concat([shapes] * 9))
    assert found.set_index("name").effect["convolutional networks"] == bell
    assert claims.RULES["T1"].judge(found).verdict == (claims.PART if bell else claims.FAILS)  # no other kind is measured
    assert claims.RULES["T1"].judge(evidence.bells(portraits.shapes(table[:0]))).verdict == claims.OPEN


def test_bells_of_recurrent_networks_are_a_kind_of_their_own():
    table = portraits.describe(np.random.default_rng(0).normal(size=50_000))
    shapes = portraits.shapes(table.assign(compressor="top-k", density=0.001, feedback=True, step=1, workload="shakespeare-lstm"))
    found = evidence.bells(pd.concat([shapes, shapes.assign(workload="mnist-lenet-5")] * 9)).set_index("name")
    assert (found.effect[["convolutional networks", "recurrent networks"]] == 1).all()
    assert np.isnan(found.effect["fully connected networks"])
