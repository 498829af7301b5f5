"""Training methods are what they say, each in a file of its own."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib import ROOT, own
from lib.engine import flattening, lockstep, training_state
from lib.measuring import one_cell, sweeps
from lib.methods import METHODS, method, own_check, spaces
from lib.page import charts, parameters
from lib.records import results, store
from lib.records.places import record
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.wording import named
from lib.workloads import datasets, models

torch.set_num_threads(1)

GOOD = """
from lib.methods.intervals import Interval
from lib.methods.method import Method


def begin(w, layers):
    return {"v": w.new_zeros(w.shape)}


def step(w, g, buffers, drawn, k, layers):
    buffers["v"].mul_(drawn["inertia"]).add_(g)
    w.addcmul_(buffers["v"], drawn["learning_rate"], value=-1)


def heavy():
    return Method("heavy", "heavy ball", {"learning_rate": Interval(1e-3, 1.0), "inertia": Interval(0.5, 0.99, "reverse-log")},
                  begin, step)
"""
EXAMPLE = "chapters/own/sign_sgd.py:sign_sgd"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def save(*changes):
        text = GOOD
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "mine.py").write_text(text, encoding="utf-8")
        return "mine.py:heavy"

    return save


def stepped(name, w, gradients, drawn):
    """Weights after an update for each of these gradients."""
    w, how = w.clone(), method(name)
    buffers = how.begin(w.clone(), ())
    for k, g in enumerate(gradients, start=1):
        how.step(w, g.clone(), buffers, drawn, k, ())
    return w


TORCHS = {
    "sgd": lambda p, drawn: torch.optim.SGD(p, lr=drawn["learning_rate"]),
    "momentum": lambda p, drawn: torch.optim.SGD(p, lr=drawn["learning_rate"], momentum=drawn["momentum"]),
    "nesterov": lambda p, drawn: torch.optim.SGD(p, lr=drawn["learning_rate"], momentum=drawn["momentum"], nesterov=True),
    "adam": lambda p, drawn: torch.optim.Adam(p, lr=drawn["learning_rate"], betas=(drawn["beta1"], drawn["beta2"])),
    "adam-fixed": lambda p, drawn: torch.optim.Adam(p, lr=drawn["learning_rate"], betas=(drawn["beta1"], 0.999)),
}


@pytest.mark.parametrize("name", TORCHS)
def test_steps_are_torchs_to_rounding(name):
    """Forty steps of the digits' network in double precision, four trials at once with hyperparameters of their own."""
    cell = Cell("digits-mlp", 32, name, trials=4)
    trials, data = one_cell.start(cell), datasets.load("digits").train
    nets = [models.fresh("mlp-64x2", seed).double() for seed in one_cell.seeds(cell)]
    drawn = {word: values.double().clamp(max=0.1 if word == "learning_rate" else 1) for word, values in trials.drawn.items()}
    each = [{word: values[row].item() for word, values in drawn.items()} for row in range(4)]
    theirs = [TORCHS[name](net.parameters(), own) for net, own in zip(nets, each, strict=True)]
    how, w, order = method(name), trials.w.double(), lockstep.batches(len(data), 32, 0)
    buffers = how.begin(w, ())
    for k in range(1, 41):
        pick = next(order)
        for net, optimiser in zip(nets, theirs, strict=True):
            optimiser.zero_grad()
            F.cross_entropy(net(data.x[pick].double()), data.y[pick]).backward()
        g = torch.stack([torch.cat([p.grad.reshape(-1) for p in net.parameters()]) for net in nets])
        how.step(w, g, buffers, drawn, k, ())
        for optimiser in theirs:
            optimiser.step()
        assert torch.allclose(w, torch.stack([flattening.flatten(net) for net in nets]), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [name for name, one in METHODS.items() if one.drift])
def test_drift_bounds_where_silent_weights_end(name):
    """Without a gradient every weight goes on in one direction, to where the drift says or less far."""
    random, how = torch.Generator().manual_seed(0), method(name)
    w = torch.ones(3, 5, dtype=torch.float64)
    drawn = {word: torch.from_numpy(axis.at(np.array([[0.4], [0.6], [0.9]]))) for word, axis in how.space.items()}
    drawn["batch_size"] = torch.full((3, 1), 64.0, dtype=torch.float64)
    buffers = how.begin(w, ())
    for k in range(1, 8):
        how.step(w, torch.randn(3, 5, generator=random, dtype=torch.float64), buffers, drawn, k, ())
    drift, before = how.drift(buffers, drawn), w.clone()
    for k in range(8, 20_000):
        last = w.clone()
        how.step(w, torch.zeros_like(w), buffers, drawn, k, ())
        assert ((w - last) * drift >= 0).all()
    moved = w - before
    assert (moved.abs() <= drift.abs() * (1 + 1e-9) + 1e-12).all()
    if not name.startswith("adam"):  # whose drift is a bound
        assert torch.allclose(moved, drift.expand(3, 5), rtol=1e-6, atol=1e-12)


