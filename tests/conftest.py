"""What every test shares."""

import signal

import pytest
import torch

from lib.measuring import runner


@pytest.fixture(autouse=True)
def seeded():
    """The same random tensors in each run, in whatever order and process a test runs."""
    torch.manual_seed(0)


@pytest.fixture
def heard():
    """Signals end this process and those that it starts, as in a terminal: nohup and a shell's background ignore some."""
    before = [signal.signal(s, signal.SIG_DFL) for s in runner.SIGNALS]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for s, handler in zip(runner.SIGNALS, before):
        signal.signal(s, handler)
