"""The shelf for a graphics processor, with a core in its place."""

import contextlib
import dataclasses
import itertools
import signal
import time

import numpy as np
import pytest

from lib import __main__ as command
from lib.engine import checkpoint, lockstep
from lib.measuring import machine, runner, sweeps
from lib.measuring.paper_scale import ROUNDING, Differs, Shelf
from lib.probes import replays
from lib.records import store
from lib.studies.cells import Cell
from lib.studies.study import Study, grid

FEW = {"trials": 6, "hits": 2, "max_steps": 200}
TINY = tuple(grid(workload="digits-mlp", batch_size=(64, 512), sparsity=(0.9, 0.0), **FEW))
LONG = Cell("digits-cnn", 64, trials=100, hits=100, max_steps=10**6)  # hours
alarms = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm clock")


@pytest.fixture
def shelf(tmp_path):
    """Four small searches, the second of which a core has measured."""
    sweeps.run(Study("known", "", TINY[1:2]), tmp_path / "data")
    return Shelf(lambda: TINY, tmp_path / "shelf", tmp_path / "data", "cpu")


def files(folder):
    return sorted(file for file in folder.rglob("*.csv") if file.is_file())


def test_it_measures_what_nobody_has_in_order_and_apart_under_the_true_name_of_the_device(shelf, monkeypatch):
    began, train = [], sweeps._train

    def noted(cell, *args, **named):
        began.append(cell)
        train(cell, *args, **named)

    monkeypatch.setattr(sweeps, "_train", noted)
    known, lacking = files(shelf.data), [TINY[0], *TINY[2:]]
    assert shelf.missing() == lacking
    shelf.run()
    assert began == [TINY[1], *lacking], "the known record first"
    assert files(shelf.data) == known and not shelf.missing()
    assert dataclasses.replace(shelf, device="cuda:1").missing() == lacking
    places = sorted(store.record(cell, shelf.folder / "cpu") for cell in lacking)
    assert files(shelf.folder) == places
    assert {store.head(file)["device"] for file in places} == {machine.device_name("cpu")}
    shelf.run()
    assert len(began) == 4, "with nothing left to measure nothing is checked either"


UNLIKE = r"cpu: finds steps to goals that differ from batch-64-\w+\.csv by a factor of 2\.00; allowed is 1\.7, for rounding"


@pytest.mark.parametrize(("times", "refused"), [(0.9, None), (0.5, UNLIKE), (np.nan, "cpu: cannot be checked")])
def test_a_device_that_does_not_find_a_known_record_measures_nothing(shelf, times, refused):
    """The record says so many times the steps that this core finds, or that no goal was met."""
    file = store.record(TINY[1], shelf.data)
    head, table = store.read(file, TINY[1])
    goals = table.columns[table.columns.str.startswith("steps@")]
    assert table[goals].min().notna().any(), "a search that meets no goal shows nothing"
    about = {name: head[name] for name in ("date", "torch", "device", "wall_s", "steps", "trial_steps")}
    store.write(file, TINY[1], table.assign(**{goal: table[goal] * times for goal in goals}), about)
    with pytest.raises(Differs, match=refused) if refused else contextlib.nullcontext():
        shelf.run()
    assert len(files(shelf.folder)) == (0 if refused else 3)


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
    with pytest.raises(KeyboardInterrupt), runner.stoppable(str, "again", 5.0):
        raise KeyboardInterrupt
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@alarms
def test_at_the_end_of_its_minutes_the_state_of_a_search_is_kept_and_it_goes_on_from_there(shelf, monkeypatch, capsys):
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
    again = "python -m lib run paper-scale --minutes 10"
    assert f"stopped by SIGALRM; 1 of 2 are saved in data/; to continue: {again}" in capsys.readouterr().out
    assert list((shelf.folder / "cpu").rglob("*.part")) and not files(shelf.folder)
    first, second = runs
    assert min(second) > min(first) and min(second) >= first[-2], "it began anew"


def test_a_device_that_differs_ends_the_command_in_one_line(monkeypatch):
    def differs(_):
        raise Differs("cuda: finds steps")

    monkeypatch.setattr(Shelf, "check", differs)
    with pytest.raises(SystemExit, match="cuda: finds steps"):
        command.main(["run", "paper-scale"])
