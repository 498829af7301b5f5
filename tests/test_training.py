"""The engine measures what the exhaustive protocol measures, only sooner."""

import dataclasses
import errno
import hashlib
import io
import os
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib import ROOT
from lib.engine import (
    batched,
    checkpoint,
    flattening,
    lockstep,
    sequential,
    training_state,
    validation,
    vocabulary,
)
from lib.measuring import machine, one_search
from lib.methods import METHODS
from lib.studies.search import Search
from lib.workloads import datasets, models
from tests.conftest import exhaustive, read_to_the_end, same

torch.set_num_threads(1)


def cell_of(workload, algorithm, sparsity):
    """Sixteen trials, of which some meet the goal within as few steps as that takes."""
    batch_size = 256 if algorithm.startswith(("lars", "clars")) else 64  # these take long at small batches
    steps = {"momentum": 160, "kfac": 60}.get(algorithm, 100)
    return Search(workload, batch_size, algorithm, sparsity, trials=16, hits=3, max_steps=steps)


# Every method once on a dense network, except one that differs from another by a line; sparse and
# with convolutions, one of every kind of step
SPARSE = ("sgd", "nesterov", "adam", "lars", "muon", "kfac", "momentum-ema")
CELLS = [
    *(cell_of("digits-mlp", name, 0.0) for name in METHODS if name != "kfac-unclipped"),
    *(cell_of("digits-mlp", name, 0.5) for name in SPARSE),
    *(cell_of("digits-cnn", name, 0.7) for name in ("momentum", "adam", "kfac")),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: f"{c.workload}-{c.algorithm}-{c.sparsity}")
def test_lock_step_equals_exhaustive_search(cell, monkeypatch):
    data, checked = datasets.load("digits").validation, []

    def meets(executor, w):
        wrong = (executor.logits(w, executor.inputs(data.x)).argmax(2) != data.y).sum(1)
        return (wrong <= cell.work.goal * len(data) + 1e-9).numpy()[:, None]

    steps = exhaustive(cell, meets)[0][:, 0]
    costs = validation.Validation.costs

    def spy(self, w, allowed):
        count, complete = costs(self, w, allowed)
        wrong = (self.executor.logits(w, self.x).argmax(2) != self.y).sum(1).double()
        assert torch.equal(wrong <= allowed, complete & (count <= allowed)), "early rejection decided otherwise"
        assert torch.equal(count[complete], wrong[complete])
        checked.append(len(w))
        return count, complete

    monkeypatch.setattr(validation.Validation, "costs", spy)
    outcome = one_search.train_search(cell)
    assert len(checked) > 10
    exact = np.sort(steps)[: cell.hits]
    reached = np.sort(outcome.first[:, 0])[: cell.hits]
    assert np.array_equal(exact, reached, equal_nan=True)
    assert not np.isnan(exact[0]), "a goal that nobody reaches tests nothing"


def test_every_goal_of_the_ladder_is_exact_up_to_the_end_of_the_cell():
    cell = Search("digits-mlp", 64, trials=12, hits=2, max_steps=300)
    a = one_search.train_search(cell)
    with read_to_the_end():
        b = one_search.train_search(cell, drop_dead=False)
    assert np.array_equal(a.first, b.first, equal_nan=True) and a.steps == b.steps


FEEDBACK = {"workers": 4, "compressor": "rand-k", "density": 0.01, "feedback": True}
INTERRUPTED = [
    Search("digits-cnn", 64, "nesterov", 0.9, trials=12, hits=2, max_steps=90),
    Search("digits-mlp", 64, trials=6, stop="budget", max_steps=90, checks="every-100"),
    Search("digits-mlp", 64, trials=4, stop="budget", max_steps=90, messages=FEEDBACK),
    Search("digits-mlp", 64, "clars", trials=4, stop="budget", max_steps=90),
    Search("digits-mlp", 64, "momentum-ema", trials=4, stop="budget", max_steps=90),
    Search("digits-cnn", 64, "kfac", 0.9, trials=6, hits=2, max_steps=90),
    Search("digits-mlp", 16, trials=6, hits=2, max_steps=90, staleness=3, delays="uniform"),
    Search("digits-mlp", 64, trials=16, hits=3, max_steps=300, race=1.5),
]
WHAT = ["goal", "budget", "messages", "norms", "average", "factors", "late", "race"]


@pytest.mark.parametrize("cell", INTERRUPTED, ids=WHAT)
def test_an_interrupted_cell_ends_as_if_it_had_not_been(cell, tmp_path, interrupt):
    reference, steps = one_search.train_search(cell), interrupt(30, 80)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            one_search.train_search(cell, unfinished=tmp_path / "cell.part")
    assert list(tmp_path.iterdir()) == [tmp_path / "cell.part"]
    again = one_search.train_search(cell, unfinished=tmp_path / "cell.part")
    assert len(steps) == reference.steps + 2, "it did not go on where it was"
    same(reference, again)


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """The state of a cell of INTERRUPTED, with sparse messages, and its outcome."""
    file, cell, pytest_patch = tmp_path_factory.mktemp("state") / "cell.part", INTERRUPTED[2], pytest.MonkeyPatch()
    with pytest_patch.context() as patch:
        patch.setattr(checkpoint, "SAVE_EVERY", 0.0)
        outcome = one_search.train_search(cell, unfinished=file)
    return file.read_bytes(), outcome


