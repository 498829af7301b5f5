"""Real processes take the steps of one; what breaks that, what mends it, and what frameworks send."""

import multiprocessing
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from chapters.frameworks import frameworks
from chapters.frameworks.frameworks import EXACT, Training
from lib.workers import processes
from lib.workers.processes import HAZARDS, PRECISIONS, Run
from lib.workloads import datasets, models

ROUNDING = {"float32": 1e-6, "float64": 2e-15}  # a few units in the last place of parameters below 1
MODELS = ("mlp-64x2", "digits-cnn")
EQUAL = [
    Run(4, model=model, precision=precision)
    for model in MODELS
    for precision in PRECISIONS
]
HARMED = [(hazard, "float64") for hazard in HAZARDS]
HAZARDOUS = [Run(4, precision=p, hazard=hazard, remedy=remedy) for hazard, p in HARMED for remedy in (False, True)]


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits").train


@pytest.fixture(scope="module")
def trained(digits):
    """Run -> its parameters after every step, all from one start of four workers."""
    runs = EQUAL + HAZARDOUS
    return dict(zip(runs, processes.train(runs, digits), strict=True))


def label(run):
    return f"{run.workers}-{run.model}-{run.precision}-{run.hazard}-{run.remedy}"


@pytest.mark.parametrize("run", EQUAL, ids=label)
def test_workers_on_shards_take_the_steps_of_one_process(run, trained, digits):
    expected = processes.reference(run, digits)
    assert expected.shape == (21, models.parameter_count(models.build(run.model)))
    assert (expected[-1] - expected[0]).abs().max() > 0.05, "the parameters must have moved"
    difference = processes.largest_difference(trained[run], expected)
    assert difference[0] == 0
    assert difference.max() <= ROUNDING[run.precision]


@pytest.mark.parametrize(("hazard", "precision"), HARMED)
def test_a_hazard_breaks_the_equality_in_any_precision_and_its_remedy_restores_it(hazard, precision, trained, digits):
    broken, mended = (Run(4, precision=precision, hazard=hazard, remedy=remedy) for remedy in (False, True))
    expected = processes.reference(broken, digits)
    assert processes.relative_deviation(trained[broken], expected).min() > 0.01
    assert processes.largest_difference(trained[mended], expected).max() < ROUNDING[precision]


def test_the_reference_is_plain_momentum(digits):
    run = Run(steps=5, precision="float64")
    network = models.initialise(models.build(run.model), run.seed).double()
    velocity = [torch.zeros_like(w) for w in network.parameters()]
    for rows in processes.batches(len(digits.x), run):
        loss = nn.functional.cross_entropy(network(digits.x[rows].double()), digits.y[rows])
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        with torch.no_grad():
            for w, v, g in zip(network.parameters(), velocity, gradients, strict=True):
                v.mul_(run.momentum).add_(g)
                w.sub_(run.learning_rate * v)
    flat = torch.cat([w.detach().flatten() for w in network.parameters()])
    torch.testing.assert_close(processes.reference(run, digits)[-1], flat, rtol=0, atol=1e-15)


@pytest.fixture
def children():
    """The processes that the test has started and that live: a pool of an earlier test's may idle beside them."""
    before = set(multiprocessing.active_children())
    return lambda: [process for process in multiprocessing.active_children() if process not in before]


def test_a_workers_exception_reaches_the_caller_and_nobody_is_left_waiting(digits, children):
    labels = digits.y.clone()
    labels[processes.batches(len(labels), Run())[0, -1]] = 10  # no such class; it falls to the last worker
    with pytest.raises(RuntimeError, match="(?s)worker 1 of 2 failed:.*Target 10 is out of bounds"):
        processes.train([Run(2)], SimpleNamespace(x=digits.x, y=labels), timeout=60)
    assert not children()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_killed_worker_is_reported(digits, children):
    def kill():
        while not (started := children()):
            time.sleep(0.01)
        started[0].kill()

    killer = threading.Timer(0.5, kill)
    killer.start()
    with pytest.raises(RuntimeError, match="a worker died: process . terminated with signal SIGKILL"):
        processes.train([Run(2, steps=10**5)], digits, timeout=60)
    killer.join()
    assert not children()


DIGITS_CNN = Training("digits-cnn", "momentum", precision="float64", density=0.05)
ADAM = Training("mlp-64x2", "adam", learning_rate=0.01, precision="float64", micro_batches=2)
TRAININGS = (DIGITS_CNN, ADAM)
# A few units in the last place of weights below 1.  Adam divides gradients by their size, at least by 1e-8: where one is as small
# as that, its rounding of about 1e-18 becomes 1e-10 of a step of 0.01.
ULPS = {DIGITS_CNN: 2e-15, ADAM: 1e-12}




@pytest.fixture(scope="module")
def by_framework(digits):
    """Training -> system -> its outcome after ten steps, all from one start of two processes."""
    return dict(zip(TRAININGS, frameworks.train(TRAININGS, digits), strict=True))


def size_of(training):
    return models.parameter_count(models.build(training.model)) * torch.finfo(training.type).bits // 8


@pytest.mark.parametrize("training", TRAININGS, ids=lambda t: f"{t.model}-{t.algorithm}-{t.precision}")
def test_every_framework_takes_the_steps_of_one_process(training, by_framework, digits):
    expected = frameworks.reference(training, digits)
    start = torch.cat([p.detach().double().flatten() for p in models.fresh(training.model, 0).parameters()])
    assert (expected - start).abs().max() > 0.02, "the weights must have moved"
    assert torch.equal(by_framework[training]["one"]["weights"], expected)
    for name in EXACT:
        assert (by_framework[training][name]["weights"] - expected).abs().max() <= ULPS[training], name


def test_sparse_messages_take_the_steps_of_the_simulation_and_no_others(by_framework, digits):
    sparse = by_framework[DIGITS_CNN]["sparse"]["weights"]
    assert (sparse - frameworks.simulated(DIGITS_CNN, digits)).abs().max() <= ULPS[DIGITS_CNN]
    assert (sparse - frameworks.reference(DIGITS_CNN, digits)).abs().max() > 1e-3


@pytest.mark.skipif(frameworks.sent() is None, reason="Linux alone counts the bytes of a connection")
@pytest.mark.parametrize("training", TRAININGS, ids=lambda t: f"{t.model}-{t.algorithm}-{t.precision}")
def test_processes_send_what_their_collectives_say(training, by_framework):
    """gloo adds headers: some hundred bytes a message."""
    sent, size = {name: np.array(found["sent"]) for name, found in by_framework[training].items()}, size_of(training)
    assert sent["one"].sum() == 0
    assert (0 <= sent["ddp"] - size).all() and (sent["ddp"] - size).max() < 1000, "half is scattered, half gathered"
    whole = sent["zero"].sum() - sent["ddp"].sum()
    assert 0 <= whole - size < 2000, "besides, every parameter is told once"
    assert (0 <= sent["fsdp"] - 2 * size).all() and (sent["fsdp"] - 2 * size).max() < 5000  # halves twice; a sum, as gloo does it
    width = {"digits-cnn": 16 * 4 * 4, "mlp-64x2": 64}[training.model]
    passed = training.batch_size * width * size // models.parameter_count(models.build(training.model))
    assert (0 <= sent["pipeline"] - passed).all() and (sent["pipeline"] - passed).max() < 1000
    pair = 4 + size / models.parameter_count(models.build(training.model))
    share = training.density * models.parameter_count(models.build(training.model)) * pair
    over = sent["sparse"] - share  # a sum of flags and a gathering of counts come before the pairs
    assert (-1 < over).all() and over.max() < 2000
