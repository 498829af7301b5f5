"""Search spaces and the quasi-random points drawn from them."""

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
BETWEEN = ".."  # the ends of a range
ADAPTIVE = "adaptive"  # in a table of trials: every trial had a space of its own
DECAY = ("decay_steps", "end_factor")  # of the learning rate, which is the engine's


def point(**values: float) -> str:
    """The name of a space that is one point, as `Search.space` takes it:
    "learning_rate=0.1,momentum=0.95".
    """
    return written({name: [value] for name, value in values.items()})


def written(hparams: dict[str, Sequence[float]]) -> str:
    """The name of a space of ranges and points, two values or one each."""
    ends = {name: BETWEEN.join(f"{end:.6g}" for end in ends) for name, ends in hparams.items()}
    return ",".join(map("=".join, ends.items()))


def intervals(space: str, algorithm: str, decay: bool = False) -> dict[str, Interval]:
    """What is tuned, and from where it is drawn in a space: the method's own, and the linear decay
    where there is one.

    In a named space, a method that takes an interval of Lee et al. (2021) is drawn from that of the
    space; any other is its own. A space may also be written out, as
    "learning_rate=1e-3..1,momentum=0.95". Raises ValueError for an unknown algorithm or space, and
    for one that lacks a hyperparameter, has one too many or twice, or a value outside its limits.
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
    """`trials` quasi-random points: name -> float64 [trials]; of a space that is one point, that
    point.

    Replicate 0 is the unscrambled Sobol sequence without its first point (the corner of the space):
    in one and two dimensions the very points of Lee et al. (2021).  Further dimensions use other
    direction numbers than theirs. Other replicates are Sobol sequences scrambled with the
    replicate's number as seed. Raises ValueError as `intervals`, and for trials or a replicate that
    are no whole numbers or too many.
    """
    check("trials", trials, Count(MOST_TRIALS))
    check("replicate", replicate, Whole(0, 9999))
    axes = intervals(space, algorithm, decay)
    if all(axis.low == axis.high for axis in axes.values()):
        return {name: np.full(trials, axis.low) for name, axis in axes.items()}
    from scipy.stats import qmc  # slow to import, and most chapters draw nothing

    sobol = qmc.Sobol(len(axes), scramble=replicate > 0, seed=replicate)
    if replicate == 0:
        points = sobol.fast_forward(1).random(trials)
    else:  # a power of two, then cut: scipy warns about any other count
        points = sobol.random_base2((trials - 1).bit_length())[:trials]
    return {name: axis.at(points[:, i]) for i, (name, axis) in enumerate(axes.items())}
