"""Synthetic intermediate labels: each half trains as ordinary modules do, recovery is plain SGD, and what is sent is counted."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from chapters.parts_of_a_network import halves
from chapters.parts_of_a_network.arithmetic import multiply_adds
from chapters.parts_of_a_network.halves import Search
from lib.engine import batched
from lib.engine.flattening import flatten, layers
from lib.measuring import one_cell
from lib.workloads import models

WHOLE = models.build("mlp-64x4")
LAYERS = layers(WHOLE)
HALVES = (64, 64, 64), (64, 64, 64, 10)


def batch(k, count=12):
    random = torch.Generator().manual_seed(k)
    return torch.rand(count, 1, 8, 8, generator=random), torch.randint(10, (count,), generator=random)


def trained(arm, stages, rate=0.2, steps=9):
    """Weights of two trials after each step, as the engine takes them, the first ones included; and the codes."""
    method = halves.halved(Search(arm))
    w = torch.stack([flatten(models.fresh("mlp-64x4", seed)) for seed in (0, 1)])
    buffers, executor, found = method.begin(w, LAYERS), batched.BatchedExecutor(WHOLE), [w.clone()]
    codes = buffers["codes"].clone()
    for k in range(1, steps + 1):
        _, g, _ = method.gradient(executor, w, batch(k), None, buffers)
        drawn = {"learning_rate": torch.full((2, 1), rate), "stage": torch.tensor(stages)[:, None]}
        method.step(w, g, buffers, drawn, k, LAYERS)
        found.append(w.clone())
    return torch.stack(found), codes


def descend(params, loss, rate=0.2):
    for p, g in zip(params, torch.autograd.grad(loss, params), strict=True):
        p.data -= rate * g


def reference(seed, stage, codes, recovered, steps=9):
    """One trial, half by half, as ordinary modules."""
    net, found = models.fresh("mlp-64x4", seed), []
    left, right = net[:5], net[5:]
    assert isinstance(left[-1], nn.ReLU) and sum(p.numel() for p in left.parameters()) == halves.CUT
    found.append(flatten(net))
    for k in range(1, steps + 1):
        x, y = batch(k)
        if k <= stage:
            descend([*left.parameters()], (left(x) - codes[y]).square().sum(1).mean() / 2)
        elif recovered and k > 2 * stage:
            descend([*net.parameters()], cross_entropy(net(x), y))
        else:
            descend([*right.parameters()], cross_entropy(right(left(x).detach()), y))
        found.append(flatten(net))
    return torch.stack(found)


@pytest.mark.parametrize("arm", ["halves", "recovered"])
def test_halves_train_as_modules_of_their_own_do(arm):
    stages = [2.0, 4.0]
    w, codes = trained(arm, stages)
    for trial, stage in enumerate(stages):
        expected = reference(trial, int(stage), codes[trial], arm == "recovered")
        torch.testing.assert_close(w[:, trial], expected, rtol=1e-4, atol=1e-5)


def test_only_the_half_whose_turn_it_is_moves():
    w, _ = trained("halves", [3.0, 3.0])
    assert w[3, :, halves.CUT :].equal(w[0, :, halves.CUT :]) and w[9, :, : halves.CUT].equal(w[3, :, : halves.CUT])
    assert not w[3].equal(w[0]) and not w[9].equal(w[3])


def test_the_whole_network_is_plain_sgd_bit_for_bit():
    search = Search("whole", 64, trials=8, max_steps=30)
    plain = one_cell.table(search.cell, one_cell.train_cell(search.cell))
    assert search.measure().drop(columns="stage").equals(plain)


def test_recovery_is_plain_sgd_from_where_the_halves_are():
    w, _ = trained("recovered", [2.0, 2.0])
    own, executor = w[4].clone(), batched.BatchedExecutor(WHOLE)
    for k in range(5, 10):
        own.addcmul_(executor.gradients(own, *batch(k))[1], torch.full((2, 1), 0.2), value=-1)
        assert own.equal(w[k])


def test_what_is_sent_and_computed_is_counted_part_by_part():
    steps, stage, once = np.array([50.0, 15.0, np.nan]), np.array([10.0, 10.0, 10.0]), 1350 * 64
    told = {arm: halves.sent(steps, stage, arm, 16) for arm in halves.ARMS}
    np.testing.assert_equal(told["whole"], [50 * 2 * 16 * 64, 15 * 2 * 16 * 64, np.nan])
    np.testing.assert_equal(told["halves"], [once, once, np.nan])
    np.testing.assert_equal(told["recovered"], [once + 30 * 2 * 16 * 64, once, np.nan])
    left, right, whole = (16 * multiply_adds(sizes) for sizes in (*HALVES, halves.SIZES))
    answers = 1350 * 2 * 64 * 64
    done = {arm: halves.computed(steps, stage, arm, 16)[:2].tolist() for arm in halves.ARMS}
    assert done["whole"] == [50 * whole, 15 * whole] and done["halves"] == [n * right + 10 * left + answers for n in (40, 5)]
    assert done["recovered"] == [10 * left + 10 * right + 30 * whole + answers, 10 * left + 5 * right + answers]


def test_what_a_device_holds_is_that_of_its_modules():
    weights = sum(p.numel() for p in WHOLE.parameters())
    assert halves.held(halves.SIZES, 0) == 2 * weights == sum(halves.held(half, 0) for half in HALVES)
    assert halves.held(HALVES[0], 16) == 2 * halves.CUT + 16 * 3 * 64


@pytest.mark.parametrize("wrong", [{"arm": "thirds"}, {"workload": "digits-mlp"}, {"trials": 0}, {"batch_size": 0}])
def test_searches_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: "):
        Search(**{"arm": "halves", **wrong})


def test_records_tell_what_their_searches_are(tmp_path):
    one = Search("recovered", 64, trials=2, max_steps=20)
    halves.run([one], tmp_path)
    assert not halves.missing([one], tmp_path)
    found = halves.results([one], tmp_path)
    assert found.arm.tolist() == [halves.ARMS["recovered"]] * 2 and found.stage.between(8, 512).all()
    assert {"sent@0.04", "adds@0.04"} <= set(found)
