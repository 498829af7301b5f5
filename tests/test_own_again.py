"""A reader's own workload gives the same records in every thread and process, or none: what differs
in silence is refused.
"""

import json
import os
import random
import sys
import threading

import joblib
import numpy as np
import pytest
import torch

from lib import ROOT, own
from lib.engine import flattening, lockstep
from lib.measuring import one_cell, sweeps
from lib.records import store
from lib.records.on_record import grid
from lib.records.store import record
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads import catalogue, datasets, models, own_file, own_network

GOOD = """
import random, sys
import numpy as np
import torch
from torch import nn
from lib.own import Own

def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

def task():
    x = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    y = (x.sum(1) > 0).long()
    return Own(model=build, train=(x[:80], y[:80]), validation=(x[80:], y[80:]), goals=(0.1, 0.2), max_steps=200)
"""
EXAMPLE = "chapters/own/next_letter.py:next_letter"


@pytest.fixture
def write(write):
    return lambda text=GOOD, name="mine.py": write(text, name)


def changed(**parts):
    """GOOD with other parts: `build` the body of that function, `layers` between its linear ones,
    `data` after y.
    """
    text = GOOD
    if "build" in parts:
        body = "return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))"
        text = text.replace(body, parts["build"].strip().replace("; ", "\n    "))
    if "layers" in parts:
        text = text.replace("nn.ReLU()", parts["layers"])
    if "data" in parts:
        text = text.replace("    return Own", f"    {parts['data']}\n    return Own")
    if "top" in parts:
        text = text.replace("def build", f"{parts['top']}\n\ndef build")
    assert text != GOOD
    return text


def bodies(folder):
    return {
        f.relative_to(folder): f.read_text(encoding="utf-8").partition("\n")[2]
        for f in folder.rglob("*.csv")
    }


# --- threads ----------------------------------------------------------------------------------------------------------


def test_initialisations_do_not_depend_on_threads(write):
    name = write(
        changed(build="    return nn.Sequential(nn.Linear(4, 300), nn.ReLU(), nn.Linear(300, 2))\n")
    )
    expected = [flattening.flatten(models.fresh(name, seed)) for seed in range(120)]
    stop = threading.Event()

    def disturb():  # what another thread of a worker does, which begins a cell of the book's own
        while not stop.is_set():
            models.build("mlp-64x2")

    other = threading.Thread(target=disturb)
    other.start()
    found = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(models.fresh)(name, s) for s in range(120)
    )
    stop.set()
    other.join()
    assert all(torch.equal(a, flattening.flatten(b)) for a, b in zip(expected, found, strict=True))


def test_a_worker_with_threads_gives_the_same_records(write, tmp_path):
    """A reader's own workload and one of the book's, side by side."""
    distributed = pytest.importorskip("distributed")
    asked = {"trials": 6, "hits": 6, "max_steps": 40}
    mine = grid(write(), [4, 16], ["momentum"], [0.0, 0.5], **asked).cells
    books = grid("digits-mlp", [4, 16], ["momentum"], [0.0, 0.5], **asked).cells
    study = Study("s", "", tuple(cell for pair in zip(mine, books, strict=True) for cell in pair))
    sweeps.run(study, tmp_path / "serial")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=4, processes=False, dashboard_address=None
    ) as cluster:
        with distributed.Client(cluster), joblib.parallel_config(backend="dask"):
            sweeps.run(study, tmp_path / "threads", jobs=-1)
    assert (
        bodies(tmp_path / "threads") == bodies(tmp_path / "serial")
        and len(bodies(tmp_path / "serial")) == 8
    )
    changing = {"date", "wall_s"}
    for cell in study.cells:
        heads = [store.head(record(cell, tmp_path / folder)) for folder in ("serial", "threads")]
        assert heads[0].keys() == heads[1].keys()
        assert {k for k in heads[0] if heads[0][k] != heads[1][k]} <= changing


