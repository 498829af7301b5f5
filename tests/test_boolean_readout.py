"""Boolean readouts by coordinate descent: against recomputed errors and a plain loop, and where the answer is known."""


import numpy as np
import pytest

from chapters.without_backpropagation.boolean_readout import Readout, descent, features


@pytest.fixture
def random():
    return np.random.default_rng(5)


def made(random, count=12, examples=40, whitened=False):
    """Features [examples, count], a target that no readout meets, and weights to begin with."""
    f, _ = features(random.standard_normal((examples, 8)), np.zeros((1, 8)), count, random, whitened)
    return f, random.choice([-1.0, 1.0], examples), random.random(count) < 0.5


def run(steps):
    return list(steps)[-1]


def test_the_change_by_a_flip_is_that_of_the_recomputed_error(random):
    rows = np.array([3, 3, 17, 39])
    f, target, w = made(random)
    readout, picked = Readout(f, target, w), random.permutation(12)[:7]
    before = np.mean((f @ readout.w - target)[rows] ** 2)
    for i, change in zip(picked, readout.changes(picked, rows), strict=True):
        flipped = readout.w.copy()
        flipped[i] = 1 - flipped[i]
        assert before + change == pytest.approx(np.mean((f @ flipped - target)[rows] ** 2), rel=1e-12)


@pytest.mark.parametrize(("batch_size", "flips", "take"), [(7, 5, "every"), (40, 12, "best")])
def test_a_run_is_that_of_a_loop_that_recomputes_every_error(batch_size, flips, take, random):
    f, target, start = made(random)
    readout, seed = Readout(f, target, start), 7
    run(descent(readout, batch_size, flips, take, 60, np.random.default_rng(seed)))
    w, drawn, rest = start.astype(int), np.random.default_rng(seed), []
    for _ in range(60):
        rows = range(40)
        if batch_size < 40:
            if len(rest) < batch_size:
                rest = rest + list(drawn.permutation(40))
            rows, rest = rest[:batch_size], rest[batch_size:]
        picked = drawn.integers(12, size=1) if flips == 1 else drawn.permutation(12)[:flips]

        def error(w, rows=rows):
            return sum((sum(f[n, i] * w[i] for i in range(12)) - target[n]) ** 2 for n in rows) / len(rows)

        tried = {i: error([1 - v if i == j else v for j, v in enumerate(w)]) - error(w) for i in picked}
        helpful = [i for i in picked if tried[i] < 0]
        for i in [min(helpful, key=tried.get)] if take == "best" and helpful else helpful:
            w[i] = 1 - w[i]
    assert np.array_equal(readout.w, w) and not np.array_equal(w, start)
    assert readout.error == pytest.approx(np.mean((f @ w - target) ** 2), rel=1e-12)


def test_with_all_examples_and_one_flip_the_error_never_rises_and_ends_where_no_flip_helps(random):
    readout = Readout(*made(random, 30, 100))
    errors = [readout.error for _ in descent(readout, 100, 1, "every", 600, random)]
    assert np.all(np.diff(errors) <= 1e-15) and errors[-1] < errors[0]
    assert (readout.changes(np.arange(30)) >= 0).all()


def test_of_uncorrelated_features_the_excess_falls_exponentially_with_the_number_of_features(random):
    """By the first visits alone: (1 - 1/N)^k on average."""
    f, target, start = made(random, 16, 50, whitened=True)
    steps, runs = (8, 16, 40), []
    for _ in range(400):
        readout = Readout(f, target, start)
        errors = [readout.error for _ in descent(readout, 50, 1, "every", 40, random)]
        runs.append([errors[k] for k in (0, *steps)])
    weights = np.arange(16)
    best = Readout(f, target, start)
    best.flip(weights[best.changes(weights) < 0])
    excess = np.mean(runs, 0) - best.error
    assert excess[1:] / excess[0] == pytest.approx([(1 - 1 / 16) ** k for k in steps], rel=0.1)
