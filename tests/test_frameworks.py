"""Frameworks on two processes: they take the steps of one, send what they say, and hold what they say."""


import numpy as np
import pytest
import torch

from chapters.frameworks import frameworks
from chapters.frameworks.frameworks import EXACT, Training
from lib.workloads import datasets, models

DIGITS_CNN = Training("digits-cnn", "momentum", precision="float64", density=0.05)
ADAM = Training("mlp-64x2", "adam", learning_rate=0.01, precision="float64", micro_batches=2)
TRAININGS = (DIGITS_CNN, ADAM)
# A few units in the last place of weights below 1.  Adam divides gradients by their size, at least by 1e-8: where one is as small
# as that, its rounding of about 1e-18 becomes 1e-10 of a step of 0.01.
ROUNDING = {DIGITS_CNN: 2e-15, ADAM: 1e-12}


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits").train


@pytest.fixture(scope="module")
def trained(digits):
    """Training -> system -> its outcome after ten steps, all from one start of two processes."""
    return dict(zip(TRAININGS, frameworks.train(TRAININGS, digits), strict=True))


def size_of(training):
    return models.parameter_count(models.build(training.model)) * torch.finfo(training.type).bits // 8


@pytest.mark.parametrize("training", TRAININGS, ids=lambda t: f"{t.model}-{t.algorithm}-{t.precision}")
def test_every_framework_takes_the_steps_of_one_process(training, trained, digits):
    expected = frameworks.reference(training, digits)
    start = torch.cat([p.detach().double().flatten() for p in models.fresh(training.model, 0).parameters()])
    assert (expected - start).abs().max() > 0.02, "the weights must have moved"
    assert torch.equal(trained[training]["one"]["weights"], expected)
    for name in EXACT:
        assert (trained[training][name]["weights"] - expected).abs().max() <= ROUNDING[training], name


def test_sparse_messages_take_the_steps_of_the_simulation_and_no_others(trained, digits):
    sparse = trained[DIGITS_CNN]["sparse"]["weights"]
    assert (sparse - frameworks.simulated(DIGITS_CNN, digits)).abs().max() <= ROUNDING[DIGITS_CNN]
    assert (sparse - frameworks.reference(DIGITS_CNN, digits)).abs().max() > 1e-3


@pytest.mark.skipif(frameworks.sent() is None, reason="Linux alone counts the bytes of a connection")
@pytest.mark.parametrize("training", TRAININGS, ids=lambda t: f"{t.model}-{t.algorithm}-{t.precision}")
def test_processes_send_what_their_collectives_say(training, trained):
    """gloo adds headers: some hundred bytes a message."""
    sent, size = {name: np.array(found["sent"]) for name, found in trained[training].items()}, size_of(training)
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
