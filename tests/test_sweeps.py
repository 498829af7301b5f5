"""Cells refuse bad input; a study runs anywhere, in any number of processes, and survives being killed."""

import contextlib
import dataclasses
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
import pandas as pd
import pytest
import torch

from lib import ROOT
from lib.__main__ import main
from lib.measuring import jobs, one_cell, sweeps
from lib.records import on_record, results, store
from lib.records.on_record import grid
from lib.records.places import record
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.races import BY_LOSSES
from lib.studies.study import Study

BAD = [
    ({"sparsity": -0.1}, "sparsity: -0.1 .* number in \\[0, 1\\)"),
    ({"workload": "digit"}, "workload: 'digit' is unknown; allowed: digits-mlp"),
    ({"batch_size": 1351}, "batch_size: 1351 .* 1 to 1350 .*digits-mlp has 1350 training examples"),
    ({"algorithm": "lion"}, "algorithm: 'lion' .* sgd, momentum, nesterov"),
    ({"pruning": "none"}, "pruning: 'none' .* connection-sensitivity"),
    ({"precision": "float16"}, "precision: 'float16' .* bfloat16"),
    ({"stop": "late"}, "stop: 'late' .* goal, budget"),
    ({"space": 3}, "space: 3 is not allowed; it must be one of lee2021, .*, low-momentum, or learning_rate=...,momentum=..."),
    ({"space": "learning_rate=0.1,momentum=1"}, "space: .* momentum in .0, 1."),
    ({"messages": 16}, "messages: 16 is not allowed; it must be None, a Messages or its fields"),
    ({"messages": {"worker": 4}}, "messages: {'worker': 4} is not allowed; it must be of the fields workers, compressor"),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_a_bad_cell_names_the_field_the_value_and_what_is_allowed(fields, message):
    with pytest.raises(ValueError, match=message):
        Cell(**{"workload": "digits-mlp", "batch_size": 16, **fields})


def test_unknown_study_and_budget():
    with pytest.raises(ValueError, match="study: 'x' .* digits, digits-searches, "):
        plans.study("x")
    with pytest.raises(ValueError, match="budget: 'all' .* cached, smoke, full"):
        sweeps.results(tiny(), "all")


def tiny():
    return grid("digits-mlp", [64, 512], ["momentum"], [0.0, 0.9], trials=6, hits=2, max_steps=40)


def bodies(folder):
    """Each record's table, without the line that tells when and how fast it was measured."""
    return {p.relative_to(folder): p.read_text(encoding="utf-8").partition("\n")[2] for p in sorted(folder.rglob("*.csv"))}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    sweeps.run(tiny(), folder)
    return bodies(folder)


def test_reading_never_trains(tmp_path, monkeypatch):
    monkeypatch.setattr(one_cell, "measure", lambda *_: pytest.fail("trained"))
    frame = sweeps.results(tiny(), folder=tmp_path)
    assert frame.empty and frame.attrs["missing"] == list(tiny().cells) and frame.attrs["cells_planned"] == 4


def test_several_studies_are_trained_and_read_as_one_by_one(tmp_path):
    studies = {b: grid("digits-mlp", [b], ["momentum"], [0.0], trials=4, hits=1, max_steps=10) for b in (256, 512)}
    tables = sweeps.results_each(studies, "full", folder=tmp_path)
    assert [*tables] == [256, 512] and all(len(table) == 4 for table in tables.values())
    for key, study in studies.items():
        pd.testing.assert_frame_equal(tables[key], sweeps.results(study, folder=tmp_path))


def test_a_study_holds_each_cell_once():
    cell, other = Cell("digits-mlp", 16), Cell("digits-mlp", 32)
    assert Study("s", "", (cell, other, cell)).cells == (cell, other)
    assert len(grid("digits-mlp", [16, 32, 16], ["sgd"], [0, 0.0]).cells) == 2


def test_what_another_runner_has_finished_is_left_alone(tmp_path, monkeypatch):
    cell = tiny().cells[0]
    (file := record(cell, tmp_path)).parent.mkdir(parents=True)
    file.write_text("another's", encoding="utf-8")
    monkeypatch.setattr(one_cell, "train_cell", lambda *_, **__: pytest.fail("trained"))
    assert one_cell.measure(cell, tmp_path) == file and file.read_text(encoding="utf-8") == "another's"


def test_numbers_too_small_to_matter_do_not_slow_a_cell_down(tmp_path, monkeypatch):
    def stand_in(*_, **__):
        seen.append((torch.full((8,), 1e-30) * 1e-12).any().item())
        raise KeyboardInterrupt

    seen, able = [], torch.set_flush_denormal(False)
    monkeypatch.setattr(one_cell, "train_cell", stand_in)
    with pytest.raises(KeyboardInterrupt):
        one_cell.measure(tiny().cells[0], tmp_path)
    torch.set_flush_denormal(False)
    assert seen == [not able]


def test_a_record_that_changes_is_looked_at_again(tmp_path):
    file = one_cell.measure(tiny().cells[0], tmp_path)
    results.check(tiny(), tmp_path)
    file.write_text(file.read_text(encoding="utf-8")[:-3], encoding="utf-8")
    with pytest.raises(store.RecordError, match="damaged"):
        results.check(tiny(), tmp_path)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--jobs", "0", f"argument --jobs: '0' is not allowed; it must be a whole number from 1 to {jobs.MOST} (four for"),
        ("--jobs", "1e9", "argument --jobs: '1e9' is not allowed"),
        ("--jobs", "1000000000", "argument --jobs: '1000000000' is not allowed"),
        ("--jobs", "two", "argument --jobs: 'two' is not allowed"),
        ("--device", "gpu", "argument --device: 'gpu' is not allowed; torch cannot compute there"),
        ("--device", "cuda:99", "argument --device: 'cuda:99' is not allowed; torch cannot compute there"),
    ],
)
def test_a_bad_option_is_refused_before_anything(option, value, message, monkeypatch, capsys):
    monkeypatch.setattr(sweeps, "run", lambda *_, **__: pytest.fail("ran"))
    with pytest.raises(SystemExit, match="2"):
        main(["run", "digits", option, value])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "fields", "measured", "expected"),
    [
        (16, {}, True, [(16, 100, 5), (64, 100, 5)]),
        (32, {}, True, [(16, 100, 5), (64, 100, 5), (32, 100, 5)]),
        (32, {"trials": 8}, True, [(32, 8, 1)]),
        (16, {"trials": 8}, True, [(16, 8, 1)]),
        (16, {"hits": 1}, True, [(16, 100, 5), (64, 100, 5)]),
        (16, {"replicate": 3, "split": 3, "hits": 1}, True, [(16, 100, 5), (64, 100, 5), (16, 100, 1)]),
        (32, {"trials": 8}, False, [(16, 100, 5), (64, 100, 5)]),
    ],
    ids=["nothing new", "the same protocol", "another search", "another search at a size of the study", "fewer hits",
         "a search on a split of its own", "no record"],
)
def test_a_readers_cells_join_a_studys_curve_only_if_measured_alike(size, fields, measured, expected, monkeypatch, tmp_path):
    study = grid("digits-mlp", [16, 64], ["momentum"], [0.0, 0.9])
    more = grid("digits-mlp", [size], ["momentum"], [0.0], **fields)
    monkeypatch.setattr(on_record, "STUDIES", {"s": study})
    monkeypatch.setattr(on_record, "record", lambda cell: record(cell, tmp_path))
    for cell in (*study.cells, *(more.cells if measured else ())):
        (file := record(cell, tmp_path)).parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = on_record.gathered(more, **plans.USUAL).cells
    assert [(c.batch_size, c.trials, c.hits) for c in found if c.sparsity == 0] == expected
    assert [c for c in found if c.sparsity] == [c for c in study.cells if c.sparsity], "curves of which nothing was given"


