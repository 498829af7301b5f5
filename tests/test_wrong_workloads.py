"""What is wrong with a reader's file is refused before anything is trained: the message names the
file, the place and, of a value, what is allowed.
"""

import pytest

from lib import BookError
from lib.measuring import sweeps
from lib.records.selection import grid
from lib.workloads import catalogue

START = """
import random, sys
import numpy as np
import torch
from torch import nn
from torch.utils.data import ChainDataset, DataLoader
from lib.own import Metric, Own, Training

x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
y = (x.sum(1) > 0).long()
NEVER_TWICE = np.random.default_rng()

class Odd(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.w, self.change, self.kept = nn.Linear(3, 3), change, torch.randn(3)

    def forward(self, x):
        return self.change(self, self.w(x))

def build(*more, outputs=2, first=()):
    layers = nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, outputs)
    return nn.Sequential(*first, *layers, *more)

def noisy():
    net = nn.Linear(3, 2)
    net.weight.data.mul_(NEVER_TWICE.normal())
    return net

NET = build()
DRAWN = []

def drawn(seed):
    DRAWN.append(seed)
    return torch.rand(3, generator=torch.Generator().manual_seed(len(DRAWN)))

def task():
    BODY
    return KIND(**{**dict(model=build, train=(x[:40], y[:40]), validation=(x[40:], y[40:]),
                          goals=(0.1, 0.2), max_steps=50), **dict(GIVEN)})
"""
FAULTS = [  # what is given instead, and the message
    ("model=3", "model: 3 is not allowed; it must be callable"),
    ("model=lambda: 1 / 0", r"model: building it raised ZeroDivisionError: .* \(mine.py, line"),
    ("model=lambda: sys.exit('bye')", "model: building it raised SystemExit: bye"),
    ("model=lambda: None", "model: NoneType is not allowed"),
    ("model=lambda: NET", "model: parameters that share .*earlier .* it must be built anew"),
    ("model=lambda: nn.Linear(3, 2).to('meta')", "model: "),
    ("model=noisy", "model: .* different initialisations from the same seed"),
    ("train=3", "train: 3 is not allowed; it must be "),
    ("train=([1, 'two'], y)", "train: .* dense tensors .N, .... of finite numbers"),
    ("train=(np.array(['a', 'b']), y[:2])", "train: values: can.t .* numbers: write pd.get_dum"),
    ("train=(x.double() * 1e300, y)", "train: .* finite"),
    ("train=(x.to_sparse(), y)", "train: .* dense"),
    ("train=(torch.nested.nested_tensor(list(x)), y)", "train: .* dense"),
    ("validation=(x, y.to('meta'))", "validation: .* on the CPU"),
    ("validation=(x[1:], y)", r"validation lengths: \[59, 60\] is not allowed; it must be equal"),
    ("train=(x, y + 5)", "labels: from 0 to 6 for outputs .20, 2. is not .* write y - y.min"),
    ("validation=(x, y - 1)", "labels: from -1 to 1 for .* write y - y.min"),
    ("train=(x, y * 2)", "labels: from 0 to 2 for .* a wider last layer"),
    ("train=(x, y / 2)", "labels: Tensor float32 .60. is not .* or loss='regression'"),
    ("train=(x, torch.eye(2)[y])", "labels: Tensor float32 .60, 2. is not .* write y.argmax.1."),
    ("train=(x[:, :2], y)", "inputs: .*Tensor float32 .8, 2., Tensor int64 .8.*RuntimeError"),
    ("model=NET.requires_grad_(False)", "model: a module with a Linear that cannot .* Sequential"),
    ("goals=0.1", "goals: 0.1 is not allowed; it must be a tuple of numbers"),
    ("goals=(float('nan'),)", "goals: .*a tuple of numbers"),
    ("goals=()", "goals: .*hardest"),
    ("goals='the best'", "goals: 'the best' is not allowed; .*or .within 10 % of the best after"),
    ("goals='within 0 % of the best after 9 steps'", "share: 0.0 is not allowed; .* than 0"),
    ("goals='within 5 % of the best after 51 steps'", "goals: .* after at most 50, its max_steps"),
    ("goals=(0.2, 0.1)", "goals: .0.2, 0.1. is not allowed; .* the hardest .lowest. first"),
    ("goals=(0.1, 0.10000001)", "goals: .* differ in their first six digits"),
    ("goals=(-0.1,)", r"goals: .*in \[0, 1\)"),
    ("goals=(0.1, 0.95)", r"goals: 0.95 is not allowed; it must be below 0.\d+, which a "
     "constant answer already reaches.*for an accuracy"),
    (r"title='a\nb'", "title: .* text of printable characters"),
    ("max_steps=0", "max_steps: 0 is not allowed; it must be greater than or equal to 1"),
    ("precision='x'", "precision: 'x' is not allowed; it must be 'float32' or 'bfloat16'"),
    ("colour=1", "TypeError: .*colour"),
    ("loss='x'", "loss: 'x' is not allowed; it must be one of classification, .*, or a function"),
    ("loss=nn.functional.mse_loss", "metric: None is not allowed; it must be one of .*Metric"),
    ("loss=lambda m, b: m(b[0]), metric='tokens'", "loss: .*RuntimeError: grad can be .* scalar"),
    ("loss='regression', goals=(0.1,)", "inputs: .*shape .* write .* outputs"),
    ("loss=lambda m, b: m(b[0]).sum() * 0, metric='tokens'", "loss of .* has no gradient"),
    ("loss=lambda m, b: m(b[0]).sum() / 0, metric='tokens'", "loss of an untrained .* finite"),
    ("loss=lambda m, b: m(b[0]).sum() * NEVER_TWICE.random(), metric='tokens'", "loss .* varies with the same"),
    ("metric='F1'", "metric: 'F1' is not allowed; it must be one of .*tokens, or a lib.own.Metric"),
    ("metric=Metric(3, 'F1')", "measure: 3 is not allowed; it must be callable"),
    ("metric=Metric(min, 'F1', highest='x')", "highest: 'x' is not allowed; .* valid number"),
    ("metric=Metric(lambda m, b: m(b[0]) * 0 + 2, 'F1', highest=1)", "goals: .*highest. first"),
    ("metric=Metric(lambda m, b: torch.tensor(2.0), 'F1', highest=1), goals=(0.9,)",
     "metric: 2.0 is not allowed; it must be at most its highest, 1"),
    ("metric=Metric(lambda m, b: torch.tensor(float('nan')), 'F1')", "metric: nan, of an"),
    ("model=lambda: nn.Linear(3, 2, dtype=torch.cfloat)", "model: one with complex parameters"),
    ("train=(x + 1j, y)", "RuntimeError"),
    ("train=(x + 1j * float('inf'), y)", "train: .* finite"),
    ("model=lambda: Odd(lambda m, h: h + 1j)", "outputs: torch.complex64 is not allowed"),
    ("train=lambda b, s: []", "examples: None is not allowed; it must be the number of examples"),
    ("train=lambda b, s: [], examples=40", "ValueError: no batch of 8 examples in a pass"),
    ("train=lambda b, s: [(x, y)], examples=40", "train: a batch of 60 .* of 8 examples"),
    ("train=DataLoader(ChainDataset([]))", "train: sampler: _Infinite.* write lambda"),
    ("train=lambda b, s: [(drawn(s), y[:3])], examples=3", "train: one that differs from call"),
    ("train=ChainDataset([])", "train lengths: .0. is not allowed"),
    ("model=lambda: build(outputs=1)", 'labels: from 0 to 1 for .* loss="binary"'),
    ("model=lambda: Odd(lambda m, h: (h, h))", "outputs: tuple is not allowed; .* tensor"),
    ("model=nn.ReLU", "inputs: .*does not require grad"),
]  # fmt: skip
ALONE = [  # networks, and what else keeps trials from being trained together
    "lambda: build(nn.BatchNorm1d(2), nn.Linear(2, 2))",
    "lambda: nn.Sequential(nn.Linear(3, 2).requires_grad_(False), nn.Linear(2, 2))",
    "lambda: build(nn.Linear(2, 2, bias=False))",
    "lambda: build(nn.PReLU())",
    "lambda: build(nn.Dropout(), nn.Linear(2, 2))",
    "lambda: build(first=[Odd(lambda m, h: h * m.kept)])",
    "lambda: build(first=[nn.Flatten(), nn.ReLU(inplace=True)])",
    "build, metric=Metric(lambda m, b: (m(b[0]).argmax(1) != b[1]).float(), 'error')",
]
OWN = "task='x'", "metric: 'x' is not allowed; it must be one of accuracy, .*, classification"
BODIES = [  # what the function does first
    ("return None", "returned value: NoneType is not allowed; it must be a lib.own.Training"),
    ("raise ValueError('no data')", r"raised ValueError: no data \(mine.py, line"),
    ("sys.exit('bye')", "raised SystemExit: bye"),
    ("global x; x = torch.randn(60, 3)", "train: one that differs .* a random_state, a seed"),
    ("global x; x = x + NEVER_TWICE.normal()", "train: one that differs from call to call"),
]
FILES = {
    "def task(:\n": "cannot be imported; it raised SyntaxError",
    "import unheard_of\n": "ModuleNotFoundError",
    "def other(): pass\n": "function: 'task' is not allowed; it must be one of: other",
    "def task(n): pass\n": "TypeError",
}
CASES = [("Own", *FAULTS[0]), ("Own", *OWN), *(("Training", *fault) for fault in FAULTS)]


