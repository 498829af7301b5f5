"""A reader's own workload gives the same records in every thread and process, or none: what differs
silently is refused (wrong files are tried in tests/test_wrong_workloads.py).
"""

import dataclasses
import json
import os
import random
import sys
import textwrap
import threading
import types

import joblib
import numpy as np
import pandas as pd
import pytest
import torch

from lib import ROOT, BookError, own
from lib.analysis import hardware, scaling
from lib.engine import checkpoint, flattening, training_state
from lib.measuring import one_search, sweeps
from lib.records import store
from lib.records.selection import grid
from lib.records.store import record
from lib.studies.search import Search
from lib.studies.study import Study
from lib.workloads import catalogue, models, own_file, own_network

GOOD = """
import os, random
import numpy as np
import torch
from torch import nn
from lib.own import Own

def build(width=8):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 2))

def task():
    x = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    y = (x.sum(1) > 0).long()
    return Own(model=build, train=(x[:80], y[:80]), validation=(x[80:], y[80:]), max_steps=200,
               goals=(0.1, 0.2))
"""
WIDER = GOOD.replace("width=8", "width=9")
EXAMPLE = "chapters/own/next_letter.py:next_letter"
TINY = {"trials": 2, "max_steps": 8}


@pytest.fixture
def write(write):
    return lambda text=GOOD, name="mine.py": write(text, name)


def network(name, seed):
    return catalogue.workload(name).network(seed)


def with_data(line):
    """The workload with a further line about its data."""
    return GOOD.replace("    return Own", f"    {line}\n    return Own")


def bodies(folder):
    texts = {f.relative_to(folder): f.read_text(encoding="utf-8") for f in folder.rglob("*.csv")}
    return {file: text.partition("\n")[2] for file, text in texts.items()}


def test_it_trains_and_prunes_like_any_other_and_not_twice(write, tmp_path, monkeypatch):
    name, folder = write(), tmp_path / "data"
    study = grid(name, [4, 16], ["sgd"], [0.0, 0.5], trials=8, hits=2)
    sweeps.run(study, folder)
    frame = sweeps.results(study, folder=folder)
    assert not frame.attrs["missing"] and frame.steps.notna().any()
    places = {file.parts[-5:-3] for file in folder.rglob("*.csv")}
    assert places == {("own", store.folder_name(own_file.canonical(name)))}
    work = catalogue.workload(name)
    assert (work.train_size, work.goal, work.alone) == (80, 0.1, False)
    monkeypatch.setattr(one_search, "measure", lambda *_: pytest.fail("trained again"))
    sweeps.run(study, folder)