CODE = machine.SOURCE


class Payload:
    """What unpickling would run."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (str(self.file), "w")


def signed(body: bytes, file) -> bytes:
    """A file as `Checkpoint.save` writes one, with a pickle among its tensors."""
    parts, content = torch.load(io.BytesIO(body), weights_only=True), io.BytesIO()
    torch.save({**parts, "w": Payload(file)}, content)
    return hashlib.sha256(content.getvalue()).hexdigest().encode() + b"\n" + content.getvalue()


BAD_STATES = {  # the content, the code that reads it, the split of the search, and what is said
    "altered": (lambda c, _: c[:5000] + bytes([c[5000] ^ 1]) + c[5001:], CODE, 0, "damaged"),
    "a pickle": (lambda c, f: signed(c.partition(b"\n")[2], f), CODE, 0, "cannot be read"),
    "another search": (lambda c, _: c, CODE, 1, "from another search or other code"),
    "other code": (lambda c, _: c, "other", 0, "from another search or other code"),
}


@pytest.mark.parametrize(("make", "code", "split", "says"), BAD_STATES.values(), ids=BAD_STATES)
def test_a_state_that_will_not_do_is_named_and_set_aside_and_the_search_begins_anew(
    make, code, split, says, state, tmp_path, recwarn, monkeypatch
):
    content, reference = state
    file, ran = tmp_path / "batch-1-0.part", tmp_path / "ran"
    file.write_bytes(make(content, ran))
    monkeypatch.setattr(machine, "SOURCE", code)
    search = dataclasses.replace(INTERRUPTED[2], split=split)
    again = one_search.train_search(search, unfinished=file)
    (warning,) = [w for w in recwarn if "set aside" in str(w.message)]
    assert str(warning.message).startswith(f"{file}: ") and says in str(warning.message)
    assert [f.name for f in tmp_path.iterdir()] == ["batch-1-0.set-aside"], "the file was run, or is still there"
    if not split:
        same(reference, again)


def test_a_state_that_cannot_be_written_is_named_and_the_last_one_stays(tmp_path, monkeypatch):
    cell, file, sync, saved = INTERRUPTED[0], tmp_path / "cell.part", os.fsync, []

    def full(number):
        saved.append(number)
        if len(saved) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(number)

    monkeypatch.setattr(checkpoint, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=rf"cannot be written \(No space left on device\): '{file}'"):
        one_search.train_search(cell, unfinished=file)
    assert list(tmp_path.iterdir()) == [file]
    reference, again = one_search.train_search(cell), one_search.train_search(cell, unfinished=file)
    np.testing.assert_array_equal(reference.first, again.first)
    assert reference.trial_steps == again.trial_steps


def test_no_file_is_unpickled():
    unsafe = re.compile(r"^\s*(import|from) (c?pickle|dill|cloudpickle|shelve|marshal)\b|weights_only=False|allow_pickle=True"
                        r"|joblib\.load|read_pickle|torch\.load\((?!.*weights_only=True)", re.M)  # fmt: skip
    kinds = "lib/**/*.py", "chapters/**/*.py", "chapters/*.ipynb", "benchmarks/*.py"
    files = [file for kind in kinds for file in ROOT.glob(kind)]
    assert len(files) > 60 and not [file.name for file in files if unsafe.search(file.read_text(encoding="utf-8"))]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("model", ["resnet-8", "resnet-20", "simple-cnn"])
def test_passes_recorded_on_a_gpu_have_the_gradients_of_the_processor(model):
    """Also when fewer trials are left, and for one whose last layer has no inputs."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(32, *((1, 28, 28) if model == "simple-cnn" else (3, 32, 32)), generator=random)
    y = torch.randint(10, (32,), generator=random)
    w = torch.stack([flattening.flatten(models.fresh(model, s)) for s in range(5)])
    w[4] = 0.0
    loop = sequential.SequentialExecutor(models.build(model))
    recorded = sequential.CapturedExecutor(models.build(model), torch.float32, "cuda")
    for rows in (w, w[1:], w[:1]):
        expected = loop.gradients(rows, loop.inputs(x), y)
        actual = recorded.gradients(rows.cuda(), recorded.inputs(x), y.cuda())
        assert torch.equal(actual[2].cpu(), expected[2]) and torch.allclose(actual[0].cpu(), expected[0], atol=1e-4)
        assert (actual[1].cpu() - expected[1]).norm() < 1e-2 * expected[1].norm()


