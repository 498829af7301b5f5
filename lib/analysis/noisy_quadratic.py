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

from lib import require, require_all
from lib.fields import POSITIVE, Count, Number, check
from lib.methods import spaces

LONGEST = 26  # steps are sought up to 2**LONGEST
MOST_DIMENSIONS = 10**5


@dataclass(frozen=True)
class Model:
    """curvature: h_i [d]; noise: c_i [d], the variance of one example's gradient; target: the loss
    to reach.

    square: w_i^2 before the first step, [d] or one number for all.  Raises ValueError for
    curvatures or a target that are not positive, for negative noise or squares, and for too many
    dimensions.
    """

    curvature: np.ndarray
    noise: np.ndarray
    target: float = 0.01
    square: np.ndarray | float = 1.0

    def __post_init__(self):
        _check_positive("curvature", self.curvature)
        require_all(
            "noise",
            self.noise,
            lambda v: (v >= 0) & np.isfinite(v),
            "zero or a positive finite number",
        )
        fits = np.ndim(self.curvature) == 1 and 1 <= len(self.curvature) <= MOST_DIMENSIONS
        require(
            fits,
            "curvature",
            f"of shape {np.shape(self.curvature)}",
            f"a vector of 1 to {MOST_DIMENSIONS} entries",
        )
        same = np.shape(self.noise) == np.shape(self.curvature)
        require(same, "noise", f"of shape {np.shape(self.noise)}", "as long as the curvature")
        require_all(
            "square",
            self.square,
            lambda v: (v >= 0) & np.isfinite(v),
            "zero or a positive finite number",
        )
        fits = np.shape(self.square) in ((), np.shape(self.curvature))
        require(
            fits,
            "square",
            f"of shape {np.shape(self.square)}",
            "one number, or as many as the curvature",
        )
        check("target", self.target, POSITIVE)

    @property
    def start(self) -> float:
        """Loss before the first step."""
        return 0.5 * (self.curvature * self.square).sum()


def _check_positive(field: str, values: object) -> None:
    require_all(field, values, lambda v: (v > 0) & np.isfinite(v), "a positive finite number")


def power_law(dimensions: int = 1000, noise: float = 1.0, target: float = 0.01) -> Model:
    """h_i = 1/i, so that the condition number is the number of dimensions, and c_i = noise h_i
    (after Zhang et al. 2019).

    Raises ValueError for fewer than one dimension or too many, for noise or target that are not
    positive, and for a target that is met before the first step.
    """
    check("dimensions", dimensions, Count(MOST_DIMENSIONS))
    for name, value in (("noise", noise), ("target", target)):
        check(name, value, POSITIVE)
    h = 1 / np.arange(1, dimensions + 1)
    model = Model(h, noise * h, target)
    require(
        target < model.start, "target", target, f"below the loss at the start, {model.start:.3g}"
    )
    return model


def preconditioned(model: Model, power: float) -> Model:
    """The model on which SGD moves as it does here if the gradient is multiplied by h^(-power):
    with h^(power / 2) w for w.

    Curvature h^(1 - power), noise c h^(-power), and every loss as it was.  Raises ValueError for a
    power outside [0, 1].
    """
    check("power", power, Number("[0, 1]"))
    h = model.curvature
    return Model(h ** (1 - power), model.noise * h**-power, model.target, model.square * h**power)


def _recursion(model: Model, rate: float, momentum: float) -> tuple[np.ndarray, np.ndarray]:
    """One step of the moments (E w^2, E w v, E v^2) of each dimension: a matrix [3, 3, d] and what
    noise adds [3, d] at B = 1.

    v' = momentum v + h w + noise; w' = w - rate v', as in `lib.methods.momentum`.  Without momentum
    E w^2 alone: [1, 1, d], [1, d].
    """
    h, m, a = model.curvature, momentum, rate
    if m == 0:
        return ((1 - a * h) ** 2)[None, None], (a * a * model.noise)[None]
    # (w, v) -> [[1 - a h, -a m], [h, m]] (w, v), and the noise enters as (-a, 1).
    p, q, r, s = 1 - a * h, np.full_like(h, -a * m), h, np.full_like(h, m)
    step = np.array(
        [[p * p, 2 * p * q, q * q], [p * r, p * s + q * r, q * s], [r * r, 2 * r * s, s * s]]
    )
    return step, np.array([[a * a], [-a], [1.0]]) * model.noise


def _averaged(model: Model, rate: float, average: float) -> tuple[np.ndarray, np.ndarray]:
    """As `_recursion`, for SGD whose weights u are averaged as u' = average u + (1 - average) w':
    moments (u^2, u w, w^2).
    """
    p, k = 1 - rate * model.curvature, 1 - average
    one, none = np.ones_like(p), np.zeros_like(p)
    step = np.array(
        [
            [average**2 * one, 2 * average * k * p, k * k * p * p],
            [none, average * p, k * p * p],
            [none, none, p * p],
        ]
    )
    return step, rate**2 * np.array([[k * k], [k], [1.0]]) * model.noise


