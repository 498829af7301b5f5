"""What a curve advises: up to which batch size a larger one saves steps, and what to know before.

By K* = c1/B + c2, with critical batch size C = c1/c2, doubling B saves the share C / (2 (B + C)) of
the steps: half of them at most, a quarter at C, 40 % at C/4 and 10 % at 4 C.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib import require
from lib.analysis import scaling
from lib.wording import brief, number

NEARLY_HALF, LITTLE = 0.4, 0.1  # shares of the steps that a doubled batch saves
LEAST = 3  # batch sizes that two constants ask for


def worth(critical: float, share: float) -> float:
    """The batch size whose doubling saves this share of the steps, in (0, 0.5)."""
    return critical * (1 / (2 * share) - 1)


@dataclass(frozen=True)
class Advice:
    """What one curve advises.

    smallest, largest: batch sizes (examples) that met the goal; sizes: how many.  critical, low,
    high: the critical batch size and its 5 to 95 % interval, not a number with fewer than `LEAST`
    sizes.  per_doubling: the mean share of the steps that a doubling saved from the smallest to the
    largest.  inside: whether the critical batch size lies within the sizes.
    """

    smallest: int
    largest: int
    sizes: int
    critical: float
    low: float
    high: float
    per_doubling: float

    @property
    def inside(self) -> bool:
        return self.smallest < self.critical < self.largest

    @property
    def useful(self) -> float:
        """Up to here, a doubled batch saves NEARLY_HALF of the steps, or more."""
        return worth(self.critical, NEARLY_HALF)

    @property
    def useless(self) -> float:
        """Beyond, it saves less than LITTLE."""
        return worth(self.critical, LITTLE)


def advise(trials: pd.DataFrame) -> Advice:
    """The advice of one curve's trials at their goal.  Raises ValueError unless a trial met it."""
    searches = scaling.steps_to_result(trials)
    curve = scaling.across_replicates(searches, share=0.5).sort_values("batch_size")
    require(len(curve) > 0, "goal", trials.goal.iloc[0], "met by a trial")
    sizes = curve.batch_size.to_numpy()
    steps = curve.steps.to_numpy()
    summary, _ = scaling.of_searches(searches)
    row = summary.iloc[0] if len(summary) else {}
    ends = ("critical", "critical_low", "critical_high")
    critical = [float(row.get(end, np.nan)) for end in ends]
    doublings = np.log2(sizes[-1] / sizes[0])
    saved = 1 - (steps[-1] / steps[0]) ** (1 / doublings) if doublings else np.nan
    return Advice(int(sizes[0]), int(sizes[-1]), len(sizes), *critical, float(saved))


def sentences(given: Advice) -> str:
    """The advice on steps, in words."""
    ends = f"batch sizes {number(given.smallest)} and {number(given.largest)}"
    half, little = (f"{100 * share:.0f} %" for share in (NEARLY_HALF, LITTLE))
    if given.sizes < LEAST:
        saved = f"{100 * given.per_doubling:.0f} % of the steps on average. "
        found = f"Between {ends}, a doubled batch saved {saved}"
        if given.sizes == 1:
            found = f"The goal was reached at one batch size only, {number(given.smallest)}. "
        needed = f"A critical batch size takes at least {LEAST} batch sizes that reach the goal."
        return found + needed
    if given.critical >= given.largest:
        return (
            f"The critical batch size lies above all that was measured, {ends}. "
            "Steps still fall; measure larger batches."
        )
    if not given.inside:
        return (
            f"The critical batch size lies below all that was measured, {ends}. "
            "Larger batches save few steps; measure smaller batches."
        )
    small = f"Up to B = {brief(given.useful)}, doubling the batch nearly halves the steps: "
    small += f"it saves {half} or more."
    if given.useful < given.smallest:
        small = f"Even from the smallest batch, B = {number(given.smallest)}, "
        small += f"doubling saves less than {half} of the steps."
    reach = ", a size beyond those measured" * (given.useless > given.largest)
    return f"{small} Beyond B = {brief(given.useless)}{reach}, it saves less than {little}."
