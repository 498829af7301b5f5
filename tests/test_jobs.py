"""Commands say in words what there is to do, and how they ended."""

import errno
import signal

import pytest

from lib.measuring import jobs, sweeps
from lib.probes import portraits, track_runs
from lib.records import places, store
from lib.records.on_record import grid
from lib.studies.study import Study


def stopped():
    return jobs.stoppable(lambda: "3 of 4 are kept", "again")


def test_a_full_disk_is_told_in_one_line(capsys):
    with pytest.raises(SystemExit) as ended, stopped():
        raise OSError(errno.ENOSPC, "cannot be written (No space left on device)", "data/x.csv")
    assert ended.value.code == 1
    said = "[Errno 28] cannot be written (No space left on device): 'data/x.csv'; 3 of 4 are kept; to go on: again\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_is_told_in_one_line_and_its_handlers_are_put_back(name, capsys):
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


def test_other_errors_are_not_hidden():
    with pytest.raises(ZeroDivisionError), stopped():
        1 / 0  # noqa: B018


@pytest.fixture
def finished(monkeypatch, tmp_path):
    """A study, tracks and portraits of which nothing is missing."""
    study = grid("digits-mlp", [256], ["sgd"], [0.0], trials=2)
    monkeypatch.setattr(sweeps.plans, "STUDIES", {"s": study})
    for module in (sweeps, track_runs, portraits):
        monkeypatch.setattr(module, "missing", lambda *_: [])
    monkeypatch.setattr(sweeps, "check", lambda *_: None)
    return study


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ((sweeps, "run", "s"), "digits-mlp: none of 1 cells to train"),
        ((track_runs, "run", "digits"), "digits: none of "),
        ((portraits, "run"), f"none of {len(portraits.PORTRAITS)} portraits to make"),
    ],
    ids=["sweeps", "tracks", "portraits"],
)
def test_nothing_to_do_is_said_in_words(command, says, finished, capsys):
    module, *arguments = command
    module.main(arguments)
    told = capsys.readouterr()
    assert told.out.startswith(says) and "0it" not in told.err and "%|" not in told.err


def test_the_state_that_is_kept_is_counted(tmp_path):
    study = Study("s", "", grid("digits-mlp", [64, 256, 512], ["sgd"], [0.0], trials=2).cells)
    for cell, suffix in zip(study.cells, (".csv", ".0123abcd.part", ".0123abcd.set-aside")):
        (file := places.record(cell, tmp_path)).parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(suffix).touch()
    assert sweeps.kept(study, tmp_path) == "1 of 3 cells are in data/, and the state of 1 more"
    assert store.states(places.record(study.cells[2], tmp_path)) == []


def test_a_portrait_shows_every_step(tmp_path, capsys):
    planned = (portraits.Portrait("digits-mlp", steps=20, every=10, batch_size=64),)
    portraits.run(planned, tmp_path)
    assert "20/20" in capsys.readouterr().err
    portraits.run(planned, tmp_path)
    assert not capsys.readouterr().err
