"""The noisy quadratic model, in which steps to result can be computed exactly: a check of the
analysis.

Independent dimensions with curvature h_i and gradient h_i w_i plus noise of variance c_i / B, from
w_i^2 = 1; the loss is half the sum of h_i E w_i^2 (Zhang et al. 2019, "Which Algorithmic Choices
Matter at Which Batch Sizes?").  Second moments follow a linear recursion, also with momentum or an
exponential average of the weights, so no run is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lib import require

LONGEST = 26  # steps are searched up to 2**LONGEST


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

    Raises ValueError for a target that is met before the first step.
    """
    h = 1 / np.arange(1, dimensions + 1)
    model = Model(h, noise * h, target)
    allowed = f"below the loss at the start, {model.start:.3g}"
    require(target < model.start, "target", target, allowed)
    return model


def _recursion(
    model: Model, rate: float, momentum: float, average: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """One step of the second moments of each dimension: a matrix [n, n, d] and what noise adds
    [n, d] at B = 1.

    v' = momentum v + h w + noise; w' = w - rate v', as in `lib.methods.momentum`: moments of
    (w, v).
    With an average of the weights, u' = average u + (1 - average) w': of (u, w).  Else E w^2 alone.
    """
    h = model.curvature
    p = 1 - rate * h
    if average is not None:
        new = 1 - average
        step = [[average, new * p], [0, p]]
        kick = [-new * rate, -rate]
    elif momentum:
        step = [[p, -rate * momentum], [h, momentum]]
        kick = [-rate, 1]
    else:
        step = [[p]]
        kick = [-rate]
    rows = [np.broadcast_arrays(*row, h)[:-1] for row in step]
    moments = np.einsum("ijd,kld->ikjld", rows, rows)
    size = len(kick) ** 2
    added = np.outer(kick, kick).reshape(size, 1) * model.noise
    moved = moments.reshape(size, size, -1)
    return moved, added


def steps(
    model: Model,
    batch_sizes: np.ndarray,
    rate: float,
    momentum: float = 0.0,
    average: float | None = None,
) -> np.ndarray:
    """Steps to the target loss [batch sizes] at a constant rate; inf where it is not reached.

    The loss is assumed to fall until it stays above or below the target; a first crossing by an
    oscillation may be missed.  Averages are for plain SGD, without momentum.
    """
    powers = [_recursion(model, rate, momentum, average)]
    b = np.asarray(batch_sizes, float)
    state = np.zeros((len(b), len(powers[0][1]), len(model.curvature)))
    state[:, 0 if average is None else slice(None)] = model.square
    done = np.zeros(len(b))
    # NaN counts as above the target
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(LONGEST - 1):
            last, added = powers[-1]
            twice = np.einsum("ijd,jkd->ikd", last, last)
            powers.append((twice, added + np.einsum("ijd,jd->id", last, added)))
        for k, (matrix, added) in reversed(list(enumerate(powers))):
            # First only the loss after these steps: batch sizes above the target take them
            kept = state.reshape(len(b), -1) @ (matrix[0] * model.curvature).ravel()
            above = ~(0.5 * (kept + added[0] @ model.curvature / b) <= model.target)
            done[above] += 2.0**k
            noise = added / b[above, None, None]
            state[above] = np.einsum("ijd,bjd->bid", matrix, state[above]) + noise
    return np.where(done >= 2**LONGEST - 1, np.inf, done + 1)


def best(
    model: Model,
    batch_sizes: np.ndarray,
    rates: np.ndarray,
    momenta: tuple = (0.0,),
    averages: tuple = (None,),
) -> tuple[np.ndarray, list]:
    """Fewest steps [batch sizes] over the grid, and the (rate, momentum, average) that gives them.

    rates: for plain SGD; with momentum they are multiplied by 1 + momentum, as is the stability
    limit.
    """
    grid = [(r * (1 + m), m, a) for r in rates for m in momenta for a in averages]
    table = np.array([steps(model, batch_sizes, *point) for point in grid])
    return table.min(0), [grid[place] for place in table.argmin(0)]
