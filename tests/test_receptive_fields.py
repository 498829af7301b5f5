"""Fields on a ring: inputs and measures where the answer is known, a search against a plain loop."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from chapters.other_networks import claims, locality, ring
from chapters.other_networks import fields as experiments
from chapters.other_networks.fields import EDGED, Search
from chapters.other_networks.ring import SITES
from lib.engine import lockstep
from lib.methods import spaces
from lib.workloads import models
from tests.conftest import on_sides


def test_without_gain_inputs_are_the_gaussian_ones():
    plain, small = (ring.samples(2000, gain, seed=3) for gain in (0.0, 1e-3))
    torch.testing.assert_close(small.x, plain.x, rtol=0, atol=1e-4)
    assert torch.equal(small.y, plain.y)


@pytest.mark.parametrize("gain", [0.0, EDGED])
def test_inputs_have_no_mean_unit_variance_and_the_correlations_of_their_classes(gain):
    split = ring.samples(20_000, gain, seed=4)
    x, y = split.x, split.y
    assert x.mean().abs() < 0.01 and y.float().mean() == 0.5
    for label, length in enumerate((ring.NEAR, ring.FAR)):
        inputs, distance = x[y == label], torch.tensor([0.0, 2.0, 5.0, 30.0])
        products = torch.stack([(inputs * inputs.roll(int(d), 1)).mean() for d in distance])
        expected = torch.exp(-((distance / length) ** 2))
        if gain:  # the arcsine law of squashed Gaussians
            most = gain**2 / (1 + gain**2)
            expected = torch.asin(expected * most) / np.arcsin(most)
        torch.testing.assert_close(products, expected, rtol=0, atol=0.02)


def test_participation_where_it_is_known():
    site = np.arange(SITES)
    peak, even, wave = np.eye(SITES)[5], np.ones(SITES), np.cos(2 * np.pi * 4 * site / SITES)
    assert locality.participation(np.stack([peak, even, wave])) == pytest.approx([SITES, 1, 1.5])
    assert locality.together(np.stack([peak, even])).tolist() == [1, locality.WINDOW / SITES]
    noise = np.random.default_rng(0).standard_normal((4000, SITES))
    assert locality.participation(noise).mean() == pytest.approx(3, abs=0.15)
    fresh = models.initialise(ring.network(), 0)[0].weight.detach().numpy()
    assert locality.participation(fresh).mean() == pytest.approx(locality.DRAWN, abs=0.15)


def test_neighbours_are_as_often_kept_as_any_by_chance_and_more_often_in_blocks():
    """Units that keep few weights and units that keep many are no neighbourhood."""
    share = np.linspace(0.1, 0.9, 500)[:, None]
    scattered = np.random.default_rng(0).random((500, SITES)) < share
    assert locality.neighbours(scattered * 1.0) == pytest.approx(1, abs=0.02)
    block = np.arange(SITES) < SITES // 2
    assert locality.neighbours(block[None] * 1.0) == pytest.approx(31 / (32 * 31 / 63))
    assert np.isnan(locality.neighbours(np.eye(SITES)[:3]))


def plainly(search, trial, steps):
    """The fields of one trial after so many steps by torch.optim."""
    module = models.initialise(ring.network(), 100_000 * search.replicate + trial)
    with torch.no_grad():
        module[0].weight.mul_(ring.START)
    drawn = spaces.draw("lee2021", "momentum", search.trials, replicate=search.replicate)
    rate, momentum = (float(drawn[name][trial]) for name in ("learning_rate", "momentum"))
    optimiser = torch.optim.SGD(module.parameters(), rate, momentum)
    training = ring.samples(ring.TRAIN, search.gain, 2 * search.replicate)
    x, y = training.x, training.y
    order = lockstep.batches(len(y), search.batch_size, search.replicate)
    for _, pick in zip(range(steps), order, strict=False):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(x[pick]), y[pick]).backward()
        optimiser.step()
    return module, module[0].weight.detach().numpy()


def test_a_record_holds_the_fields_of_the_first_trial_that_meets_the_goal(monkeypatch):
    monkeypatch.setitem(experiments.GOALS, 0.0, (0.42, 0.46))
    search = Search(0.0, 256, trials=8, max_steps=600)
    rows = search.measure()
    assert len(rows) == 2 * ring.HIDDEN and rows.steps.notna().all()
    unseen = ring.samples(ring.VALIDATION, 0.0, 2 * search.replicate + 1)
    for goal, units in rows.groupby("goal"):
        module, fields = plainly(search, int(units.trial.iloc[0]), int(units.steps.iloc[0]))
        np.testing.assert_allclose(units.filter(regex="^site_"), fields, atol=2e-3)
        wrong = (module(unseen.x).argmax(1) != unseen.y).float().mean()
        assert wrong <= goal + 1e-3


def planted(ratio):
    """`by_search` of five searches; participation on edges is so many times Gaussian's."""
    random, rows = np.random.default_rng(1), []
    for search in experiments.planned():
        if not search.sparsity:
            luck = np.exp(0.02 * random.standard_normal())
            value = (ratio if search.gain else 1) * 2 * luck
            key = (search.gain, 0.0, search.batch_size, search.replicate, search.goals[0])
            rows.append((*key, 100.0, value))
    return pd.DataFrame(rows, columns=[*locality.KEYS, "steps", "participation"])


@pytest.mark.parametrize(("ratio", "verdict"), [(1.6, "yes"), (1.0, "no"), (1.25, "unclear")])
def test_the_rule_says_what_is_planted(ratio, verdict, monkeypatch):
    monkeypatch.setattr(locality, "by_search", lambda _: planted(ratio))
    (group,) = on_sides("R1", claims.beside_gaussian()).groups
    assert group.verdict == verdict and group.n == 5
