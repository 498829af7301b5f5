"""What every test shares."""

import os
import shutil
import signal

import numpy as np
import pytest
import torch

from lib.claims.claim import REGISTRY, judged
from lib.claims.judging import registered
from lib.engine import lockstep, rounds
from lib.measuring import runner
from lib.measuring.experiment import Collection

NAMES = "chromium", "chromium-browser", "google-chrome"
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
needs_browser = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")


def same(one, other):
    """Two outcomes of training are equal but for the time that they took."""
    for field, value in vars(one).items():
        if field != "wall_s":
            np.testing.assert_array_equal(getattr(other, field), value, err_msg=field)


@pytest.fixture(autouse=True)
def seeded():
    """The same random tensors in each run, in whatever order and process a test runs."""
    torch.manual_seed(0)


@pytest.fixture
def heard():
    """Signals end this process and those that it starts, as in a terminal.

    `nohup` and a shell's background ignore some.
    """
    before = [signal.signal(s, signal.SIG_DFL) for s in runner.SIGNALS]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for s, handler in zip(runner.SIGNALS, before):
        signal.signal(s, handler)


@pytest.fixture
def interrupt(monkeypatch):
    """A function that has training save its state after every step and interrupts some updates.

    It takes the numbers of these updates, and returns a list with an entry for every update.
    """

    def at(*numbers, owner=lockstep, name="update"):
        update, steps = getattr(owner, name), []

        def interrupted(*arguments):
            steps.append(0)
            if len(steps) in numbers:
                raise KeyboardInterrupt
            return update(*arguments)

        monkeypatch.setattr(owner, name, interrupted)
        for module in (lockstep, rounds):
            monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
        return steps

    return at


@pytest.fixture
def judge(monkeypatch):
    """A function that judges claims by their keys, on a table in the place of chapters' records."""

    def on(table, *keys):
        monkeypatch.setattr(Collection, "results", lambda self, *_: table.copy())
        known = registered()
        return [judged(known[key], REGISTRY.functions[key]()) for key in keys]

    return on


@pytest.fixture(scope="session")
def browser():
    """Chromium, started once in a process of tests."""
    from playwright.sync_api import sync_playwright

    os.environ.setdefault("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
    flags = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync"]
    flags += ["disable-background-networking", "disable-component-update"]
    with sync_playwright() as playwright:
        arguments = [f"--{flag}" for flag in flags]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()
