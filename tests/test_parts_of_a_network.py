"""Parts of a network trained apart: against ordinary modules, plain SGD and planted searches."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from chapters.other_workers import claims, parts, training
from chapters.other_workers.parts_experiments import HALVES, Growing, Halves, Subnetworks
from lib.engine import batched, lockstep
from lib.engine.flattening import flatten, layers
from lib.measuring import one_search
from lib.measuring.experiment import Collection
from lib.workloads import models
from lib.workloads.catalogue import workload

WITHOUT_PARTS = [
    Subnetworks(1, 7, 32, trials=16, max_steps=36),
    Growing(64, 0, 64, trials=8, max_steps=90),
    Halves("whole", 64, trials=8, max_steps=90),
]


@pytest.mark.parametrize("search", WITHOUT_PARTS, ids=lambda search: type(search).__name__)
def test_one_worker_no_growth_and_no_cut_are_plain_sgd_bit_for_bit(search):
    plain = one_search.table(search.cell, one_search.train_search(search.cell))
    assert np.isfinite(plain["steps@0.1"]).any(), "nothing was learnt"
    assert search.measure()[plain.columns].equals(plain)


def part(w, masks, scale):
    """A worker's copy of the whole network, in which all hidden units but its own are dropped and its own scaled."""
    net = models.build("mlp-64x2")
    nn.utils.vector_to_parameters(w.clone(), net.parameters())
    for place, units in zip((2, 4), masks):
        net[place].register_forward_hook(lambda module, inputs, out, units=units: out * units * scale)
    return net


def written_back(w, copies):
    """Every weight from the copy that moved it, the outputs' biases from the first."""
    after = [flatten(copy) for copy in copies]
    moved = torch.stack([copy != w for copy in after])
    moved[1:, -10:] = False
    assert moved.sum(0).max() == 1
    return torch.where(moved, torch.stack(after), 0).sum(0) + torch.where(moved.any(0), 0, w)


def test_rounds_are_those_of_workers_apart_who_write_their_parts_back():
    workers, local_steps, rate, batch = 4, 3, 0.02, 8
    search = Subnetworks(workers, local_steps, batch, trials=1)
    parts = training.Parts(search)
    data, w = workload("digits-mlp").train(1), flatten(models.fresh("mlp-64x2", 0))
    order = [*itertools.islice(lockstep.batches(len(data), workers * batch, 1), 2 * local_steps)]
    first, together = w, w.clone()[None]
    buffers = parts.method.begin(together, None)
    for pick in order:
        together -= rate * parts.gradient(None, together, (data.x[pick], data.y[pick]), None, buffers)[1]
    for turn in range(2):
        masks = [[(owner == k).float() for owner in parts.owners(turn)] for k in range(workers)]
        copies = [part(w, units, workers) for units in masks]
        for k, copy in enumerate(copies):
            bias = copy[-1].bias.detach().clone()
            optimizer = torch.optim.SGD(copy.parameters(), lr=rate)
            for pick in order[turn * local_steps : (turn + 1) * local_steps]:
                mine = pick[k * batch : (k + 1) * batch]
                optimizer.zero_grad()
                cross_entropy(copy(data.x[mine]), data.y[mine]).backward()
                optimizer.step()
                if k:  # keeps what it was given
                    copy[-1].bias.data.copy_(bias)
        w = written_back(w, copies)
    assert (together[0] - first).abs().max() > 0.05
    torch.testing.assert_close(together[0], w, rtol=1e-4, atol=1e-6)
    numbers = 4 * (64 * 16 + 16 + 16 * 16 + 16 + 16 * 10) + 10  # trained, by all workers together
    assert parts.sent == numbers / workers and search.cell.batch_size == 32


WHOLE = models.build("mlp-64x2")
LAYERS = layers(WHOLE)
IMAGES = torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def outputs(w):
    return batched.BatchedExecutor(WHOLE).logits(w, IMAGES)


def test_the_function_stays_as_the_network_grows():
    """Two trials of width 16, with biases, are doubled twice."""
    w = training.narrow([0, 1])
    w = (w + 0.1 * torch.randn(w.shape)) * (training.births() == 0)
    fresh = training.growing(Growing(16, 2), w)[1].begin(w, LAYERS)["fresh"]
    before, count = outputs(w), (w != 0).sum(1)
    for n in (1, 2):
        w = training.grow(w, fresh, n, LAYERS, False)
        assert ((w != 0).sum(1) > 2 * count).all(), "nothing grew"
        torch.testing.assert_close(outputs(w), before, rtol=1e-5, atol=1e-6)


