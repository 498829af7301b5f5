"""What every test shares."""

import contextlib
import dataclasses
import functools
import os
import shutil
import signal
import textwrap

import numpy as np
import pytest
import torch

from lib.claims.claim import REGISTRY, Claim, decide, judged
from lib.claims.judging import registered
from lib.engine import (
    checkpoint,
    flattening,
    lockstep,
    training_state,
    validation,
    vocabulary,
)
from lib.measuring import one_search, runner
from lib.measuring.experiment import Collection
from lib.methods import METHODS
from lib.workloads import datasets

NAMES = "chromium", "chromium-browser", "google-chrome"
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
needs_browser = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")


def same(outcome, expected):
    """Two outcomes of training are equal except for the time they took."""
    for field, value in vars(outcome).items():
        if field != "wall_s":
            np.testing.assert_array_equal(getattr(expected, field), value, err_msg=field)


def torch_sgd(p, drawn, **more):
    return torch.optim.SGD(p, lr=drawn["learning_rate"], momentum=drawn.get("momentum", 0), **more)


def torch_adam(p, drawn):
    betas = drawn["beta1"], drawn.get("beta2", 0.999)
    return torch.optim.Adam(p, lr=drawn["learning_rate"], betas=betas)


TORCHS = {
    "sgd": torch_sgd,
    "momentum": torch_sgd,
    "nesterov": functools.partial(torch_sgd, nesterov=True),
    "adam": torch_adam,
    "adam-fixed": torch_adam,
}


def recorded(frame, **about):
    """Planted trials as `results.read` gives them: these columns, and the usual ones."""
    usual = {"workload": "digits-mlp", "algorithm": "momentum", "pruning": "connection-sensitivity"}
    usual |= {"sparsity": 0.0, "trials": 1, "trial": 0, "replicate": 0, "split": 0}
    usual |= {"goal": 0.04, "status": "complete", "last_step": 1e6}
    return frame.assign(**{k: v for k, v in usual.items() if k not in frame} | about)


@contextlib.contextmanager
def read_to_the_end():
    """A block in which checks reject no trial before its last answer."""
    costs = validation.Validation.costs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation.Validation, "costs", lambda self, w, _=None: costs(self, w))
        yield


def exhaustive(cell, meets):
    """The published protocol, written anew: all trials to the last step, checks on all examples.

    Args:
        meets: of an executor and weights [T, P], whether each trial meets each goal [T, goals].

    Returns:
        The check at which each trial first met each goal [T, goals], NaN if never, and the last
        weights [T, P].
    """
    trials, executor = one_search.start(cell), one_search.executor(cell)
    data = datasets.load(cell.work.dataset, cell.split).train
    x, method = executor.inputs(data.x), METHODS[cell.algorithm]
    layers = flattening.layers(executor.module)
    w = trials.w.clone()
    buffers, first = method.begin(w, layers), np.full((cell.trials, 1), np.nan)
    order, check = lockstep.batches(len(data), cell.batch_size, cell.replicate), 1
    for step in range(1, cell.max_steps + 1):
        pick = next(order)
        batch = x[pick], data.y[pick]
        if method.gradient:
            losses, g, _ = method.gradient(executor, w, batch, trials.mask, buffers)
        else:
            losses, g, _ = executor.gradients(w, *batch, trials.mask)
        # A trial that has diverged would have left
        assert trials.mask is None or not g[(trials.mask == 0) & losses.isfinite()[:, None]].any()
        method.step(w, g, buffers, trials.hparams(step), step, layers)
        if step == check:
            check = vocabulary.next_check(step, "geometric")
            met = meets(executor, method.evaluated(w, buffers) if method.evaluated else w)
            first = np.where(np.isnan(first) & met, step, first)
    return first, w


@pytest.fixture(autouse=True)
def seeded():
    """The same random tensors in each run, whatever order and process a test runs in."""
    torch.manual_seed(0)


@pytest.fixture
def heard():
    """Signals end this process and those that it starts, as in a terminal.

    `nohup` and background shells ignore some.
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

    def at(*numbers, owner=training_state.Descent, name="advance"):
        update, steps = getattr(owner, name), []

        def interrupted(*arguments):
            steps.append(0)
            if len(steps) in numbers:
                raise KeyboardInterrupt
            return update(*arguments)

        monkeypatch.setattr(owner, name, interrupted)
        monkeypatch.setattr(checkpoint, "SAVE_EVERY", 0.0)
        return steps

    return at


@pytest.fixture
def write(tmp_path, monkeypatch):
    """A function that writes a reader's file into an empty current folder."""
    monkeypatch.chdir(tmp_path)

    def save(text, name="mine.py"):
        (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return f"{name}:task"

    return save


# Where the intervals of findings lie only if a table is planted that way
SIDES = {
    "A1": ("above", 1.25), "A2": ("above", 1.25), "B3": ("within", 1.25), "C1": ("below", 0.8), "C2": ("within", 1.25),
    "D1": ("below", 0.8), "D2": ("below", 0.8), "F1": ("above", 1.25), "F2": ("above", 1.25), "N1": ("above", 1.25),
    "N2": ("above", 0.5), "R1": ("above", 1.25), "U1": ("below", 0.8), "W2": ("within", 2.0),
}  # fmt: skip


def on_sides(key, groups):
    """A claim's verdicts on these groups, or which of SIDES a finding's lie on, in the same words."""
    entry, _ = REGISTRY[key]
    if isinstance(entry, Claim):
        return judged(entry, groups)
    kind, edge = SIDES[key]
    sided = []
    for group in groups:
        low, high, limit = map(entry.inner, (group.low, group.high, edge))
        verdict = str(decide(low, high, kind, limit, either=True))
        sided.append(dataclasses.replace(group, verdict=verdict))
    return dataclasses.replace(entry, groups=tuple(sided))


@pytest.fixture
def judge(monkeypatch):
    """A function that judges claims by key, on a table in place of the chapters' records."""

    def on(table, *keys):
        monkeypatch.setattr(Collection, "results", lambda self, *_: table.copy())
        registered()
        return [on_sides(key, REGISTRY[key][1]()) for key in keys]

    return on


@pytest.fixture(scope="session")
def browser():
    """Chromium, started once per test process."""
    from playwright.sync_api import sync_playwright

    os.environ.setdefault("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
    flags = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync"]
    flags += ["disable-background-networking", "disable-component-update"]
    with sync_playwright() as playwright:
        arguments = [f"--{flag}" for flag in flags]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()