def test_random_numbers_and_settings_are_the_readers_after_it(write):
    top = "torch.manual_seed(5)\nnp.random.seed(5)\nrandom.seed(5)\n"
    top += "torch.set_default_dtype(torch.float64)\ntorch.set_num_threads(3)"
    name = write(changed(top=top))
    before = (
        torch.get_rng_state(),
        np.random.get_state()[1].tolist(),
        random.getstate(),
        torch.get_num_threads(),
    )
    net = models.fresh(name, 3)
    assert (
        torch.equal(torch.get_rng_state(), before[0])
        and np.random.get_state()[1].tolist() == before[1]
    )
    assert random.getstate() == before[2] and torch.get_num_threads() == before[3]
    assert (
        torch.get_default_dtype() == torch.float32 and next(net.parameters()).dtype == torch.float32
    )


# --- data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        {"data": "order = torch.randperm(120); x, y = x[order], y[order]"},
        {"data": "order = np.random.default_rng().permutation(120); x, y = x[order], y[order]"},
        {"top": "ORDER = torch.randperm(120)", "data": "x, y = x[ORDER], y[ORDER]"},
    ],
)
def test_data_that_differ_from_call_to_call_are_refused(write, tmp_path, parts):
    name = write(changed(**parts))
    with pytest.raises(
        own.OwnError,
        match=r"mine.py:task: train inputs: others when the function is called again is not allowed",
    ):
        sweeps.run(grid(name, [4], ["sgd"], [0.0], trials=2), tmp_path / "data")
    assert not (tmp_path / "data").exists()


BY_ENVIRONMENT = changed(data="import os; x = x + float(os.environ['SHIFT'])")


def test_data_that_differ_from_process_to_process_are_not_recorded_beside_each_other(
    write, tmp_path, monkeypatch
):
    monkeypatch.setenv("SHIFT", "0")
    name = write(BY_ENVIRONMENT)
    cells = grid(name, [4, 8], ["sgd"], [0.0], trials=2, max_steps=8).cells
    one_cell.measure(cells[0], tmp_path / "data")
    before = bodies(tmp_path / "data")
    monkeypatch.setenv("SHIFT", "0.5")
    own_file._load.cache_clear()  # as another process begins
    with pytest.raises(own.OwnError, match="mine.py:task: data: tensors that differ"):
        sweeps.run(Study("s", "", cells), tmp_path / "data")
    assert bodies(tmp_path / "data") == before, "measured all the same"
    monkeypatch.setenv("SHIFT", "0")
    own_file._load.cache_clear()
    sweeps.run(Study("s", "", cells), tmp_path / "data")
    assert len(bodies(tmp_path / "data")) == 2


def forge(file, **fields):
    first, _, body = file.read_text(encoding="utf-8").partition("\n")
    file.write_text(json.dumps({**json.loads(first), **fields}) + "\n" + body, encoding="utf-8")


def test_records_of_other_data_are_not_read_together_and_old_ones_that_tell_none_are(
    write, tmp_path
):
    study = grid(write(), [4, 8], ["sgd"], [0.0], trials=2, max_steps=8)
    sweeps.run(study, tmp_path / "data")
    first, second = (record(c, tmp_path / "data") for c in study.cells)
    head = store.head(first)
    assert head["data"] == own_file.data(study.cells[0].workload) and "data" not in head["cell"]
    forge(first, data="0" * 12)
    with pytest.raises(
        own.OwnError, match=f"data: tensors that differ .{'0' * 12} of .*{first.name}"
    ):
        sweeps.results(study, folder=tmp_path / "data")
    old = {k: v for k, v in store.head(first).items() if k != "data"}
    first.write_text(
        json.dumps(old) + "\n" + first.read_text(encoding="utf-8").partition("\n")[2],
        encoding="utf-8",
    )
    assert len(sweeps.results(study, folder=tmp_path / "data")) == 4


