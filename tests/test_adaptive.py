"""The adaptive search: on trainings whose law is known, and on a real one that is stopped."""

import math

import numpy as np
import pandas as pd
import pytest

from chapters.hardware import hardware_tables
from chapters.own_workload import adaptive
from chapters.own_workload import findings as answers
from lib.analysis import hardware, scaling
from lib.measuring import sweeps
from lib.records import store
from lib.records.store import record
from lib.workloads import catalogue

SIZES = np.array([16.0, 64, 256, 1024])


def law(size, critical=100.0, floor=30.0):
    return floor * (1 + critical / size)


# --- the estimate ---------------------------------------------------------------------------------


@pytest.mark.parametrize("critical", [20.0, 100.0, 700.0])
def test_a_curve_without_scatter_gives_its_critical_batch_size(critical):
    found = adaptive.estimate({int(b): [law(b, critical)] * 2 for b in SIZES})
    assert found.critical == pytest.approx(critical, rel=0.01) and found.width < 1.02
    assert found.steps(SIZES) == pytest.approx(law(SIZES, critical), rel=0.01)


def test_nine_of_ten_intervals_hold_the_truth():
    random = np.random.default_rng(0)
    held = []
    for _ in range(200):
        logs = {int(b): np.log(law(b)) + 0.2 * random.standard_normal(3) for b in SIZES}
        found = adaptive.estimate({b: list(np.exp(own)) for b, own in logs.items()})
        held.append(found.low <= 100 <= found.high)
    assert 0.83 <= np.mean(held) <= 0.96


def test_a_curve_of_another_form_widens_the_interval():
    straight = adaptive.estimate({int(b): [law(b)] * 3 for b in SIZES})
    other = adaptive.estimate({int(b): [3000 * b**-0.5] * 3 for b in SIZES})
    assert other.width > 1.5 * straight.width


def test_a_curve_that_does_not_bend_has_an_open_interval():
    found = adaptive.estimate({int(b): [1e5 / b] for b in SIZES})
    assert found.critical > SIZES.max() and found.high == math.inf


# --- the plan -------------------------------------------------------------------------------------


class Simulated:
    """Trainings of K* = law(B) at the best rate, in the place of sweeps and records."""

    def __init__(self, monkeypatch, scatter=0.15, seconds=0.1):
        self.random, self.cells = np.random.default_rng(1), []
        self.scatter, self.seconds = scatter, seconds
        monkeypatch.setattr(adaptive.results, "missing", lambda study, folder: study.searches)
        monkeypatch.setattr(sweeps, "run", lambda *arguments, **options: None)
        monkeypatch.setattr(adaptive.store, "read", lambda file, cell: self.train(cell))
        monkeypatch.setattr(adaptive, "record", lambda cell, folder: None)

    def train(self, cell):
        rates = cell.draw()["learning_rate"]
        off = np.log(rates / (0.5 / (1 + 100 / cell.batch_size)))
        scatter = self.scatter * self.random.standard_normal(len(rates))
        steps = law(cell.batch_size) * np.exp(0.3 * off**2 + scatter)
        steps = np.ceil(np.where(off > 1.5, np.inf, steps))
        limit = min(steps.min(), cell.max_steps or cell.work.max_steps)
        self.cells.append(cell)
        met = np.where(steps <= limit, steps, np.nan)
        head = {"trial_steps": limit * len(rates), "wall_s": self.seconds}
        return head, pd.DataFrame({"learning_rate": rates, "steps@0.04": met})


def plan():
    return adaptive.Plan("digits-mlp", "sgd", (2, 1024))


def test_it_finds_the_critical_batch_size_at_the_cost_of_forty_trainings(monkeypatch):
    near = []
    trainings = Simulated(monkeypatch)
    for _ in range(10):
        found = adaptive.run(plan(), 30.0)
        near.append(0.8 <= adaptive.estimate(found.searches()).critical / 100 <= 1.25)
        assert found.runs() <= adaptive.MOST + 1
    assert sum(near) >= 8
    assert all(cell.trials == 1 for cell in trainings.cells if not cell.space.count(".."))


def test_it_ends_when_the_minutes_are_over(monkeypatch):
    trainings = Simulated(monkeypatch, scatter=0.4, seconds=30.0)
    found = adaptive.run(plan(), 5.0)
    assert 5 * 60 <= found.trials.seconds.sum() <= 8 * 60 and len(trainings.cells) < 20