def steps(
    model: Model,
    batch_sizes: np.ndarray,
    rate: float,
    momentum: float = 0.0,
    average: float | None = None,
) -> np.ndarray:
    """Steps to the target loss [batch sizes] at a constant rate; inf where it is not reached.

    The loss is taken to fall until it stays above or below the target; a first crossing by an
    oscillation is passed over. Raises ValueError for batch sizes or a rate that are not positive,
    for momentum or an average outside [0, 1), and for both at once: averages are of plain SGD.
    """
    _check_positive("batch_sizes", batch_sizes)
    _check_positive("rate", rate)
    for name, value in (("momentum", momentum), ("average", 0.0 if average is None else average)):
        require_all(name, value, lambda v: (v >= 0) & (v < 1), "a number in [0, 1)")
    require(average is None or momentum == 0, "average", average, "None with momentum")
    step, added = (
        _recursion(model, rate, momentum) if average is None else _averaged(model, rate, average)
    )
    powers = [(step, added)]
    for _ in range(LONGEST - 1):
        last, extra = powers[-1]
        with np.errstate(over="ignore", invalid="ignore"):
            powers.append(
                (
                    np.einsum("ijd,jkd->ikd", last, last),
                    extra + np.einsum("ijd,jd->id", last, extra),
                )
            )
    b = np.asarray(batch_sizes, float)
    state = np.zeros((len(added), len(b), len(model.curvature)))
    state[0 if average is None else slice(None)] = model.square
    done = np.zeros(len(b))
    for k in reversed(range(LONGEST)):
        matrix, extra = powers[k]
        # Not a number counts as above
        with np.errstate(over="ignore", invalid="ignore"):
            ahead = np.einsum("ijd,jbd->ibd", matrix, state) + extra[:, None] / b[:, None]
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
    reaches. Raises ValueError for an empty grid, and as `steps`.
    """
    for name, points in (("rates", rates), ("momenta", momenta), ("averages", averages)):
        require(len(points), name, points, "at least one")
    grid = [(r * (1 + m), m, a) for r in rates for m in momenta for a in averages]
    table = np.array([steps(model, batch_sizes, *point) for point in grid])
    return table.min(0), [grid[i] for i in table.argmin(0)]


def curve(model: Model, batch_sizes: np.ndarray, rates: np.ndarray, **grid: tuple) -> pd.DataFrame:
    """`best` as rows: batch_size, steps, rate, momentum; sizes at which the target is not reached
    are left out.
    """
    found, points = best(model, batch_sizes, rates, **grid)
    rows = pd.DataFrame(
        {
            "batch_size": batch_sizes,
            "steps": found,
            "rate": [p[0] for p in points],
            "momentum": [p[1] for p in points],
        }
    )
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
    about the best of it. The largest curvature must be one.  Raises ValueError as `best`.
    """
    require(
        np.isclose(model.curvature.max(), 1),
        "curvature",
        model.curvature.max(),
        "one at most, and somewhere",
    )
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
    batches alone, and momentum at large ones alone: with both, c1 is that of averaged SGD.  Raises
    ValueError as `constants`.
    """
    found = {}
    for power, momentum, average in sorted(set(KINDS.values())):
        own = preconditioned(model, power)
        c1, c2 = constants(own, MOMENTA if momentum else (0.0,))
        found[power, momentum, average] = (
            constants(own, averages=AVERAGES)[0] if average else c1,
            c2,
        )
    rows = [
        {
            "algorithm": name,
            "power": kind[0],
            "momentum": kind[1],
            "average": kind[2],
            "c1": found[kind][0],
            "c2": found[kind][1],
            "critical": found[kind][0] / found[kind][1],
        }
        for name, kind in KINDS.items()
    ]
    table = pd.DataFrame(rows)
    plain = table[table.algorithm == "sgd"].iloc[0]
    return table.assign(
        **{f"over_{name}": table[name] / plain[name] for name in ("c1", "c2", "critical")}
    )


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
    of stability. Raises ValueError as `lib.methods.spaces.draw` and as `steps`.
    """
    tried = 2 * spaces.draw("lee2021", "sgd", trials, replicate=replicate)["learning_rate"]
    sizes = np.asarray(list(batch_sizes), float)
    steps_of = np.array([steps(model, sizes, rate) for rate in tried])  # [trials, sizes]
    met = pd.Series(np.where(np.isinf(steps_of), np.nan, steps_of).T.ravel())
    table = pd.DataFrame(
        {
            "batch_size": np.repeat(sizes.astype(int), trials),
            "steps": met,
            f"steps@{model.target:g}": met,
        }
    )
    fixed = {
        "workload": "quadratic",
        "algorithm": "sgd",
        "pruning": "none",
        "sparsity": 0.0,
        "trials": trials,
        "replicate": replicate,
        "goal": model.target,
        "status": "complete",
    }
    return table.assign(
        **fixed, last_step=table.groupby("batch_size").steps.transform("max")
    ).dropna(subset="last_step")


def path(
    model: Model, batch_size: float, rate: float, count: float, points: int = 60
) -> pd.DataFrame:
    """Points along SGD up to so many steps, as rows of `probes.follow`: step, square (expected
    |G|^2), trace (tr Sigma).

    Raises ValueError for a batch size or rate that is not positive, and for counts of steps or
    points out of their limits.
    """
    _check_positive("batch_size", batch_size)
    _check_positive("rate", rate)
    require_all("count", count, lambda v: (v >= 1) & (v <= 2**LONGEST), f"from 1 to {2**LONGEST}")
    check("points", points, Count(10_000))
    at = np.unique(np.geomspace(1, count, points).round())
    p = (1 - rate * model.curvature) ** 2
    floor = rate**2 * model.noise / batch_size / (1 - p)
    square = ((model.square - floor) * p ** at[:, None] + floor) @ model.curvature**2
    return pd.DataFrame(
        {
            "workload": "quadratic",
            "algorithm": "sgd",
            "batch_size": batch_size,
            "sparsity": 0.0,
            "trial": 0,
            "step": at,
            "square": square,
            "trace": model.noise.sum(),
        }
    )
