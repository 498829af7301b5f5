"""Races: who is abandoned, that nothing else changes, and what calibration on record says of them."""

import dataclasses

import numpy as np
import pytest
import torch

from chapters.steps_to_result import race
from lib.engine import vocabulary
from lib.measuring import one_search
from lib.studies import study
from lib.studies.search import Search
from tests.conftest import same

torch.set_num_threads(1)
EXACT = Search("digits-mlp", 64, trials=16, hits=3, max_steps=300)
WATCHED = dataclasses.replace(EXACT, race=study.WATCHED, rungs="losses", hits=EXACT.trials)  # exact, and losses are noted


def slow_replay(first, last, a, end, checks):
    """Check by check and trial by trial: the step after which each trial is abandoned.  first: [trials][rungs]; a: [rungs]."""
    gone, step = [None] * len(first), 0
    while (step := vocabulary.next_check(step, checks)) <= end:
        for goal in range(len(first[0])):
            met = [f[goal] for f, g in zip(first, gone) if f[goal] <= step and (g is None or f[goal] <= g)]
            for trial, steps in enumerate(first):
                late = met and step >= a[goal] * min(met) and not steps[goal] <= step
                if late and gone[trial] is None and last[trial] > step:
                    gone[trial] = step
    return gone


@pytest.mark.parametrize(
    ("cell", "a", "rungs"),
    [
        (EXACT, 1, "goals"),
        (dataclasses.replace(EXACT, workload="digits-cnn", sparsity=0.7, max_steps=150), 1.5, "losses"),
    ],
    ids=["dense", "sparse"],
)
def test_those_are_abandoned_that_an_independent_replay_names(cell, a, rungs):
    full_search = one_search.train_search(dataclasses.replace(cell, hits=cell.trials, race=study.WATCHED, rungs=rungs))
    raced = one_search.train_search(dataclasses.replace(cell, race=a, rungs=rungs))
    reached = np.concatenate([full_search.fell, full_search.first], axis=1).tolist()
    patience = [a * (1 + loss) for loss in vocabulary.LOSSES if rungs == "losses"] + [a] * len(cell.work.goals)
    named = slow_replay(reached, full_search.last_step.tolist(), patience, raced.steps, cell.checks)
    # The last hit ends a cell before anybody is abandoned.
    ended = (raced.status == "complete").sum() >= cell.hits
    named = [None if ended and g == raced.steps else g for g in named]
    assert any(named), "nobody was abandoned, and nothing was tested"
    left = [step if status == "abandoned" else None for status, step in zip(raced.status, raced.last_step.tolist())]
    assert left == named
    expected = np.where(full_search.first <= raced.last_step[:, None], full_search.first, np.nan)
    np.testing.assert_array_equal(raced.first, expected)


def test_a_race_that_nobody_can_lose_finds_the_same():
    """Nobody can fall behind by a factor of 1e9, so nothing differs but who is asked."""
    raced = one_search.train_search(dataclasses.replace(EXACT, race=1e9))
    same(one_search.train_search(EXACT), raced)


@pytest.mark.parametrize("rungs", vocabulary.RUNGS)
def test_a_replay_of_the_record_says_what_the_engine_does(rungs):
    a = 1.5
    search = race.search(WATCHED, one_search.table(WATCHED, one_search.train_search(WATCHED)))
    raced = one_search.train_search(dataclasses.replace(EXACT, race=a, rungs=rungs, hits=1))
    gone = race.abandoned(search, a, rungs)
    left = np.where(raced.status == "abandoned", raced.last_step, np.inf)
    assert np.isfinite(left).any()
    np.testing.assert_array_equal(np.where(gone < raced.steps, gone, np.inf), left)
    outcome = race.outcome(search, gone)
    assert outcome["cost"] == pytest.approx(raced.trial_steps / np.minimum(search.last, search.end).sum())
    assert outcome["unchanged"] == (np.fmin.reduce(raced.first[:, 0], initial=np.inf) == search.first[:, -1].min())