def test_linear_decay():
    decay = {"decay_steps": torch.tensor([[100.0]]), "end_factor": torch.tensor([[0.1]])}
    trials = training_state.Trials(torch.zeros(1, 2), None, {"learning_rate": torch.tensor([[0.2]]), **decay})
    assert [trials.at(k)["learning_rate"].item() for k in (1, 51, 101, 1001)] == pytest.approx([0.2, 0.11, 0.02, 0.02])
    assert set(trials.at(1)) == {"learning_rate"}
    constant = training_state.Trials(torch.zeros(1, 2), None, {"learning_rate": torch.tensor([[0.2]])})
    assert constant.at(51)["learning_rate"].item() == pytest.approx(0.2)


@pytest.mark.parametrize("name", METHODS)
def test_the_books_methods_pass_what_is_asked_of_a_readers(name):
    own_check.check_fields(name, METHODS[name])
    own_check.check_steps(METHODS[name])


def test_adams_search_space():
    drawn = spaces.draw("lee2021", "adam", 4096)
    assert list(drawn) == ["learning_rate", "beta1", "beta2"]
    ends = {"learning_rate": (1e-5, 0.1), "beta1": (4e-3, 0.5), "beta2": (1e-4, 0.1)}
    for name, (low, high) in ends.items():
        values = drawn[name] if name == "learning_rate" else 1 - drawn[name]
        assert values.min() >= low * (1 - 1e-9) and values.max() <= high * (1 + 1e-9)
        assert np.quantile(values, 0.5) == pytest.approx((low * high) ** 0.5, rel=0.01)  # uniform in the logarithm
    assert [*spaces.draw("shi2019", "adam", 4)["learning_rate"]] == [*drawn["learning_rate"][:4]]


def test_pages_learn_of_methods_from_the_registry():
    assert named("adam") == "Adam" and named("sgd") == "SGD" and charts.ALGORITHM_COLOURS.keys() == METHODS.keys()
    assert parameters.Method().read("adam") == "adam" and parameters.Method().read(EXAMPLE) == EXAMPLE
    fitting = "momentum, nesterov, lars, lars-warmup, clars, momentum-ema, muon, kfac, kfac-unclipped"
    with pytest.raises(parameters.Unfit, match=f"one of {fitting}, torch.optim:CLASS, or file.py:function with momentum"):
        parameters.Method("momentum").read("adam")


def test_names_of_methods_are_known_without_pytorch():
    code = "import sys, lib.methods, lib.wording, lib.studies.plans; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


# --- A reader's own ---------------------------------------------------------------------------------------------------


def test_a_method_in_a_file_trains_as_the_books_own_does(write):
    """The heavy ball is momentum: at one point of the space both give the same table but for the column's name."""
    name = write()
    point = "learning_rate=0.1,{}=0.9"
    ours, books = (
        one_cell.train_cell(Cell("digits-mlp", 64, how, trials=6, hits=2, max_steps=120, space=point.format(word)))
        for how, word in ((name, "inertia"), ("momentum", "momentum"))
    )
    np.testing.assert_allclose(ours.first, books.first)
    assert not (ours.cause == "dead").any(), "it does not tell its drift"


def test_a_readers_records_are_kept_apart_and_belong_to_the_file(write, tmp_path):
    def study(name):
        return Study("mine", "", (Cell("digits-mlp", 64, name, trials=3, hits=1, max_steps=20),))

    name, data = write(), tmp_path / "data"
    frame = sweeps.results(study(name), "full", folder=data)
    (file,) = data.rglob("*.csv")
    assert file.relative_to(data).parts[:2] == ("own", "digits-mlp") and frame.inertia.between(0.5, 0.99).all()
    assert set(frame.algorithm) == {str(tmp_path / "mine.py:heavy")} and not results.missing(study(name), data)
    write(("heavy ball", "heavier ball"))
    assert results.missing(study(name), data) and record(study(name).cells[0], data) != file


def test_the_example_is_a_method_of_its_own():
    cell = Cell("digits-mlp", 64, EXAMPLE, trials=8, hits=1, max_steps=400)
    assert cell.algorithm == EXAMPLE and list(cell.draw()) == ["learning_rate", "momentum"]
    assert np.nanmin(one_cell.train_cell(cell).first[:, 0]) < 400
    assert store.digest(cell) != store.digest(dataclasses.replace(cell, algorithm="momentum"))


