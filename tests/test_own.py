"""A reader's own workload works from a file, and whatever is wrong with it is named before or while it trains."""

import types

import numpy as np
import pytest
import torch

from lib import own
from lib.engine import checkpoint, lockstep
from lib.measuring import one_cell, sweeps
from lib.records import store
from lib.records.on_record import grid
from lib.records.store import record
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads import catalogue, datasets, models, own_file

GOOD = """
import torch
from torch import nn
from lib.own import Own

def task():
    x = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    y = (x.sum(1) > 0).long()
    return Own(model=lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
               train=(x[:80], y[:80]), validation=(x[80:], y[80:]), goals=(0.1, 0.2), max_steps=200)
"""


def test_it_trains_and_prunes_like_any_other_and_not_twice(write, tmp_path, monkeypatch):
    name = write(GOOD)
    study = grid(name, [4, 16], ["sgd"], [0.0, 0.5], trials=8, hits=2)
    sweeps.run(study, tmp_path / "data")
    frame = sweeps.results(study, folder=tmp_path / "data")
    assert not frame.attrs["missing"] and frame.steps.notna().any()
    folder = "own", own.folder_name(own_file.canonical(name))
    assert all(f.parts[-5:-3] == folder for f in (tmp_path / "data").rglob("*.csv"))
    assert datasets.train_size(name) == 80 and catalogue.workload(name).goal == 0.1
    monkeypatch.setattr(one_cell, "measure", lambda *_: pytest.fail("trained again"))
    sweeps.run(study, tmp_path / "data")


def test_a_changed_file_shares_no_records(write, tmp_path):
    name = write(GOOD)
    before = store.path(tmp_path, Cell(name, 4))
    write(GOOD.replace("nn.Linear(4, 8)", "nn.Linear(4, 9)").replace("nn.Linear(8, 2)", "nn.Linear(9, 2)"))
    assert store.path(tmp_path, Cell(name, 4)) != before
    assert models.build(name)[0].out_features == 9


def test_a_changed_file_is_read_anew_in_the_same_process(write):
    name = write(GOOD)
    cell, before = Cell(name, 4, "sgd", 0.5, trials=2), datasets.load(name).train.x
    mask = one_cell.start(cell).mask
    assert datasets.load(name).train.x is before
    write(GOOD.replace("manual_seed(0)", "manual_seed(1)"))
    assert not torch.equal(datasets.load(name).train.x, before)
    assert not torch.equal(one_cell.start(cell).mask, mask), "pruned by the scores of the old data"


def test_what_was_measured_before_a_file_changed_does_not_count_and_does_not_block(write, tmp_path):
    study = grid(write(GOOD), [4, 64], ["sgd"], [0.0], trials=2)
    sweeps.run(study, tmp_path / "data")
    write(GOOD.replace("x[:80], y[:80]", "x[:60], y[:60]"))  # a batch of 64 is no longer one of its cells
    study = Study("s", "", study.cells[:1])
    assert sweeps.results(study, folder=tmp_path / "data").empty
    assert len(sweeps.results(study, "full", folder=tmp_path / "data")) == 2
    record(study.cells[0], tmp_path / "data").write_text("a,b\n", encoding="utf-8")
    with pytest.raises(store.RecordError, match=r"not a record of this book; move it out of data/"):
        sweeps.results(study, folder=tmp_path / "data")


