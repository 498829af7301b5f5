"""Verdicts follow from planted intervals, in either direction, on every network by itself, and only
where the rule can tell; rules are data with a history."""

import hashlib
import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from chapters.claims.ledger import BEFORE, HISTORY, read
from lib import claims
from lib.analysis.scaling import Effect
from lib.claims import NO, SHOWN, UNCLEAR, YES, claim

REGISTERED = claims.registered()


def planted(rule, *sides, error=math.nan):
    """Groups whose intervals lie where the claim needs them (1), elsewhere (-1), or on both (0)."""
    edge = rule.inner(rule.threshold)
    away = {"above": 1, "below": -1, "within": -1}[rule.kind]
    groups = []
    for i, side in enumerate(sides):
        inside = rule.kind == "within" and side == 1
        middle = 0.0 if inside else edge + away * side
        width = edge / 2 if inside else 0.5
        ends = [middle, middle - width, middle + width]
        shown = [math.exp(v) if rule.scale == "ratio" else v for v in ends]
        groups.append(claims.Group(f"network {i}", *shown, n=7, theirs=True, error=error))
    return groups


@pytest.mark.parametrize("rule", REGISTERED.values(), ids=list(REGISTERED))
def test_every_rule_can_come_out_either_way_and_tells_nothing_where_data_are_few(rule):
    for side, word in ((1, YES), (-1, NO), (0, UNCLEAR)):
        judged = claim.judged(rule, planted(rule, side))
        words = judged.groups[0].verdict, judged.theirs, judged.ours
        assert words == (word, word, claims.UNTESTED)
    assert claim.judged(rule, planted(rule, 1, -1, 0)).theirs == claims.MIXED
    for nothing in ([], [claim.unmeasured("w")]):
        assert claim.judged(rule, nothing).verdict == claims.UNTESTED
    if not rule.tried:  # those try their own data
        noisy = claim.judged(rule, planted(rule, 1, -1, error=50.0))
        assert {g.verdict for g in noisy.groups} == {SHOWN} and noisy.theirs == UNCLEAR
        exact = claim.power_of(planted(rule, 1, error=1e-6)[0], rule)
        assert np.ravel(exact) == pytest.approx([1, 0, 0, 1, 0, 1], abs=0.06)


def verdicts(rule, values):
    """How often the rule reaches each verdict on searches [effects, searches], each judged by
    itself."""
    n = values.shape[1]
    effects = [Effect(v.mean(), v.std(ddof=1) / n**0.5, n - 1, n) for v in values]
    groups = [replace(claim.ratio("w", effect), error=math.nan) for effect in effects]
    counts = Counter(group.verdict for group in claim.judged(rule, groups).groups)
    return {verdict: count / len(values) for verdict, count in counts.items()}


def test_power_is_that_of_simulated_searches():
    """Normal searches with a known scatter say yes as often as the formula says."""
    rule = replace(REGISTERED["L4"], truth=None)
    shares = verdicts(rule, np.random.default_rng(1).normal(0, 0.2, (3000, 5)))
    power = claim.power_of(claim.ratio("w", Effect(0.0, 0.2 / 5**0.5, 4, 5)), rule)
    assert power[0][0] == pytest.approx(shares[YES], abs=0.03) and power[1][0] < 0.05


def test_as_many_verdicts_are_wrong_as_the_ledger_expects():
    """At the threshold itself, one in twenty falls on either side."""
    rule, random = REGISTERED["L4"], np.random.default_rng(0)
    values = rule.inner(rule.threshold) + random.normal(0, 0.1, (2000, 6))
    shares = verdicts(rule, values)
    assert [shares[YES], shares[NO]] == pytest.approx([0.05, 0.05], abs=0.015)


@pytest.mark.parametrize("kind, beyond", [("above", YES), ("below", NO), ("within", NO)])
def test_intervals_without_ends_and_groups_without_searches(kind, beyond):
    def decided(low, high):
        return claim.decide(low, high, kind, 0.2, either=False)

    assert decided(math.nan, math.nan) == decided(-math.inf, math.inf) == UNCLEAR
    assert decided(0.4, math.inf) == beyond
    assert decided(0.1, 0.15) == (UNCLEAR if kind == "above" else YES)  # short of our threshold
    assert kind != "within" or decided(-0.4, -0.3) == NO  # no effect is judged on both sides


SUMS = {
    YES: ([YES, YES, SHOWN],),
    claims.MOSTLY: ([YES, YES, UNCLEAR], [YES, YES, YES, NO]),
    claims.MIXED: ([YES, YES, NO], [YES, NO, NO]),
    NO: ([NO, NO, UNCLEAR],),
    UNCLEAR: ([YES, UNCLEAR], [UNCLEAR], [SHOWN]),
    claims.UNTESTED: ([],),
}


def test_networks_that_can_tell_are_summed_up_the_papers_own_apart():
    for word, cases in SUMS.items():
        for case in cases:
            groups = [claims.Group("w", 1, 1, 1, 5, verdict=verdict) for verdict in case]
            assert claim.summed_up(groups) == word, case
    rule = REGISTERED["L3"]
    theirs, ours = planted(rule, 1)[0], replace(planted(rule, -1)[0], theirs=False)
    judged = claim.judged(rule, [theirs, ours])
    assert (judged.theirs, judged.ours, judged.verdict) == (YES, NO, YES)
    assert (judged.tally(True), judged.tally(False)) == ("1 yes", "1 no")


# What every rule is today: a changed rule gets an entry in its history, and this digest changes
# with it.
RULES = "1d222bfdcae55a06"


def test_rules_are_those_that_were_written_down():
    names = "rule kind threshold scale truth either tried".split()
    histories = read(HISTORY)
    rules = {
        key: [*(getattr(rule, name) for name in names), len(histories.get(key, []))]
        for key, rule in REGISTERED.items()
    }
    text = json.dumps(rules, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert histories.keys() <= rules.keys() <= read(BEFORE)["claims"].keys()
    assert digest == RULES, "a rule has changed: add an entry to its history, then this digest"


def test_every_claim_has_an_interval_on_each_network_once():
    judged, shown = claims.judge(), claims.findings()
    assert len(judged) <= 40
    assert all(entry.groups for entry in claims.every().values())
    for key, entry in judged.items():
        assert len({g.name for g in entry.groups}) == len(entry.groups), key
        for g in entry.groups:
            effect, low, high = (entry.inner(v) for v in (g.effect, g.low, g.high))
            ordered = low <= effect + 1e-9 <= high + 2e-9
            assert not g.n or math.isnan(effect) or ordered and g.n < 2000, (key, g)
    assert all(g.verdict == "" for entry in shown.values() for g in entry.groups)
