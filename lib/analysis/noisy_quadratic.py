"""The noisy quadratic model: a case in which steps to result are known exactly, for checking the
analysis.

Independent dimensions of curvature h_i, gradient h_i w_i plus noise of variance c_i / B, w_i^2 = 1
at the start; the loss is half the sum of h_i E w_i^2 (Zhang et al. 2019, "Which Algorithmic Choices
Matter at Which Batch Sizes?").  Second moments follow a linear recursion, here with momentum and an
exponential average of the weights, so no run is simulated. A preconditioned method is plain SGD on
another model of the kind (`preconditioned`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib import require
from lib.fields import POSITIVE, Count, check
from lib.methods import spaces

LONGEST = 26  # steps are sought up to 2**LONGEST
MOST_DIMENSIONS = 10**5
POINTS = 60  # along a path


@dataclass(frozen=True)
class Model:
    """curvature: h_i [d], positive; noise: c_i [d], the variance of one example's gradient; target:
    the loss to reach; square: w_i^2 before the first step, [d] or one number for all.
    """

    curvature: np.ndarray
    noise: np.ndarray
    target: float = 0.01
    square: np.ndarray | float = 1.0

    @property
    def start(self) -> float:
        """Loss before the first step."""
        return 0.5 * (self.curvature * self.square).sum()


def power_law(dimensions: int = 1000, noise: float = 1.0, target: float = 0.01) -> Model:
    """h_i = 1/i, so that the condition number is the number of dimensions, and c_i = noise h_i
    (after Zhang et al. 2019).

    Raises ValueError for fewer than one dimension or too many, for noise or target that are not
    positive, and for a target that is met before the first step.
    """
    check("dimensions", dimensions, Count(MOST_DIMENSIONS))
    check("noise", noise, POSITIVE)
    check("target", target, POSITIVE)
    h = 1 / np.arange(1, dimensions + 1)
    model = Model(h, noise * h, target)
    allowed = f"below the loss at the start, {model.start:.3g}"
    require(target < model.start, "target", target, allowed)
    return model


def preconditioned(model: Model, power: float) -> Model:
    """The model on which SGD moves as it does here if the gradient is multiplied by h^(-power),
    power from 0 to 1: with h^(power / 2) w for w.

    Curvature h^(1 - power), noise c h^(-power), and every loss as it was.
    """
    h = model.curvature
    return Model(h ** (1 - power), model.noise * h**-power, model.target, model.square * h**power)


def _recursion(
    model: Model, rate: float, momentum: float, average: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """One step of the second moments of each dimension: a matrix [n, n, d] and what noise adds
    [n, d] at B = 1.

    v' = momentum v + h w + noise; w' = w - rate v', as in `lib.methods.momentum`: moments of (w, v).
    With an average of the weights, u' = average u + (1 - average) w': of (u, w).  Else E w^2 alone.
    """
    h, p = model.curvature, 1 - rate * model.curvature
    if average is not None:
        step, kick = [[average, (1 - average) * p], [0, p]], [(average - 1) * rate, -rate]
    elif momentum:
        step, kick = [[p, -rate * momentum], [h, momentum]], [-rate, 1]
    else:
        step, kick = [[p]], [-rate]
    step = np.array([np.broadcast_arrays(*row, h)[:-1] for row in step])
    size = len(kick) ** 2
    moments = np.einsum("ijd,kld->ikjld", step, step).reshape(size, size, -1)
    added = np.outer(kick, kick).reshape(size, 1) * model.noise
    if size == 1:
        return moments, added
    # E w v stands twice among the products
    moments = np.stack([moments[:, 0], moments[:, 1] + moments[:, 2], moments[:, 3]], 1)
    return moments[[0, 1, 3]], added[[0, 1, 3]]


def steps(
    model: Model,
    batch_sizes: np.ndarray,
    rate: float,
    momentum: float = 0.0,
    average: float | None = None,
) -> np.ndarray:
    """Steps to the target loss [batch sizes] at a constant rate; inf where it is not reached.

    The loss is taken to fall until it stays above or below the target; a first crossing by an
    oscillation is passed over.  An average is of plain SGD, without momentum.
    """
    powers = [_recursion(model, rate, momentum, average)]
    b = np.asarray(batch_sizes, float)[:, None]
    state = np.zeros((len(powers[0][1]), len(b), len(model.curvature)))
    state[0 if average is None else slice(None)] = model.square
    done = np.zeros(len(b))
    # Not a number counts as above
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(LONGEST - 1):
            last, added = powers[-1]
            twice = np.einsum("ijd,jkd->ikd", last, last)
            powers.append((twice, added + np.einsum("ijd,jd->id", last, added)))
        for k, (matrix, added) in reversed(list(enumerate(powers))):
            ahead = np.einsum("ijd,jbd->ibd", matrix, state) + added[:, None] / b
            above = ~(0.5 * ahead[0] @ model.curvature <= model.target)
            done += np.where(above, 2.0**k, 0)
            state = np.where(above[:, None], ahead, state)
    return np.where(done >= 2**LONGEST - 1, np.inf, done + 1)


def best(
    model: Model,
    batch_sizes: np.ndarray,
    rates: np.ndarray,
    momenta: tuple = (0.0,),
    averages: tuple = (None,),
) -> tuple[np.ndarray, list]:
    """Fewest steps [batch sizes] over the grid, and the (rate, momentum, average) that gives them.

    rates: those of plain SGD; with momentum, times 1 + momentum, as far as which stability then
    reaches.
    """
    grid = [(r * (1 + m), m, a) for r in rates for m in momenta for a in averages]
    table = np.array([steps(model, batch_sizes, *point) for point in grid])
    return table.min(0), [grid[i] for i in table.argmin(0)]


def curve(model: Model, batch_sizes: np.ndarray, rates: np.ndarray, **grid: tuple) -> pd.DataFrame:
    """`best` as rows: batch_size, steps, rate, momentum; sizes at which the target is not reached
    are left out.
    """
    found, points = best(model, batch_sizes, rates, **grid)
    rows = pd.DataFrame(points, columns=["rate", "momentum", "average"]).drop(columns="average")
    rows = rows.assign(batch_size=batch_sizes, steps=found)
    return rows[np.isfinite(rows.steps)].reset_index(drop=True)


# Rates, up to the edge of stability at 2 / h
COARSE = np.r_[np.geomspace(1e-7, 1.6, 45), 2 - np.geomspace(0.35, 1e-3, 12)]
FINE = np.linspace(-1, 1, 15)  # between a coarse rate's neighbours


def constants(
    model: Model, momenta: tuple = (0.0,), averages: tuple = (None,)
) -> tuple[float, float]:
    """c1 and c2 of the model's curve by its limits: examples to the target at small batches, fewest
    steps without noise.

    Each at the best constant rate, momentum and average; `best` on a coarse grid of rates, then
    about the best of it. The largest curvature must be one.
    """
    quiet = replace(model, noise=0 * model.noise)
    return _fewest(model, SMALL, momenta, averages) * SMALL, _fewest(quiet, 1.0, momenta, averages)


# examples a batch; half as many take twice the steps, to a percent, and more than a few in any case
SMALL = 0.25


def _fewest(model: Model, batch_size: float, momenta: tuple, averages: tuple) -> float:
    """Fewest steps at one batch size."""
    size = np.array([batch_size])
    _, [(rate, momentum, _)] = best(model, size, COARSE, momenta, averages)
    place = np.abs(COARSE * (1 + momentum) - rate).argmin().clip(1, len(COARSE) - 2)
    low, middle, high = COARSE[place - 1 : place + 2]
    near = np.where(FINE < 0, middle * (low / middle) ** -FINE, middle * (high / middle) ** FINE)
    return float(best(model, size, near, momenta, averages)[0][0])


MOMENTA = (0.0, *(1 - np.geomspace(0.5, 0.005, 9)))
AVERAGES = (None, 0.9, 0.99, 0.999, 0.9999, 0.99999)
# What the model knows of a training method: the power by which it preconditions, whether it has a
# momentum, and an average of the weights.  A layer's length is one number, part of the rate: LARS
# is momentum here, and LAMB is Adam.  Adam divides by the root of a mean square, which noise makes
# h; Muon does so along the singular directions of a layer.
KINDS = {
    "sgd": (0.0, False, False),
    **dict.fromkeys(("momentum", "nesterov", "lars", "lars-warmup", "clars"), (0.0, True, False)),
    "momentum-ema": (0.0, True, True),
    **dict.fromkeys(("adam", "adam-fixed", "adam-half-life", "lamb", "muon"), (0.5, True, False)),
    **dict.fromkeys(("kfac", "kfac-unclipped"), (1.0, True, False)),
}


def predictions(model: Model) -> pd.DataFrame:
    """What the model says of every method of KINDS, a row each.

    Columns: algorithm, power, momentum, average (whether it has these), c1 (examples), c2 (steps),
    critical; over_c1, over_c2 and over_critical: the same over SGD's.  An average helps at small
    batches alone, and momentum at large ones alone: with both, c1 is that of averaged SGD.
    """
    found = {}
    for power, momentum, average in set(KINDS.values()):
        own = preconditioned(model, power)
        c1, c2 = constants(own, MOMENTA if momentum else (0.0,))
        if average:
            c1, _ = constants(own, averages=AVERAGES)
        found[power, momentum, average] = c1, c2, c1 / c2
    rows = [(name, *kind, *found[kind]) for name, kind in KINDS.items()]
    names = ["c1", "c2", "critical"]
    columns = ["algorithm", "power", "momentum", "average", *names]
    table = pd.DataFrame(rows, columns=columns)
    over = table[names] / found[KINDS["sgd"]]
    return table.join(over.add_prefix("over_"))


def by_power(model: Model, powers: Iterable[float]) -> pd.DataFrame:
    """`constants` of SGD preconditioned by every power: power, c1, c2, critical."""
    rows = [(power, *constants(preconditioned(model, power))) for power in powers]
    return pd.DataFrame(rows, columns=["power", "c1", "c2"]).assign(
        critical=lambda found: found.c1 / found.c2
    )


def searched(
    model: Model, batch_sizes: Iterable[float], trials: int, replicate: int
) -> pd.DataFrame:
    """What a search of so many learning rates at every batch size finds with SGD, as a table of
    `lib.records.results.read`.

    Rates come from the sequence of every search of this book, doubled so that they reach the edge
    of stability.  batch_sizes: whole numbers.
    """
    tried = 2 * spaces.draw("lee2021", "sgd", trials, replicate=replicate)["learning_rate"]
    found = np.array([steps(model, batch_sizes, rate) for rate in tried])  # [trials, sizes]
    met = np.where(np.isinf(found), np.nan, found).T
    last = np.nanmax(met, axis=1, initial=0)
    table = pd.DataFrame({
        "batch_size": np.repeat(np.asarray(batch_sizes, int), trials),
        "steps": met.ravel(),
        "last_step": np.repeat(last, trials),
    })
    fixed = {"workload": "quadratic", "algorithm": "sgd", "pruning": "none", "status": "complete"}
    fixed |= {"sparsity": 0.0, "trials": trials, "replicate": replicate, "goal": model.target}
    table = table.assign(**fixed, **{f"steps@{model.target:g}": table.steps})
    return table[table.last_step > 0]


def path(model: Model, batch_size: float, rate: float, count: float) -> pd.DataFrame:
    """Points along SGD up to so many steps, as rows of `probes.follow`: step, square (expected
    |G|^2), trace (tr Sigma).
    """
    at = np.unique(np.geomspace(1, count, POINTS).round())
    p = (1 - rate * model.curvature) ** 2
    floor = rate**2 * model.noise / batch_size / (1 - p)
    square = ((model.square - floor) * p ** at[:, None] + floor) @ model.curvature**2
    about = {"workload": "quadratic", "algorithm": "sgd", "sparsity": 0.0, "trial": 0}
    found = {"batch_size": batch_size, "step": at, "square": square, "trace": model.noise.sum()}
    return pd.DataFrame(about | found)
