"""The runs of the page on data parallelism, what it says of them, as numbers and words, and its
table.

`trained` are runs with the parameters after every step, on worker processes and in one process.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd
import torch

from chapters.batch_size_is_data_parallelism import parallel_runs
from chapters.batch_size_is_data_parallelism.parallel_runs import HAZARDS, PRECISIONS, Run
from lib.wording import brief

UNITS = {"float32": 2**-23, "float64": 2**-52}  # rounding units
Trained = Iterable[tuple[Run, torch.Tensor, torch.Tensor]]


def equal_runs(plain: Run, workers: Iterable[int], long_steps: int) -> list[Run]:
    """Runs that should agree with one process, those on two workers over more steps."""
    runs = [replace(plain, workers=n, precision=p) for p in PRECISIONS for n in workers]
    return [replace(run, steps=long_steps) if run.workers == 2 else run for run in runs]


def hazardous_runs(plain: Run) -> list[Run]:
    """Runs with every practice that breaks the equality, and with its remedy."""
    return [
        replace(plain, workers=2, precision=precision, hazard=hazard, remedy=remedy)
        for precision in PRECISIONS
        for hazard in HAZARDS
        for remedy in (False, True)
    ]


def differences(trained: Trained) -> pd.DataFrame:
    """Largest difference of any parameter by step: workers, precision, step, difference."""
    parts = []
    for run, found, expected in trained:
        largest = parallel_runs.largest_difference(found, expected)[1:]
        part = {"step": range(1, run.steps + 1), "difference": largest}
        parts.append(pd.DataFrame(part).assign(workers=run.workers, precision=run.precision))
    return pd.concat(parts)


def deviations(trained: Trained) -> pd.DataFrame:
    """Deviations after the last step, as shares of the distance travelled: practice, precision,
    remedied, deviation.
    """
    rows = [
        (run.hazard, run.precision, run.remedy, float(parallel_runs.relative_deviation(*both)[-1]))
        for run, *both in trained
    ]
    return pd.DataFrame(rows, columns=["practice", "precision", "remedied", "deviation"])


def findings(
    plain: Run, equal: pd.DataFrame, hazardous: pd.DataFrame, seconds: float
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        plain: the run that all are variants of.
        equal: of `differences`.
        hazardous: of `deviations`.
        seconds: that all runs took.
    """
    early = equal[equal.step <= plain.steps].groupby("precision").difference.max()
    units = {name: float(early[name] / unit) for name, unit in UNITS.items()}
    late = equal[equal.workers == 2].groupby("precision").difference.last()
    alone = hazardous[~hazardous.remedied]
    broken = alone.pivot(index="practice", columns="precision", values="deviation")
    mended = hazardous[hazardous.remedied & (hazardous.precision == "float64")].deviation
    apart = (broken.float32 / broken.float64 - 1).abs().max()
    shares = 100 * broken.max(axis=1)
    return {
        "steps": plain.steps,
        "batch_size": plain.batch_size,
        "long_steps": int(equal.step.max()),
        "workers": int(equal.workers.max()),
        "runs": len(hazardous) + len(equal[["workers", "precision"]].drop_duplicates()),
        "seconds": f"{seconds:.0f}",
        "torch": torch.__version__,
        "rounding": max(units.values()) <= plain.steps,  # one unit a step
        "exact": bool(equal.difference[equal.workers == 1].max() == 0),
        "units": max(units.values()),
        "units_single": units["float32"],
        "units_double": units["float64"],
        "late_single": float(late.float32),
        "late_double": float(late.float64),
        "broken_least": f"{shares.min():.0f} %",
        "broken_most": f"{shares.max():.0f} %",
        "same_in_double": bool(apart < 0.01),
        "mended": float(f"{mended.max():.1g}"),
    }


def of_practices(hazardous: pd.DataFrame) -> pd.DataFrame:
    """What breaks the equality and what mends it, with deviations in single precision."""
    table = pd.DataFrame(HAZARDS, index=["what breaks it", "remedy"]).T
    single = hazardous[hazardous.precision == "float32"]
    told = single.pivot(index="practice", columns="remedied", values="deviation").map(brief)
    heads = {False: "deviation without it", True: "deviation with it"}
    return table.join(told.rename(columns=heads)).rename_axis("practice").reset_index()
