"""Real processes take the steps of one; what breaks that, what mends it, and what frameworks send."""

import gc
import itertools
import multiprocessing
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from chapters.batch_size_is_data_parallelism import frameworks, parallel_runs
from chapters.batch_size_is_data_parallelism.frameworks import (
    WARM_UP,
    WORKERS,
    Training,
    everyones,
)
from chapters.batch_size_is_data_parallelism.parallel_runs import HAZARDS, PRECISIONS, Run
from lib.engine import lockstep
from lib.messages import Messages
from lib.workers import processes
from lib.workloads import datasets, models
from tests.test_comm_hook import exchanging

ROUNDING = {"float32": 1e-6, "float64": 2e-15}  # a few units in the last place of parameters below 1
EQUAL = [Run(4, model=model, precision=precision) for model in ("mlp-64x2", "digits-cnn") for precision in PRECISIONS]
HARMED = [Run(4, precision="float64", hazard=hazard) for hazard in HAZARDS]
MENDED = [replace(run, remedy=True) for run in HARMED]


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits").train


@pytest.fixture(scope="module")
def trained(digits):
    """Run -> its parameters after every step, all from one start of four workers."""
    runs = EQUAL + HARMED + MENDED
    return dict(zip(runs, parallel_runs.train(runs, digits), strict=True))


@pytest.mark.parametrize("run", EQUAL, ids=lambda run: f"{run.model}-{run.precision}")
def test_workers_on_shards_take_the_steps_of_one_process(run, trained, digits):
    expected = parallel_runs.reference(run, digits)
    assert expected.shape == (21, models.parameter_count(models.build(run.model)))
    assert (expected[-1] - expected[0]).abs().max() > 0.05, "the parameters must have moved"
    difference = parallel_runs.largest_difference(trained[run], expected)
    assert difference[0] == 0 and difference.max() <= ROUNDING[run.precision]


@pytest.mark.parametrize(("broken", "mended"), list(zip(HARMED, MENDED)), ids=HAZARDS)
def test_a_hazard_breaks_the_equality_and_its_remedy_restores_it(broken, mended, trained, digits):
    expected = parallel_runs.reference(broken, digits)
    assert parallel_runs.relative_deviation(trained[broken], expected).min() > 0.01
    assert parallel_runs.largest_difference(trained[mended], expected).max() < ROUNDING["float64"]


def test_the_reference_is_plain_momentum(digits):
    run = Run(steps=5, precision="float64")
    network = models.initialise(models.build(run.model), parallel_runs.SEED).double()
    parameters = list(network.parameters())
    w, v = nn.utils.parameters_to_vector(parameters).detach(), 0
    for rows in parallel_runs.batches(len(digits.x), run):
        x, y = digits.x[rows].double(), digits.y[rows]
        loss = nn.functional.cross_entropy(network(x), y)
        gradients = torch.autograd.grad(loss, parameters)
        v = parallel_runs.MOMENTUM * v + nn.utils.parameters_to_vector(gradients)
        w = w - parallel_runs.RATE * v
        nn.utils.vector_to_parameters(w, parameters)
    torch.testing.assert_close(parallel_runs.reference(run, digits)[-1], w, rtol=0, atol=1e-15)


@pytest.fixture
def children():
    """The live processes that the test has started."""
    before = set(multiprocessing.active_children())
    return lambda: [*set(multiprocessing.active_children()) - before]


def test_a_workers_exception_reaches_the_caller_and_nobody_is_left_waiting(digits, children):
    labels = digits.y.clone()
    labels[parallel_runs.batches(len(labels), Run())[0, -1]] = 10  # no such class; it falls to the last worker
    with pytest.raises(RuntimeError, match="(?s)a worker failed:.*Process 1 .*Target 10 is out of bounds"):
        parallel_runs.train([Run(2)], SimpleNamespace(x=digits.x, y=labels), timeout=60)
    assert not children()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_killed_worker_is_reported(digits, children):
    def kill():
        while not (started := children()):
            time.sleep(0.01)
        started[0].kill()

    killer = threading.Timer(0.5, kill)
    killer.start()
    with pytest.raises(RuntimeError, match="a worker failed: process . terminated with signal SIGKILL"):
        parallel_runs.train([Run(2, steps=10**5)], digits, timeout=60)
    killer.join()
    assert not children()


