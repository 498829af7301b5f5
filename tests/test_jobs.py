"""Commands say in words what there is to do, and how they ended."""

import errno
import json
import os
import signal
import time

import joblib
import pytest

from chapters.steps_to_result import folds
from lib import SOURCE
from lib.__main__ import EXAMPLES, EXPERIMENTS, main, parser
from lib.measuring import jobs, runner, sweeps
from lib.probes import paths, portraits, running_noise, step_times, timings, track_runs, tracks
from lib.records import on_record, places, results, store
from lib.records.on_record import grid
from lib.studies import plans
from lib.studies.cells import Cell
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


def test_other_errors_are_not_hidden():
    with pytest.raises(ZeroDivisionError), stopped():
        1 / 0  # noqa: B018


OF_THE_BOOK = ("branches", *(name for name in EXPERIMENTS if name.startswith("noise-along-")))  # ask for its studies


@pytest.fixture
def finished(monkeypatch):
    """A study, tracks, portraits, folds and timings of which nothing is missing."""
    study = grid("digits-mlp", [256], ["sgd"], [0.0], trials=2)
    monkeypatch.setattr(plans, "STUDIES", {"s": study})
    monkeypatch.setattr(on_record, "STUDIES", {"s": study})
    monkeypatch.setattr(store, "missing", lambda *_: [])
    monkeypatch.setattr(results, "check", lambda *_: None)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["run", "s"], "digits-mlp: none of 1 cells to train"),
        (["run", "trajectories"], f"trajectories: none of {len(paths.planned())} trajectories to measure"),
        (["run", "gradient-histograms"], f"gradient-histograms: none of {len(portraits.PORTRAITS)} histograms to measure"),
        *((["run", name], f"{name}: none of ") for name in EXPERIMENTS if name not in OF_THE_BOOK),
    ],
)
def test_nothing_to_do_is_said_in_words(command, says, finished, capsys):
    main(command)
    told = capsys.readouterr()
    assert told.out.startswith(says) and "0it" not in told.err and "%|" not in told.err


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


@pytest.mark.parametrize(("option", "value", "name"), [("--jobs", "2", "timings"), ("--device", "cuda", "trajectories")])
def test_an_experiment_that_runs_alone_or_here_says_so(option, value, name, monkeypatch, capsys):
    monkeypatch.setattr("lib.__main__.usable", str)  # there may be no GPU here
    with pytest.raises(SystemExit, match="2"):
        main(["run", name, option, value])
    assert f"{option}: {value if option == '--jobs' else repr(value)} is not allowed; it must be" in capsys.readouterr().err


def test_each_example_of_the_help_is_a_command():
    for examples in EXAMPLES.values():
        for line in examples.replace(" --device cuda", "").splitlines():
            assert callable(parser().parse_args(line.split()[3:]).call)


def test_the_state_that_is_kept_is_counted(tmp_path):
    study = Study("s", "", grid("digits-mlp", [64, 256, 512], ["sgd"], [0.0], trials=2).cells)
    for cell, suffix in zip(study.cells, (".csv", ".0123abcd.part", ".0123abcd.set-aside")):
        (file := places.record(cell, tmp_path)).parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(suffix).touch()
    assert results.kept(study, tmp_path) == "1 of 3 cells are in data/, and the state of 1 more"
    assert store.states(places.record(study.cells[2], tmp_path)) == []


def test_a_portrait_is_counted_and_made_once(tmp_path, capsys):
    planned = (portraits.Portrait("digits-mlp", steps=20, every=10, batch_size=64),)
    portraits.run(planned, tmp_path)
    assert "portraits: 100%" in capsys.readouterr().err
    portraits.run(planned, tmp_path)
    assert not capsys.readouterr().err


def test_a_job_tells_in_words_how_far_it_is(tmp_path):
    for report, says in (((1200, 3, 0.25), "step 1,200, 3 alive, error 0.250"), ((7, 2), "step 7, 2 alive"), ((20,), "step 20")):
        runner.Reporter(str(tmp_path))(*report)
        (file,) = tmp_path.iterdir()
        assert runner.told(*json.loads(file.read_text(encoding="utf-8"))) == says


def test_a_notebook_keeps_few_lines_of_progress(capsys):
    runner.run(range(300), _waits, "short jobs", "job")
    lines = capsys.readouterr().err.split("\r")
    assert "300/300" in lines[-1] and len([line for line in lines if line]) == 2  # where it begins, and where it ends


def test_the_last_line_of_progress_says_nothing_of_what_is_over(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)  # a terminal, whose bar tells of the steps after a second
    runner.run([1.5], _reports, "a slow job", "job")
    *earlier, last = capsys.readouterr().err.split("\r")
    assert any("step 7" in line for line in earlier) and "1/1" in last and "step" not in last


def _reports(seconds: float, reports: str) -> None:
    runner.Reporter(reports)(7)
    time.sleep(seconds)


def _waits(_: int, reports: str) -> None:
    time.sleep(0.001)


def test_every_kind_of_record_says_when_on_what_and_by_which_code_it_was_measured(tmp_path):
    cell = Cell("digits-mlp", 512, trials=2, hits=1, max_steps=400)
    sweeps.run(Study("s", "", (cell,)), tmp_path)
    portraits.run([portraits.Portrait("digits-mlp", steps=2, every=1, batch_size=64)], tmp_path / "portraits")
    timings.run([step_times.StepTimes("digits-mlp", largest=0, repeats=1)], tmp_path / "timings")
    track_runs.run(tracks.fastest(cell, 1, tmp_path, points=1, steps=1), tmp_path)
    folds.run([folds.Folds("digits-mlp", networks=1, steps=5)], tmp_path / "folds")
    running_noise.run([running_noise.Job("digits-mlp", 512, "sgd", 2, 0, 1, steps=2)], tmp_path / "running")
    heads = [store.head(file) for file in tmp_path.rglob("*.csv")]
    assert len(heads) == 6
    for head in heads:
        assert head.keys() >= {"date", "torch", "device", "threads", "source", "wall_s"} and head["source"] == SOURCE
        assert head["threads"] == 1 and ("cores" in head or head["precision"] == "float32")
