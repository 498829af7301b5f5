"""The adaptive search: on trainings with known laws, and on real ones that are stopped."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from chapters.hardware import hardware_tables
from chapters.own_workload import adaptive
from chapters.own_workload import findings as answers
from lib import BookError, own
from lib.analysis import hardware, scaling, surface
from lib.engine import checkpoint
from lib.measuring import sweeps
from lib.records import store
from lib.records.store import record
from lib.workloads import models

SIZES = np.repeat([4.0, 16, 64, 256, 1024], 6)
GOALS = (0.04, 0.05, 0.06, 0.08, 0.1)  # of the digits
EASIER = np.array([1.0, 0.8, 0.7, 0.5, 0.4])  # times the steps that goals take


def law(sizes, critical=100.0, floor=30.0):
    return floor * (1 + critical / sizes)


def best(sizes, bend=60.0):
    return 0.5 / (1 + bend / sizes)


def trainings(random, sizes=SIZES, scatter=0.25, off=0.6, limit=1.9, goals=1):
    """Trainings near the best rate, stopped at this multiple of the expected steps."""
    rates = best(sizes) * np.exp(random.uniform(-off, off, len(sizes)))
    alike, apart = random.standard_normal((2, goals, len(sizes)))
    noise = surface.SHARED**0.5 * alike[0] + (1 - surface.SHARED) ** 0.5 * apart
    steps = law(sizes) * np.cosh(np.log(rates / best(sizes))) * np.exp(scatter * noise)
    last = np.minimum(steps[0], limit * law(sizes))
    table = pd.DataFrame({"batch_size": sizes, "learning_rate": rates, "last_step": last})
    taken = EASIER[:goals, None] * steps
    columns = {f"{n}": np.where(k <= last, k, np.nan) for n, k in enumerate(taken)}
    return surface.fit(table.assign(status="budget", **columns), [*columns])


# --- the fit --------------------------------------------------------------------------------------


def test_without_scatter_the_laws_are_found():
    fitted, sizes = trainings(np.random.default_rng(0), scatter=0.001), np.array([8.0, 512])
    assert fitted.critical[0] == pytest.approx(100, rel=0.03)
    assert fitted.steps(sizes)[0] == pytest.approx(law(sizes), rel=0.03)
    assert fitted.rates(sizes)[0] == pytest.approx(best(sizes), rel=0.15)


@pytest.mark.parametrize("goals", [1, 4])
def test_nine_of_ten_intervals_hold_the_truth(goals):
    random = np.random.default_rng(0)
    fits = [trainings(random, goals=goals) for _ in range(100)]
    critical = np.transpose([fitted.critical for fitted in fits])
    rates = np.transpose([fitted.rates([16])[:, 0] for fitted in fits])
    for (_, low, high), truth in ((critical, 100), (rates, best(16))):
        assert np.mean((low <= truth) & (truth <= high)) >= 0.84
    assert abs(np.log(critical[0] / 100).mean()) < 0.1


def test_trainings_that_were_given_up_are_no_fast_ones():
    random = np.random.default_rng(1)
    values = [trainings(random, limit=1.05).steps([64])[0, 0] for _ in range(30)]
    # The half that met the goal by then took exp(-0.2) of the steps on average
    assert np.exp(np.mean(np.log(values))) == pytest.approx(law(64), rel=0.08)


def test_a_race_of_which_one_rate_is_left_goes_on(monkeypatch):
    Simulated(monkeypatch, rate=8e-4)
    assert len(adaptive.run(plan(), 30.0).met()) > 20


def test_where_trainings_diverge_the_best_rate_lies_below():
    table = pd.DataFrame({"batch_size": SIZES, "learning_rate": 0.5, "last_step": 60})
    table = table.assign(status="budget", steps=np.where(SIZES == 64, 60.0, np.nan))
    diverged = table.assign(status=np.where(SIZES < 64, "infeasible", "budget"))
    above, below = (surface.fit(rows, ["steps"]).rates([4])[0, 0] for rows in (table, diverged))
    assert below < 0.5 / 2 and below < above


def test_batch_sizes_of_one_kind_say_nothing_of_the_critical_one():
    _, low, high = trainings(np.random.default_rng(0), np.full(20, 64.0)).critical
    assert high > 1000 * low


# --- the plan -------------------------------------------------------------------------------------


class Simulated:
    """Trainings with known laws, in place of sweeps and records.

    least: the hardest goal that is met at a batch size.  misses: whether a training meets none.
    """

    def __init__(self, monkeypatch, scatter=0.2, rate=1.0, least=lambda size: 0.0, misses=None):
        self.random, self.searches = np.random.default_rng(1), []
        self.scatter, self.rate, self.least = scatter, rate, least
        self.misses = misses or (lambda search, rates: False)
        monkeypatch.setattr(adaptive.results, "missing", lambda study, folder: study.searches)
        monkeypatch.setattr(sweeps, "run", lambda *arguments, **options: None)
        monkeypatch.setattr(adaptive.store, "read", lambda file, search: self.train(search))
        monkeypatch.setattr(adaptive, "record", lambda search, folder: None)

    def train(self, search):
        self.searches.append(search)
        size, rates = search.batch_size, search.draw()["learning_rate"]
        off = np.log(rates / (self.rate * best(size)))
        noise = np.exp(self.scatter * self.random.standard_normal(len(rates)))
        steps = np.where(off > 1.2, np.inf, np.ceil(law(size) * np.cosh(off) * noise))
        if self.misses(search, rates):
            steps = np.full(len(rates), np.inf)
        first = steps.min() if self.least(size) <= GOALS[0] else np.inf
        last = np.where(off > 1.2, 9, min(first, search.max_steps))
        table = pd.DataFrame({"learning_rate": rates, "last_step": last, "best_error": steps})
        for goal, factor in zip(GOALS, EASIER):
            reached = (steps * factor <= last) & (goal >= self.least(size))
            table[f"steps@{goal:g}"] = np.where(reached, np.ceil(steps * factor), np.nan)
        status = np.where(off > 1.2, "infeasible", "budget")
        return {"wall_s": 0.1}, table.assign(status=status, trial=np.arange(len(rates)))


def plan(algorithm="sgd", ends=(2, 1024)):
    return adaptive.Plan("digits-mlp", algorithm, ends)


def test_it_finds_the_critical_batch_size_at_the_cost_of_forty_trainings(monkeypatch):
    near = []
    Simulated(monkeypatch)
    for _ in range(10):
        searched = adaptive.run(plan(), 30.0)
        near.append(0.8 <= searched.surface().critical[0] / 100 <= 1.25)
        assert searched.runs() <= adaptive.MOST + adaptive.WAVE
    assert sum(near) >= 8


def test_rates_beyond_the_space_are_tried_where_its_end_does_best(monkeypatch):
    Simulated(monkeypatch, rate=40.0)
    searched = adaptive.run(plan(), 30.0)
    assert searched.space["learning_rate"].high == 1.0
    rates = searched.surface().rates([64, 1024])[0]
    assert rates == pytest.approx(40 * best(np.array([64, 1024])), rel=0.35)


def test_a_batch_size_that_misses_the_goal_gives_way_to_a_nearer_one(monkeypatch):
    Simulated(monkeypatch, least=lambda size: 0.2 if size > 512 else 0)
    searched = adaptive.run(plan(), 30.0)
    assert (searched.trials.batch_size == 1024).sum() <= adaptive.TRIES + adaptive.WAVE
    assert searched.met().batch_size.max() == 512 and searched.goal == 0.04


@pytest.mark.parametrize(
    ("least", "goal", "cost"),
    [(lambda size: 0 if size == 64 else 0.05, 0.05, 3.0), (lambda size: 0.06, 0.06, 1.5)],
)
def test_a_goal_met_at_few_batch_sizes_gives_way_to_an_easier_one(monkeypatch, least, goal, cost):
    Simulated(monkeypatch, least=least)
    searched = adaptive.run(plan(), 30.0)
    assert searched.goal == goal and searched.met().batch_size.nunique() >= 5
    assert 0.7 <= searched.surface().critical[0] / 100 <= 1.4
    assert searched.runs() < cost * adaptive.MOST


def test_a_schedule_is_stretched_over_what_a_training_is_expected_to_take(monkeypatch):
    trained = Simulated(monkeypatch, scatter=0.05)
    searched = plan()
    searched.scheduled = True
    adaptive.run(searched, 30.0)
    for search in trained.searches[-10:]:
        expected = adaptive.HORIZON * law(search.batch_size)
        assert expected / 1.4 <= search.max_steps <= expected * 1.4


def withheld(searched):
    """Why the page advises no batch size after such a search."""
    sizes = searched.met().batch_size.unique()
    table = pd.DataFrame({"batch_size": sizes, "met": 1, "steps": 99.0, "time": 1.0})
    about = (searched.work, "sgd", searched.table, searched.goal, searched.surface(), searched)
    return answers.Answer(*about, table).withheld


def test_nothing_is_advised_from_few_batch_sizes_or_a_wide_interval(monkeypatch):
    Simulated(monkeypatch)
    assert "are needed" in withheld(adaptive.run(plan(ends=(64, 128)), 30.0))
    assert not withheld(adaptive.run(plan(), 30.0))
    monkeypatch.setattr(adaptive, "MOST", 10.0)
    monkeypatch.setattr(adaptive, "LEAST", 4.0)
    Simulated(monkeypatch, scatter=1.0)
    assert "anywhere from" in withheld(adaptive.run(plan(), 30.0))


def answer_of(low, value, high):
    return SimpleNamespace(surface=SimpleNamespace(critical=(value, low, high)))


def test_splits_together_are_surer_than_each_but_not_than_they_agree():
    value, low, high = answers.together([answer_of(50, 100, 200)] * 2)
    assert (value, low, high) == pytest.approx((100, 100 / 2**0.5**0.5, 100 * 2**0.5**0.5))
    apart = answer_of(90, 100, 100 / 0.9), answer_of(360, 400, 400 / 0.9)
    value, low, high = answers.together(apart)
    assert (value, low, high) == pytest.approx((200, 100, 400))


def test_lower_rates_are_advised_where_many_trainings_miss_the_goal(monkeypatch):
    def misses(search, rates):
        """Every other training at a fifth of the best rate or more."""
        high = rates[0] > 0.2 * best(search.batch_size)
        return len(rates) == 1 and search.replicate % 2 and high

    Simulated(monkeypatch)
    assert adaptive.run(plan(), 30.0).safe()[0] == 0.0
    Simulated(monkeypatch, misses=misses)
    shade, missed, n = adaptive.run(plan(), 30.0).safe()
    assert shade < 0 and missed > n / 5


@pytest.mark.parametrize(
    ("most", "trained", "lowered", "refuted"),
    [(2.0, 4, 0.0, False), (0.8, 12, -0.35, False), (0.6, 20, -0.7, False), (0, 20, -0.7, True)],
)
def test_what_is_advised_is_trained_from_other_initialisations(
    monkeypatch, most, trained, lowered, refuted
):
    """most: the share of the best rate up to which these meet the goal."""
    Simulated(
        monkeypatch,
        misses=lambda search, rates: (
            search.replicate >= adaptive.FRESH and rates[0] > most * best(search.batch_size)
        ),
    )
    searched = adaptive.run(plan(), 30.0)
    laws = searched.surface()

    def advised():
        return 64, laws.rates([64])[0, 0] * np.exp(searched.safe()[0]), 300

    adaptive.run(searched, 30.0, waves=searched.proofs(advised))
    assert len(searched.fresh) == trained and searched.fresh.batch_size.eq(64).all()
    assert (searched.lowered, searched.refuted) == (lowered, refuted)
    assert searched.safe()[0] == lowered
    # The laws are not fitted to what they say of rates
    assert searched.surface().critical == laws.critical
    assert ("miss the goal" in withheld(searched)) == refuted
    nothing = adaptive.run(plan(), 30.0)
    assert adaptive.run(nothing, 30.0, waves=nothing.proofs(lambda: None)).fresh.empty


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


@pytest.fixture(params=[("Own", "momentum"), ("Training", "torch.optim:AdamW")], ids="-".join)
def short(request, tmp_path, monkeypatch):
    """Makes a short plan for one kind of reader's workload."""
    kind, method = request.param
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(adaptive, "MOST", 24.0)
    monkeypatch.setattr(adaptive, "LEAST", 12.0)
    (tmp_path / "mine.py").write_text(OWN.replace("{kind}", kind), encoding="utf-8")
    return lambda: adaptive.Plan("mine.py:task", method, (4, 256))


