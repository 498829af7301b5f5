"""Ranges from which hyperparameters are drawn."""

from __future__ import annotations

from typing import Literal

import numpy as np

from lib import require
from lib.fields import spec

SCALES = {  # allowed values, in words and as a test
    "log": ("a positive finite number", lambda v: 0 < v < np.inf),
    "reverse-log": ("a number in [0, 1)", lambda v: 0 <= v < 1),
    "integer": ("a whole number from 1", lambda v: 1 <= v < np.inf and v == int(v)),
}


@spec
class Interval:
    """A range and the scale on which points are uniform: "log", "reverse-log" (1 - value is
    log-uniform), "integer".

    Raises ValueError for another scale, and for ends that are not finite or out of order; ends must
    be positive on "log", in [0, 1) on "reverse-log", and whole numbers from 1 on "integer".
    """

    low: float
    high: float
    scale: Literal[*SCALES] = "log"

    def __post_init__(self):
        allowed, fits = SCALES[self.scale]
        require(fits(self.low), "low", self.low, allowed)
        above = fits(self.high) and self.high >= self.low
        require(above, "high", self.high, f"{allowed}, not below low ({self.low})")

    @property
    def mirrored(self) -> Interval:
        """The "log" interval of 1 - value, for a "reverse-log" interval of the value."""
        return Interval(1 - self.high, 1 - self.low)

    def values(self, u: np.ndarray) -> np.ndarray:
        """Map u in [0, 1) to values of the same shape; on the reverse-log scale, values fall as u
        rises.
        """
        if self.scale == "reverse-log":
            return 1 - self.mirrored.values(u)
        if self.scale == "log":
            return self.low * (self.high / self.low) ** u
        return np.floor(self.low + u * (self.high - self.low + 1))

    def place(self, values: np.ndarray) -> np.ndarray:
        """Where values lie on the interval's scale, from 0 to 1: the inverse of `values` (roughly
        so on "integer"); NaN in an interval of one point.
        """
        if self.scale == "reverse-log":
            return self.mirrored.place(np.subtract(1, values))
        scaled = np.log if self.scale == "log" else np.asarray
        low, high, scaled_values = map(scaled, (self.low, self.high, values))
        with np.errstate(invalid="ignore"):
            return np.divide(scaled_values - low, high - low)


# Lee et al. (2021), from the authors' code.
LEE2021 = {
    "learning_rate": Interval(1e-4, 1.0),
    "momentum": Interval(0.9, 0.9999, "reverse-log"),
    "decay_steps": Interval(30_000, 60_000, "integer"),
    "end_factor": Interval(1e-4, 0.1),
}
# Shi et al. (2019) fix momentum at 0.9; their learning rates lie within this interval.
SHI2019 = {"learning_rate": Interval(3e-3, 0.3), "momentum": Interval(0.9, 0.9)}
# Ours: beyond its upper end, for messages that move few weights per step.
HIGHER_RATES = {**SHI2019, "learning_rate": Interval(0.1, 10.0)}
# Ours: around the best rates of tanh networks at every batch size, however errors are passed
# back.
WIDE_RATES = {**LEE2021, "learning_rate": Interval(1e-3, 10.0)}
# Ours: what lies below the published range, down to plain SGD.  Searched in addition, with as many
# trials, so that the better of the two searches is the best of the whole range from 0 to 0.9999,
# and both halves are equally dense.
LOW_MOMENTUM = {**LEE2021, "momentum": Interval(0.0, 0.9, "reverse-log")}
