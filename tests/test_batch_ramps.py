"""Batch sizes and rates that change: beside plain loops, and where the answer is known."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from chapters.disputed import ramps_experiments as experiments
from chapters.disputed.ramps_experiments import DECAY, QUARTER, SCHEDULES, SEESAW, WHOLE, Search
from chapters.disputed.schedules import Ramp
from lib.claims import AGAINST, FOR, UNDECIDED
from lib.engine import lockstep
from lib.measuring import one_cell
from lib.studies.cells import Cell
from lib.workloads import datasets, models
from tests.conftest import read_to_the_end, same

SEESAW_RAMP = Ramp((300, 1000, 1700), 2, 0.5**0.5)
RULES = {"max_steps": 80, "space": "learning_rate=0.01..3", "checks": "every-4"}
CELL = Cell("digits-mlp", 16, "sgd", trials=8, hits=2, **RULES)
TORCHS = {
    "sgd": (torch.optim.SGD, "learning_rate=0.3"),
    "adam": (torch.optim.Adam, "learning_rate=0.003,beta1=0.9,beta2=0.999"),
}


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_a_of_one_is_the_constant_schedule_to_the_bit(name):
    cell = Cell("digits-mlp", 16, name, trials=8, stop="budget", max_steps=90)
    constant = experiments.changed(cell, Ramp((100, 500, 900), 1, 1.0))
    plain = one_cell.train_cell(cell)
    same(plain, one_cell.train_cell(cell, **constant))
    assert plain.best_error.min() < 0.3, "nothing was learned, and nothing compared"


def test_stages_are_those_of_a_loop_over_steps():
    ramps = SEESAW_RAMP, Ramp((5, 6, 7), 4), Ramp((), 8), Ramp((64,), 3, 2.0)
    for ramp, first in itertools.product(ramps, (1, 7, 16)):
        seen, sizes, starts = 0, [], []
        for step in range(1, 120):
            stage = sum(seen >= cut for cut in ramp.cuts)
            starts += [step] * (stage - len(starts))
            sizes.append(first * ramp.batch**stage)
            seen += sizes[-1]
        assert list(itertools.islice(ramp.sizes(first), len(sizes))) == sizes
        assert ramp.starts(first)[: len(starts)] == starts
        assert ramp.examples(50, first) == sum(sizes[:50])
        assert ramp.steps(sum(sizes[:50]), first) == ramp.steps(sum(sizes[:51]) - 1, first) == 50


@pytest.mark.parametrize("name", TORCHS)
def test_the_engine_takes_the_steps_of_a_plain_loop(name):
    """The errors of an optimiser of torch whose rate is set anew at every step."""
    kind, space = TORCHS[name]
    rules = {"trials": 1, "max_steps": 60, "stop": "budget", "checks": "every-4"}
    cell = Cell("digits-mlp", 16, name, space=space, **rules)
    net, data = models.fresh("mlp-64x2", one_cell.seeds(cell)[0]), datasets.load("digits")
    rate = float(cell.draw()["learning_rate"][0])
    optimiser, order = kind(net.parameters(), lr=rate), lockstep.batches(len(data.train), 1, 0)
    errors, seen = [], 0
    for step in range(1, 61):
        stage = sum(seen >= cut for cut in SEESAW_RAMP.cuts)
        pick = torch.cat(list(itertools.islice(order, 16 * 2**stage)))
        seen += len(pick)
        optimiser.param_groups[0]["lr"] = rate * 0.5 ** (stage / 2)
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(data.train.x[pick]), data.train.y[pick]).backward()
        optimiser.step()
        if step % 4 == 0:
            wrong = net(data.validation.x).argmax(1) != data.validation.y
            errors.append(wrong.float().mean().item())
    out = one_cell.train_cell(cell, **experiments.changed(cell, SEESAW_RAMP))
    assert out.best_error[0] == pytest.approx(min(errors), abs=0.006) and min(errors) < 0.2
    assert stage == 3, "not every cut was passed"


def test_early_rejection_and_going_on_from_a_state_change_nothing(tmp_path, interrupt):
    def trained(**more):
        return one_cell.train_cell(CELL, **experiments.changed(CELL, SEESAW_RAMP), **more)

    whole = trained()
    with read_to_the_end():
        slow = trained(drop_dead=False)
    np.testing.assert_array_equal(slow.first, whole.first)
    steps = interrupt(20, 45)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            trained(unfinished=tmp_path / "cell.part")
    same(whole, trained(unfinished=tmp_path / "cell.part"))
    assert len(steps) == whole.steps + 2, "it did not go on where it was"


def test_a_search_tells_steps_and_examples_and_is_the_same_again():
    search = Search("digits-mlp", SEESAW, WHOLE, 700, trials=4)
    found = search.measure()
    assert found.equals(search.measure()) and len(found) == 4
    met = found.dropna(subset="steps@0.1")
    assert len(met) and (met["steps@0.1"] <= search.cell.max_steps).all()
    seen = [search.ramp.examples(int(n), 72) for n in met["steps@0.1"]]
    assert met["examples@0.1"].tolist() == seen
    digests = {experiments.RAMPS.record(Search("digits-mlp", how, WHOLE)) for how in SCHEDULES}
    assert len(digests) == len(SCHEDULES)


def planted(steps, examples):
    """Trials in which Seesaw takes so many times what halving the rate does."""
    rows, arms = [], itertools.product(experiments.NETWORKS, (QUARTER, WHOLE), (DECAY, SEESAW))
    for work, start, schedule in arms:
        about = {"workload": work, "start": start, "schedule": schedule, "learning_rate": 0.01}
        seesaw = schedule == SEESAW
        for replicate, times in enumerate((0.95, 1.0, 1.05, 1.02), start=1):
            row = {**about, "replicate": replicate}
            for goal in experiments.NETWORKS[work].goals:
                row[f"steps@{goal:g}"] = 100 * times * (steps if seesaw else 1)
                row[f"examples@{goal:g}"] = 900 * times * (examples if seesaw else 1)
            rows.append(row)
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("steps", "examples", "verdict"), [(0.6, 1.1, FOR), (0.9, 1.4, AGAINST)])
def test_planted_costs_are_judged_as_they_are(steps, examples, verdict, judge):
    either, whole = judge(planted(steps, examples), "H1", "H2")
    assert [group.verdict for group in either.groups] == [verdict] * 6
    assert [group.verdict for group in whole.groups] == [verdict] * 3


@pytest.mark.parametrize(("first", "verdict", "n"), [(4, FOR, 3), (2, UNDECIDED, 4)])
def test_replicates_in_which_both_miss_tell_nothing(first, verdict, n, judge):
    trials = planted(0.6, 1.1)
    trials.loc[trials.replicate >= first, trials.columns.str.contains("@")] = np.nan
    for claim in judge(trials, "H1", "H2"):
        assert {(group.verdict, group.n) for group in claim.groups} == {(verdict, n)}
