"""Races: who is abandoned, that nothing else changes, and what calibration on record says of them."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch

from chapters.steps_to_result import race
from lib.analysis import scaling
from lib.engine import check_steps, lockstep, training_state, validation, vocabulary
from lib.measuring import one_cell
from lib.methods.method import Method
from lib.records import on_record, places, store
from lib.records.on_record import grid
from lib.studies import plans, races
from lib.studies.cells import Cell
from lib.workloads import datasets, tasks

torch.set_num_threads(1)
EXACT = Cell("digits-mlp", 64, trials=16, hits=3, max_steps=300)
ON_GOALS = {**races.BY_GOALS, "rungs": "goals"}
RACED = dataclasses.replace(EXACT, race=1.5)
WATCHED = dataclasses.replace(EXACT, race=races.WATCHED, rungs="losses", hits=EXACT.trials)  # exact, and losses are noted


def same(a, b):
    for field, value in vars(a).items():
        if field != "wall_s":
            np.testing.assert_array_equal(getattr(b, field), value, err_msg=field)


def slow_replay(first, last, a, end, checks):
    """Check by check and trial by trial: the step after which each trial is abandoned.  first: [trials][rungs]; a: [rungs]."""
    gone, step = [None] * len(first), 0
    while (step := check_steps.next_check(step, checks)) <= end:
        for goal in range(len(first[0])):
            met = [f[goal] for f, g in zip(first, gone) if f[goal] <= step and (g is None or f[goal] <= g)]
            for trial, steps in enumerate(first):
                late = met and step >= a[goal] * min(met) and not steps[goal] <= step
                if late and gone[trial] is None and last[trial] > step:
                    gone[trial] = step
    return gone


@pytest.mark.parametrize(
    "cell",
    [EXACT, dataclasses.replace(EXACT, workload="digits-cnn", algorithm="nesterov", sparsity=0.7, max_steps=150)],
    ids=["dense", "sparse"],
)
@pytest.mark.parametrize("a", [1, 1.5])
@pytest.mark.parametrize("rungs", vocabulary.RUNGS)
def test_those_are_abandoned_that_an_independent_replay_names(cell, a, rungs):
    every = one_cell.train_cell(dataclasses.replace(cell, hits=cell.trials, race=races.WATCHED, rungs=rungs))
    raced = one_cell.train_cell(dataclasses.replace(cell, race=a, rungs=rungs))
    came = np.concatenate([every.fell, every.first], axis=1).tolist()
    patience = [a * (1 + loss) for loss in vocabulary.LOSSES if rungs == "losses"] + [a] * len(cell.work.goals)
    named = slow_replay(came, every.last_step.tolist(), patience, raced.steps, cell.checks)
    # The last hit ends a cell before anybody is abandoned.
    ended = (raced.status == "complete").sum() >= cell.hits
    named = [None if ended and g == raced.steps else g for g in named]
    assert any(named), "nobody was abandoned, and nothing was tested"
    left = [step if status == "abandoned" else None for status, step in zip(raced.status, raced.last_step.tolist())]
    assert left == named
    known = np.where(every.first <= raced.last_step[:, None], every.first, np.nan)
    np.testing.assert_array_equal(raced.first, known)


def test_a_race_that_nobody_can_lose_is_the_exact_lock_step_to_the_bit():
    same(one_cell.train_cell(EXACT), one_cell.train_cell(dataclasses.replace(EXACT, race=1e9)))


def test_a_race_on_losses_costs_far_less_than_one_on_goals():
    goals, losses = (one_cell.train_cell(dataclasses.replace(RACED, rungs=rungs)) for rungs in vocabulary.RUNGS)
    assert losses.trial_steps < 0.8 * goals.trial_steps


@pytest.mark.parametrize("batch_size", [4, 64])
def test_a_loss_is_noted_at_the_first_check_whose_mean_is_so_low_and_not_over_few_examples(batch_size, monkeypatch):
    """Against means over the last examples that the test takes itself."""
    seen, note = {}, lockstep._note_losses

    def watch(now, levels):
        seen[now.outcome.steps] = now.recent.tolist()
        note(now, levels)

    monkeypatch.setattr(lockstep, "_note_losses", watch)
    cell = dataclasses.replace(WATCHED, batch_size=batch_size, trials=4, hits=4, max_steps=200)
    found = one_cell.train_cell(cell)
    assert min(seen) == math.ceil(lockstep.RECENT / batch_size)
    for trial, row in enumerate(found.fell):
        for level, fell in zip(vocabulary.LOSSES, row):
            low = [step for step, losses in seen.items() if len(losses) == 4 and losses[trial] <= level]
            assert (fell == low[0]) if low else not fell <= max(step for step, losses in seen.items() if len(losses) == 4)


def test_an_exact_search_that_notes_losses_is_the_same_search_and_only_its_table_has_them():
    exact = dataclasses.replace(EXACT, hits=EXACT.trials)
    plain, noted = (one_cell.table(cell, one_cell.train_cell(cell)) for cell in (exact, WATCHED))
    more = [c for c in noted if c not in plain]
    assert more == [f"loss@{loss:.2g}" for loss in vocabulary.LOSSES]
    pd.testing.assert_frame_equal(noted[list(plain)], plain)
    assert noted["loss@1"].notna().any() and (noted["loss@1"].fillna(np.inf) <= noted["loss@0.5"].fillna(np.inf)).all()


def test_a_race_costs_less_and_its_table_says_who_left_and_when():
    exact, raced = (one_cell.train_cell(cell) for cell in (EXACT, RACED))
    table = one_cell.table(RACED, raced)
    assert raced.trial_steps < 0.9 * exact.trial_steps
    gone = table[table.status == "abandoned"]
    assert len(gone) and gone["steps@0.04"].isna().all() and gone.cause.eq("").all()
    checks = {check_steps.last_check(step) for step in gone.last_step}
    assert set(gone.last_step) == checks, "a trial left between checks"


def answers(cell: Cell, monkeypatch) -> tuple[training_state.Outcome, int]:
    """The outcome of a cell, and how many trials it asked at checks in all."""
    asked, costs = [], validation.Validation.costs
    with monkeypatch.context() as patch:
        patch.setattr(
            validation.Validation, "costs", lambda self, w, *rest: asked.append(len(w)) or costs(self, w, *rest)
        )
        return one_cell.train_cell(cell), sum(asked)


def test_a_race_asks_fewer_trials_and_finds_the_same(monkeypatch):
    """Nobody can fall behind by a factor of 1e9, so that nothing but who is asked differs."""
    exact, every = answers(EXACT, monkeypatch)
    raced, some = answers(dataclasses.replace(EXACT, race=1e9), monkeypatch)
    assert some < 0.7 * every
    same(exact, raced)


def test_a_trial_is_asked_again_as_soon_as_its_training_loss_allows_the_next_goal():
    now = training_state.State.first(
        training_state.Outcome.blank(3, 2, ()), one_cell.start(dataclasses.replace(EXACT, trials=3)), {}, 1, None
    )
    now.outcome.first[1] = [np.nan, 5]  # it has met the looser goal, and the harder allows a smaller loss
    now.recent[:] = torch.tensor([1.59, 1.59, 1.61])  # nats
    assert lockstep._hopeful(now, tasks.TASKS["classification"], (0.05, 0.1)).tolist() == [True, False, False]


def test_the_training_loss_is_a_mean_over_the_last_examples():
    """Of a method that never moves, the loss on one and the same batch: the mean is that loss, whatever the weights of the past."""
    still = Method("still", "still", {}, begin=lambda w, layers: {}, step=lambda *_: None)
    trials, data, executor = one_cell.start(EXACT), datasets.load("digits").train, one_cell.executor(EXACT)
    now = training_state.State.first(training_state.Outcome.blank(16, 1, ()), trials, {}, 1, None)
    batch = executor.inputs(data.x[:32]), data.y[:32]
    for _ in range(5):
        losses, _ = lockstep._step(now, still, executor, (), batch)
        torch.testing.assert_close(now.recent, losses.double())
    other = executor.inputs(data.x[32:64]), data.y[32:64]
    after, _ = lockstep._step(now, still, executor, (), other)
    torch.testing.assert_close(now.recent, 0.75 * losses.double() + 0.25 * after.double())  # 32 of 128 examples


def test_an_interrupted_race_ends_as_if_it_had_not_been(tmp_path, monkeypatch):
    whole, update, steps = one_cell.train_cell(RACED), lockstep.update, []
    first_gone = whole.last_step[whole.status == "abandoned"].min()

    def killed(*arguments):
        steps.append(0)
        if len(steps) == first_gone + 2:
            raise KeyboardInterrupt
        return update(*arguments)

    monkeypatch.setattr(lockstep, "update", killed)
    monkeypatch.setattr(lockstep, "SAVE_EVERY", 0.0)
    with pytest.raises(KeyboardInterrupt):
        one_cell.train_cell(RACED, unfinished=tmp_path / "cell.part")
    again = one_cell.train_cell(RACED, unfinished=tmp_path / "cell.part")
    assert len(steps) == whole.steps + 1, "it did not go on where it was"
    same(whole, again)


@pytest.mark.parametrize(("batch_size", "replicate", "won"), [(64, 1, True), (16, 1, False)])
def test_a_race_that_nobody_wins_is_run_again_with_a_wider_factor(batch_size, replicate, won, tmp_path):
    cell = dataclasses.replace(RACED, batch_size=batch_size, replicate=replicate, hits=1, race=1.0)
    narrow, wide = (one_cell.train_cell(c) for c in (cell, dataclasses.replace(cell, race=1.0 * races.WIDER)))
    assert "abandoned" in narrow.status and "complete" not in narrow.status and ("complete" in wide.status) == won
    header, table = store.read(one_cell.measure(cell, tmp_path), cell)
    assert header["raced_again"] == races.WIDER and header["steps"] == wide.steps
    assert header["trial_steps"] == narrow.trial_steps + wide.trial_steps
    np.testing.assert_array_equal(table["steps@0.04"], wide.first[:, 0])
    assert not list(tmp_path.rglob("*.part"))


def test_a_race_that_is_won_is_run_once(tmp_path):
    header, table = store.read(one_cell.measure(RACED, tmp_path), RACED)
    assert "raced_again" not in header and header["trial_steps"] == one_cell.train_cell(RACED).trial_steps
    assert (table.status == "abandoned").any()


def test_an_exact_cell_keeps_its_digest_and_a_race_has_its_own():
    assert store.digest(Cell("digits-mlp", 64)) == "ced44ecf"
    others = [store.digest(Cell("digits-mlp", 64, race=a)) for a in (2, 2.0, 3)]
    assert others[0] == others[1] != others[2] and "ced44ecf" not in others


@pytest.mark.parametrize("wrong", [0.99, 0, -1, math.inf, math.nan, True, "2"])
def test_a_factor_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=r"^race: .* is not allowed; it must be None or a number from 1$"):
        Cell("digits-mlp", 64, race=wrong)


def test_losses_are_rungs_of_a_race():
    with pytest.raises(ValueError, match="rungs: 'losses' is not allowed; it must be 'goals' without a race"):
        Cell("digits-mlp", 64, rungs="losses")
    with pytest.raises(ValueError, match="rungs: 'errors' is not allowed; it must be one of goals, losses"):
        Cell("digits-mlp", 64, race=2.0, rungs="errors")


def test_a_race_needs_a_goal():
    with pytest.raises(ValueError, match="race: 2.0 is not allowed; it must be None with stop 'budget'"):
        Cell("digits-mlp", 64, stop="budget", race=2.0)


def test_a_race_stands_in_only_where_no_exact_search_is_on_record(monkeypatch, tmp_path):
    exact = grid("digits-mlp", [16, 64, 256], ["momentum"], [0.0], trials=16).cells
    races = [dataclasses.replace(c, race=a) for a in (2.0, 3.0) for c in exact]
    study = dataclasses.replace(grid("digits-mlp", [16], ["momentum"], [0.0]), cells=(*races, *exact))
    monkeypatch.setattr(on_record, "STUDIES", {"s": study})
    monkeypatch.setattr(on_record, "record", lambda cell: places.record(cell, tmp_path))
    for cell in (*races, *(c for c in exact if c.batch_size != 64)):
        (file := places.record(cell, tmp_path)).parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = on_record.gathered().cells
    assert sorted((c.batch_size, c.race) for c in found if c.race) == [(64, 3.0)]
    assert sorted(c.batch_size for c in found) == [16, 64, 256]


def test_searches_of_a_point_are_joined_whether_raced_or_not():
    """They are two replicates of one point, not two points."""
    searches = pd.DataFrame({"workload": "digits-mlp", "batch_size": 16, "replicate": [0, 1], "split": [0, 1],
                             "race": [np.nan, 2.5], "goal": 0.04, "steps": [100.0, 121.0], "last_step": [100, 121],
                             "hits_seen": 1})  # fmt: skip
    (point,) = scaling.across_replicates(searches).itertuples()
    assert point.replicates == 2 and point.steps == pytest.approx(110.0)


def made(first, last):
    """A search on the digits with these checks at which goals were met, the loosest first, and these last steps."""
    return race.Search(EXACT, np.array(first, float), np.array(last, float))


@pytest.mark.parametrize("rungs", vocabulary.RUNGS)
@pytest.mark.parametrize("a", [1.5, 3.0])
def test_a_replay_of_the_record_says_what_the_engine_does(rungs, a):
    found = race.search(WATCHED, one_cell.table(WATCHED, one_cell.train_cell(WATCHED)))
    raced = one_cell.train_cell(dataclasses.replace(EXACT, race=a, rungs=rungs, hits=1))
    gone = {"goals": race.race, "losses": race.losses}[rungs](found, a)
    left = np.where(raced.status == "abandoned", raced.last_step, np.inf)
    assert np.isfinite(left).any()
    np.testing.assert_array_equal(np.where(gone < raced.steps, gone, np.inf), left)
    told = race.outcome(found, gone)
    assert told["cost"] == pytest.approx(raced.trial_steps / np.minimum(found.last, found.end).sum())
    assert told["unchanged"] == (np.fmin.reduce(raced.first[:, 0], initial=np.inf) == found.first[:, -1].min())


def test_each_rule_is_judged_on_searches_that_say_what_it_needs():
    plain = made([[4, 8, 12], [5, 30, 60]], [12, 12])
    fell = np.full((2, len(vocabulary.LOSSES)), np.inf)
    fell[:, vocabulary.LOSSES.index(1.0)] = [2, 9]
    noted = dataclasses.replace(plain, fell=fell)
    np.testing.assert_array_equal(race.losses(noted, 2.0), [np.inf, 8])  # a loss of one: 2 (1 + 1) times 2
    np.testing.assert_array_equal(race.losses(noted, 2.5), [np.inf, 20])  # not at 10, but at 2.5 times 8, at a goal
    with pytest.raises(ValueError, match="one whose record says when training losses fell"):
        race.losses(plain, 2.0)
    told = {rule: race.replays([plain, noted, noted], rule, [2.5]) for rule in race.RULES}
    assert {rule: len(t) for rule, t in told.items()} == {"race": 1, "losses": 2}


def test_what_a_search_loses_to_a_race_is_told():
    """The second trial would have won, but met the loosest goal late; 8 x 1.25 is the check at 10."""
    never = np.inf
    one = made([[8, 18, never], [12, 14, 16], [never, never, never]], [20, 16, 9])
    np.testing.assert_array_equal(race.race(one, 1.25), [never, 10, 10])
    told = race.outcome(one, race.race(one, 1.25))
    assert told["lost"] and not told["unchanged"] and told["factor"] == 18 / 14
    assert told["cost"] == pytest.approx((20 + 10 + 9) / (16 + 16 + 9))
    kept = race.outcome(one, race.race(one, 1.5))
    assert kept["unchanged"] and kept["all_goals"] and kept["factor"] == 1
    assert race.outcome(one, np.full(3, never)) == {**kept, "cost": 1.0}
    with pytest.raises(ValueError, match="one in which a trial met a goal"):
        race.outcome(made([[never] * 3], [5]), np.array([never]))


def test_a_factor_is_chosen_among_those_that_change_little():
    told = pd.DataFrame({"a": [1, 1, 2, 2, 3, 3], "unchanged": [0, 1, 1, 1, 1, 1], "cost": [2, 2, 5, 7, 8, 8]})
    assert race.chosen(told, 0.9) == (2.0, True)
    assert race.chosen(told[told.a == 1], 0.9) == (1.0, False)
    with pytest.raises(ValueError, match="rule: 'x' is not allowed; it must be one of race, losses"):
        race.replays([], "x")
    with pytest.raises(ValueError, match="a: 0.5 is not allowed"):
        race.replays([], factors=[0.5])


@pytest.fixture(scope="module")
def on_file():
    return race.searches()


def test_only_what_was_measured_so_is_planned_as_a_race_on_goals_alone():
    planned = {c for study in plans.STUDIES.values() for c in study.cells if {"race": c.race, "rungs": c.rungs} == ON_GOALS}
    earlier = [c for c in planned if c.algorithm not in races.SLOW_TO_START and c.space is None]  # others are their twins
    assert len(earlier) > 200 and all(places.record(c).exists() for c in earlier)
    new = Cell("mnist-simple-cnn", 32, "sgd", trials=32)
    assert races.raced(new) == dataclasses.replace(new, hits=1, **races.BY_LOSSES)
    assert races.raced(dataclasses.replace(new, algorithm="muon")).rungs == "goals"


def test_races_on_goals_hold_on_record_where_they_are_run(on_file):
    told = race.replays([s for s in on_file if s.cell.work.dataset in races.RACED], factors=[races.BY_GOALS["race"]])
    assert len(told) > 100 and told.unchanged.mean() >= race.UNCHANGED and told.cost.median() < 2 / 3
    others = race.replays([s for s in on_file if s.cell.work.dataset not in races.RACED], factors=[races.BY_GOALS["race"]])
    assert others[others.data == "digits"].unchanged.mean() < race.UNCHANGED


def test_the_factor_of_races_on_losses_holds_on_record_for_dense_and_pruned_networks(on_file):
    noted = [s for s in on_file if s.fell is not None and s.cell.work.dataset != "digits"]
    images = [s for s in noted if s.cell.algorithm not in races.SLOW_TO_START]
    told = race.replays(images, "losses", [races.BY_LOSSES["race"]])
    assert {0.0, 0.9} == set(told.sparsity) and {"momentum", "sgd"} <= set(told.algorithm) and told.workload.nunique() >= 4
    assert len(told) > 50 and told.unchanged.mean() >= race.UNCHANGED and not told.lost.any() and told.cost.median() < 0.45
    by_goals = race.replays([dataclasses.replace(s, fell=None) for s in images], factors=[races.BY_GOALS["race"]])
    assert told.cost.median() < 0.6 * by_goals.cost.median()
    slow = race.used(on_file).set_index(["rule", "data"]).loc[("losses", "slow")]
    assert slow.cells == len(noted) - len(images) and slow.unchanged < race.UNCHANGED


def test_the_table_judges_every_workload_by_a_factor_chosen_without_it(on_file):
    images = [s for s in on_file if s.cell.work.dataset != "digits"]
    told = race.table(["race"], found=images).set_index("left_out")
    name = "mnist-simple-cnn"
    rest = race.replays([s for s in images if s.cell.workload != name])
    assert told.a[name] == race.chosen(rest)[0]
    mine = race.replays([s for s in images if s.cell.workload == name], factors=[told.a[name]])
    assert told.cells[name] == len(mine) and told.cost[name] == mine.cost.median()
    assert told.cells["each"] == told.cells["none"] == told.cells.drop(["each", "none"]).sum()
    assert list(race.table(found=[]).columns) == race.COLUMNS
    assert not len(race.used([])) and "unchanged" in race.used([])
