"""W processes x B/W examples take the steps of one process x B, to rounding; what breaks that and what mends it."""

import multiprocessing
import signal
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from torch import nn

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
