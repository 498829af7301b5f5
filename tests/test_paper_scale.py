"""The shelf for a graphics processor, with a core in its place."""

import dataclasses
import itertools
import signal
import time

import pytest

from lib import __main__ as command
from lib.engine import checkpoint, lockstep
from lib.measuring import machine, runner, sweeps
from lib.probes import replays
from lib.records import store
from lib.studies.cells import Cell
from lib.studies.study import Study, grid

FEW = {"trials": 6, "hits": 2, "max_steps": 200}
TINY = tuple(grid(workload="digits-mlp", batch_size=(64, 512), sparsity=(0.9, 0.0), **FEW))
LONG = Cell("digits-cnn", 64, trials=100, hits=100, max_steps=10**6)  # hours
alarms = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm clock")


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Four small searches, the second of which is on record."""
    sweeps.run(Study("known", "", TINY[1:2]), tmp_path / "data")
    monkeypatch.setattr(sweeps.recorded.missing, "__defaults__", (tmp_path / "data",))
    return sweeps.Searches(Study("shelf", "", TINY), "cpu", tmp_path / "shelf")


def files(folder):
    return sorted(file for file in folder.rglob("*.csv") if file.is_file())


def test_it_measures_what_nobody_has_in_order_and_apart_under_the_true_name_of_the_device(shelf, tmp_path, monkeypatch):
    began, train = [], sweeps._train

    def noted(cell, *args, **named):
        began.append(cell)
        train(cell, *args, **named)

    monkeypatch.setattr(sweeps, "_train", noted)
    known, lacking = files(tmp_path / "data"), [TINY[0], *TINY[2:]]
    assert shelf.missing() == lacking
    shelf.run()
    assert began == lacking and not shelf.missing() and files(tmp_path / "data") == known
    assert dataclasses.replace(shelf, device="cuda:1").missing() == lacking
    places = sorted(store.record(cell, shelf.apart / "cpu") for cell in lacking)
    assert files(shelf.apart) == places == sorted(map(shelf.record, lacking))
    assert {store.head(file)["device"] for file in places} == {machine.device_name("cpu")}


def test_replays_on_record_come_apart_by_no_more_than_rounding_explains():
    assert replays.summary().factor.max() <= 1.7


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
    shelf = dataclasses.replace(shelf, study=Study("shelf", "", (TINY[1], LONG)))
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
    assert list((shelf.apart / "cpu").rglob("*.part")) and not files(shelf.apart)
    first, second = runs
    assert min(second) > min(first) and min(second) >= first[-2], "it began anew"
