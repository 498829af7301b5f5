"""Search spaces and the quasi-random points drawn from them."""

from __future__ import annotations

from collections.abc import Callable

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
# Of the learning rate, which is the engine's whatever the method
DECAY = {
    "decay_steps": SCALES["integer"],
    "end_factor": ("a number in (0, 1]", lambda v: 0 < v <= 1),
}


def point(**values: float) -> str:
    """The name of a space that is one point, as `Cell.space` takes it:
    "learning_rate=0.1,momentum=0.95".
    """
    return ",".join(f"{name}={value:.6g}" for name, value in values.items())


def intervals(space: str, algorithm: str, decay: bool = False) -> dict[str, Interval]:
    """What is tuned, and from where it is drawn in a named space: the method's own, and the linear
    decay where there is one.

    A method that takes an interval of Lee et al. (2021) is drawn from that of the named space; any
    other is its own. A space may also be a part of the whole one, as
    "learning_rate=1e-3..1,momentum=0.95". Raises ValueError for an unknown algorithm, and for ends
    out of order.
    """
    if BETWEEN in space:
        whole = intervals("lee2021", algorithm, decay)
        ends = {name: _ends(word) for name, word in _words(space)}
        return {name: Interval(*ends[name], at.scale) for name, at in whole.items()}
    shared = SPACES[space]
    own = {
        name: shared.get(name, at) if at == LEE2021.get(name) else at
        for name, at in method(algorithm).space.items()
    }
    return own | {name: shared.get(name, LEE2021[name]) for name in DECAY if decay}


def _limits(algorithm: str, decay: bool) -> dict[str, tuple[str, Callable]]:
    """What a single point may be of each hyperparameter, in words and as a test."""
    own = {name: SCALES[at.scale] for name, at in method(algorithm).space.items()}
    return own | (DECAY if decay else {})


def parse(space: str, algorithm: str, decay: bool = False) -> dict[str, float] | None:
    """The values of a space that is one point; None for a named space or one with ranges.

    Raises ValueError for an unknown space, and for a point that lacks a hyperparameter, has one too
    many or twice, or a value outside its limits.
    """
    text = str(space)
    if text in SPACES:
        return None
    limits = _limits(algorithm, decay)
    pairs = _words(text)
    try:
        ends = {name: _ends(word) for name, word in pairs}
    except ValueError:
        ends = {}
    each_once = len(pairs) == len(ends) and set(ends) == set(limits)
    if not each_once or not all(limits[name][1](end) for name in ends for end in ends[name]):
        form = ",".join(f"{name}=..." for name in limits)
        points = ", ".join(f"{name} {words}" for name, (words, _) in limits.items())
        allowed = f"one of {', '.join(SPACES)}, or {form} ({points})"
        raise ValueError(f"space: {space!r} is not allowed; it must be {allowed}")
    if BETWEEN in text:
        intervals(text, algorithm, decay)
        return None
    return {name: value for name, (value, _) in ends.items()}


def _words(text: str) -> list[tuple[str, str]]:
    """Names and values of a space that is written out."""
    parts = (word.partition("=") for word in text.split(","))
    return [(name.strip(), value) for name, _, value in parts]


def _ends(word: str) -> tuple[float, float]:
    """The ends of a range, "0.1..1", or of a single value.  Raises ValueError."""
    low, _, high = word.partition(BETWEEN)
    return float(low), float(high or low)


def draw(
    space: str, algorithm: str, trials: int, *, decay: bool = False, replicate: int = 0
) -> dict[str, np.ndarray]:
    """`trials` quasi-random points: name -> float64 [trials]; of a space that is one point, that
    point.

    Replicate 0 is the unscrambled Sobol sequence without its first point (the corner of the space):
    in one and two dimensions the very points of Lee et al. (2021).  Further dimensions use other
    direction numbers than theirs. Other replicates are Sobol sequences scrambled with the
    replicate's number as seed. Raises ValueError as `parse`, and for trials or a replicate that are
    no whole numbers or too many.
    """
    check("trials", trials, Count(MOST_TRIALS))
    check("replicate", replicate, Whole(0, 9999))
    fixed = parse(space, algorithm, decay)
    if fixed is not None:
        return {name: np.full(trials, fixed[name]) for name in _limits(algorithm, decay)}
    from scipy.stats import qmc  # slow to import, and most chapters draw nothing

    axes = intervals(space, algorithm, decay)
    if replicate == 0:
        points = qmc.Sobol(len(axes), scramble=False).fast_forward(1).random(trials)
    else:  # a power of two, then cut: scipy warns about any other count
        sequence = qmc.Sobol(len(axes), scramble=True, seed=replicate)
        points = sequence.random_base2((trials - 1).bit_length())[:trials]
    return {name: axis.at(points[:, i]) for i, (name, axis) in enumerate(axes.items())}