def test_a_file_that_changes_while_a_cell_trains_gives_no_record(write, tmp_path, monkeypatch):
    cell, train = (
        grid(write(), [4], ["sgd"], [0.0], trials=2, max_steps=8).cells[0],
        one_cell.train_cell,
    )

    def edited(*arguments, **options):
        outcome = train(*arguments, **options)
        write(
            GOOD.replace("nn.Linear(4, 8)", "nn.Linear(4, 9)").replace(
                "nn.Linear(8, 2)", "nn.Linear(9, 2)"
            )
        )
        return outcome

    monkeypatch.setattr(one_cell, "train_cell", edited)
    with pytest.raises(
        own.OwnError, match="mine.py:task: the file has changed while batch-4-.*csv was trained"
    ):
        one_cell.measure(cell, tmp_path / "data")
    assert not list((tmp_path / "data").rglob("*.csv"))


def test_a_changed_file_of_the_same_age_and_length_is_read_anew(write, tmp_path, monkeypatch):
    """The import system would take the compiled module of the first for that of the second."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    found = []
    for seed in (0, 1):
        name = write(GOOD.replace("manual_seed(0)", f"manual_seed({seed})"))
        os.utime(tmp_path / "mine.py", (1e9, 1e9))
        found.append(datasets.load(name).train.x)
    assert not torch.equal(*found)


# --- networks ---------------------------------------------------------------------------------------------------------

SHARED = "NET = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))"
BLOCK = """class Block(nn.Module):
    def __init__(self):
        super().__init__()
        {0}

    def forward(self, x):
        {1}