LAST = "nn.Linear(8, 2)"
WRONG = [
    (LAST, "nn.Linear(8, 1)", "labels: up to 1 is not allowed; it must be below 1, the outputs"),
    (f"{LAST})", f"{LAST}, nn.Softmax(0), nn.Flatten(0))", "model: on 32 examples|model outputs"),
    (
        "nn.ReLU()",
        "nn.BatchNorm1d(8)",
        r"model: with buffers \(1.running_mean.* without \(no batch normalisation\)",
    ),
    ("nn.ReLU()", "nn.Dropout(0.1)", "outputs: other ones when asked again .*; .*no dropout"),
    (LAST, "nn.Linear(8, 2, bias=False)", "last layer: .*bias=False. is not .* with a bias"),
    (f"{LAST})", f"{LAST}, nn.Tanh())", "last layer: .* must be the network's output"),
    (f"{LAST})", f"{LAST}, nn.PReLU())", "last layer: .* registered after all other parameters"),
    ("(0.1, 0.2)", "(0.9, 0.95)", r"goals: 0.9, .* it must be below 0.\d+, .* for an accuracy"),
    ("y[80:])", "0 * y[80:])", "validation labels: class 0 alone .*; it must be of two classes"),
    (
        "(x[80:], y",
        "(torch.nested.nested_tensor(list(x[80:])), y",
        "validation inputs: a nested tensor.*pad them",
    ),
    ("max_steps=200", "max_steps=[][1]", r"raised IndexError: .* \(mine.py, line 10\)"),
    ("import torch\n", "import torch\n1 / 0\n", r"ZeroDivisionError: .* \(mine.py, line 3\)"),
    ("lambda: nn", "lambda: 1 / 0 or nn", r"ZeroDivisionError: .* \(mine.py, line 9\)"),
    ("x[80:],", "x[80:, :3],", r"inputs: of shape \[3\] each .*; it must be of shape \[4\] each"),
    ("goals=(0.1, 0.2)", "goals=(0.2, 0.1)", "goals: .0.2, 0.1. is not .* the hardest .lowest. first"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_what_is_wrong_is_named_before_anything_is_trained(write, tmp_path, old, new, message):
    """What each field refuses by itself, tests/test_wrong_workloads.py tries."""
    assert old in GOOD
    name = write(GOOD.replace(old, new))
    with pytest.raises(own.OwnError, match=f"mine.py:task: .*{message}|mine.py: .*{message}"):
        sweeps.run(grid(name, [4], ["sgd"], [0.0], trials=4), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_network_that_the_engine_would_take_for_dead_is_named(write):
    """Behind zeros a hyperbolic tangent still passes a gradient on; rectifiers do not, and are dead indeed."""
    silent = """
def silent():
    layers = nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)
    for p in layers[0].parameters():
        nn.init.zeros_(p)
    return nn.Sequential(*layers)

def task"""
    built = "lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))"
    changed = GOOD.replace("def task", silent).replace(built, "silent")
    assert catalogue.workload(write(changed)).goal == 0.1
    with pytest.raises(own.OwnError, match="model: one whose last layer sees zeros only at first is not allowed"):
        catalogue.workload(write(changed.replace("nn.ReLU()", "nn.Tanh()")))


@pytest.mark.parametrize(
    ("way", "precision"), [("x.view(len(x), -1)", "float32"), ("x.flatten(1) @ torch.eye(32)", "bfloat16")]
)
def test_it_is_tried_as_the_engine_runs_it(write, way, precision):
    """With channels last in memory, and in its own arithmetic; inputs may come in any."""
    picture = f"""
class Picture(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter, self.end = nn.Conv2d(1, 2, 3, bias=False), nn.Linear(32, 2)

    def forward(self, x):
        x = self.filter(x)
        return self.end({way})

def task"""
    changed = GOOD.replace("def task", picture).replace("torch.randn(120, 4,", "torch.randn(120, 1, 6, 6, dtype=torch.double,")
    changed = changed.replace("x.sum(1)", "x.sum((1, 2, 3))").replace("max_steps", f"precision={precision!r}, max_steps")
    changed = changed.replace("nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))", "Picture()")
    with pytest.raises(own.OwnError, match="model: on 32 examples it raised RuntimeError"):
        catalogue.workload(write(changed))
    name = write(changed.replace(way, "x.flatten(1)"))
    assert len(one_cell.train_cell(Cell(name, 4, "sgd", trials=2)).status) == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("{'loss': 0, 'logits': y}", r"dict is not allowed; it must be a tensor \[examples, classes\]; or return a lib.own"),
        ("(y, x)", r"tuple is not allowed; it must be a tensor \[examples, classes\]; or"),
        ("types.SimpleNamespace(hidden=x, logits=y)", "SimpleNamespace is not allowed; .*which takes any module"),
        ("None", "NoneType is not allowed; it must be a tensor"),
    ],
)
def test_outputs_that_are_no_tensor_are_refused_with_what_to_write(write, answer, message):
    wrapped = f"""
import types

class Wrapped(nn.Sequential):
    def forward(self, x):
        y = super().forward(x)
        return {answer}

def task"""
    name = write(GOOD.replace("def task", wrapped).replace("lambda: nn.Sequential(", "lambda: Wrapped("))
    with pytest.raises(own.OwnError, match=f"model outputs: {message}"):
        catalogue.workload(name)


@pytest.mark.parametrize("options", [{}, {"race": 2.0}, {"race": 2.0, "rungs": "losses"}])
def test_a_search_that_met_no_goal_says_what_it_reached(write, options):
    """As if every answer had been read to the end at the last check."""
    name = write(GOOD.replace("(0.1, 0.2)", "(0.0001, 0.001)").replace("> 0", "+ torch.sin(40 * x[:, 0]) > 0"))
    found = one_cell.train_cell(Cell(name, 4, "sgd", trials=4, hits=1, **options))
    left = found.status == "budget"
    assert left.any() and np.isnan(found.first).all() and (found.best_error[left] > 0.001).all()


def test_a_stop_in_a_notebook_says_what_is_kept_and_keeps_the_state(write, tmp_path, monkeypatch):
    study = grid(write(GOOD.replace("goals=(0.1", "goals=(0.0")), [16], ["sgd"], [0.0], trials=8, hits=8)
    update, steps, now = lockstep.update, [], [0.0]
    for module in (lockstep, checkpoint):
        monkeypatch.setattr(module, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))

    def stopped(*arguments):
        now[0] += 1.0
        steps.append(0)
        if len(steps) == 15:  # seconds: far less than minutes
            raise KeyboardInterrupt
        return update(*arguments)

    monkeypatch.setattr(lockstep, "update", stopped)
    with pytest.raises(KeyboardInterrupt) as stop:
        sweeps.results(study, "full", folder=tmp_path / "data")
    (shown,) = stop.value._render_traceback_()
    assert "0 of 1 that were missing (cells) are finished and kept; run the same call again to continue" in shown
    assert len(list(tmp_path.rglob("*.part"))) == 1