DIGITS_CNN = Training("digits-cnn", "momentum", precision="float64", density=0.05)
ADAM = Training("mlp-64x2", "adam", learning_rate=0.01, precision="float64", micro_batches=2)
TRAININGS = (DIGITS_CNN, ADAM)
# A few units in the last place of weights below 1.  Adam divides gradients by their size, at least by 1e-8: where one is as small
# as that, its rounding of about 1e-18 becomes 1e-10 of a step of 0.01.
ULPS = {DIGITS_CNN: 2e-15, ADAM: 1e-12}
TAKEN = 10  # steps


class Simulated(frameworks.OneProcess):
    """Sparse messages of both processes in one."""

    def __init__(self, training, *about):
        super().__init__(training, *about)
        self.backward = exchanging(self.network, Messages(2, "top-k", training.density))

    def step(self, x, y):
        self.backward(x, y)
        self.optimizer.step()


SYSTEMS = frameworks.SYSTEMS | {"simulated": Simulated}


def weights(system):
    """All parameters, flat, float64 [P], on every process."""
    full = (getattr(p, "full_tensor", lambda p=p: p)() for p in system.model.parameters())
    flat = nn.utils.parameters_to_vector(p.detach().double() for p in full)
    return torch.cat(everyones(flat)) if isinstance(system, frameworks.Stages) else flat


def outcome(rank, training, name, x, y):
    """weights: after the steps; sent: bytes per step of each process, once warmed up."""
    alone = name in ("one", "simulated")
    system = None if alone and rank else SYSTEMS[name](training, rank, x[:1])
    sent = []
    for rows in itertools.islice(lockstep.batches(len(x), training.batch_size, training.seed), TAKEN):
        sent.append(frameworks.sent())
        if system:
            system.step(x[rows].to(training.type), y[rows])
    per_step = (frameworks.sent() - sent[WARM_UP]) / (TAKEN - WARM_UP)
    return {"weights": system and weights(system), "sent": everyones(per_step)}


def outcomes(rank, x, y):
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    by_training = [{name: outcome(rank, t, name, x, y) for name in SYSTEMS} for t in TRAININGS]
    gc.collect()  # a model that outlives the process group can hang the process
    return by_training


@pytest.fixture(scope="module")
def by_framework(digits):
    """Training -> system -> its outcome after ten steps, all from one start of two processes."""
    by_training = processes.launch(outcomes, WORKERS, 120.0, digits.x.numpy(), digits.y.numpy())
    return dict(zip(TRAININGS, by_training, strict=True))


@pytest.mark.parametrize("training", TRAININGS, ids=lambda t: f"{t.model}-{t.algorithm}-{t.precision}")
def test_every_framework_takes_the_steps_of_one_process(training, by_framework):
    expected = by_framework[training]["one"]["weights"]
    start = torch.cat([p.detach().double().flatten() for p in models.fresh(training.model, 0).parameters()])
    assert (expected - start).abs().max() > 0.02, "the weights must have moved"
    for name in SYSTEMS.keys() - {"sparse", "simulated"}:
        assert (by_framework[training][name]["weights"] - expected).abs().max() <= ULPS[training], name


def test_sparse_messages_take_the_steps_of_the_simulation_and_no_others(by_framework):
    ends = {name: outcome["weights"] for name, outcome in by_framework[DIGITS_CNN].items()}
    assert (ends["sparse"] - ends["simulated"]).abs().max() <= ULPS[DIGITS_CNN]
    assert (ends["sparse"] - ends["one"]).abs().max() > 1e-3


@pytest.mark.skipif(np.isnan(frameworks.sent()), reason="Linux alone counts the bytes of a connection")
@pytest.mark.parametrize("training", TRAININGS, ids=lambda t: t.model)
def test_processes_send_what_their_collectives_say(training, by_framework):
    """gloo adds headers: some hundred bytes per message."""
    sent = {name: np.array(outcome["sent"]) for name, outcome in by_framework[training].items()}
    count = models.parameter_count(models.build(training.model))
    value = torch.finfo(training.type).bits // 8
    features = {"digits-cnn": 16 * 4 * 4, "mlp-64x2": 64}[training.model]
    expected = {  # bytes, and at most for headers
        "ddp": (count * value, 1000),  # half is scattered, half gathered
        "fsdp": (2 * count * value, 5000),  # halves twice; a sum, as gloo does it
        "pipeline": (training.batch_size * features * value, 1000),
        # Sums of flags and of counts come before the pairs
        "sparse": (training.density * count * (4 + value) - 1, 2001),
    }
    for name, (payload, headers) in expected.items():
        assert (payload <= sent[name]).all() and sent[name].max() - payload < headers, name
    assert sent["one"].sum() == 0
    once = sent["zero"].sum() - sent["ddp"].sum()  # besides, every parameter is sent once
    assert 0 <= once - count * value < 2000