def test_a_method_that_looks_elsewhere_takes_its_own_gradient(write):
    """One step late is one step late: the first two gradients are of the first weights."""
    late = """
def gradient(executor, w, batch, mask, buffers):
    found = executor.gradients(buffers["v"], *batch, mask)
    buffers["v"].copy_(w)
    return found


def heavy"""
    name = write(
        ("\n\ndef heavy", late), ("begin, step)", "begin, step, gradient)"), ("w.new_zeros(w.shape)", "w.clone()"),
        ('    buffers["v"].mul_(drawn["inertia"]).add_(g)\n    w.addcmul_(buffers["v"],', "    w.addcmul_(g,"),
    )  # fmt: skip
    cell = Cell("digits-mlp", 32, name, trials=2)
    trials, executor, data = one_cell.start(cell), one_cell.executor(cell), datasets.load("digits").train
    how, w, path = method(name), trials.w.clone(), [trials.w, trials.w.clone()]
    buffers = how.begin(w, ())
    for k in range(1, 5):
        batch = data.x[32 * k : 32 * k + 32], data.y[32 * k : 32 * k + 32]
        lockstep.update(how, executor, (), trials, w, buffers, k, batch)
        g = executor.gradients(path[-2], *batch)[1]
        path.append(path[-1] - trials.drawn["learning_rate"] * g)
        assert torch.allclose(w, path[-1], atol=1e-6)
    with pytest.raises(ValueError, match="messages: .* None with .*mine.py:heavy, which takes gradients of its own"):
        Cell("digits-mlp", 32, name, messages={"workers": 2})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("begin, step)", "begin, step).title", "returned value: 'str' is not allowed; it must be a lib.methods.method.Method"),
        ("def heavy", "def heavier", "no function 'heavy' in the file; it has .*heavier"),
        ('"heavy ball"', "3", "title: 3 is not allowed; it must be a text"),
        ('"learning_rate": Interval', '"rate": Interval', "space: .* with a learning_rate"),
        ('"inertia": Interval(0.5, 0.99, "reverse-log")', '"inertia": 0.9', "space\\['inertia'\\]: 0.9 is not allowed"),
        ('"inertia": Interval', '"status": Interval', "space: 'status' is not allowed; it must be named like a Python"),
        ('"inertia": Interval', '"batch_size": Interval', "space: 'batch_size' is not allowed"),
        ("Interval(1e-3, 1.0)", "Interval(1.0, 1e-3)", "raised ValueError: high: 0.001 is not allowed"),
        ('{"v": w.new_zeros(w.shape)}', "w", "begin: Tensor is not allowed; it must return a dictionary of tensors"),
        ('{"v": w.new_zeros(w.shape)}', '{"v": w.new_zeros(())}', "begin: 'v' of shape|raised TypeError"),
        ('{"v": w.new_zeros(w.shape)}', '{"v": w}', "begin: 'v', which is w itself"),
        ("w.addcmul_(", "w.addcmul(", "step: weights as before is not allowed; it must change w in place"),
        ("w.addcmul_(", "w.mul_(float('nan')).addcmul_(", "step: a value that is not finite in w"),
        ('buffers["v"].mul_', 'w.add_(w.new_empty(w.shape).normal_())\n    buffers["v"].mul_', "step: another result in w when"),
        ('buffers["v"].mul_', 'w.sub_(w.mean(0))\n    buffers["v"].mul_', "step: another result in .* for fewer trials"),
        ('buffers["v"].mul_', 'w.add_(1)\n    buffers["v"].mul_', "step: a removed weight that moves"),
        ('buffers["v"].mul_', 'buffers["u"] = w.clone()\n    buffers["v"].mul_', "step: other buffers than begin made"),
        ('buffers["v"].mul_', 'buffers["x"].mul_', "on a tiny case it raised KeyError: 'x'"),
        ("begin, step)", "begin, step, drift=lambda b, d: 0 * d['learning_rate'])", "drift: less than without gradients"),
        ("begin, step)", "begin, None)", "step: None is not allowed; it must be a function"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_method_is_named_before_anything_is_trained(write, old, new, message):
    name = write((old, new))
    with pytest.raises(own.OwnError, match=message):
        Cell("digits-mlp", 4, name)


def test_a_file_that_is_missing_is_named_with_its_field(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(own.OwnError, match="^algorithm: .* there is no file nowhere.py"):
        Cell("digits-mlp", 4, "nowhere.py:heavy")