def test_a_changed_file_of_the_same_age_and_length_is_read_anew(write, tmp_path, monkeypatch):
    """The import system would take the compiled module of the first for that of the second."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    inputs, masks = [], []
    for seed in (0, 1):
        name = write(GOOD.replace("manual_seed(0)", f"manual_seed({seed})"))
        os.utime(tmp_path / "mine.py", (1e9, 1e9))
        cell = Search(name, 4, "sgd", 0.5, trials=2)
        inputs.append(cell.work.train().x)
        masks.append(one_search.start(cell).mask)
    assert not torch.equal(*inputs) and not torch.equal(*masks), "pruned by the old data"


def test_what_was_measured_before_a_file_changed_does_not_count_and_does_not_block(write, tmp_path):
    folder = tmp_path / "data"
    study = grid(write(), [4, 64], ["sgd"], [0.0], trials=2)
    sweeps.run(study, folder)
    # A batch of 64 is no longer one of its cells
    write(WIDER.replace("x[:80], y[:80]", "x[:60], y[:60]"))
    assert network("mine.py:task", 0)[0].out_features == 9
    study = Study("s", "", study.searches[:1]).renewed()
    assert sweeps.results(study, folder=folder).empty
    assert len(sweeps.results(study, "full", folder=folder)) == 2
    record(study.searches[0], folder).write_text("a,b\n", encoding="utf-8")
    with pytest.raises(store.RecordError, match="not a record of this book; move it out of data/"):
        sweeps.results(study, folder=folder)


@pytest.mark.parametrize("field", ["workload", "algorithm"])
def test_no_file_that_a_record_names_is_run(write, tmp_path, field):
    """Whoever can write into data/ gets nothing executed."""
    folder, ran = tmp_path / "data", tmp_path / "ran"
    study = grid(write(), [4], ["sgd"], [0.0], trials=2)
    name = study.searches[0].workload
    sweeps.run(study, folder)
    foreign = tmp_path / "foreign.py"
    foreign.write_text(f"open({str(ran)!r}, 'w').close()\n", encoding="utf-8")
    fields = {"workload": name, "batch_size": 4, "algorithm": "sgd", field: f"{foreign}:f"}
    file = record(study.searches[0], folder).with_name("batch-4-deadbeef.csv")
    store.write(file, dataclasses.make_dataclass("Search", fields)(**fields), pd.DataFrame(), {})
    assert store.head(file)["cell"][field] == f"{foreign}:f"
    store.same_data(name, folder)
    assert len(sweeps.results(study, folder=folder)) == 2
    assert [*hardware.exact(name, folder).searches] == [*study.searches]
    assert hardware.adaptive(name, folder).empty and not ran.exists()


def test_a_file_that_changes_while_a_cell_trains_gives_no_record(write, tmp_path, monkeypatch):
    cell, train = Search(write(), 4, "sgd", **TINY), one_search.train_search

    def edited(*arguments, **options):
        outcome = train(*arguments, **options)
        write(WIDER)
        return outcome

    monkeypatch.setattr(one_search, "train_search", edited)
    with pytest.raises(own.OwnError, match="mine.py:task: the file has changed while batch-4-"):
        one_search.measure(cell, tmp_path / "data")
    assert not list((tmp_path / "data").rglob("*.csv"))


@pytest.mark.parametrize("options", [{}, {"race": 2.0}, {"race": 2.0, "rungs": "losses"}])
def test_a_search_that_met_no_goal_says_what_it_reached(write, options):
    """As if every answer had been read to the end at the last check."""
    hard = GOOD.replace("(0.1, 0.2)", "(0.0001, 0.001)")
    name = write(hard.replace("> 0", "+ torch.sin(40 * x[:, 0]) > 0"))
    out = one_search.train_search(Search(name, 4, "sgd", trials=4, hits=1, **options))
    left = out.status == "budget"
    assert left.any() and np.isnan(out.first).all() and (out.best_error[left] > 0.001).all()


def test_a_stop_in_a_notebook_says_what_is_kept_and_keeps_the_state(write, tmp_path, monkeypatch):
    hardest = GOOD.replace("goals=(0.1", "goals=(0.0")
    study = grid(write(hardest), [16], ["sgd"], [0.0], trials=8, hits=8)
    update, steps, now = training_state.Descent.advance, [], [0.0]
    clock = types.SimpleNamespace(perf_counter=lambda: now[0], time=lambda: 0.0)
    for module in (training_state, checkpoint):
        monkeypatch.setattr(module, "time", clock)

    def stopped(*arguments):
        now[0] += 1.0
        steps.append(0)
        if len(steps) == 15:  # seconds: far less than minutes
            raise KeyboardInterrupt
        return update(*arguments)

    monkeypatch.setattr(training_state.Descent, "advance", stopped)
    with pytest.raises(KeyboardInterrupt) as stop:
        sweeps.results(study, "full", folder=tmp_path / "data")
    (shown,) = stop.value._render_traceback_()
    assert "0 of 1 missing cells are finished and kept; run the same call" in shown
    assert len(list(tmp_path.rglob("*.part"))) == 1


def test_initialisations_do_not_depend_on_threads(write):
    name = write(GOOD.replace("width=8", "width=300"))
    expected = [flattening.flatten(network(name, seed)) for seed in range(60)]
    stop = threading.Event()

    def disturb():  # what a worker's other thread does when it begins a cell of the book's own
        while not stop.is_set():
            models.build("mlp-64x2")

    disturber = threading.Thread(target=disturb)
    disturber.start()
    threads = joblib.Parallel(n_jobs=4, backend="threading")
    networks = threads(joblib.delayed(network)(name, seed) for seed in range(60))
    stop.set()
    disturber.join()
    assert all(torch.equal(w, flattening.flatten(net)) for w, net in zip(expected, networks))


def test_a_worker_with_threads_gives_the_same_records(write, tmp_path):
    """A reader's own workload and one of the book's, side by side."""
    distributed = pytest.importorskip("distributed")
    options = {"trials": 6, "hits": 6, "max_steps": 40}
    names = write(), "digits-mlp"
    studies = (grid(name, [4, 16], ["momentum"], [0.0, 0.5], **options) for name in names)
    pairs = zip(*(study.searches for study in studies))
    study = Study("s", "", tuple(cell for pair in pairs for cell in pair))
    serial, threads = tmp_path / "serial", tmp_path / "threads"
    sweeps.run(study, serial)
    workers = {"n_workers": 1, "threads_per_worker": 4, "processes": False}
    with (
        distributed.LocalCluster(**workers, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        sweeps.run(study, threads, jobs=-1)
    assert bodies(threads) == bodies(serial) and len(bodies(serial)) == 8
    changing = dict.fromkeys(("date", "wall_s", "sha256"))
    for cell in study.searches:
        heads = [store.head(record(cell, folder)) | changing for folder in (serial, threads)]
        assert heads[0] == heads[1]


@pytest.mark.parametrize(("threads", "flush"), [(1, True), (4, False)])
def test_random_numbers_and_settings_are_the_readers_and_change_nothing(write, threads, flush):
    """Whatever the file sets, and whatever the process had set."""
    top = "torch.manual_seed(5)\nnp.random.seed(5)\nrandom.seed(5)\ntorch.set_num_threads(3)\n"
    line = "x = x * 0 + torch.get_num_threads() + float((torch.tensor([1e-40]) * 1).any())"
    name = write(with_data(line).replace("def build", f"{top}\ndef build"))
    plain, before = own_file.load(name).data, torch.get_num_threads()
    own_file._load.cache_clear()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(flush)
    torch.set_default_dtype(torch.float64)
    numbers = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    try:
        assert own_file.load(name).data == plain
        assert next(network(name, 3).parameters()).dtype == torch.float32
        assert torch.get_num_threads() == threads and own_network.flushing() == flush
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)
        torch.set_default_dtype(torch.float32)
    assert torch.equal(torch.get_rng_state(), numbers[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == numbers[1:]


MODULE = {
    "a dataclass": """
        @dataclass
        class Config:
            width: int = 8
    """,
    "hints by name": """
        class Pair(typing.NamedTuple):
            x: torch.Tensor
        typing.get_type_hints(Pair)
    """,
    "a module beside it": "from beside import WIDTH",
}


@pytest.mark.parametrize("kind", MODULE)
def test_a_file_is_a_module_in_its_folder(write, tmp_path, kind):
    (tmp_path / "beside.py").write_text("WIDTH = 8\n")
    top = "from __future__ import annotations\nimport typing\nfrom dataclasses import dataclass\n"
    name = write(top + GOOD + textwrap.dedent(MODULE[kind]))
    assert own_file.load(name).training.goals == (0.1, 0.2)


def test_modules_of_one_name_beside_two_files_are_two(write, tmp_path):
    text = GOOD.replace("goals=(0.1, 0.2)", "goals=GOALS") + "\nfrom beside_two import GOALS\n"
    for goal in (0.1, 0.2, 0.1):
        folder = tmp_path / str(goal)
        folder.mkdir(exist_ok=True)
        (folder / "beside_two.py").write_text(f"GOALS = ({goal},)\n")
        own_file._load.cache_clear()
        assert own_file.load(write(text, f"{goal}/mine.py")).training.goals == (goal,)


def test_a_loaders_processes_import_what_is_in_the_file(write):
    text = GOOD.replace("import Own", "import Training") + """
