"""From timings and a critical batch size to the batch that reaches a goal soonest, and the sheet's
form, which computes the same in a browser.

Steps to a goal are taken as K (1 + C/B), with critical batch size C, and a step as a + b B seconds:
the run takes K (a + b C + b B + a C/B) seconds, which is least at B = sqrt(C a/b).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.page import boxes
from lib.page.prose import Html

MORE = 0.1  # largest extra share of time, over the best batch, within the range of batches
NONE = 1e-6  # share of a step's time that rounding can leave of an absent part
Points = Sequence[tuple[float, float]]  # (batch size, what was measured there)


@dataclass(frozen=True)
class Choice:
    """A batch size and what it rests on.

    overhead: seconds per step besides its examples.  example: seconds per example.  best: examples.
    low, high: batches between which the run takes at most `MORE` longer.
    """

    overhead: float
    example: float
    best: float
    low: float
    high: float


def decide(times: Points, critical: float) -> Choice | None:
    """The batch that reaches the goal soonest; None unless a step's time has both parts.

    Args:
        times: (batch size, seconds of a step), two or more.
        critical: examples; or a noise scale in its place.
    """
    overhead, example = fitted(times, (0, 1))
    if critical <= 0 or min(overhead, example) <= NONE * times[0][1]:
        return None
    best = math.sqrt(critical * overhead / example)
    half = 1 + MORE * (1 + (overhead / example + critical) / best / 2)
    reach = half + math.sqrt(half**2 - 1)
    return Choice(overhead, example, best, best / reach, best * reach)


def fitted(points: Points, powers: tuple[int, int]) -> tuple[float, float]:
    """Factors of B to these two powers, such that the sum of both terms fits the points with the
    least sum of squared relative errors.
    """
    sizes, values = np.asarray(points, float).T
    columns = np.stack([sizes**power for power in powers], axis=1) / values[:, None]
    return tuple(np.linalg.lstsq(columns, np.ones(len(values)), rcond=None)[0].tolist())


# --- the form -------------------------------------------------------------------------------------

HOW = "answers.html#from-a-job-to-a-batch-size-in-half-an-hour"  # to get C
FORM = Path(__file__).with_name("form.html").read_text(encoding="utf-8")


def form(times: Points, critical: float, law: Mapping[str, object]) -> Html:
    """A form for timings and a critical batch size, or steps, filled with an example, and for a
    tuned learning rate; without scripts it says that it needs them.

    Args:
        times: initial values: (batch size, seconds of a step).
        critical: initial value, examples.
        law: rho with its ends low and high, and smallest and largest, the batch sizes at which the
            law for rates was tested; empty if none is measured.
    """
    return boxes.html(
        FORM,
        times="\n".join(f"{size:g} {seconds:.3g}" for size, seconds in times),
        critical=f"{critical:.3g}",
        more=MORE,
        least=NONE,
        percent=round(100 * MORE),
        law=law,
        how=HOW,
        without="The form needs JavaScript; the worked example below does not.",
    )
