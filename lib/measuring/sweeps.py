"""Running what is missing, and reading what is there: Study -> cells -> records -> one table.

python -m lib.measuring.sweeps run mnist --jobs 2     # trains the cells without a record; stop and resume at any time
python -m lib.measuring.sweeps status
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from tqdm import tqdm

from lib import ROOT, code, own, require
from lib.records import on_record, store
from lib.records.places import DATA, record
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import workload

BUDGETS = ("cached", "smoke", "full")
# Toy results of budget="smoke", never mixed with measurements, nor with those of other code, be it a track's or a portrait's.
SMOKE = ROOT / "_build" / "smoke" / code(["."])


def missing(study: Study, folder: Path = DATA) -> list[Cell]:
    """The study's cells that have no record."""
    return [c for c in study.cells if not record(c, folder).exists()]


def run(study: Study, folder: Path = DATA, jobs: int = 1, device: str = "cpu") -> None:
    """Train what is missing, one cell a job, through joblib; every finished cell is in data/ at once.

    Wrap the call in `joblib.parallel_config(backend="dask")` to run on a Dask cluster that shares the folder.
    Raises RecordError if a file among the study's workloads is damaged or foreign, before any training.
    """
    check(study, folder)
    todo = missing(study, folder)
    if not todo:
        return
    from lib.measuring.one_cell import measure  # brings PyTorch, which is slow to import, and most chapters only read

    with tempfile.TemporaryDirectory() as reports, _Display(study, todo, reports) as bar:
        parallel = joblib.Parallel(
            n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs + 1", batch_size=1
        )
        for _ in parallel(joblib.delayed(measure)(c, folder, reports, device) for c in todo):
            bar.update()


def check(study: Study, folder: Path = DATA) -> None:
    """Read every record of the study's workloads, also those of other studies' cells.  Raises RecordError.

    Of a reader's own workloads only the study's cells: what else is there may have been measured before its file changed.
    """
    mine = {c: record(c, folder) for c in study.cells}
    places = {file.parents[2] for c, file in mine.items() if not own.is_own(c.workload)}  # data set / workload
    files = {file for c, file in mine.items() if own.is_own(c.workload) and file.exists()}
    for file in sorted(files.union(*(place.rglob("*.csv") for place in places))):
        about = file.stat()
        _check_one(file, folder, (about.st_mtime_ns, about.st_size))


@functools.lru_cache(maxsize=2**16)  # chapters ask for the records of a workload a hundred times
def _check_one(file: Path, folder: Path, stamp: tuple[int, int]) -> None:
    """`check` of a file; stamp: when it was last changed, and its size, so that it is looked at again if it is not the same."""
    try:
        cell = Cell(**store.head(file)["cell"])
    except (TypeError, ValueError) as error:
        raise store.RecordError(f"{file}: its cell is not one of this book ({error}); move it out of data/") from None
    if record(cell, folder) != file:
        raise store.RecordError(f"{file}: of another workload definition or file name; move it out of data/")


def results(study: Study, budget: str = "cached", jobs: int = 1, folder: Path = DATA) -> pd.DataFrame:
    """All trials of the study's cells as one table, a row per trial: its cell's fields, its record, the goal and the steps to it.

    budget: "cached" reads the records and never trains; "full" first trains the missing cells; "smoke" trains a toy
    version of the study into a folder of its own.  attrs: "missing" (cells without a record), "cells_planned",
    "provenance" (a table with a row per cell).  Raises RecordError for a file that must not be read.
    """
    require(budget in BUDGETS, "budget", budget, "one of " + ", ".join(BUDGETS))
    if budget == "smoke":
        study, folder = study.smoke(), SMOKE
    if budget != "cached":
        run(study, folder, jobs)
    check(study, folder)
    files = {file: cell for cell in study.cells if (file := record(cell, folder)).exists()}
    heads, trials = store.read_all(files) if files else ([], None)
    frame = _joined(files.values(), [head["rows"] for head in heads], trials) if files else pd.DataFrame()
    heads = [
        {**dataclasses.asdict(cell), **{k: v for k, v in head.items() if k != "cell"}}
        for cell, head in zip(files.values(), heads)
    ]
    lacking, heads = store.Shared(missing(study, folder)), store.Shared(heads)
    frame.attrs.update(missing=lacking, cells_planned=len(study.cells), provenance=heads)
    return frame


def _joined(cells: Iterable[Cell], lengths: list[int], trials: pd.DataFrame) -> pd.DataFrame:
    """The trials of these cells, so many of each, with their cell's fields, the goal and the steps to it."""
    fields = pd.DataFrame(list(map(_fields, cells)))
    fields = fields.loc[fields.index.repeat(lengths)].reset_index(drop=True)
    if "momentum" not in trials:
        trials.insert(3, "momentum", np.nan)
    steps = pd.concat([trials[f"steps@{goal:g}"][fields.goal == goal] for goal in fields.goal.unique()])
    return pd.concat([fields, trials, steps.rename("steps")], axis=1)


def _fields(cell: Cell) -> dict:
    work = workload(cell.workload)
    fields = {**dataclasses.asdict(cell), "precision": cell.arithmetic}
    fields["max_steps"] = cell.max_steps or work.max_steps
    fields.update(fields.pop("messages") or {})
    return {**fields, "goal": work.goal}


# --- progress ---------------------------------------------------------------------------------------------------------


class _Display(contextlib.AbstractContextManager):
    """A progress bar: cells done, time left, and for the cells in flight: step, trials alive, best error so far."""

    def __init__(self, study: Study, todo: list[Cell], reports: str):
        self.bar = tqdm(total=len(todo), desc=study.name, unit="cell")
        self.reports, self.done = Path(reports), threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while not self.done.wait(1.0):
            now = []
            for file in sorted(self.reports.glob("*")):
                with contextlib.suppress(OSError, ValueError):
                    step, alive, best = json.loads(file.read_text())
                    now.append(f"step {step:,}, {alive} alive" + (f", error {best:.3f}" if best is not None else ""))
            self.bar.set_postfix_str(" | ".join(now))

    def update(self) -> None:
        self.bar.update()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.bar.close()


def positive(text: str) -> int:
    """A whole number from 1 on a command line.  Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be a whole number from 1")
    return int(text)


def usable(device: str) -> str:
    """A device on a command line.  Raises ArgumentTypeError if torch cannot compute on it."""
    import torch  # slow to import, and needed to train only

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:  # of a torch built without CUDA
        reason = str(error).partition("\n")[0]
        raise argparse.ArgumentTypeError(f"{device!r} is not allowed; torch cannot compute there ({reason})") from None
    return device


def main(arguments: list[str] | None = None) -> None:
    """The command line: run a study, or print what is done."""
    parser = argparse.ArgumentParser(prog="python -m lib.measuring.sweeps", description="Train the missing cells of a study.")
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="train a study's missing cells")
    runner.add_argument("study", choices=list(plans.STUDIES))
    runner.add_argument("--jobs", type=positive, default=1, help="cells trained side by side, one thread each")
    runner.add_argument("--device", type=usable, default="cpu", help='"cpu", "cuda", "cuda:1", ...')
    commands.add_parser("status", help="what is measured and what is missing")
    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        run(plans.study(chosen.study), jobs=chosen.jobs, device=chosen.device)
    print(on_record.status().to_string(index=False))


if __name__ == "__main__":
    main()
