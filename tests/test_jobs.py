"""Commands say in words what there is to do, and how they ended."""

import errno
import os
import signal

import joblib
import pytest

from lib.__main__ import EXAMPLES, EXPERIMENTS, main
from lib.measuring import jobs
from lib.records import on_record, results, store
from lib.records.on_record import grid
from lib.studies import plans


def stopped():
    return jobs.stoppable(lambda: "3 of 4 are kept", "again")


def test_a_full_disk_is_told_in_one_line(capsys):
    with pytest.raises(SystemExit) as ended, stopped():
        raise OSError(errno.ENOSPC, "cannot be written (No space left on device)", "data/x.csv")
    assert ended.value.code == 1
    said = "[Errno 28] cannot be written (No space left on device): 'data/x.csv'; 3 of 4 are kept; to go on: again\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_a_signal_is_told_in_one_line_and_its_handlers_are_put_back(name, heard, capsys):
    number, before = getattr(signal, name), [signal.getsignal(s) for s in jobs.SIGNALS]
    with pytest.raises(SystemExit) as ended, stopped():
        signal.raise_signal(number)
    assert ended.value.code == 128 + number
    assert capsys.readouterr().err == f"stopped by {name}; 3 of 4 are kept; to go on: again\n"
    assert [signal.getsignal(s) for s in jobs.SIGNALS] == before


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopped():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def _dies(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_is_told_with_what_is_kept_and_how_to_go_on(capsys):
    calls = [joblib.delayed(_dies)(n) for n in range(2)]
    with pytest.raises(jobs.WorkerDied, match="a worker process was killed, .*; what is finished is kept, .* goes on from there"):
        list(jobs.each(calls, 2))
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended, stopped():
        list(jobs.each(calls, 2))
    assert ended.value.code == 1 and capsys.readouterr().err == f"{jobs.KILLED}; 3 of 4 are kept; to go on: again\n"
    assert list(jobs.each([joblib.delayed(abs)(-n) for n in range(1)], 2)) == [0]  # new workers take the next calls


@pytest.fixture
def finished(monkeypatch):
    """A study, tracks, portraits, folds and timings of which nothing is missing."""
    study = grid("digits-mlp", [256], ["sgd"], [0.0], trials=2)
    monkeypatch.setattr(plans, "STUDIES", {"s": study})
    monkeypatch.setattr(on_record, "STUDIES", {"s": study})
    monkeypatch.setattr(store, "missing", lambda *_: [])
    monkeypatch.setattr(results, "check", lambda *_: None)


def test_help_names_every_command_and_study_and_how_to_stop_and_go_on(capsys):
    def said(*arguments):
        with pytest.raises(SystemExit, match="0"):
            main([*arguments, "--help"])
        return capsys.readouterr().out

    top = said()
    for command in EXAMPLES:
        assert f"\n    {command}" in top and f"for example:\n  python -m lib {command}" in said(command)
    assert "data/" in top and "Ctrl-C" in top and "goes on" in top
    main(["list"])
    told = capsys.readouterr().out
    assert all(f"\n  {name} " in told for name in (*plans.STUDIES, *EXPERIMENTS))
