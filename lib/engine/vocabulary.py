"""The engine's options, without PyTorch: names that searches and tables use, and the steps at which
errors are measured.
"""

from __future__ import annotations

from lib import require

RUNGS = ("goals", "losses")  # of a race, `lib.engine.lockstep`
# Training losses, nats: from 4 to 0.25, a factor of √2 apart
LOSSES = tuple(2 ** (j / 2) for j in range(4, -5, -1))
CHECKS = ("geometric", "every-100", "every-16", "every-4", "every-1")
# Ways of pruning, `lib.engine.pruning`.
PRUNINGS = ("connection-sensitivity", "random", "magnitude", "grasp", "grasp-200", "synflow")
OF_ANY = PRUNINGS[:3]  # those for any module and loss, `lib.engine.trainings`


def next_check(step: int, checks: str) -> int:
    """The next step after `step` at which errors are measured.

    "geometric": every step up to 20, then 5 % apart: the same relative resolution at every batch
    size.  "every-100": the fixed interval of Lee et al. (2021); others as their names say.
    """
    if checks == "geometric":
        return step + 1 if step < 20 else max(step + 1, round(step * 1.05))
    require(checks in CHECKS, "checks", checks, CHECKS)
    interval = int(checks.removeprefix("every-"))
    return step // interval * interval + interval


def last_check(step: int, checks: str = "geometric") -> int:
    """The last step up to `step` at which errors are measured; 0 if there is none."""
    last = 0
    while (following := next_check(last, checks)) <= step:
        last = following
    return last
