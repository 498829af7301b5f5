"""Masks that move: rules by definition, the limit of none that moves, and searches that go on from where they stopped."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from chapters.disputed import masks_experiments as experiments
from chapters.disputed import moving
from lib.claims import AGAINST, FOR
from lib.engine import batched, lockstep
from lib.engine.checkpoint import Checkpoint
from lib.measuring import one_cell
from lib.methods import method
from lib.methods.method import Layer
from lib.workloads import datasets, models
from tests.conftest import read_to_the_end

LAYERS = (Layer("a", slice(0, 20), (4, 5), "linear"), Layer("b", slice(20, 50), (5, 6), "last"))


def case(trials=3, kept=0.4, seed=0):
    random = torch.Generator().manual_seed(seed)
    mask = (torch.rand(trials, 50, generator=random) < kept).float()
    w, g = torch.randn(2, trials, 50, generator=random)
    return mask, w * mask, g, {"horizon": torch.full((trials, 1), 100.0)}


def test_rewiring_is_that_of_its_definition():
    """Layer by layer and trial by trial, with sorted lists."""
    mask, w, g, drawn = case()
    new = moving.rewired(5, 0.9)(mask, w, g, drawn, 30, LAYERS)
    share = 0.9 / 2 * (1 + math.cos(math.pi * 30 / 75))
    for t in range(3):
        for layer in LAYERS:
            places = range(layer.where.start, layer.where.stop)
            kept = [i for i in places if mask[t, i]]
            number = math.floor(share * len(kept))
            out = sorted(kept, key=lambda i: abs(w[t, i]))[:number]
            free = [i for i in places if not mask[t, i]]
            into = sorted(free, key=lambda i: -abs(g[t, i]))[:number]
            assert number and {i for i in places if new[t, i]} == {*kept, *into} - {*out}
    assert torch.equal(new.sum(1), mask.sum(1))
    for k in (31, 75, 200):
        assert torch.equal(moving.rewired(5, 0.3)(mask, w, g, drawn, k, LAYERS), mask)


def test_thinning_keeps_the_largest_and_is_over_at_three_quarters():
    mask, w, g, drawn = case(kept=1.1)
    rule, before = moving.thinned(1, 0.8, 0.2), mask
    validated = moving.moving(method("sgd"), rule, 0.2).evaluated
    for k in range(1, 101):
        new = rule(before, w, g, drawn, k, LAYERS)
        left = round(50 * moving.density(torch.tensor(k / 100), 0.8, 0.2).item())
        assert (new.sum(1) == left).all() and (new <= before).all()
        kept, gone = w.abs().where(new > 0, math.inf), w.abs().where(new == 0, 0)
        assert (kept.amin(1) >= gone.amax(1)).all()
        assert bool(validated(w, {moving.MASK: new}).any()) == (left == 10)
        before = new
    assert left == 10 and moving.density(torch.tensor(0.25), 0.8, 0.2) == pytest.approx(0.8)


def started(search, trials=6):
    cell = replace(search, trials=trials).cell
    first = one_cell.start(cell)
    first.drawn["horizon"] = torch.linspace(15, 60, trials)[:, None]
    return cell, first


def trained(search, **more):
    """The outcome, and the weights and masks before and after each step."""
    cell, first = started(search)
    data, path = datasets.load(cell.work.dataset, cell.split), []
    how = search.method()

    def step(w, g, buffers, drawn, k, layers):
        how.step(w, g, buffers, drawn, k, layers)
        path.append(w.clone())

    executor = batched.BatchedExecutor(models.build(cell.work.model))
    options = {"goals": (0.0,), "max_steps": 40, "batch_size": 32, "drop_dead": False} | more
    options["method"] = replace(how, step=step)
    return lockstep.train(executor, first, data.train, data.validation, **options), path


@pytest.mark.parametrize("base", ["sgd", "momentum", "adam"])
def test_if_nothing_is_dropped_it_is_the_mask_that_stays_to_the_bit(base, monkeypatch):
    """Also of methods that remember gradients; removed weights stay zero."""
    plain = experiments.Search("static", 64, replicate=7)
    drawn = {"momentum": 0.9, "beta1": 0.9, "beta2": 0.99}
    cell, first = started(plain)
    first.drawn |= {name: torch.full((6, 1), value) for name, value in drawn.items()}
    monkeypatch.setitem(globals(), "started", lambda search: (cell, first))
    still = moving.rewired(1, 0.0)
    monkeypatch.setattr(experiments.Search, "method", lambda _: moving.moving(method(base), still))
    _, path = trained(experiments.Search("rewired", 64, 1, 0.0, replicate=7))
    monkeypatch.setattr(experiments.Search, "method", lambda self: method(base))
    _, still = trained(plain)
    assert len(path) == len(still) == 40 and all(map(torch.equal, path, still))
    assert not path[-1][first.mask == 0].any()


def test_the_average_density_is_that_of_the_mask_that_stays():
    ends = experiments.FIRST, experiments.LAST
    assert moving.average(1e5, 1e5, 1, *ends) == pytest.approx(experiments.DENSITY, rel=1e-4)
    assert moving.average(20, 1e5, 1, *ends) == pytest.approx(ends[0])


SEARCHES = experiments.Search("rewired", 64, 3, 0.3), experiments.Search("thinned", 64, 2)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_goes_on_and_early_rejection_changes_nothing(search, tmp_path, interrupt):
    goals = {"goals": (0.1, 0.5), "hits": 6, "max_steps": 90}
    whole, path = trained(search, **goals)
    with read_to_the_end():
        asked, _ = trained(search, **goals)
    assert np.isfinite(whole.first[:, 1]).any()
    np.testing.assert_array_equal(whole.first, asked.first)
    interrupt(20)
    with pytest.raises(KeyboardInterrupt):
        trained(search, checkpoint=Checkpoint(tmp_path / "state"), **goals)
    again, rest = trained(search, checkpoint=Checkpoint(tmp_path / "state"), **goals)
    np.testing.assert_array_equal(whole.first, again.first)
    assert 0 < len(rest) < len(path) and torch.equal(rest[-1], path[-1])


def test_no_trial_is_judged_before_its_mask_is_what_it_is_to_be():
    search = experiments.Search("thinned", 64, 4)
    out, _ = trained(search, goals=(0.0, 0.6), max_steps=60)
    _, first = started(search)
    horizons = first.drawn["horizon"][:, 0].numpy()
    met = out.first[:, 1]
    assert np.isfinite(met).sum() > 2 and (met >= 0.7 * horizons)[np.isfinite(met)].all()


def planted(times):
    """Searches of which masks that move take so many times the steps of the one that stays."""
    rows = []
    for one in experiments.planned():
        steps = (2000 / one.batch_size + 50) * {1: 0.95, 2: 1.0, 3: 1.05}[one.replicate]
        about = {name: getattr(one, name) for name in ("mask", "every", "drop", "batch_size", "replicate", "trials")}
        moved = times if one.mask != "static" else 1
        rows += [{**about, "goal": goal, "steps": moved * steps, "density": 0.1} for goal in experiments.GOALS]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("times", "verdicts"), [(0.99, (FOR, AGAINST)), (0.5, (AGAINST, FOR))])
def test_planted_searches_are_judged_as_they_are(times, verdicts, judge):
    for told, verdict, rows in zip(judge(planted(times), "V1", "V2"), verdicts, (1, 2)):
        assert [group.verdict for group in told.groups] == [verdict] * rows
