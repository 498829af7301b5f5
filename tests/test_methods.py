"""Training methods are what they say, each in a file of its own."""


import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib import BookError
from lib.engine import flattening, lockstep
from lib.measuring import one_search
from lib.methods import METHODS, ROTATED, method, own_method
from lib.studies.search import Search
from lib.workloads import datasets, models
from tests.conftest import TORCHS

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
    space = {"learning_rate": Interval(1e-3, 1.0), "inertia": Interval(0.5, 0.99, "reverse-log")}
    return Method("heavy", "heavy ball", space, begin, step)
"""


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


@pytest.mark.parametrize("name", TORCHS)
def test_steps_are_torchs_to_rounding(name):
    """Forty steps in double precision, four trials at once with hyperparameters of their own."""
    cell = Search("digits-mlp", 32, name, trials=4)
    trials, data = one_search.start(cell), datasets.load("digits").train
    nets = [models.fresh("mlp-64x2", seed).double() for seed in one_search.seeds(cell)]
    drawn = {word: values.double().clamp(max=1) for word, values in trials.drawn.items()}
    drawn["learning_rate"].clamp_(max=0.1)
    points = [{word: values[row].item() for word, values in drawn.items()} for row in range(4)]
    theirs = [TORCHS[name](net.parameters(), args) for net, args in zip(nets, points, strict=True)]
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
        expected = torch.stack([flattening.flatten(net) for net in nets])
        assert torch.allclose(w, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [name for name, how in METHODS.items() if how.drift])
def test_drift_bounds_where_silent_weights_end(name):
    """Without a gradient, a weight moves on in one direction, at most as far as the drift says."""
    random, how = torch.Generator().manual_seed(0), method(name)
    w = torch.ones(3, 5, dtype=torch.float64)
    places = np.array([[0.4], [0.6], [0.9]])
    drawn = {word: torch.from_numpy(axis.values(places)) for word, axis in how.space.items()}
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


@pytest.mark.parametrize("name", METHODS | ROTATED)
def test_the_books_methods_pass_what_is_asked_of_a_readers(name):
    own_method.check(name, method(name))


def test_a_method_in_a_file_trains_as_the_books_own_does(write):
    """The heavy ball is momentum: at one point of the space both find the same steps."""
    name = write()
    point, setup = "learning_rate=0.1", {"trials": 6, "hits": 2, "max_steps": 120}
    ours, books = (
        one_search.train_search(Search("digits-mlp", 64, how, space=f"{point},{word}=0.9", **setup))
        for how, word in ((name, "inertia"), ("momentum", "momentum"))
    )
    np.testing.assert_allclose(ours.first, books.first)
    assert not (ours.cause == "dead").any(), "it does not tell its drift"
    drift = "drift=lambda buffers, drawn: 0"
    assert method(write(("begin, step)", f"begin, step, {drift})"))).drift is None, "not proved"


BEGUN, MOVED = '{"v": w.new_zeros(w.shape)}', 'buffers["v"].mul_'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("begin, step)", "begin, step).title", "returned value: str is .*methods.method.Method"),
        ("def heavy", "def heavier", "function: 'heavy' is not allowed; .* one of: .*heavier"),
        ('"learning_rate": Interval', '"rate": Interval', "space: .* with a learning_rate"),
        (BEGUN, "w", "begin: a Tensor is not allowed; it must be a dictionary of tensors"),
        (BEGUN, '{"v": w}', "begin: a dict is .* w itself only as a copy"),
        ("w.addcmul_(", "w.addcmul(", "step: unchanged weights or .* a change of w in place"),
        (MOVED, f"w.sub_(w.mean(0))\n    {MOVED}", "step: a result .* and buffers alone"),
        (MOVED, f"w.add_(1)\n    {MOVED}", "step: a removed weight that moves"),
    ],
)
def test_what_is_wrong_with_a_method_is_named_before_anything_is_trained(write, old, new, message):
    name = write((old, new))
    with pytest.raises(BookError, match=message):
        Search("digits-mlp", 4, name)
