"""The shelf for a graphics processor, with a core in its place."""

import contextlib
import dataclasses
import itertools
import signal
import time

import numpy as np
import pandas as pd
import pytest

from lib import __main__ as command
from lib.engine import checkpoint, lockstep
from lib.measuring import machine, runner, sweeps
from lib.measuring.paper_scale import ROUNDING, Differs, Shelf, apart
from lib.probes import replays
from lib.records import store
from lib.studies.cells import Cell
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
LONG = Cell("digits-cnn", 64, trials=100, hits=100, max_steps=10**6)  # hours
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

    def noted(cell, *args, **named):
        began.append(cell)
        train(cell, *args, **named)

    monkeypatch.setattr(sweeps, "_train", noted)
    known, lacking = files(shelf.data), [TINY[0], *TINY[2:]]
    assert shelf.missing("cpu") == shelf.missing("cuda") == lacking
    shelf.run(device="cpu")
    assert began == [TINY[1], *lacking], "the known record first"
    assert files(shelf.data) == known and not shelf.missing("cpu")
    assert shelf.missing("cuda:1") == lacking
    places = sorted(store.record(cell, shelf.folder / "cpu") for cell in lacking)
    assert files(shelf.folder) == places
    assert {store.head(file)["device"] for file in places} == {machine.device_name("cpu")}
    shelf.run(device="cpu")
    assert len(began) == 4, "with nothing left to measure nothing is checked either"


UNLIKE = r"cpu: finds steps to goals that differ from batch-64-\w+\.csv by a factor of 2\.00; allowed is 1\.7, for rounding"


@pytest.mark.parametrize(
    ("times", "refused"),
    [(1.0, None), (0.9, None), (0.5, UNLIKE), (np.nan, "cpu: cannot be checked")],
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
        shelf.run(device="cpu")
    assert len(files(shelf.folder)) == (0 if refused else 3)


def test_without_a_record_to_compare_with_nothing_is_measured(tmp_path):
    shelf = Shelf(lambda: TINY, tmp_path / "shelf", tmp_path / "data")
    with pytest.raises(Differs, match="cuda: cannot be checked; no search of the shelf"):
        shelf.run(device="cuda")


def test_tables_are_as_far_apart_as_their_fewest_steps_to_a_goal():
    one = pd.Series({"steps@0.1": 10.0, "steps@0.02": 40.0})
    none = one * np.nan
    assert apart(one, one) == apart(none, none) == 1
    assert apart(one, one * [1, 1.25]) == apart(one * [1, 1.25], one) == pytest.approx(1.25)
    assert apart(one, one * [1, np.nan]) == apart(one, none) == np.inf


def test_rounding_explains_as_much_as_replays_on_record_came_apart():
    assert replays.summary().factor.max() <= ROUNDING


# --- minutes ----------------------------------------------------------------------------------------------------------


@alarms
def test_time_that_is_up_ends_what_runs_and_nothing_else(capsys):
    began, turns = time.monotonic(), itertools.count()
    with runner.stoppable(lambda: "1 of 2 are kept", "again", 0.2 / 60):
        while next(turns) < 10**9:
            pass
    assert 0.15 < time.monotonic() - began < 5 and next(turns) < 10**9
    assert capsys.readouterr().out == "stopped by SIGALRM; 1 of 2 are kept; to continue: again\n"
    with runner.stoppable(str, "again", 5.0):
        pass
    with pytest.raises(KeyboardInterrupt), runner.stoppable(str, "again", 5.0):
        raise KeyboardInterrupt
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@alarms
def test_at_the_end_of_its_minutes_the_state_of_a_search_is_kept_and_it_goes_on_from_there(
    shelf, monkeypatch, capsys
):
    monkeypatch.setattr(checkpoint, "SAVE_EVERY", 0.0)
    shelf = dataclasses.replace(shelf, wanted=lambda: (TINY[1], LONG))
    monkeypatch.setitem(command.EXPERIMENTS, "paper-scale", shelf)
    runs, check = ([], []), lockstep._check
    for told in runs:

        def checked(now, *rest, told=told):
            told.extend([now.outcome.steps] if len(now.ids) > TINY[1].trials else [])
            if len(told) == 5:  # checks of the long one
                signal.raise_signal(signal.SIGALRM)
            check(now, *rest)

        monkeypatch.setattr(lockstep, "_check", checked)
        command.main(["run", "paper-scale", "--minutes", "10"])
    said = capsys.readouterr().out
    again = "python -m lib run paper-scale --minutes 10"
    assert f"stopped by SIGALRM; 1 of 2 are saved in data/; to continue: {again}" in said
    assert list((shelf.folder / "cpu").rglob("*.part")) and not files(shelf.folder)
    first, second = runs
    assert min(second) > min(first) and min(second) >= first[-2], "it began anew"


@pytest.mark.parametrize("value", ["0", "soon"])
def test_minutes_that_are_none_are_refused_before_anything(value, monkeypatch, capsys):
    monkeypatch.setattr(Shelf, "run", lambda *_, **__: pytest.fail("ran"))
    with pytest.raises(SystemExit, match="2"):
        command.main(["run", "paper-scale", "--minutes", value])
    told = f"argument --minutes: '{value}' is not allowed; it must be a number in (0, 10000]"
    assert told in capsys.readouterr().err


def test_a_device_that_differs_ends_the_command_in_one_line(monkeypatch):
    def differs(*_, **__):
        raise Differs("cuda: finds steps")

    monkeypatch.setattr(Shelf, "run", differs)
    with pytest.raises(SystemExit, match="cuda: finds steps"):
        command.main(["run", "paper-scale"])


def test_more_than_one_job_is_refused_since_a_device_is_one(capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["run", "paper-scale", "--jobs", "2"])
    assert "must run alone" in capsys.readouterr().err
