"""Search spaces and the quasi-random points drawn from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interval:
    """A range and the scale on which points are uniform: "log", "reverse-log" (1 - value is log-uniform), "integer"."""

    low: float
    high: float
    scale: str = "log"

    def at(self, u: np.ndarray) -> np.ndarray:
        """Map u in [0, 1) to values; shape kept.  On the reverse-log scale the value falls as u rises."""
        if self.scale == "log":
            return self.low * (self.high / self.low) ** u
        if self.scale == "reverse-log":
            return 1 - (1 - self.high) * ((1 - self.low) / (1 - self.high)) ** u
        if self.scale == "integer":
            return np.floor(self.low + u * (self.high - self.low + 1))
        raise ValueError(f"scale: {self.scale!r} is unknown; allowed: log, reverse-log, integer")

    def place(self, values: np.ndarray) -> np.ndarray:
        """Where values lie on the interval's own scale, from 0 to 1: the inverse of `at`; NaN in an interval of one point."""
        ends = {"log": (self.low, self.high), "reverse-log": (1 - self.high, 1 - self.low)}.get(self.scale)
        with np.errstate(invalid="ignore"):
            if ends is None:
                return np.divide(np.subtract(values, self.low), self.high - self.low)
            own = np.subtract(1, values) if self.scale == "reverse-log" else values
            return np.log(np.divide(own, ends[0])) / np.log(ends[1] / ends[0])


# Lee et al. (2021), from the authors' code.
LEE2021 = {
    "learning_rate": Interval(1e-4, 1.0),
    "momentum": Interval(0.9, 0.9999, "reverse-log"),
    "decay_steps": Interval(30_000, 60_000, "integer"),
    "end_factor": Interval(1e-4, 0.1),
}
# Shi et al. (2019) hold momentum at 0.9; their learning rates lie inside.
SHI2019 = {"learning_rate": Interval(3e-3, 0.3), "momentum": Interval(0.9, 0.9)}
SPACES = {"lee2021": LEE2021, "shi2019": SHI2019}
LIMITS = {  # what a single point may be
    "learning_rate": ("positive", lambda v: 0 < v < np.inf),
    "momentum": ("in [0, 1)", lambda v: 0 <= v < 1),
    "decay_steps": ("at least 1", lambda v: 1 <= v < np.inf),
    "end_factor": ("in (0, 1]", lambda v: 0 < v <= 1),
}


def point(**values: float) -> str:
    """The name of a space that is one point, as `Cell.space` takes it: "learning_rate=0.1,momentum=0.95"."""
    return ",".join(f"{name}={value:.6g}" for name, value in values.items())


def parse(space: str, algorithm: str, decay: bool = False) -> dict[str, float] | None:
    """The values of a space that is one point; None for a named space.

    Raises ValueError for an unknown space, and for a point that lacks a metaparameter, has one too many or twice, or a
    value outside its `LIMITS`.
    """
    text, wanted = space if isinstance(space, str) else "", names(algorithm, decay)
    if text in SPACES:
        return None
    pairs = [(name.strip(), value) for name, _, value in (word.partition("=") for word in text.split(","))]
    try:
        values = {name: float(value) for name, value in pairs}
    except ValueError:
        values = {}
    each_once = len(pairs) == len(values) and set(values) == set(wanted)
    if not each_once or not all(LIMITS[name][1](value) for name, value in values.items()):
        single, limits = ",".join(f"{n}=..." for n in wanted), ", ".join(f"{n} {LIMITS[n][0]}" for n in wanted)
        raise ValueError(f"space: {space!r} is not allowed; it must be one of {', '.join(SPACES)}, or {single} ({limits})")
    return values


def names(algorithm: str, decay: bool) -> tuple[str, ...]:
    """What is tuned: the learning rate; momentum unless SGD; the linear decay where the workload has one."""
    tuned = ["learning_rate"]
    if algorithm != "sgd":
        tuned.append("momentum")
    if decay:
        tuned += ["decay_steps", "end_factor"]
    return tuple(tuned)


def draw(space: str, algorithm: str, trials: int, *, decay: bool = False, replicate: int = 0) -> dict[str, np.ndarray]:
    """`trials` quasi-random points: name -> float64 [trials]; of a space that is one point, that point.

    Replicate 0 is the unscrambled Sobol sequence without its first point (the corner of the space): in one and two
    dimensions the very points of Lee et al. (2021).  Further dimensions use other direction numbers than theirs.
    Other replicates are Sobol sequences scrambled with the replicate's number as seed.
    """
    axes, fixed = names(algorithm, decay), parse(space, algorithm, decay)
    if fixed is not None:
        return {name: np.full(trials, fixed[name]) for name in axes}
    from scipy.stats import qmc  # slow to import, and most chapters draw nothing

    if replicate == 0:
        points = qmc.Sobol(len(axes), scramble=False).fast_forward(1).random(trials)
    else:  # a power of two, then cut: scipy warns about any other count
        points = qmc.Sobol(len(axes), scramble=True, seed=replicate).random_base2((trials - 1).bit_length())[:trials]
    return {name: SPACES[space][name].at(points[:, i]) for i, name in enumerate(axes)}