MORTAL = [
    Search("digits-cnn", 1, "sgd", trials=40, max_steps=200, hits=40),
    Search("digits-mlp-16x2", 8, "momentum", trials=8, max_steps=700, hits=8),
    Search("digits-mlp-16x2", 8, "adam", trials=8, max_steps=700, hits=8, space="learning_rate=0.1,beta1=0.5,beta2=0.99"),
]


def doomed(cell):
    """The cell's trials; the first steps switch the first two off for good, while their momentum still moves them.

    The last hidden layer is barely on, all its units speak for the first class, and the last biases name no other: every
    derivative by a unit is positive, except for examples of that class.
    """
    trials, net = STARTED(cell), models.build(cell.work.model)
    *_, weight, bias, last, last_bias = flattening.unflatten(trials.w, net)
    weight[:2], bias[:2], last[:2], last_bias[:2] = 0, 1e-6, 0, 0
    last[:2, 0], last_bias[:2, 0] = 1, 5
    if cell.algorithm == "momentum":  # forgotten within the steps allowed
        trials.drawn["momentum"][:2] = 0.5
    return trials


STARTED = one_search.start


@pytest.mark.parametrize("cell", MORTAL, ids=lambda c: f"{c.workload}-{c.algorithm}")
def test_dropping_dead_trials_changes_no_result(cell, monkeypatch):
    monkeypatch.setattr(one_search, "start", lambda cell, device: doomed(cell))
    dropped, kept = one_search.train_search(cell), one_search.train_search(cell, drop_dead=False)
    dead = dropped.cause == "dead"
    assert dead[:2].all() and not dead.all() and (dropped.last_step[:2] > 10).all()
    assert np.array_equal(dropped.first, kept.first, equal_nan=True)
    assert np.array_equal(dropped.best_error, kept.best_error, equal_nan=True)
    assert not (kept.cause == "dead").any() and (kept.last_step[dead] == cell.max_steps).all()
    assert kept.trial_steps - dropped.trial_steps == (cell.max_steps - dropped.last_step[dead]).sum()


def test_a_diverging_trial_is_infeasible_and_the_others_go_on():
    data, executor = datasets.load("digits"), batched.BatchedExecutor(models.build("mlp-64x2"))
    w = torch.stack([flattening.flatten(models.initialise(models.build("mlp-64x2"), s)) for s in range(2)])
    rate = torch.tensor([[1e30], [0.1]])
    outcome = lockstep.train(executor, training_state.Trials(w, torch.ones_like(w), {"learning_rate": rate}), data.train,
                             data.validation, method=METHODS["sgd"], batch_size=32, goals=(0.5,), max_steps=100)  # fmt: skip
    assert list(outcome.status) == ["infeasible", "complete"] and outcome.cause[0] == "diverged"
    assert np.isnan(outcome.first[0, 0])


def test_batches_see_every_example_once_an_epoch_and_straddle():
    order = lockstep.batches(10, 4, seed=3)
    seen = torch.cat([next(order) for _ in range(5)])
    assert sorted(seen[:10].tolist()) == sorted(seen[10:].tolist()) == list(range(10))
    assert torch.equal(seen[:4], next(lockstep.batches(10, 4, seed=3)))
    with pytest.raises(ValueError, match="batch_size: 11 .* 10 examples"):
        next(lockstep.batches(10, 11, seed=0))


def test_a_search_run_to_its_budget_tells_the_best_error_within_every_power_of_two():
    cell = Search("digits-mlp", 64, trials=6, stop="budget", max_steps=90)
    data, errors = datasets.load("digits"), []

    def note(executor, w):
        wrong = (executor.logits(w, s.x).argmax(2) != s.y for s in (data.validation, data.test))
        errors.append([part.float().mean(1) for part in wrong])
        return np.zeros((cell.trials, 1), bool)

    exhaustive(cell, note)
    outcome, checks = one_search.train_search(cell), [1]
    while len(checks) < len(errors):
        checks.append(vocabulary.next_check(checks[-1], "geometric"))
    assert outcome.budgets == (1, 2, 4, 8, 16, 32, 64)
    for i, budget in enumerate(outcome.budgets):
        seen = errors[: np.searchsorted(checks, budget, "right")]
        validation, test = (torch.stack(part) for part in zip(*seen))
        best, first = validation.min(0)
        assert np.allclose(outcome.best_within[:, i], best, atol=1e-6)
        assert np.allclose(outcome.test_within[:, i], test.gather(0, first[None])[0], atol=1e-6)


@pytest.mark.parametrize("kind", [sequential.SequentialExecutor, batched.BatchedExecutor])
def test_label_smoothing_is_torchs(kind):
    net, data = models.fresh("mlp-64x2", 0), datasets.load("digits").train
    w, x, y = flattening.flatten(net)[None], data.x[:32], data.y[:32]
    loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, [*net.parameters()])])
    losses, g, _ = kind(models.build("mlp-64x2"), smoothing=0.1).gradients(w, x, y)
    assert torch.allclose(g[0], expected, atol=1e-6) and torch.allclose(losses[0], loss, atol=1e-6)