def test_stopped_or_out_of_minutes_it_goes_on_to_the_same_answer(short, tmp_path, monkeypatch):
    """Whether it is killed or runs out of minutes in mid-training."""
    folders = tmp_path / "undisturbed", tmp_path / "killed", tmp_path / "short"
    undisturbed, run, calls = adaptive.run(short(), 5.0, folders[0]), sweeps.run, []
    searches = undisturbed.searches

    def killed(*arguments, **options):
        calls.append(0)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return run(*arguments, **options)

    monkeypatch.setattr(sweeps, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        adaptive.run(short(), 5.0, folders[1])
    read = adaptive.run(short(), 5.0, folders[1], train=False)
    assert read.stopped and read.searches == searches[: len(read.searches)]
    assert 0 < len(read.searches) < len(searches)

    # A clock that advances by a second each time it is read
    clock = iter(range(10**6))
    monkeypatch.setattr(checkpoint.time, "time", lambda: float(next(clock)))
    stopped = [adaptive.run(short(), 0.5, folders[2]) for _ in range(3)]
    assert all(plan.stopped for plan in stopped) and [*folders[2].rglob("*.part")]
    trained = [len(plan.searches) for plan in stopped]
    assert trained == sorted(trained)

    for folder in folders[1:]:
        again = adaptive.run(short(), 1e4, folder)
        assert again.searches == searches and not again.stopped
        assert again.surface().critical == undisturbed.surface().critical
        for search in searches:
            _, first = store.read(record(search, folders[0]), search)
            _, second = store.read(record(search, folder), search)
            assert first.equals(second)


def test_minutes_that_end_within_the_first_race_are_said(short):
    mode = {"algorithm": "momentum", "search": "adaptive", "budget": "full", "minutes": 1}
    chosen = SimpleNamespace(workload=short().work.name, **mode)
    with pytest.raises(BookError, match="minutes: 1 ran out before any trial met a goal; run the same command"):
        answers.answered(chosen, [4, 256], 0.0, since=0.0)


def test_its_records_alone_give_steps_time_and_price(short, tmp_path):
    plan = adaptive.run(short(), 5.0, tmp_path)
    trials = hardware.adaptive("mine.py:task", tmp_path)
    assert len(trials) == len(plan.trials)
    table = answers.points(trials, plan.surface(), plan)
    searched = scaling.across_replicates(scaling.steps_to_result(trials))
    met = table[table.met > 0]
    assert searched.batch_size.tolist() == met.batch_size.tolist()
    assert trials.steps.equals(trials[f"steps@{trials.goal.iloc[0]:g}"])  # at the best rate
    parameters = models.parameter_count(plan.work.network())
    assert parameters == 4 * 16 + 16 + 16 * 2 + 2
    machine = hardware.Hardware(devices=4, bandwidth=1e9, price=2.0)
    rows, curves = searched.assign(parameters=parameters), scaling.curves(trials, least=1)
    case = hardware_tables.Case(machine, rows, curves, None)
    timed = hardware_tables.of_searches(trials, case.densest)
    case = hardware_tables.Case(machine, case.points, curves, timed)
    for cost in ("seconds", "price"):
        fastest = case.best(case.densest, cost)
        assert fastest.batch_size in set(met.batch_size) and fastest.value > 0
    assert len(hardware_tables.answers(case)) == 1


@pytest.mark.parametrize(("lowest", "name"), [(0.5, "w:0.6,0.7"), (0.85, "w:0.875"), (-0.2, "w:-0.16,-0.12,-0.04")])
def test_goals_that_are_found_out_ask_for_something(lowest, name):
    """With a share of 0.2 above the best, where a trivial answer has 0.9."""
    work = SimpleNamespace(name="w", facts=SimpleNamespace(chance=0.9), asks=SimpleNamespace(convert=float))
    plan = SimpleNamespace(work=work, within=own.Within(0.2, 50), trials=pd.DataFrame({"best_error": [lowest, 0.95]}))
    assert adaptive.Plan.explored(plan) == name
    for none in (0.92, np.nan):
        plan.trials = pd.DataFrame({"best_error": [none]})
        with pytest.raises(BookError, match="goals: 'within 0.2 of a best of"):
            adaptive.Plan.explored(plan)


def test_splits_of_the_same_data_are_refused_before_anything_is_trained():
    chosen = SimpleNamespace(workload="digits-mlp", also=("digits-mlp",), batch_sizes=None)
    with pytest.raises(BookError, match="also: 'digits-mlp' is not allowed"):
        answers.fitting(chosen, (4, 16))


@pytest.mark.skipif(not hasattr(own, "Within"), reason="goals are numbers")
def test_goals_are_found_out_by_a_first_race(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    goals = '"within 50 % of the best after 300 steps"'
    text = OWN.replace("{kind}", "Training").replace("(0.2,)", goals)
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    first = adaptive.run(adaptive.Plan("mine.py:task", "sgd", (4, 256)), 5.0, tmp_path)
    lowest = first.trials.best_error.min()
    assert len(first.trials) == adaptive.RACED and first.trials.last_step.max() == 300
    goals = adaptive.Plan(first.explored(), "sgd", (4, 256)).work.goals
    assert goals == pytest.approx([lowest * times for times in (1.5, 2, 3)], rel=1e-3)
