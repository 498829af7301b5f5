"""Verdicts follow from planted intervals, in either direction, on every network by itself, and only
where the rule can tell; rules are data with a history."""

import dataclasses
import hashlib
import json
import math
from collections import Counter

import numpy as np
import pytest

from lib import claims
from lib.analysis.scaling import Effect
from lib.claims import NO, SHOWN, UNCLEAR, YES, claim

REGISTERED = claims.registered()


def planted(rule, *places, error=math.nan):
    """Groups whose intervals lie where the claim needs them (1), elsewhere (-1), or on both (0)."""
    edge = rule.inner(rule.threshold)
    sides = {"above": 1, "below": -1, "within": -1}
    groups = []
    for i, place in enumerate(places):
        inside = rule.kind == "within" and place == 1
        middle = 0.0 if inside else edge + sides[rule.kind] * place
        width = edge / 2 if inside else 0.5
        ends = [middle, middle - width, middle + width]
        shown = [math.exp(v) if rule.scale == "ratio" else v for v in ends]
        groups.append(claims.Group(f"network {i}", *shown, n=7, own=True, error=error))
    return groups


@pytest.mark.parametrize("rule", REGISTERED.values(), ids=list(REGISTERED))
def test_every_rule_can_come_out_either_way_and_tells_nothing_where_data_are_few(rule):
    for place, verdict, word in ((1, YES, YES), (-1, NO, NO), (0, UNCLEAR, UNCLEAR)):
        found = claim.judged(rule, planted(rule, place))
        assert (found.groups[0].verdict, found.theirs, found.ours) == (verdict, word, claims.UNTESTED)
    assert claim.judged(rule, planted(rule, 1, -1, 0)).theirs == claims.MIXED
    assert claim.judged(rule, []).verdict == claim.judged(rule, [claims.unmeasured("w")]).verdict == claims.UNTESTED
    if not rule.tried:  # those try their own data
        noisy = claim.judged(rule, planted(rule, 1, -1, error=50.0))
        assert {g.verdict for g in noisy.groups} == {SHOWN} and noisy.theirs == UNCLEAR
        exact = claim.power_of(planted(rule, 1, error=1e-6)[0], rule)
        assert exact == (1.0, 0.0, 0.0)


def test_power_is_that_of_simulated_searches():
    """Normal searches of a known scatter, judged one by one, say yes as often as the formula has it."""
    rule, random = dataclasses.replace(REGISTERED["L4"], truth=None), np.random.default_rng(1)
    effects = [
        Effect(v.mean(), v.std(ddof=1) / 5**0.5, 4, 5) for v in random.normal(0, 0.2, (3000, 5))
    ]
    groups = [dataclasses.replace(claims.ratio("w", e), error=math.nan) for e in effects]
    share = Counter(g.verdict for g in claim.judged(rule, groups).groups)[YES] / 3000
    known = claim.power_of(claims.ratio("w", Effect(0.0, 0.2 / 5**0.5, 4, 5)), rule)
    assert known[0] == pytest.approx(share, abs=0.03) and known[1] < 0.05


@pytest.mark.parametrize("kind, beyond", [("above", YES), ("below", NO), ("within", NO)])
def test_intervals_without_ends_and_groups_without_searches(kind, beyond):
    def decided(low, high, n=5):
        return claims.decide(claims.Group("w", low, low, high, n), kind, 0.2)

    assert decided(math.nan, math.nan) == decided(-math.inf, -math.inf, 0) == UNCLEAR
    assert decided(0.4, math.inf) == beyond and decided(-math.inf, math.inf) == UNCLEAR
    assert kind != "within" or decided(-0.4, -0.3) == NO  # no effect is judged on both sides


def test_networks_that_can_tell_are_summed_up_the_papers_own_apart():
    def word(*verdicts):
        return claims.summed_up([claims.Group("w", 1, 1, 1, 5, verdict=verdict) for verdict in verdicts])

    assert word(YES, YES, SHOWN) == YES and word(YES, YES, UNCLEAR) == claims.MOSTLY
    assert word(*3 * [YES], NO) == claims.MOSTLY and word(YES, YES, NO) == claims.MIXED
    assert word(NO, NO, UNCLEAR) == NO and word(YES, NO, NO) == claims.MIXED
    assert word(YES, UNCLEAR) == word(UNCLEAR) == word(SHOWN) == UNCLEAR and word() == claims.UNTESTED
    rule = REGISTERED["L3"]
    theirs, ours = planted(rule, 1)[0], dataclasses.replace(planted(rule, -1)[0], own=False)
    both = claim.judged(rule, [theirs, ours])
    assert (both.theirs, both.ours, both.verdict) == (YES, NO, YES)
    assert (both.tally(True), both.tally(False)) == ("1 yes", "1 no")


def test_as_many_verdicts_are_wrong_as_the_ledger_expects():
    """At the threshold itself, one in twenty falls on either side."""
    rule, random = REGISTERED["L4"], np.random.default_rng(0)
    values = rule.inner(rule.threshold) + random.normal(0, 0.1, (2000, 6))
    groups = [claims.ratio("w", Effect(v.mean(), v.std(ddof=1) / 6**0.5, 5, 6)) for v in values]
    groups = [dataclasses.replace(group, error=math.nan) for group in groups]
    share = Counter(g.verdict for g in claim.judged(rule, groups).groups)
    assert share[YES] / 2000 == pytest.approx(0.05, abs=0.015)
    assert share[NO] / 2000 == pytest.approx(0.05, abs=0.015)


# What every rule is today: a rule that is changed takes an entry of its history, and this digest with it.
RULES = "8e6d739ac7f918ee"


def test_rules_are_those_that_were_written_down():
    rules = {c.key: [c.rule, c.kind, c.threshold, c.scale, c.since, len(c.history)] for c in REGISTERED.values()}
    digest = hashlib.sha256(json.dumps(rules, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]
    assert digest == RULES, "a rule has changed: add a Change to its history, then this digest"


def test_every_claim_is_judged_on_the_records_as_its_groups_say():
    found, shown = claims.judge(), claims.findings()
    assert list(found) == list(REGISTERED) and len(found) <= 40 and not {*found} & {*shown}
    for key, c in found.items():
        assert c.groups, key
        names = [g.name for g in c.groups]
        assert len(set(names)) == len(names), key  # each network, and method, once
        for g in c.groups:
            ends = [c.inner(v) for v in (g.effect, g.low, g.high)]
            assert not g.n or math.isnan(ends[0]) or ends[1] <= ends[0] + 1e-9 <= ends[2] + 2e-9, (key, g)
            own = dataclasses.replace(g, effect=ends[0], low=ends[1], high=ends[2])
            told = claims.decide(own, c.kind, c.inner(c.threshold)) if g.decides and claim.able(g.power) else SHOWN
            assert g.verdict == told and g.n < 2000, (key, g)
    assert all(g.verdict == "" for one in shown.values() for g in one.groups)
    assert [key for key, one in shown.items() if not one.groups] == []