def test_a_race_stands_in_only_where_no_exact_search_is_on_record(monkeypatch, tmp_path):
    monkeypatch.setattr(on_record, "DATA", tmp_path)
    asked = {"name": "mnist-simple-cnn", "batch_sizes": [2048], "algorithms": ["momentum"], "sparsities": [0.0], "trials": 32}
    exact = Cell("mnist-simple-cnn", 2048, trials=32, hits=2)
    race = dataclasses.replace(exact, hits=1, **BY_LOSSES)
    assert race in plans.study("mnist").cells
    for measured, expected in ((None, {5}), (race, {1}), (exact, {2})):
        if measured:
            (file := record(measured, tmp_path)).parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        found = grid(**asked).cells[0]
        assert {found.hits} == expected and (found.race is None) == (measured != race)


def test_one_process_and_two_give_the_same_records(undisturbed, tmp_path):
    sweeps.run(tiny(), tmp_path, jobs=2)
    assert len(undisturbed) == 4 and bodies(tmp_path) == undisturbed


def test_a_local_dask_cluster_gives_the_same_records(undisturbed, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster), joblib.parallel_config(backend="dask"):
            sweeps.run(tiny(), tmp_path, jobs=-1)
    assert bodies(tmp_path) == undisturbed


def test_a_sweep_killed_again_and_again_ends_with_the_undisturbed_tables():
    done = subprocess.run([sys.executable, "-m", "tests.kills", "8"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    resumed = int(re.fullmatch(r"8 kills, after (\d+) of them .*: every table is the same\n", done.stdout)[1])
    assert resumed >= 2, "hardly any cell went on from a state"


def alive(group):
    """The processes of a session that still run."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
            found += [stat.parent.name] if int(session) == group and state != "Z" else []
    return found


STOPPED = """
import pathlib, sys
from lib.engine import lockstep
from lib.measuring import sweeps
from lib.__main__ import main
from lib.records import on_record, places, results
from lib.studies import plans
folder = pathlib.Path(sys.argv[1])
study = on_record.grid("digits-cnn", [64], ["momentum"], [0.0, 0.5, 0.9], trials=100, hits=100, max_steps=10**6)
plans.STUDIES["s"] = study
for function in (results.missing, sweeps.run, results.check, results.kept):
    function.__defaults__ = tuple(folder if v == places.DATA else v for v in function.__defaults__)
lockstep.SAVE_EVERY = 0.0
main(["run", "s", "--jobs", sys.argv[2]])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc")
@pytest.mark.parametrize(
    ("count", "by", "to"), [(1, "SIGINT", os.kill), (2, "SIGTERM", os.kill), (2, "SIGINT", os.killpg)]
)
def test_a_signal_ends_the_sweep_and_its_workers_in_one_line(count, by, to, heard, tmp_path):
    command = [sys.executable, "-c", STOPPED, str(tmp_path), str(count)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True
    )
    try:
        deadline = time.monotonic() + 90
        while len(list(tmp_path.rglob("sparsity-*"))) < count:
            assert process.poll() is None and time.monotonic() < deadline, process.stderr.read()
            time.sleep(0.05)
        time.sleep(1)
        to(process.pid, getattr(signal, by))
        said = process.communicate(timeout=30)[1]
        assert process.returncode == 128 + getattr(signal, by)
        assert "Traceback" not in said and "KeyboardInterrupt" not in said
        assert re.search(rf"\nstopped by {by}; 0 of 3 cells are in data/, and (no|the) state of .*; to go on: python -m "
                         rf"lib run s --jobs {count} --device cpu\n$", said), said  # fmt: skip
        time.sleep(0.5)
        assert not alive(process.pid)
        assert not list(tmp_path.rglob(".*.part"))
    finally:
        if alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def test_whoever_calls_from_a_notebook_gets_the_interruption_itself(heard, tmp_path, monkeypatch):
    monkeypatch.setattr(one_cell, "train_cell", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        sweeps.results(tiny(), "full", folder=tmp_path)


def test_a_cluster_with_a_single_thread_trains_there(undisturbed, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster), joblib.parallel_config(backend="dask"):
            monkeypatch.setattr(one_cell.lockstep, "train", lambda *_, **__: pytest.fail("trained in the client"))
            sweeps.run(tiny(), tmp_path, jobs=-1)
    assert bodies(tmp_path) == undisturbed


@pytest.mark.parametrize("what", [0, 10**9, "2"])
def test_a_bad_number_of_jobs_is_refused(what, tmp_path):
    with pytest.raises(ValueError, match=f"jobs: {what!r} is not allowed; it must be a whole number from 1 to {jobs.MOST}, or -1"):
        sweeps.run(tiny(), tmp_path, jobs=what)


def test_a_folder_that_cannot_be_written_is_named_before_any_training(tmp_path, monkeypatch):
    monkeypatch.setattr(one_cell, "train_cell", lambda *_, **__: pytest.fail("trained"))
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    file = record(tiny().cells[0], tmp_path)
    with pytest.raises(PermissionError, match=rf"cannot be written \(Permission denied\): '{file}'"):
        sweeps.run(tiny(), tmp_path)


def test_what_a_killed_process_has_left_is_removed_after_a_day(tmp_path, monkeypatch):
    (folder := record(tiny().cells[0], tmp_path).parent).mkdir(parents=True)
    for name, age in ((".old.csv.1.part", 90_000), (".new.csv.1.part", 60)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)
    one_cell.measure(tiny().cells[0], tmp_path)
    assert [file.name for file in folder.glob(".*")] == [".new.csv.1.part"]


@pytest.mark.parametrize("make", [pathlib.Path.mkdir, lambda file: file.symlink_to("nowhere")], ids=["a folder", "a broken link"])
def test_what_is_called_a_record_but_cannot_be_read_is_named(make, tmp_path):
    (file := record(tiny().cells[0], tmp_path)).parent.mkdir(parents=True)
    make(file)
    with pytest.raises(store.RecordError, match=rf"{file}: cannot be read .* move it out of data/"):
        results.check(tiny(), tmp_path)


@pytest.mark.parametrize("name", plans.STUDIES)
def test_smoke_is_short_or_refused(name):
    study = plans.study(name)
    digits, to_goal = (study.cells[0].workload.startswith("digits"), study.cells[0].stop == "goal")
    if to_goal and not digits:
        with pytest.raises(ValueError, match=f"budget: 'smoke' is not allowed; it must be cached.* {study.cells[0].workload}; "):
            study.smoke()
    else:
        toys = study.smoke().cells
        assert len({c.workload for c in toys}) == 1
        assert sum(c.trials * c.max_steps * c.batch_size for c in toys) < (10**8 if digits else 10**5)


def test_smoke_is_kept_by_the_code_that_made_it(monkeypatch):
    """Toy records that older code left behind are not found, whichever module changed."""
    read = pathlib.Path.read_bytes

    def anew() -> dict:
        files = (ROOT / "lib" / f"{name}.py" for name in ("__init__", "records/places"))
        return {k: v for file in files for k, v in runpy.run_path(str(file)).items()}

    before = anew()
    monkeypatch.setattr(pathlib.Path, "read_bytes", lambda f: read(f) + b"#" * (f.name == "smoothness.py"))
    after = anew()
    assert before["SOURCE"] == after["SOURCE"] and before["SMOKE"] != after["SMOKE"]
    assert before["SMOKE"].parent == after["SMOKE"].parent == ROOT / "_build" / "smoke"


def test_code_edited_after_it_was_loaded_does_not_measure(monkeypatch):
    """A notebook holds the old modules that plan, and would load the new ones that train: no digest names both."""
    read = pathlib.Path.read_bytes
    monkeypatch.setattr(pathlib.Path, "read_bytes", lambda f: read(f) + b"#" * (f.name == "lockstep.py"))
    with pytest.raises(RuntimeError, match="lib was edited"):
        runpy.run_path(str(ROOT / "lib" / "measuring" / "machine.py"))


READING = ("lib.analysis.fixed_budgets", "lib.analysis.scaling", "lib.analysis.followed_paths", "lib.analysis.rate_rules",
           "lib.claims", "lib.probes.paths", "lib.probes.portraits", "lib.probes.tracks", "chapters.limits.family_curves",
           "chapters.messages.message_results")  # fmt: skip


def test_reading_records_needs_no_pytorch_nor_distributions():
    """They take long to import, and most chapters only read."""
    ask = f"import sys, {', '.join(READING)}; print({{'torch', 'scipy.stats'}} & {{*sys.modules}})"
    told = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert told.stdout.strip() == "set()"


def test_smoke_is_small_and_kept_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "SMOKE", tmp_path)
    study = plans.study("digits")
    assert len(study.smoke().cells) <= 6 and all(c.trials == 16 and c.max_steps == 400 for c in study.smoke().cells)
    frame = sweeps.results(tiny(), "smoke", folder=tmp_path / "never")
    assert not (tmp_path / "never").exists() and len(frame) == 16 * len(tiny().smoke().cells)


def test_the_table_says_what_ran(undisturbed, tmp_path):
    frame = sweeps.results(tiny(), "full", folder=tmp_path)
    assert len(frame) == 24 and not frame.attrs["missing"] and len(frame.attrs["provenance"]) == 4
    assert set(frame.status) <= {"complete", "stopped", "infeasible", "budget"}
    assert (frame.steps.dropna() <= frame.last_step[frame.steps.notna()]).all()
    assert (frame.precision == "float32").all() and (frame.max_steps == 40).all()


@pytest.mark.parametrize(("given", "hits"), [({}, 5), ({"trials": 32}, 5), ({"trials": 8}, 1), ({"trials": 8, "hits": 3}, 3)])
def test_a_small_search_does_not_wait_for_its_worst_trials(given, hits):
    cells = grid("digits-mlp", [64], ["momentum"], [0.0], **given).cells
    assert [c.hits for c in cells] == [hits]


def test_a_grid_takes_the_search_that_is_on_record_however_many_hits_it_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(on_record, "DATA", tmp_path)
    ask = dict(name="digits-mlp", batch_sizes=[64, 256], algorithms=["sgd"], sparsities=[0.0], trials=32)
    assert [c.hits for c in grid(**ask).cells] == [5, 5]
    kept = record(Cell("digits-mlp", 256, "sgd", 0.0, trials=32, hits=2), tmp_path)
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert [c.hits for c in grid(**ask).cells] == [5, 2]
    assert [c.hits for c in grid(**ask, hits=3).cells] == [3, 3]