def test_no_trial_goes_on_past_the_fastest_of_its_search(monkeypatch):
    Simulated(monkeypatch)
    found = adaptive.run(plan(), 30.0)
    for (size, _), own in found.trials.groupby(["batch_size", "search"]):
        steps = own.steps.dropna().to_list()
        assert steps == sorted(steps, reverse=True) and size in found.searches()
        first, *others = own.itertuples()
        assert math.isnan(first.steps) or all(trial.taken <= steps[0] for trial in others)


def test_momentum_counts_only_once_its_velocity_has_grown():
    drawn = {"learning_rate": 0.1, "momentum": 0.9}
    assert adaptive.reach(drawn, 1e6) == pytest.approx(10, rel=1e-3)
    assert adaptive.reach(drawn, 1) == pytest.approx(1)
    grown = np.mean([sum(0.9**j for j in range(k)) for k in range(1, 21)])
    assert adaptive.reach(drawn, 20) == pytest.approx(grown)
    assert adaptive.reach({"learning_rate": 0.1}, 5) == 1


# --- trained --------------------------------------------------------------------------------------

OWN = """
import torch
from torch import nn
from lib.own import {kind}

def task():
    x = torch.randn(400, 4, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] * x[:, 1] > 0).long()
    return {kind}(model=lambda: nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)),
                  train=(x[:300], y[:300]), validation=(x[300:], y[300:]), goals=(0.2,), max_steps=600)
"""


KINDS = [("Own", "momentum"), ("Training", "torch.optim:AdamW")]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Writes a reader's workload of a kind; returns a function that makes a short plan for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(adaptive, "MOST", 24.0)

    def write(kind, method):
        (tmp_path / "mine.py").write_text(OWN.replace("{kind}", kind), encoding="utf-8")
        return lambda: adaptive.Plan("mine.py:task", method, (4, 256))

    return write


@pytest.mark.parametrize(("kind", "method"), KINDS)
def test_stopped_it_goes_on_to_the_same_answer(mine, tmp_path, monkeypatch, kind, method):
    plan, whole, part = mine(kind, method), tmp_path / "whole", tmp_path / "part"
    undisturbed, run, calls = adaptive.run(plan(), 5.0, whole), sweeps.run, []

    def killed(*arguments, **options):
        calls.append(0)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return run(*arguments, **options)

    monkeypatch.setattr(sweeps, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        adaptive.run(plan(), 5.0, part)
    read, cells = adaptive.run(plan(), 5.0, part, train=False), undisturbed.cells
    assert 0 < len(read.cells) < len(cells) and read.cells == cells[: len(read.cells)]
    again = adaptive.run(plan(), 5.0, part)
    assert again.searches() == undisturbed.searches() and again.cells == cells
    found = answers.searches(hardware.adaptive(plan().work.name, part, again.cells))
    assert found == {b: pytest.approx(steps) for b, steps in again.searches().items()}
    for cell in cells:
        one, other = (store.read(record(cell, folder), cell)[1] for folder in (whole, part))
        assert one.equals(other)


@pytest.mark.parametrize(("kind", "method"), KINDS)
def test_its_records_alone_give_steps_time_and_price(mine, tmp_path, kind, method):
    plan = adaptive.run(mine(kind, method)(), 5.0, tmp_path)
    work = catalogue.workload("mine.py:task")
    trials = hardware.adaptive("mine.py:task", tmp_path)
    shown = hardware.adaptive("mine.py:task", tmp_path, plan.cells)
    assert len(trials) == len(plan.trials) and answers.searches(trials) == answers.searches(shown)
    table = answers.points(shown, work, method)
    found = scaling.across_replicates(scaling.steps_to_result(trials))
    for name in ("batch_size", "steps", "low", "high", "replicates"):
        assert found[name].to_numpy(float) == pytest.approx(table[name].to_numpy(float)), name
    curves = scaling.curves(trials, least=1)
    parameters = hardware_tables.parameters(work.name)
    assert parameters == 4 * 16 + 16 + 16 * 2 + 2
    machine = hardware.Hardware(devices=4, bandwidth=1e9, price=2.0)
    case = hardware_tables.Case(machine, found.assign(parameters=parameters), curves, None)
    timed = hardware_tables.of_searches(trials, case.densest)
    case = hardware_tables.Case(machine, case.points, curves, timed)
    for what in ("seconds", "price"):
        best = case.best(case.densest, what)
        assert best.batch_size in set(table.batch_size) and best.value > 0
    estimate = adaptive.estimate(answers.searches(trials))
    summary, _ = scaling.summaries(trials)
    assert summary.critical.item() == pytest.approx(estimate.critical, rel=0.01)
    assert len(hardware_tables.answers(case)) == 1
