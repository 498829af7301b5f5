"""Verdicts follow from planted intervals, in either direction, on every network by itself; rules are data with a history."""

import dataclasses
import hashlib
import json
import math
from collections import Counter

import numpy as np
import pytest

from lib import claims
from lib.analysis.scaling import Effect
from lib.claims import claim

REGISTERED = claims.registered()


def planted(rule, *places):
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
        groups.append(claims.Group(f"network {i}", *shown, n=7, own=True, error=width / 1.645))
    return groups


@pytest.mark.parametrize("rule", REGISTERED.values(), ids=list(REGISTERED))
def test_every_rule_can_come_out_either_way(rule):
    for place, verdict, word in (
        (1, claims.FOR, claims.REPRODUCED),
        (-1, claims.AGAINST, claims.CONTRADICTED),
        (0, claims.UNDECIDED, claims.OPEN),
    ):
        found = claim.judged(rule, planted(rule, place))
        assert (found.groups[0].verdict, found.verdict) == (verdict, word)
        assert bool(found.price) == (word == claims.OPEN)
    both = claim.judged(rule, planted(rule, 1, -1, 0))
    assert both.verdict == claims.PART
    assert both.part == "for it: network 0; against it: network 1; not decided: network 2"
    assert claim.judged(rule, []).verdict == claim.judged(rule, [claims.unmeasured("w")]).verdict == claims.OPEN


@pytest.mark.parametrize("kind, beyond", [("above", "for"), ("below", "against"), ("within", "against")])
def test_intervals_without_ends_and_groups_without_searches(kind, beyond):
    def decided(low, high, n=5):
        return claims.decide(claims.Group("w", low, low, high, n), kind, 0.2)

    assert decided(math.nan, math.nan) == decided(-math.inf, -math.inf, 0) == claims.UNDECIDED
    assert decided(0.4, math.inf) == beyond and decided(-math.inf, math.inf) == claims.UNDECIDED
    assert kind != "within" or decided(-0.4, -0.3) == claims.AGAINST  # no effect is judged on both sides


def test_the_papers_own_networks_come_first():
    def word(*groups):
        return claims.summed_up([claims.Group("w", 1, 1, 1, 5, own=own, verdict=verdict) for own, verdict in groups])

    yes, no, maybe = claims.FOR, claims.AGAINST, claims.UNDECIDED
    assert word((True, yes), (False, yes), (False, maybe)) == claims.REPRODUCED
    assert word((True, yes), (False, no)) == word((True, yes), (True, no)) == claims.PART
    assert word((True, no), (False, yes)) == word((True, no), (True, maybe)) == claims.CONTRADICTED
    assert word((True, maybe), (False, yes)) == "on stand-ins only: for"
    assert word((False, no)) == "on stand-ins only: against"
    assert word((False, no), (False, yes)) == "on stand-ins only: for and against"
    assert word((True, maybe)) == word() == claims.OPEN


def test_as_many_verdicts_are_wrong_as_the_ledger_expects():
    """At the threshold itself, one in twenty falls on either side."""
    rule, random = claims.Claim("X1", "t", "c", "p.", "s", "r.", "above", 1.0), np.random.default_rng(0)
    values = random.normal(0, 1, (2000, 6))
    groups = [claims.ratio("w", Effect(v.mean(), v.std(ddof=1) / 6**0.5, 5, 6)) for v in values]
    share = Counter(g.verdict for g in claim.judged(rule, groups).groups)
    assert share[claims.FOR] / 2000 == pytest.approx(0.05, abs=0.015)
    assert share[claims.AGAINST] / 2000 == pytest.approx(0.05, abs=0.015)


# What every rule is today: a rule that is changed takes an entry of its history, and this digest with it.
RULES = "677bc9a395b728fb"


def test_rules_are_those_that_were_written_down():
    rules = {c.key: [c.rule, c.kind, c.threshold, c.scale, c.since, len(c.history)] for c in REGISTERED.values()}
    digest = hashlib.sha256(json.dumps(rules, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]
    assert digest == RULES, "a rule has changed: add a Change to its history, then this digest"


def test_every_claim_is_judged_on_the_records_as_its_groups_say():
    found = claims.judge()
    assert list(found) == list(REGISTERED)
    for key, c in found.items():
        assert c.verdict == claims.summed_up(c.groups) and c.groups, key
        names = [g.name for g in c.groups]
        assert len(set(names)) == len(names), key  # each network, and method, once
        for g in c.groups:
            ends = [c.inner(v) for v in (g.effect, g.low, g.high)]
            assert not g.n or math.isnan(ends[0]) or ends[1] <= ends[0] + 1e-9 <= ends[2] + 2e-9, (key, g)
            own = dataclasses.replace(g, effect=ends[0], low=ends[1], high=ends[2])
            assert g.verdict == claims.decide(own, c.kind, c.inner(c.threshold)), (key, g)
            assert g.n < 2000, (key, "n counts searches")