"""


SETS = "net[0].weight.data = torch.tensor(draw).float()"
PAIR = "nn.Sequential(nn.Linear(4, n), nn.Linear(n, 2))"
SQUARES = "nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2))"
BLOCK_FIRST = "return nn.Sequential(Block(), nn.Linear(4, 2))"
UNLIKE = [
    ({"top": SHARED, "build": "return NET"}, "shares its parameters .* built anew"),
    (
        {"top": "W = torch.randn(8, 4)",
         "build": f"n = 8; net = {PAIR}; net[0].weight = nn.Parameter(W); return net"},
        "shares its parameters with an earlier one",
    ),
    (
        {"build": f"net = {SQUARES}; net[1].weight = nn.Parameter(net[0].weight.data); return net"},
        "parameters that share memory",
    ),
    (
        {"build": "net = nn.Sequential(nn.Linear(4, 2)); draw = np.random.default_rng().normal("
                  f"size=(2, 4)); {SETS}; return net"},
        "another initialisation from the same seed",
    ),
    (
        {"build": "torch.manual_seed(0); return nn.Sequential(nn.Linear(4, 2))"},
        "the same initialisation from every seed",
    ),
    ({"build": f"n = 2 + torch.randint(9, (1,)).item(); return {PAIR}"}, "of other parameters"),
    ({"top": BLOCK.format("self.r = torch.randn(8)", "return x * self.r"), "layers": "Block()"},
     "keeps more than"),
    ({"top": BLOCK.format("pass", "return x - x.mean(0)"), "layers": "Block()"},
     "others for an example alone"),
    ({"top": BLOCK.format("pass", "return x.clamp_(-1, 1)"), "build": BLOCK_FIRST},
     "changes its inputs in place"),
    (
        {"top": BLOCK.format("self.w = nn.Linear(8, 8)",
                             "self.w.weight.data.clamp_(-.01, .01); return self.w(x)"),
         "layers": "Block()"},
        "changes its parameters when asked",
    ),
    ({"top": BLOCK.format("pass", "np.random.rand(); return x"), "layers": "Block()"},
     "changes global random numbers"),
    ({"top": BLOCK.format("pass", "torch.set_num_threads(3); return x"), "layers": "Block()"},
     "numbers or settings"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "message"), UNLIKE)
def test_networks_that_trials_would_not_have_for_themselves_are_refused(
    write, tmp_path, parts, message
):
    name = write(changed(**parts))
    with pytest.raises(own.OwnError, match=f"mine.py:task: model.*: .*{message}"):
        sweeps.run(grid(name, [4], ["sgd"], [0.0], trials=2), tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("draw", ["torch.tensor(np.random.normal(size=(2, 4)))",
                                  "torch.tensor([[random.random() for _ in range(4)] for _ in range(2)])"])  # fmt: skip
def test_numpys_and_pythons_numbers_are_seeded_for_every_trial_too(write, draw):
    name = write(
        changed(
            build=f"    net = nn.Sequential(nn.Linear(4, 2))\n    net[0].weight.data = {draw}\n    return net\n"
        )
    )
    first, again, other = (models.fresh(name, seed)[0].weight for seed in (5, 5, 6))
    assert (
        torch.equal(first, again) and not torch.equal(first, other) and first.dtype == torch.float32
    )


def test_a_parameter_used_twice_and_batch_normalisation_without_buffers_are_fine(write):
    tied = "    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2))\n"
    tied += "    net[1].weight = net[0].weight\n    return net\n"
    assert len(one_cell.start(Cell(write(changed(build=tied)), 4, "sgd", trials=2)).w[0]) == 34
    cell = Cell(
        write(changed(layers="nn.BatchNorm1d(8, track_running_stats=False)")), 4, "sgd", trials=2
    )
    assert len(one_cell.train_cell(cell).status) == 2


@pytest.mark.parametrize("seed", [0, 100_000 * 9999 + 4095])
def test_every_seed_of_a_trial_serves_all_generators(seed):
    with own_network.alone(seed):
        drawn = torch.rand(1).item(), np.random.rand(), random.random()
    with own_network.alone(seed):
        assert drawn == (torch.rand(1).item(), np.random.rand(), random.random())


# --- fields -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("train=(x[:80]", "train=(x[:80].double() * 1e300", "train inputs: a value that is not finite"),
        ("x[:80], y[:80]", "x[:80].mul(1e4).round(), y[:80]", "whole numbers up to .* float32", ),
        ("goals=(0.1, 0.2)", "goals=(0.1, 0.10000001)", "goals: .* differ in their first six digits"),
        ("max_steps=200", r"title='a\nb'", r"title: 'a\\nb' is not allowed; it must be text of printable"),
    ],
)  # fmt: skip
def test_fields_that_would_be_something_else_in_the_records_are_refused(write, old, new, message):
    text = GOOD.replace(old, new)
    if "round" in new:
        text, message = (
            text.replace("max_steps", "precision='bfloat16', max_steps"),
            message.replace("float32", "bfloat16"),
        )
    assert text != GOOD
    with pytest.raises(own.OwnError, match=f"mine.py:task: .*{message}"):
        catalogue.workload(write(text))


def test_tensors_with_gradients_strides_and_numpys_numbers_train_like_plain_ones(write, tmp_path):
    plain = grid(write(), [4], ["sgd"], [0.5], trials=4, max_steps=50).cells[0]
    expected = one_cell.table(plain, one_cell.train_cell(plain))
    text = changed(
        data="x = x.T.contiguous().T.requires_grad_() * 1; y = y.repeat_interleave(2)[::2]"
    )
    text = text.replace("goals=(0.1, 0.2)", "goals=(np.float64(0.1), np.float64(0.2))")
    cell = grid(write(text), [4], ["sgd"], [0.5], trials=4, max_steps=50).cells[0]
    assert one_cell.table(cell, one_cell.train_cell(cell)).equals(expected)
    assert all(type(g) is float for g in catalogue.workload(cell.workload).goals)
    assert not datasets.load(cell.workload).train.x.requires_grad


def test_whole_numbers_are_not_rounded_by_a_cells_own_precision_either(write, tmp_path):
    name = write(GOOD.replace("x[:80], y[:80]", "x[:80].mul(1e4).round(), y[:80]"))
    with pytest.raises(
        own.OwnError,
        match="mine.py:task: train inputs: whole numbers up to .* such as bfloat16 keeps",
    ):
        one_cell.measure(Cell(name, 4, "sgd", trials=2, precision="bfloat16"), tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("threads", "flush"), [(1, True), (4, False)])
def test_tensors_do_not_depend_on_the_settings_of_the_process(write, threads, flush):
    name = write(
        changed(
            data="x = x * 0 + torch.get_num_threads() + float((torch.tensor([1e-40]) * 1).any())"
        )
    )
    plain, before = own_file.data(name), torch.get_num_threads()
    own_file._load.cache_clear()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(flush)
    torch.set_default_dtype(torch.float64)
    try:
        assert own_file.data(name) == plain
        assert torch.get_num_threads() == threads and own_network._flushing() == flush
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)
        torch.set_default_dtype(torch.float32)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelling",
    ["chapters/../chapters//own/next_letter.py", str(ROOT / "chapters/own/next_letter.py")],
)
def test_every_spelling_of_a_file_in_the_book_is_one_workload_with_its_records(
    spelling, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    cell = Cell(f"{spelling}:next_letter", 4, trials=32)
    assert cell.workload == EXAMPLE == catalogue.workload(f"{spelling}:next_letter").name
    assert record(cell).exists(), "the example's records are lost"
    monkeypatch.chdir(ROOT / "chapters")
    assert (
        Cell("own/next_letter.py:next_letter", 4, trials=32) == cell
        and own_file.canonical(cell.workload) == EXAMPLE
    )
    (tmp_path / "link.py").symlink_to(ROOT / "chapters/own/next_letter.py")
    assert own_file.canonical(f"{tmp_path}/link.py:next_letter") == EXAMPLE


def test_a_file_elsewhere_goes_by_its_whole_path(write, tmp_path, monkeypatch):
    name = write()
    (tmp_path / "below").mkdir()
    cell = Cell(name, 4)
    assert cell.workload == f"{tmp_path.resolve()}/mine.py:task"
    monkeypatch.chdir(tmp_path / "below")
    assert Cell("../mine.py:task", 4) == cell == Cell(cell.workload, 4)
    assert record(Cell("../mine.py:task", 4)) == record(cell)


def test_a_name_that_two_files_answer_to_is_refused(write, tmp_path):
    (tmp_path / "chapters/own").mkdir(parents=True)
    write(name="chapters/own/next_letter.py")
    with pytest.raises(own.OwnError, match="must name one file, and there are .* and "):
        Cell(EXAMPLE, 4)


@pytest.mark.parametrize("name", ["a b.py", "a.py:b.py", "<b>&'.py"])
def test_odd_names_are_fine(write, tmp_path, name):
    cell = grid(write(name=name), [4], ["sgd"], [0.0], trials=2, max_steps=4).cells[0]
    assert one_cell.measure(cell, tmp_path / "data") == record(cell, tmp_path / "data")
    assert len(sweeps.results(Study("s", "", (cell,)), folder=tmp_path / "data")) == 2


# --- endings ----------------------------------------------------------------------------------------------------------


LATER = BLOCK.format("pass", "sys.exit('bye') if x.abs().max() > {limit} else None; return x")


def test_an_exit_while_training_or_pruning_is_an_error(write):
    late = changed(top=LATER.format(limit=3), layers="Block()").replace(
        "(x.sum(1) > 0).long()", "torch.arange(120) % 2"
    )
    with pytest.raises(lockstep.TrialError, match=r"step \d+: .*SystemExit: bye"):
        one_cell.train_cell(Cell(write(late), 4, "momentum", trials=16))
    far = changed(
        data="x[40] = 50",
        top=LATER.format(limit=20),
        build="    return nn.Sequential(Block(), nn.Linear(4, 2))\n",
    )
    with pytest.raises((own.OwnError, RuntimeError), match="SystemExit: bye"):
        one_cell.start(Cell(write(far), 4, "sgd", 0.5, trials=1))


def test_a_readers_interrupt_is_one(write):
    with pytest.raises(KeyboardInterrupt):
        catalogue.workload(write(changed(data="raise KeyboardInterrupt")))