def reference(search, draws, stage, rate, steps):
    """One trial as ordinary modules, with a rate for every part: outputs [steps, images, 10]."""
    net, fresh = models.initialise(models.mlp(64, search.first, search.first), 0), draws[0]
    parts, logits = [torch.zeros_like(m.weight) for m in net if isinstance(m, nn.Linear)], []
    for k in range(1, steps + 1):
        x, y = batch(k)
        loss = cross_entropy(net(x), y)
        linear = [m for m in net if isinstance(m, nn.Linear)]
        slopes = torch.autograd.grad(loss, list(net.parameters()))
        with torch.no_grad():
            for m, part, g in zip(linear, parts, slopes[::2], strict=True):
                rates = torch.ones_like(m.weight)
                for s in range(1, int(part.max()) + 1):
                    rates[part == s] = m.weight[part == s].norm() / m.weight[part == 0].norm()
                m.weight -= rate * rates * g
            for m, g in zip(linear, slopes[1::2], strict=True):
                m.bias -= rate * g
            if k in (stage, 2 * stage):
                width = len(linear[0].bias)
                wide = models.mlp(64, 2 * width, 2 * width)
                grown = [m for m in wide if isinstance(m, nn.Linear)]
                for n, (m, old, layer) in enumerate(zip(grown, linear, LAYERS[::2], strict=True)):
                    rows, columns = old.weight.shape
                    m.weight.copy_(fresh[layer.where].view(layer.shape)[: m.weight.shape[0], : m.weight.shape[1]])
                    m.weight[:rows, :columns] = old.weight * (0.5 if search.scaled and n else 1)
                    m.bias.zero_()
                    m.bias[: len(old.bias)] = old.bias
                    part = torch.full_like(m.weight, k // stage)
                    part[:rows, :columns] = parts[n]
                    parts[n] = part
                net = wide
            logits.append(net(IMAGES))
    return torch.stack(logits)


def batch(k):
    random = torch.Generator().manual_seed(k)
    return torch.rand(12, 1, 8, 8, generator=random), torch.randint(10, (12,), generator=random)


@pytest.mark.parametrize("scaled", [False, True])
def test_it_trains_as_modules_do_that_are_replaced_by_wider_ones(scaled):
    search, stage, rate, steps = Growing(16, 2, scaled=scaled), 4, 0.2, 11
    method, w = training.growing(search, None)[1], training.narrow([0])
    buffers, executor = method.begin(w, LAYERS), batched.BatchedExecutor(WHOLE)
    draws, logits = buffers["fresh"].clone(), []
    drawn = {"learning_rate": torch.tensor([[rate]]), "stage": torch.tensor([[float(stage)]])}
    for k in range(1, steps + 1):
        _, g, _ = executor.gradients(w, *batch(k))
        method.step(w, g, buffers, drawn, k, LAYERS)
        logits.append(outputs(w)[0])
    torch.testing.assert_close(torch.stack(logits), reference(search, draws, stage, rate, steps), rtol=1e-3, atol=1e-4)


DEEP = models.build("mlp-64x4")
DEEP_LAYERS = layers(DEEP)


def trained(arm, stages, rate=0.2, steps=9):
    """Weights of two trials before and after each step, as the engine takes them; and the codes."""
    method = training.halves(Halves(arm), None)[1]
    w = torch.stack([flatten(models.fresh("mlp-64x4", seed)) for seed in (0, 1)])
    buffers, executor, path = method.begin(w, DEEP_LAYERS), batched.BatchedExecutor(DEEP), [w.clone()]
    codes = buffers["codes"].clone()
    drawn = {"learning_rate": torch.full((2, 1), rate), "stage": torch.tensor(stages)[:, None]}
    for k in range(1, steps + 1):
        _, g, _ = method.gradient(executor, w, batch(k), None, buffers)
        method.step(w, g, buffers, drawn, k, DEEP_LAYERS)
        path.append(w.clone())
    return torch.stack(path), codes


def descend(net, loss, rate=0.2):
    params = [*net.parameters()]
    for p, g in zip(params, torch.autograd.grad(loss, params), strict=True):
        p.data -= rate * g


def by_halves(seed, stage, codes, recovered, steps=9):
    """One trial, half by half, as ordinary modules."""
    net, path = models.fresh("mlp-64x4", seed), []
    left, right = net[:5], net[5:]
    assert isinstance(left[-1], nn.ReLU) and sum(p.numel() for p in left.parameters()) == training.CUT
    path.append(flatten(net))
    for k in range(1, steps + 1):
        x, y = batch(k)
        if k <= stage:
            descend(left, (left(x) - codes[y]).square().sum(1).mean() / 2)
        elif recovered and k > 2 * stage:
            descend(net, cross_entropy(net(x), y))
        else:
            descend(right, cross_entropy(right(left(x).detach()), y))
        path.append(flatten(net))
    return torch.stack(path)


@pytest.mark.parametrize("arm", ["halves", "recovered"])
def test_halves_train_as_modules_of_their_own_do(arm):
    stages = [2.0, 4.0]
    w, codes = trained(arm, stages)
    for trial, stage in enumerate(stages):
        expected = by_halves(trial, int(stage), codes[trial], arm == "recovered")
        torch.testing.assert_close(w[:, trial], expected, rtol=1e-4, atol=1e-5)


def planted(arms, sizes, missed=(), replicates=(1, 2)):
    """Two trials a search, at these costs times its number: the first takes all to 0.04, unless missed, and half of them to
    0.1; the second misses 0.04 and takes all to 0.1.
    """
    rows = []
    for (arm, costs), size, n in itertools.product(arms.items(), sizes, replicates):
        first = np.nan if {(arm, size), (arm, size, n)} & {*missed} else 1
        about = {"arm": arm, "size": size, "replicate": n, "goal": [0.04, 0.04, 0.1, 0.1]}
        shares = np.array([first, np.nan, 0.5, 1])
        rows.append(pd.DataFrame(about | {cost: n * value * shares for cost, value in costs.items()}))
    return pd.concat(rows, ignore_index=True)


def plant(monkeypatch, name, *table, **more):
    monkeypatch.setattr(parts, name, lambda: planted(*table, **more))


def test_claims_are_judged_by_the_searches_that_met_a_goal(monkeypatch):
    """Parts send a twentieth of their steps; searches with other local steps share their splits."""
    steps = {parts.PARALLEL: (60, 60), "parts, 1 local step": (180, 9), parts.PARTS: (240, 12)}
    arms = {arm: dict(zip(("steps", "sent"), costs)) for arm, costs in steps.items()}
    plant(monkeypatch, "subnetworks", arms, (2, 4), {(parts.PARTS, 4, 1)})
    sent, bias = claims.sent(), claims.bias()
    assert [g.effect for g in sent] == pytest.approx([5, 5])
    assert [g.n for g in sent] == [2, 2]
    assert [(g.effect, g.n) for g in bias] == [(1, 2), (0.5, 2)]


def test_growth_is_judged_by_the_searches_that_met_a_goal(monkeypatch):
    adds = {parts.LARGE: 1.0, parts.GROWN: 4.0, parts.SMALL: 0.5}
    arms = {arm: {"steps": cost, "adds": cost} for arm, cost in adds.items()}
    plant(monkeypatch, "growing", arms, (16, 64), {(parts.GROWN, 64)})
    first, second = claims.grown()
    assert first.effect == pytest.approx(0.25)
    assert (first.n, second.n) == (2, 0) and "missed" in second.note


def test_halves_are_judged_by_the_searches_that_met_a_goal(monkeypatch):
    joint, apart, recovered = HALVES.values()
    arms = {joint: {"steps": 1.0}, apart: {"steps": 3.0}, recovered: {"steps": 2.0}}
    plant(monkeypatch, "halves", arms, (16, 64), {(apart, 16), (recovered, 64)}, replicates=(1, 2, 3))
    first, second = claims.halves_apart()
    assert [(g.effect, g.n) for g in (first, second)] == [(1, 3), (0, 3)]
    assert first.name == f"{recovered}, batches of 16"
    assert [g.note for g in (first, second)] == [f"without recovery: {n} of 3 searches" for n in (0, 3)]


def test_costs_are_counted_from_the_steps_of_every_stage(monkeypatch):
    """One trial, with batches of 16: 16 units for 4 steps, 32 for 4 and 64 for 2; halves that are joined after 2 x 4."""
    trial = pd.DataFrame({"batch_size": [16], "stage": [4.0], "steps@0.1": [10.0]})
    grown = trial.assign(first=16, doublings=2, scaled=False, by_norm=True)
    monkeypatch.setattr(Collection, "results", lambda self: grown.copy())
    adds = [2 * 64 * w + 3 * w * w + 3 * 10 * w for w in (16, 32, 64)]
    assert parts.growing()["adds"].item() == 16 * np.dot(adds, [4, 4, 2])
    cut = pd.concat([trial.assign(arm=arm) for arm in HALVES], ignore_index=True)
    monkeypatch.setattr(Collection, "results", lambda self: cut.copy())
    once, both_ways = 1350 * 64, 2 * 16 * 64
    assert parts.halves()["sent"].to_list() == [10 * both_ways, once, once + 2 * both_ways]
    apart = pd.DataFrame({"workers": [1, 4], "batch_size": [64, 16], "local_steps": [1, 20], "sent": 100.0, "steps@0.1": 30.0})
    monkeypatch.setattr(Collection, "results", lambda self, planned: apart.copy())
    rows = parts.subnetworks()
    assert rows["size"].to_list() == [4, 4] and rows["sent"].to_list() == [3000, 200]
    assert rows["adds"].to_list() == [30 * 16 * (2 * 64 * w + 3 * w * w + 30 * w) for w in (64, 16)]