def text(kind, given="", body="pass"):
    return START.replace("KIND", kind).replace("GIVEN", given).replace("BODY", body)


def refused(name, message, folder):
    with pytest.raises(BookError, match=f"(?s)mine.py.*{message}") as error:
        sweeps.run(grid(name, [4], ["sgd"], [0.0], trials=2), folder / "data")
    assert not (folder / "data").exists()
    return str(error.value)


@pytest.mark.parametrize("kind", ["Own", "Training"])
def test_without_a_fault_it_is_accepted(write, kind):
    work = catalogue.workload(write(text(kind)))
    assert work.max_steps == 50 and work.task == "classification" and not work.alone


@pytest.mark.parametrize("model", ALONE)
def test_trials_that_cannot_share_a_network_are_trained_one_after_the_other(write, model):
    work = catalogue.workload(write(text("Training", f"model={model}, goals=(0.0,)")))
    assert work.alone and work.task == "training"
    with pytest.raises(BookError, match="workload: one whose trials are trained one by one"):
        work.data()


@pytest.mark.parametrize(("kind", "given", "message"), CASES)
def test_every_fault_is_refused_by_name(write, tmp_path, kind, given, message):
    said = refused(write(text(kind, given)), message, tmp_path)
    assert ", line " in said or " write " in said, "no line to write, and none of the file"
    assert "tensor(" not in said, "numbers of an array"


@pytest.mark.parametrize(("body", "message"), BODIES)
def test_what_the_function_must_not_do_is_refused(write, tmp_path, body, message):
    refused(write(text("Own", body=body)), message, tmp_path)


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_no_workload_is_refused_by_name(write, tmp_path, file):
    refused(write(file), FILES[file], tmp_path)
