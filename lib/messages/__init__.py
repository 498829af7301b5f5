"""Settings of what workers send each other: compressor, amount, and whether the rest is kept.

The compressors and the exchange are in `lib.messages.exchanges`.
"""

from __future__ import annotations

import math
from typing import Literal

from lib import require
from lib.fields import SHARE, Count, Whole, spec

VALUE_BYTES = INDEX_BYTES = 4  # float32 values with int32 indices
WARM_UP = (0.015625, 0.004)  # densities of the authors' first two epochs
COMPRESSORS = (
    "dense",
    "top-k",
    "rand-k",
    "gaussian-k",
    "gaussian-k-paper",
    "gaussian-k-band",
    "dgc-k",
    "redsync",
)


@spec
class Messages:
    """How P synchronous workers share their gradients.

    workers: P; a step's batch is divided evenly.
    density: share of the entries to send.
    feedback: whether what is not sent is added to the next step's gradient.
    by_layer: k per layer instead of over the whole network.
    aggregation: "exact", or "published" for the authors' code, which cuts the gathered pairs into P
    equal parts however many each worker sent, and adds only one of several pairs for the same entry
    in a part.
    warm_up: initial steps for each density in WARM_UP that is above the density.

    Raises ValueError naming field, value and what is allowed.
    """

    workers: Count(4096) = 16
    compressor: Literal[*COMPRESSORS] = "top-k"
    density: SHARE = 0.001
    feedback: bool = True
    by_layer: bool = False
    aggregation: Literal["exact", "published"] = "exact"
    warm_up: Whole(0, 10**8) = 0

    def density_at(self, step: int) -> float:
        """The density of update number `step`, from 0."""
        stage = step // self.warm_up if self.warm_up else len(WARM_UP)
        return max(self.density, WARM_UP[stage]) if stage < len(WARM_UP) else self.density


def target(density: float, d: int) -> int:
    """k, how many of d entries to send: the density's share, rounded down, but one or more.

    Raises ValueError for a density outside (0, 1].
    """
    require(0 < density <= 1, "density", density, "a number in (0, 1]")
    return max(math.floor(density * d + 1e-9), 1)
