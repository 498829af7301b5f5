"""Messages that reveal less: split networks with a penalty on the distance correlation between a
batch's images and the activations that its client sends.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib.fields import AMOUNT, Count, Whole, spec
from lib.measuring.experiment import Collection, OfSearch
from lib.workloads.catalogue import WorkloadName

if TYPE_CHECKING:
    from torch import Tensor

GOALS = (0.04, 0.06, 0.1)  # of validation error, at which leakage is measured
FEATURES, RIDGES = 512, (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # of the decoder
TINY = 1e-12
PLANNED = {  # batch sizes and alphas; distances between 256 activations are costly for the CNN
    "digits-mlp": ((8, 32, 128, 256), (1.0, 3.0, 10.0)),
    "digits-cnn": ((8, 32, 128), (3.0,)),
}
REPLICATES = range(1, 6)


@spec
class Search(OfSearch):
    """Trials of split learning, which differ in learning rate and initialisation.

    alpha: weight of the squared distance correlation.  unbiased: whether its estimator is.
    max_steps: after which a search that has not met the hardest goal ends.
    """

    workload: WorkloadName
    batch_size: Whole(4, 1350)  # the unbiased estimator needs four
    alpha: AMOUNT = 0.0
    unbiased: bool = False
    replicate: Count(1000) = 1
    max_steps: Count(100_000) = 2000
    trials: Count(1024) = 16

    def measure(self) -> pd.DataFrame:
        """A row per goal: steps and learning_rate of the first trial to meet it, and `leakage`."""
        from lib.engine import lockstep
        from lib.measuring.rerun import Steps

        steps = Steps(self.cell, GOALS)
        data, halves, rows = steps.train, steps.halves, []
        waiting = dict(zip(GOALS, steps.limits))
        order = lockstep.batches(len(data.y), self.batch_size, self.replicate)

        def step(w: Tensor) -> Tensor:
            pick = next(order)
            x, y = data.x[pick], data.y[pick]
            penalty = self.penalty(x) if self.alpha else None
            return w - steps.rate * halves.gradients(w, x, y, penalty)[1]

        for count, w, wrong in steps.until_met(step, self.max_steps):
            best = int(wrong.argmin())
            for goal in [goal for goal, most in waiting.items() if wrong[best] <= most]:
                sent = [(part.x, halves.sent(w[best], part.x)) for part in (data, steps.held)]
                rows.append((goal, count, float(steps.rate[best]), *leakage(*sent)))
                del waiting[goal]
        rows += [(goal, *[np.nan] * 4) for goal in waiting]
        return pd.DataFrame(rows, columns=["goal", "steps", "learning_rate", "dcor", "rebuilt"])

    def penalty(self, x: Tensor):
        """The client's penalty on a batch x, as a function of the activations sent [T, B, ...]."""
        images = distances(x.flatten(1))
        return lambda sent: (
            self.alpha * correlation(images, distances(sent.flatten(2)), self.unbiased)
        )


def distances(a: Tensor) -> Tensor:
    """Euclidean distances between the rows of a [..., n, d]: [..., n, n].

    Computed from matrix products: the derivative of `torch.cdist` takes several times as long.
    """
    import torch

    squares = a.square().sum(-1, True)
    apart = (squares + squares.mT - 2 * a @ a.mT) * (1 - torch.eye(a.shape[-2], dtype=a.dtype))
    return apart.clamp(min=TINY).sqrt() * (apart > TINY)


def correlation(x_distances: Tensor, z_distances: Tensor, unbiased: bool) -> Tensor:
    """The squared distance correlation [...] of two sets of distances [..., n, n]; unbiased: with a
    covariance that has mean zero for independent data, and may be negative.
    """
    x, z = (centred(d, unbiased) for d in (x_distances, z_distances))
    xz, xx, zz = ((p * q).sum((-1, -2)) for p, q in ((x, z), (x, x), (z, z)))
    return xz / (xx * zz).clamp(min=TINY).sqrt()


def centred(d: Tensor, unbiased: bool) -> Tensor:
    """Distances d [..., n, n] minus the means of their rows and columns, plus the overall mean;
    unbiased: sums divided by n - 2, or (n - 1)(n - 2), instead of means, and a zero diagonal.
    """
    import torch

    n = d.shape[-1]
    in_row, in_all = (n - 2, (n - 1) * (n - 2)) if unbiased else (n, n * n)
    means = (d.sum(-1, True) + d.sum(-2, True)) / in_row
    less = d - means + d.sum((-1, -2), True) / in_all
    return less * (1 - torch.eye(n, dtype=d.dtype)) if unbiased else less


def leakage(train: tuple[Tensor, Tensor], unseen: tuple[Tensor, Tensor]) -> tuple[float, float]:
    """The unbiased squared distance correlation of unseen images and activations, and the share of
    these images' pixel variance that a decoder rebuilds.

    train, unseen: images [n, ...] and activations [n, ...].  The decoder is ridge regression on the
    activations and random ReLU features of them, with the ridge that is best on unseen images.
    """
    x, z, unseen_x, unseen_z = (a.flatten(1).double() for a in (*train, *unseen))
    correlated = correlation(distances(unseen_x), distances(unseen_z), unbiased=True)
    mean = x.mean(0)
    target = unseen_x - mean
    lost = _lost(_features(z, z), x - mean, _features(unseen_z, z), target)
    return float(correlated), 1 - lost / float(target.square().sum())


def _features(z: Tensor, train_z: Tensor) -> Tensor:
    """Activations z [n, d] scaled as for training, a one, and random ReLU features of both."""
    import torch

    scaled = (z - train_z.mean(0)) / train_z.std().clamp(min=TINY)
    scaled = torch.cat([scaled, torch.ones(len(z), 1)], 1)
    random = torch.Generator().manual_seed(0)
    matrix = torch.randn(scaled.shape[1], FEATURES, generator=random, dtype=z.dtype)
    return torch.cat([scaled, torch.relu(scaled @ matrix)], 1)


def _lost(f: Tensor, x: Tensor, unseen_f: Tensor, target: Tensor) -> float:
    """Squared error on unseen data of ridge regression from f [n, d] to x [n, p], with the best
    ridge.
    """
    import torch

    gram, moments, losses = f.T @ f, f.T @ x, []
    for ridge in RIDGES:
        weights = torch.linalg.solve(gram + ridge * torch.eye(len(gram)) * len(f), moments)
        losses.append(float((target - unseen_f @ weights).square().sum()))
    return min(losses)


def planned() -> list[Search]:
    """Every batch size with every penalty, one replicate after another."""
    return [
        Search(name, size, alpha, unbiased, replicate)
        for replicate in REPLICATES
        for name, (sizes, alphas) in PLANNED.items()
        for size in sizes
        for alpha, unbiased in ((0.0, False), *itertools.product(alphas, (False, True)))
    ]


NAME = "{0.workload}/batch-{0.batch_size}-alpha-{0.alpha:g}"
ABOUT = "Train split networks whose messages reveal less of the images, into data/leakage/."
LEAKAGE = Collection("leakage", "searches", NAME.format, planned, ABOUT)
EXPERIMENTS = {"leakage": LEAKAGE}
