"""The shelf for a graphics processor, with a core in its place."""

import contextlib
import itertools
import signal
import time

import numpy as np
import pandas as pd
import pytest

from lib.measuring import machine, runner, sweeps
from lib.measuring.paper_scale import ROUNDING, Differs, Shelf, apart
from lib.probes import replays
from lib.records import store
from lib.studies.study import Study, grid

TINY = tuple(
    grid(
        workload="digits-mlp",
        batch_size=(64, 512),
        sparsity=(0.9, 0.0),
        trials=6,
        hits=2,
        max_steps=200,
    )
)
alarms = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm clock")


@pytest.fixture
def shelf(tmp_path):
    """Four small searches, the second of which a core has measured."""
    sweeps.run(Study("known", "", TINY[1:2]), tmp_path / "data")
    return Shelf(lambda: TINY, tmp_path / "shelf", tmp_path / "data")


def files(folder):
    return sorted(file for file in folder.rglob("*.csv") if file.is_file())


def test_it_measures_what_nobody_has_in_order_and_apart_under_the_true_name_of_the_device(
    shelf, monkeypatch
):
    began, train = [], sweeps._train
    monkeypatch.setattr(
        sweeps,
        "_train",
        lambda cell, *args, **named: began.append(cell) or train(cell, *args, **named),
    )
    known = files(shelf.data)
    assert shelf.missing(TINY, "cpu") == [TINY[0], *TINY[2:]]
    shelf.run(TINY, "cpu")
    assert began == [TINY[1], TINY[0], *TINY[2:]], "the known record first"
    assert files(shelf.data) == known and not shelf.missing(TINY, "cpu")
    assert files(shelf.folder) == sorted(
        shelf.record(cell, "cpu") for cell in shelf.missing(TINY, "cuda")
    )
    for file in files(shelf.folder):
        assert file.is_relative_to(shelf.folder / "cpu") and store.head(file)[
            "device"
        ] == machine.device_name("cpu")
    shelf.run(TINY, "cpu")
    assert len(began) == 4, "with nothing left to measure nothing is checked either"


UNLIKE = r"cpu: finds steps to goals that differ from batch-64-\w+\.csv by a factor of 2\.00; allowed is 1\.25, for rounding"


@pytest.mark.parametrize(
    ("times", "refused"),
    [(0.9, None), (0.5, UNLIKE), (np.nan, "cpu: cannot be checked")],
)
def test_a_device_that_does_not_find_a_known_record_measures_nothing(shelf, times, refused):
    """The record says so many times the steps that this core finds, or that no goal was met."""
    file = store.record(TINY[1], shelf.data)
    head, table = store.read(file, TINY[1])
    goals = table.columns[table.columns.str.startswith("steps@")]
    assert table[goals].min().notna().any(), "a search that meets no goal shows nothing"
    file.unlink()
    about = {
        name: head[name] for name in ("date", "torch", "device", "wall_s", "steps", "trial_steps")
    }
    store.write(file, TINY[1], table.assign(**{goal: table[goal] * times for goal in goals}), about)
    with pytest.raises(Differs, match=refused) if refused else contextlib.nullcontext():
        shelf.run(TINY, "cpu")
    assert len(files(shelf.folder)) == (0 if refused else 3)


def test_without_a_record_to_compare_with_nothing_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "run", lambda *_, **__: pytest.fail("ran"))
    with pytest.raises(
        Differs, match="cuda: cannot be checked; no search of the shelf is on record"
    ):
        Shelf(lambda: TINY, tmp_path / "shelf", tmp_path / "data").run(TINY, "cuda")


def test_tables_are_as_far_apart_as_their_fewest_steps_to_a_goal():
    one, none = (
        pd.Series({"steps@0.1": 10.0, "steps@0.02": 40.0}),
        pd.Series({"steps@0.1": np.nan, "steps@0.02": np.nan}),
    )
    assert apart(one, one) == apart(none, none) == 1
    assert apart(one, one * [1, 1.25]) == apart(one * [1, 1.25], one) == pytest.approx(1.25)
    assert apart(one, one * [0.5, 1]) == pytest.approx(2)
    assert apart(one, one * [1, np.nan]) == apart(one, none) == np.inf


def test_rounding_explains_as_much_as_replays_on_record_came_apart():
    assert replays.summary().factor.max() <= ROUNDING


# --- minutes ----------------------------------------------------------------------------------------------------------


@alarms
def test_time_that_is_up_ends_what_runs_and_nothing_else():
    began, turns = time.monotonic(), itertools.count()
    with runner.within(0.2 / 60):
        while next(turns) < 10**9:
            pass
    assert 0.15 < time.monotonic() - began < 5 and next(turns) < 10**9
    with runner.within(None), runner.within(5.0):
        pass
    time.sleep(0.01)
    with pytest.raises(KeyboardInterrupt), runner.within(5.0):
        raise KeyboardInterrupt
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