from torch.utils.data import DataLoader, Dataset

class Pairs(Dataset):
    def __len__(self): return 16
    def __getitem__(self, i): return torch.arange(4.0) + i, i % 2

def loaded(batch_size, seed):
    workers = {"num_workers": 1, "multiprocessing_context": "forkserver"}
    return DataLoader(Pairs(), batch_size, **(workers if batch_size == 16 else {}))

def task():
    x = torch.randn(40, 4)
    return Training(build, loaded, (torch.ones(4, 4), torch.arange(4) % 2), (0.2,), examples=16)
"""
    training = own_file.load(write(text)).training
    with own_network.alone():
        x, _ = next(iter(training.train(16, 0)))
    assert x.shape == (16, 4) and x[3, 0] == 3


def test_data_that_differ_from_process_to_process_are_not_recorded_beside_each_other(
    write, tmp_path, monkeypatch
):
    name, folder = write(with_data("x = x + float(os.environ['SHIFT'])")), tmp_path / "data"

    def process(shift):
        monkeypatch.setenv("SHIFT", shift)
        own_file._load.cache_clear()

    process("0")
    study = grid(name, [4, 8], ["sgd"], [0.0], **TINY)
    one_search.measure(study.searches[0], folder)
    before = bodies(folder)
    process("0.5")
    with pytest.raises(own.OwnError, match="mine.py:task: data: different tensors"):
        sweeps.run(study, folder)
    assert bodies(folder) == before, "measured all the same"
    with pytest.raises(own.OwnError, match="different tensors .*returns now"):  # nor are they shown
        sweeps.results(grid(name, [4], ["sgd"], [0.0], **TINY), folder=folder)
    process("0")
    sweeps.run(study, folder)
    assert len(bodies(folder)) == 2
    file, digest = record(study.searches[0], folder), own_file.load(name).data
    head, body = file.read_text(encoding="utf-8").split("\n", 1)
    head = json.loads(head.replace(digest, "000000000000")) | {"sha256": ""}
    head["sha256"] = store._sha(f"{json.dumps(head)}\n{body}")
    file.write_text(f"{json.dumps(head)}\n{body}", encoding="utf-8")
    with pytest.raises(own.OwnError, match=f"data: different tensors .*000000 of .*{file.name}"):
        sweeps.results(study, folder=folder)


@pytest.mark.parametrize("draw", ["np.random.normal(size=(2, 4))", "[[random.random()] * 4] * 2"])
def test_numpys_and_pythons_numbers_are_seeded_for_every_trial_too(write, draw):
    built = f"net = nn.Sequential(nn.Linear(4, 2))\n    net[0].weight.data = torch.tensor({draw})"
    name = write(GOOD.replace("return nn.Seq", f"{built}\n    return net\n    nn.Seq"))
    seeds = 999_904_095, 999_904_095, 6  # the first of them is the largest of a trial's
    first, again, third = (network(name, seed)[0].weight for seed in seeds)
    assert torch.equal(first, again) and not torch.equal(first, third)
    assert first.dtype == torch.float32


def test_a_parameter_used_twice_and_batch_normalisation_without_buffers_are_fine(write):
    tied = "net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2))\n"
    tied += "    net[1].weight = net[0].weight\n    return net\n    nn.Seq"
    name = write(GOOD.replace("return nn.Seq", tied))
    assert len(one_search.start(Search(name, 4, "sgd", trials=2)).w[0]) == 34
    name = write(GOOD.replace("nn.ReLU()", "nn.BatchNorm1d(width, track_running_stats=False)"))
    assert len(one_search.train_search(Search(name, 4, "sgd", trials=2)).status) == 2


def test_tensors_with_gradients_strides_and_numpys_numbers_train_like_plain_ones(write):
    odd = with_data("x = x.T.contiguous().T.requires_grad_() * 1; y = y.repeat_interleave(2)[::2]")
    odd = odd.replace("goals=(0.1, 0.2)", "goals=(np.float64(0.1), np.float64(0.2))")
    tables = []
    for text in (GOOD, odd):
        cell = Search(write(text), 4, "sgd", 0.5, trials=4, max_steps=50)
        tables.append(one_search.table(cell, one_search.train_search(cell)))
    assert tables[0].equals(tables[1])
    assert all(type(goal) is float for goal in catalogue.workload("mine.py:task").goals)
    assert not catalogue.workload("mine.py:task").train().x.requires_grad


def test_every_spelling_of_a_file_in_the_book_is_one_workload_with_its_records(
    tmp_path, monkeypatch
):
    cell = Search(EXAMPLE, 4, trials=32)
    assert cell.workload == EXAMPLE and record(cell).exists(), "the example's records are lost"
    monkeypatch.chdir(ROOT / "chapters")
    (tmp_path / "link.py").symlink_to(ROOT / "chapters/own/next_letter.py")
    folders = "own", f"{ROOT}/chapters/../chapters//own"
    for file in (*(f"{folder}/next_letter.py" for folder in folders), f"{tmp_path}/link.py"):
        assert Search(f"{file}:next_letter", 4, trials=32) == cell


@pytest.mark.parametrize("file", ["a.py:b.py", "<b>&'.py"])
def test_a_file_elsewhere_goes_by_its_whole_path(write, tmp_path, monkeypatch, file):
    cell = Search(write(name=file), 4, "sgd", **TINY)
    assert cell.workload == f"{tmp_path.resolve()}/{file}:task"
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    relative = Search(f"../{file}:task", 4, "sgd", **TINY)
    assert relative == cell and one_search.measure(relative, tmp_path) == record(cell, tmp_path)
    assert len(sweeps.results(Study("s", "", (cell,)), folder=tmp_path)) == 2


def test_a_name_that_two_files_answer_to_is_refused(write, tmp_path):
    (tmp_path / "chapters/own").mkdir(parents=True)
    write(name="chapters/own/next_letter.py")
    with pytest.raises(BookError, match="names 2 files, is not allowed; .* one readable file"):
        Search(EXAMPLE, 4)


def test_a_readers_interrupt_is_one(write):
    with pytest.raises(KeyboardInterrupt):
        catalogue.workload(write(with_data("raise KeyboardInterrupt")))


def test_goals_may_be_found_out_or_stand_in_the_name(write):
    """Until they are found out, a search goes on to a goal nobody meets."""
    text = GOOD.replace("(0.1, 0.2)", '"within 10 % of the best after 100 steps"')
    work = catalogue.workload(write(text))
    assert work.facts.within == own.Within(0.1, 100) and work.goals == (0.0,)
    named = catalogue.workload("mine.py:task:0.1,0.20")
    assert named.goals == (0.1, 0.2) and named.facts.within is None and scaling.goal(named.name) == 0.1
    assert named.name.endswith("mine.py:task:0.1,0.2")
    assert Search(named.name, 16, "sgd").workload == Search("mine.py:task:.1,.2", 16).workload
