"""Boolean readouts trained by coordinate descent (Andreoli et al. 2023, for reservoirs): flip a
weight, keep the flip if the error on B examples falls.  Features, data and several flips are ours.

The readout decides whether a digit is even: (1 / sqrt N) sum of w_i f_i(x), w_i in {0, 1}, fitted
to a target of 1 or -1; f_i are N fixed random features, tanh of a random affine map, with mean 0
and variance 1 over the training examples.  A flip changes an example's residual r by
d = (1 - 2 w_i) f_i / sqrt N, hence the mean squared error by the mean of d (2 r + d).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pandas as pd

from lib.engine import vocabulary
from lib.fields import Count, spec
from lib.measuring.experiment import Collection

TAKES = ("every", "best")
EXAMPLES = 1350  # in the training set
BIAS = 0.5  # standard deviation; the map's products with an image have about 1


@spec
class Descent:
    """Runs from random weights, with different features, weights and split of the digits in each.

    features: N.  batch_size: examples on which flips are judged.  flips: M, the different weights
    tried per step.  take: which helpful flips are kept.  whitened: whether features are
    uncorrelated over the training examples.  steps: per run.  replicates: number of runs.
    """

    features: Count(EXAMPLES - 1)
    batch_size: Count(EXAMPLES) = EXAMPLES
    flips: Count(EXAMPLES - 1) = 1
    take: Literal[*TAKES] = "every"
    whitened: bool = False
    steps: Count(10**6) = 6144
    replicates: Count(100) = 10

    def definition(self) -> dict:
        return {"dataset": "digits"}

    def measure(self) -> pd.DataFrame:
        """A row per run and check: mean squared errors over all training and validation examples,
        and the share of wrong signs (mistakes) on the latter.
        """
        rows = itertools.chain.from_iterable(map(self._run, range(self.replicates)))
        columns = ["replicate", "step", "training", "validation", "mistakes"]
        return pd.DataFrame(rows, columns=columns)

    def _run(self, replicate: int) -> Iterator[tuple]:
        # Imports PyTorch, which is slow; most chapters only read records
        from lib.workloads import datasets

        digits = datasets.load("digits", replicate)
        splits = digits.train, digits.validation
        x, unseen = (split.x.flatten(1).double().numpy() for split in splits)
        y, parity = (1.0 - 2 * (split.y.numpy() % 2) for split in splits)
        # Features and initial weights are the same at every B and M
        random = np.random.default_rng((replicate, self.features))
        f, unseen_f = features(x, unseen, self.features, random, self.whitened)
        readout = Readout(f, y, random.random(self.features) < 0.5)
        check = 0
        for step in descent(readout, self, random):
            if step == check:
                check = vocabulary.next_check(step, "geometric")
                answers = unseen_f @ readout.w
                mistakes = np.mean((answers > 0) != (parity > 0))
                error = np.mean((answers - parity) ** 2)
                yield replicate, step, readout.error, error, mistakes


def features(
    x: np.ndarray, unseen: np.ndarray, count: int, random: np.random.Generator, whitened: bool
) -> tuple[np.ndarray, np.ndarray]:
    """f_i / sqrt N for examples x [n, d] and for unseen ones, [n, N] each: mean 0 and variance
    1 / N over x; whitened: uncorrelated over x.
    """
    matrix = random.standard_normal((x.shape[1], count)) / x.shape[1] ** 0.5
    bias = BIAS * random.standard_normal(count)
    f, unseen_f = np.tanh(x @ matrix + bias), np.tanh(unseen @ matrix + bias)
    mean = f.mean(0)
    f, unseen_f = f - mean, unseen_f - mean
    if whitened:
        values, axes = np.linalg.eigh(f.T @ f / len(x))
        turn = axes / np.sqrt(values) @ axes.T
        f, unseen_f = f @ turn, unseen_f @ turn
    scale = f.std(0) * count**0.5
    return np.asfortranarray(f / scale), unseen_f / scale  # a flip reads columns


class Readout:
    """Weights w [N], 0 or 1, of features f [n, N]; keeps the residuals f w - target [n]."""

    def __init__(self, f: np.ndarray, target: np.ndarray, w: np.ndarray):
        self.f, self.w = f, w.astype(float)
        self.residual = f @ self.w - target

    @property
    def error(self) -> float:
        """Mean squared error over all examples."""
        return float(self.residual @ self.residual / len(self.residual))

    def changes(self, picked: np.ndarray, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The change [M] of the mean squared error on these examples if one of the picked weights
        [M] is flipped.
        """
        d = self.f[rows][:, picked] if isinstance(rows, slice) else self.f[np.ix_(rows, picked)]
        d = d * (1 - 2 * self.w[picked])
        return np.mean(d * (2 * self.residual[rows, None] + d), axis=0)

    def flip(self, chosen: np.ndarray) -> None:
        """Flip these weights [m], all different."""
        self.residual += self.f[:, chosen] @ (1 - 2 * self.w[chosen])
        self.w[chosen] = 1 - self.w[chosen]


def descent(readout: Readout, runs: Descent, random: np.random.Generator) -> Iterator[int]:
    """Train a readout in place; yields the number of steps done, starting with 0."""
    yield 0
    count, order = len(readout.w), _batches(len(readout.residual), runs.batch_size, random)
    for step, rows in zip(range(1, runs.steps + 1), order, strict=False):
        if runs.flips == 1:
            picked = random.integers(count, size=1)
        else:
            picked = random.permutation(count)[: runs.flips]
        change = readout.changes(picked, rows)
        helpful = change < 0
        if runs.take == "best":
            helpful &= np.arange(runs.flips) == change.argmin()
        if helpful.any():
            readout.flip(picked[helpful])
        yield step


def _batches(examples: int, batch_size: int, random: np.random.Generator) -> Iterator:
    """Endless batches: every epoch is reshuffled, and a batch may straddle two."""
    if batch_size == examples:
        yield from itertools.repeat(slice(None))
    queue = np.empty(0, int)
    while True:
        if len(queue) < batch_size:
            queue = np.concatenate([queue, random.permutation(examples)])
        yield queue[:batch_size]
        queue = queue[batch_size:]


MIDDLE = 256  # features when batch sizes or flips vary
LONG, LEAST = 24, 600  # length of a run: mean visits to each weight, and least number of steps


def planned() -> list[Descent]:
    """Runs with various numbers and kinds of features, batch sizes, and flips per step."""
    counts, flips = (64, 128, 256, 512, 1024), (2, 4, 8, 16, 32, 64, 128, 256)
    return [
        *(Descent(n, whitened=w, steps=LONG * n) for n in counts for w in (False, True)),
        *(Descent(MIDDLE, size, steps=20_000) for size in (1, 4, 16, 64, 256, 1024)),
        *(
            Descent(MIDDLE, flips=m, take=take, steps=max(LEAST, LONG * MIDDLE // m))
            for m in flips
            for take in TAKES
        ),
    ]


READOUTS = Collection(
    "flips",
    "sets of runs",
    "features-{0.features}-batch-{0.batch_size}-flips-{0.flips}".format,
    planned,
    "Train Boolean readouts by flips of their weights, into data/flips/.",
    precision="float64",
)
EXPERIMENTS = {"boolean-readouts": READOUTS}
