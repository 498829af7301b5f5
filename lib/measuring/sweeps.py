"""Trains the missing searches of a study, and reads the table of its trials."""

from __future__ import annotations

import logging
import timeit
from pathlib import Path

import pandas as pd

from lib import require
from lib.measuring import runner
from lib.records import results as recorded
from lib.records.store import DATA, SMOKE
from lib.studies.study import Study

BUDGETS = ("cached", "smoke", "full")
SLOW = 3  # warn if bfloat16 takes so many times as long as float32
LOG = logging.getLogger(__name__)


def run(
    study: Study,
    folder: Path = DATA,
    jobs: int = 1,
    device: str = "cpu",
    until: float | None = None,
) -> None:
    """Train what is missing, one search per job, through joblib; each is saved in data/ as soon as
    it is finished.

    Wrap the call in `joblib.parallel_config(backend="dask")` to run on a Dask cluster that shares
    the folder.

    Raises:
        RecordError: if a file among the study's workloads is damaged or foreign, before any
            training.
        OSError: naming the file if one cannot be written.
        OutOfTime: at the time `until` (`time.time`), if not None.
    """
    study = study.renewed()
    recorded.check(study, folder)
    if todo := recorded.missing(study, folder):
        # Imports PyTorch, which is slow; most chapters only read
        from lib.measuring.one_search import measure

        reduced = device == "cpu" and any(cell.arithmetic == "bfloat16" for cell in todo)
        if reduced and (times := bfloat16_over_float32()) > SLOW:
            LOG.warning(
                "on this processor, bfloat16 takes %.0f times as long as float32; choose "
                "precision float32 or another machine",
                times,
            )
        options = {"folder": folder, "device": device, "until": until}
        runner.run(todo, measure, study.name, "cells", jobs, **options)


def bfloat16_over_float32() -> float:
    """How many times as long a product takes in bfloat16 as in single precision, here."""
    import torch  # as above

    def seconds(dtype: torch.dtype) -> float:
        x = torch.ones(8, 256, 256, dtype=dtype)
        return min(timeit.repeat(lambda: x @ x, number=1))

    return seconds(torch.bfloat16) / seconds(torch.float32)


def results(
    study: Study,
    budget: str = "cached",
    jobs: int = 1,
    folder: Path = DATA,
    without: tuple[str, ...] = (),
    **options,
) -> pd.DataFrame:
    """The table of `lib.records.results.read`; what is missing may be trained first.

    Args:
        budget: "cached" never trains; "full" trains the missing searches; "smoke" trains a toy
            version of the study into a separate folder.
        jobs, folder, options: as for `run`.
        without: as for `lib.records.results.read`.

    Raises:
        ValueError: for another budget.
        RecordError: for a file that must not be read.
    """
    require(budget in BUDGETS, "budget", budget, BUDGETS)
    study = study.renewed()
    if budget == "smoke":
        study, folder = study.smoke(), SMOKE
    if budget != "cached":
        run(study, folder, jobs, **options)
    return recorded.read(study, folder, without)
