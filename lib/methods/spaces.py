"""Search spaces, and quasi-random points drawn from them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from lib.fields import Count, Whole, check
from lib.methods import method
from lib.methods.intervals import (
    HIGHER_RATES,
    LEE2021,
    LOW_MOMENTUM,
    SCALES,
    SHI2019,
    WIDE_RATES,
    Interval,
)

MOST_TRIALS = 2**20  # of one search
SPACES = {
    "lee2021": LEE2021,
    "shi2019": SHI2019,
    "higher-rates": HIGHER_RATES,
    "wide-rates": WIDE_RATES,
    "low-momentum": LOW_MOMENTUM,
}
BETWEEN = ".."  # separates the ends of a range
ADAPTIVE = "adaptive"  # in a table of trials: every trial had a different space
DECAY = ("decay_steps", "end_factor")  # of the learning rate, applied by the engine


def point(**values: float) -> str:
    """The name of a space of a single point, for `Search.space`:
    "learning_rate=0.1,momentum=0.95".
    """
    return written({name: [value] for name, value in values.items()})


def written(hparams: dict[str, Sequence[float]]) -> str:
    """The name of a space of ranges (two values) and points (one value)."""
    ends = {name: BETWEEN.join(f"{end:.6g}" for end in ends) for name, ends in hparams.items()}
    return ",".join(map("=".join, ends.items()))


def intervals(space: str, algorithm: str, decay: bool = False) -> dict[str, Interval]:
    """The interval of each hyperparameter that is tuned: those of the method, and of the linear
    decay if there is one.

    A named space replaces those intervals of the method that equal Lee et al. (2021)'s; the others
    stay.  A space may also be written out, as "learning_rate=1e-3..1,momentum=0.95".  Raises
    ValueError for an unknown algorithm or space, and for a space that lacks a hyperparameter, has
    one too many or twice, or a value outside its limits.
    """
    tuned = method(algorithm).space | {name: LEE2021[name] for name in DECAY if decay}
    if space in SPACES:
        shared = SPACES[space]
        return {
            name: shared.get(name, axis) if axis == LEE2021.get(name) else axis
            for name, axis in tuned.items()
        }
    words = [word.split("=") for word in space.split(",")]
    with contextlib.suppress(ValueError, TypeError):  # what follows says what each may be
        written = {name.strip(): value.split(BETWEEN) for name, value in words}
        if len(written) == len(words) and written.keys() == tuned.keys():
            parsed = {}
            for name, axis in tuned.items():
                low, *high = map(float, written[name])
                parsed[name] = Interval(low, *(high or [low]), axis.scale)
            return parsed
    form = ",".join(f"{name}=..." for name in tuned)
    ends = ", ".join(f"{name} {SCALES[axis.scale][0]}" for name, axis in tuned.items())
    allowed = f"one of {', '.join(SPACES)}, or {form} ({ends})"
    raise ValueError(f"space: {space!r} is not allowed; it must be {allowed}")


def draw(
    space: str, algorithm: str, trials: int, *, decay: bool = False, replicate: int = 0
) -> dict[str, np.ndarray]:
    """`trials` quasi-random points: name -> float64 [trials]; if the space is a single point, that
    point repeated.

    Replicate 0 is the unscrambled Sobol sequence without its first point (the corner of the space):
    in one and two dimensions exactly the points of Lee et al. (2021), whose direction numbers
    differ in further dimensions.  Other replicates are Sobol sequences scrambled with the
    replicate's number as seed.  Raises ValueError like `intervals`, and for trials or a replicate
    that are not whole or too large.
    """
    check("trials", trials, Count(MOST_TRIALS))
    check("replicate", replicate, Whole(0, 9999))
    axes = intervals(space, algorithm, decay)
    if all(axis.low == axis.high for axis in axes.values()):
        return {name: np.full(trials, axis.low) for name, axis in axes.items()}
    from scipy.stats import qmc  # slow to import, and most chapters draw no points

    sobol = qmc.Sobol(len(axes), scramble=replicate > 0, seed=replicate)
    if replicate == 0:
        points = sobol.fast_forward(1).random(trials)
    else:  # a power of two, then cut, since scipy warns about any other count
        points = sobol.random_base2((trials - 1).bit_length())[:trials]
    return {name: axis.values(points[:, i]) for i, (name, axis) in enumerate(axes.items())}
