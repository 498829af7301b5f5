"""Reading a study's records: every file checked, all trials joined into one table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from lib.records import searches, store
from lib.records.store import DATA, record, same_data
from lib.studies.plans import STUDIES
from lib.studies.search import Search
from lib.studies.study import Study


def missing(study: Study, folder: Path = DATA) -> list[Search]:
    """The study's cells that have no record."""
    there = set(searches.recorded(study.searches, folder).values())
    return [cell for cell in study.searches if cell not in there]


def check(study: Study, folder: Path = DATA) -> None:
    """Read every record of the study's cells that is a file; archives were checked when they were
    packed.

    Raises:
        RecordError: for a file that is damaged or foreign.
        OwnError: if records of a reader's own workload are of tensors that differ.
    """
    check_tensors(study, folder)
    for cell in study.searches:
        if (file := record(cell, folder)).exists():
            store.head(file, cell)


def check_tensors(study: Study, folder: Path) -> None:
    """Raise OwnError if records of a reader's own workload are of tensors that differ."""
    for name in sorted({c.workload for c in study.searches if c.work.tensors}):
        same_data(name, folder, methods={c.algorithm for c in study.searches})


def of_searches(study: Study, folder: Path = DATA) -> pd.DataFrame:
    """The study's searches on record, a row each.

    Columns: its cell's fields; last_step, best_error; goal (the hardest); steps@GOAL, the fewest
    steps to each goal, and steps, those to the hardest; record.  attrs: as of `read`.

    Raises:
        RecordError: for a file that must not be read.
        OwnError: as `check`.
    """
    check_tensors(study, folder)
    files = searches.recorded(study.searches, folder)
    if not files:
        return _with_attrs(pd.DataFrame(), study, files, [])
    places = [file.relative_to(folder).as_posix() for file in files]
    rows = _rows(files, places, folder)
    about = rows.drop_duplicates("record").set_index("record").reindex(places)
    steps = rows.pivot(index="record", columns="goal", values="k1").reindex(places)
    steps.columns = [f"steps@{goal:g}" for goal in steps]
    fields = pd.DataFrame(map(_fields, files.values()), index=places)
    frame = pd.concat([fields, about[["last_step", "best_error"]], steps], axis=1)
    frame["steps"] = _to_goal(frame)
    heads = about.drop(columns="precision").rename(columns=searches.HEAD)
    heads["workload"] = fields.workload
    heads["algorithm"] = fields.algorithm
    heads = heads.reset_index(names="sha256").to_dict("records")
    frame = frame.reset_index(names="record")
    return _with_attrs(frame, study, files, heads)


def _rows(files: dict, places: list[str], folder: Path) -> pd.DataFrame:
    """The rows of these records: the book's of its table, others from the records themselves."""
    own = any("own" in file.parts for file in files)
    if own or folder != DATA:
        return searches.summary(files, folder)
    rows = searches.table()
    return rows[rows.record.isin(places)]


def _to_goal(frame: pd.DataFrame) -> pd.Series:
    """Steps to every row's goal."""
    steps = [frame[f"steps@{goal:g}"].where(frame.goal == goal) for goal in frame.goal.unique()]
    return pd.concat(steps, axis=1).max(axis=1)


def _with_attrs(
    frame: pd.DataFrame, study: Study, files: dict, heads: list[dict]
) -> pd.DataFrame:
    there = set(files.values())
    frame.attrs.update(
        missing=store.Shared(cell for cell in study.searches if cell not in there),
        cells_planned=len(study.searches),
        provenance=store.Shared(heads),
    )
    return frame


def read(study: Study, folder: Path = DATA, without: tuple[str, ...] = ()) -> pd.DataFrame:
    """All trials of the study's cells as one table, a row per trial: its cell's fields, its record,
    the goal and the steps to it.

    attrs: "missing" (cells without a record), "cells_planned" (count), "provenance" (the first line
    of every record).

    Args:
        without: beginnings of the names of columns that are not read.

    Raises:
        RecordError: for a file that must not be read.
        OwnError: as `check`.
    """
    check_tensors(study, folder)
    files = store.existing(study.searches, record, folder)
    heads, fields, trials = store.read_all(files, _fields, without)
    frame = _joined(fields, trials) if files else pd.DataFrame()
    told = [store.told(cell) | head for cell, head in zip(files.values(), heads)]
    for about in told:
        del about["cell"]
    return _with_attrs(frame, study, files, told)


def _joined(fields: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Trials beside their cells' fields and the steps to the cell's goal."""
    if "momentum" not in trials:
        trials.insert(3, "momentum", np.nan)
    goals = fields.goal.unique()
    steps = pd.concat([trials[f"steps@{goal:g}"][fields.goal == goal] for goal in goals])
    return pd.concat([fields, trials, steps.rename("steps")], axis=1)


def _fields(cell: Search) -> dict:
    work, told = cell.work, store.told(cell)
    own = {"precision": cell.arithmetic, "max_steps": cell.max_steps or work.max_steps}
    fields = {**told, **own, **(told["messages"] or {}), "goal": work.goal}
    del fields["messages"]
    return fields


def status() -> pd.DataFrame:
    """A row per study: cells done and planned, trials, training steps, hours, devices, precisions,
    dates.
    """
    rows, texts = [], ["device", "precision", "torch", "date"]
    every = searches.table().drop_duplicates("record").set_index("record")
    every = every.drop(columns="precision").rename(columns=searches.HEAD)
    for s in STUDIES.values():
        there = searches.recorded(s.searches)
        heads = [file.relative_to(DATA).as_posix() for file in there]
        told = every.loc[heads]
        row = {"study": s.name, "cells": len(heads), "planned": len(s.searches)}
        row["trials"], row["training steps"] = told.rows.sum(), told.trial_steps.sum()
        row["core hours"] = told.wall_s.sum() / 3600
        rows.append(row | {name: ", ".join(sorted(set(told[name]))) for name in texts})
    return pd.DataFrame(rows)
