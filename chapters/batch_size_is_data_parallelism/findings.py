"""The runs of the page on data parallelism, its table, and its sentences' numbers and words.

`trained` holds runs with their parameters after every step, both on worker processes and in one
process.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch

from chapters.batch_size_is_data_parallelism import parallel_runs
from chapters.batch_size_is_data_parallelism.parallel_runs import HAZARDS, PRECISIONS, Run
from lib.wording import brief

# A drawing of workers, batch and exchange
WORKERS = Path(__file__).with_name("workers.svg").read_text(encoding="utf-8")
UNITS = {"float32": 2**-23, "float64": 2**-52}  # rounding units
Trained = Iterable[tuple[Run, torch.Tensor, torch.Tensor]]


def equal_runs(plain: Run, workers: Iterable[int], long_steps: int) -> list[Run]:
    """Runs that should agree with one process; those on two workers take more steps."""
    runs = [replace(plain, workers=n, precision=p) for p in PRECISIONS for n in workers]
    return [replace(run, steps=long_steps) if run.workers == 2 else run for run in runs]


def hazardous_runs(plain: Run) -> list[Run]:
    """Runs with each practice that breaks the equality, without and with its remedy."""
    cases = itertools.product(HAZARDS, (False, True))
    return [replace(plain, workers=2, hazard=name, remedy=remedy) for name, remedy in cases]


def differences(trained: Trained) -> pd.DataFrame:
    """Largest difference of any parameter by step: workers, precision, step, difference."""
    parts = []
    for run, *paths in trained:
        largest = parallel_runs.largest_difference(*paths)[1:]
        part = pd.DataFrame({"step": range(1, run.steps + 1), "difference": largest})
        parts.append(part.assign(workers=run.workers, precision=run.precision))
    return pd.concat(parts)


def practices(trained: Trained) -> pd.DataFrame:
    """What breaks the equality, what restores it, and how far runs deviate after the last step
    without and with the remedy, as shares of the distance travelled.
    """
    table = pd.DataFrame(HAZARDS, index=["what breaks it", "remedy"]).T
    for run, *paths in trained:
        column = f"deviation {'with' if run.remedy else 'without'} it"
        deviation = float(parallel_runs.relative_deviation(*paths)[-1])
        table.loc[run.hazard, column] = brief(deviation)
    return table.rename_axis("practice").reset_index()


def findings(plain: Run, equal: pd.DataFrame, runs: int, seconds: float) -> dict[str, object]:
    """All values in the page's sentences; plain: the run that all others vary; equal: from
    `differences`; runs: how many there were; seconds: how long all of them took.
    """
    early = equal[equal.step <= plain.steps].groupby("precision").difference.max()
    units = max(float(early[name] / unit) for name, unit in UNITS.items())
    long = equal[equal.workers == 2].groupby("precision").difference
    return {
        "steps": plain.steps,
        "batch_size": plain.batch_size,
        "long_steps": int(equal.step.max()),
        "workers": int(equal.workers.max()),
        "runs": runs,
        "seconds": f"{seconds:.0f}",
        "torch": torch.__version__,
        "rounding": units <= plain.steps,  # one unit a step
        "units": units,
        "late_single": float(long.last().float32),
        "long_units": float(long.max().float64 / UNITS["float64"]),
    }
