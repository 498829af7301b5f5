"""Cells refuse bad input; a study runs anywhere, in any number of processes, and survives being killed."""

import contextlib
import os
import pathlib
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import time

import joblib
import pytest

from lib import ROOT
from lib.__main__ import main
from lib.measuring import one_search, sweeps
from lib.records.selection import grid
from lib.records.store import record
from lib.studies.search import Search
from tests.kills import tables

BAD = [
    ({"workload": "digit"}, "workload: 'digit' is not allowed; it must be one of digits-mlp"),
    ({"batch_size": 1351}, "batch_size: 1351 .* 1 to 1350 .*digits-mlp has 1350 training examples"),
    ({"messages": {"worker": 4}}, "messages: worker: 4 is unknown; did you mean workers"),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_a_bad_cell_names_the_field_the_value_and_what_is_allowed(fields, message):
    with pytest.raises(ValueError, match=message):
        Search(**{"workload": "digits-mlp", "batch_size": 16, **fields})


def tiny():
    return grid("digits-mlp", [64, 512], ["momentum"], [0.0, 0.9], trials=6, hits=2, max_steps=40)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    sweeps.run(tiny(), folder)
    return tables(folder)


def test_reading_never_trains(tmp_path, monkeypatch):
    monkeypatch.setattr(one_search, "measure", lambda *_: pytest.fail("trained"))
    frame = sweeps.results(tiny(), folder=tmp_path)
    assert frame.empty and frame.attrs["missing"] == list(tiny().searches) and frame.attrs["cells_planned"] == 4


OPTIONS = [
    ("digits", "--jobs", "0", "greater than or equal to 1"),
    ("digits", "--device", "cuda:99", "PyTorch cannot use"),
    ("digits", "--minutes", "soon", "a valid number"),
    ("timings", "--jobs", "2", "must run alone"),
]


@pytest.mark.parametrize(("name", "option", "value", "allowed"), OPTIONS)
def test_a_bad_option_is_refused_before_anything(name, option, value, allowed, monkeypatch, capsys):
    monkeypatch.setattr(sweeps, "run", lambda *_, **__: pytest.fail("ran"))
    with pytest.raises(SystemExit, match="2"):
        main(["run", name, option, value])
    assert re.search(rf"{option}: (number: )?'?{value}'? is not allowed; .*{re.escape(allowed)}", capsys.readouterr().err)


def test_one_process_and_two_give_the_same_records(undisturbed, tmp_path):
    sweeps.run(tiny(), tmp_path, jobs=2)
    assert len(undisturbed) == 4 and tables(tmp_path) == undisturbed


def test_a_local_dask_cluster_gives_the_same_records(undisturbed, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster), joblib.parallel_config(backend="dask"):
            sweeps.run(tiny(), tmp_path, jobs=-1)
    assert tables(tmp_path) == undisturbed


def test_a_sweep_killed_again_and_again_ends_with_the_undisturbed_tables():
    done = subprocess.run([sys.executable, "-m", "tests.kills", "8"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    resumed = int(re.fullmatch(r"8 kills, after (\d+) of them .*: every table is the same\n", done.stdout)[1])
    assert resumed >= 2, "hardly any cell went on from a state"


def alive(group):
    """A session's processes that still run."""
    pids = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
            pids += [stat.parent.name] if int(session) == group and state != "Z" else []
    return pids


STOPPED = """
import pathlib, sys
from lib.engine import checkpoint, lockstep
from lib.measuring import sweeps
from lib.__main__ import main
from lib.records import results, selection, store
from lib.studies import plans
folder = pathlib.Path(sys.argv[1])
study = selection.grid("digits-cnn", [64], ["momentum"], [0.0, 0.5, 0.9], trials=100, hits=100, max_steps=10**6)
plans.STUDIES["s"] = study
for function in (results.missing, sweeps.run, results.check):
    function.__defaults__ = tuple(folder if v == store.DATA else v for v in function.__defaults__)
checkpoint.SAVE_EVERY = 0.0
main(["run", "s", "--jobs", "2"])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc")
@pytest.mark.parametrize(("by", "to"), [("SIGTERM", os.kill), ("SIGINT", os.killpg), ("SIGKILL", os.kill)])
def test_a_signal_ends_the_sweep_and_its_workers_in_one_line(by, to, heard, tmp_path):
    """Workers end with their parent even if nobody tells them of its death."""
    command = [sys.executable, "-c", STOPPED, str(tmp_path)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)
    try:
        until(process, lambda: len(list(tmp_path.rglob("sparsity-*"))) >= 2)
        time.sleep(0.2)
        to(process.pid, getattr(signal, by))
        if by == "SIGKILL":
            process.wait()
        else:
            said = process.communicate(timeout=30)[1]
            assert process.returncode == 128 + getattr(signal, by)
            assert "Traceback" not in said and "KeyboardInterrupt" not in said
            progress = "0 of 3 are saved in data/; to continue: python -m lib run s --jobs 2"
            assert said.endswith(f"\nstopped by {by}; {progress}\n"), said
            assert not list(tmp_path.rglob(".*.part"))
        until(None, lambda: not alive(process.pid))
    finally:
        if alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def until(process, holds):
    """Wait until this holds, while the process runs."""
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.stderr.read()
        time.sleep(0.05)


def test_a_folder_that_cannot_be_written_is_named_before_any_training(tmp_path, monkeypatch):
    monkeypatch.setattr(one_search, "train_search", lambda *_, **__: pytest.fail("trained"))
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", lambda **_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    file = record(tiny().searches[0], tmp_path)
    with pytest.raises(PermissionError, match=rf"cannot be written \(Permission denied\): '{file}'"):
        sweeps.run(tiny(), tmp_path)


@pytest.mark.parametrize(("times", "warned"), [(25.0, 1), (1.0, 0)])
def test_slow_arithmetic_is_told_before_training(times, warned, tmp_path, monkeypatch, caplog):
    """Where a processor lacks bfloat16, a search in it takes 20 to 100 times as long."""
    monkeypatch.setattr(sweeps, "bfloat16_over_float32", lambda: times)
    monkeypatch.setattr(sweeps.runner, "run", lambda *arguments, **options: None)
    sweeps.run(grid("digits-mlp", [64], ["sgd"], [0.0], precision="bfloat16"), tmp_path)
    sweeps.run(grid("digits-mlp", [64], ["sgd"], [0.0]), tmp_path)
    assert sum("bfloat16" in message for message in caplog.messages) == warned


def test_code_edited_after_it_was_loaded_does_not_measure(monkeypatch):
    """A notebook holds old modules that plan, and would load new ones that train."""
    read = pathlib.Path.read_bytes
    edited = lambda file: read(file) + b"#" * (file.name == "lockstep.py")  # noqa: E731
    monkeypatch.setattr(pathlib.Path, "read_bytes", edited)
    with pytest.raises(RuntimeError, match="lib was edited"):
        runpy.run_path(str(ROOT / "lib" / "measuring" / "machine.py"))


READING = (
    *("lib.analysis.scaling", "lib.analysis.ranges", "lib.claims", "lib.probes.portraits"),
    *("chapters.smoothness.experiments", "chapters.limits.families", "chapters.messages.message_results"),
)


def test_reading_records_needs_no_pytorch_nor_distributions():
    """They take long to import, and most chapters only read."""
    ask = f"import sys, {', '.join(READING)}; print({{'torch', 'scipy.stats'}} & {{*sys.modules}})"
    process = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert process.stdout.strip() == "set()"
