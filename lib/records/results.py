"""Reads a study's records: checks every file, and joins all trials into one table."""

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
    """The study's searches that have no record."""
    recorded = set(searches.recorded(study.searches, folder).values())
    return [search for search in study.searches if search not in recorded]


def check(study: Study, folder: Path = DATA) -> None:
    """Check every record of the study's searches that is a file; archives were checked when they
    were packed.

    Raises:
        RecordError: for a file that is damaged or foreign.
        OwnError: if records of a reader's own workload are of different tensors.
    """
    check_tensors(study, folder)
    for search in study.searches:
        if (file := record(search, folder)).exists():
            store.head(file, search)


def check_tensors(study: Study, folder: Path) -> None:
    """Raise OwnError if records of a reader's own workload are of tensors that differ from each
    other, or from what its function returns now.
    """
    for name in sorted({s.workload for s in study.searches if s.work.tensors}):
        searches = [search for search in study.searches if search.workload == name]
        methods = {search.algorithm for search in searches}
        same_data(name, folder, searches[0].work.tensors, methods)


def of_searches(study: Study, folder: Path = DATA) -> pd.DataFrame:
    """The study's searches on record, a row each.

    Columns: record; the search's fields; last_step, best_error; goal (the hardest); steps@GOAL, the
    fewest steps to each goal, and steps, those to the hardest.  attrs: as for `read`.

    Raises:
        RecordError: for a file that must not be read.
        OwnError: as `check`.
    """
    check(study, folder)
    files = searches.recorded(study.searches, folder)
    if not files:
        return _with_attrs(pd.DataFrame(), study, files, [])
    places = [file.relative_to(folder).as_posix() for file in files]
    if folder == DATA and not any("own" in file.parts for file in files):
        rows = searches.table()
        rows = rows[rows.record.isin(places)]
    else:
        rows = searches.summary(files, folder)
    fields = pd.DataFrame(map(_fields, files.values()), index=places)
    first = rows.astype({"record": object}).set_index(["record", "goal"])
    steps = first.k1.unstack().reindex(places)
    to_goal = first.k1.reindex(pd.MultiIndex.from_arrays([places, fields.goal]))
    first = first.reset_index("goal").groupby(level="record").head(1).loc[places]
    frame = pd.concat([fields, first[["last_step", "best_error"]]], axis=1)
    frame = frame.join(steps.rename(columns="steps@{:g}".format))
    frame = frame.assign(steps=to_goal.to_numpy()).reset_index(names="record")
    heads = first.drop(columns="precision").rename(columns=searches.HEAD)
    heads = heads.assign(workload=fields.workload, algorithm=fields.algorithm)
    provenance = heads.reset_index(names="sha256").to_dict("records")
    return _with_attrs(frame, study, files, provenance)


def _with_attrs(
    frame: pd.DataFrame, study: Study, files: dict, provenance: list[dict]
) -> pd.DataFrame:
    recorded = set(files.values())
    frame.attrs.update(
        missing=store.Shared(search for search in study.searches if search not in recorded),
        cells_planned=len(study.searches),
        provenance=store.Shared(provenance),
    )
    return frame


def read(study: Study, folder: Path = DATA, without: tuple[str, ...] = ()) -> pd.DataFrame:
    """All trials of the study's searches as one table, a row per trial: the fields of its search,
    its record, the goal and the steps to it.

    attrs: "missing" (searches without a record), "cells_planned" (count), "provenance" (the first
    line of every record).

    Args:
        without: prefixes of the names of columns that are not read.

    Raises:
        RecordError: for a file that must not be read.
        OwnError: as `check`.
    """
    check_tensors(study, folder)
    files = store.existing(study.searches, record, folder)
    heads, trials = store.read_all(files, without)
    provenance = [store.asdict(search) | head for search, head in zip(files.values(), heads)]
    for head in provenance:
        del head["cell"]
    if not files:
        return _with_attrs(trials, study, files, provenance)
    if "momentum" not in trials:
        trials.insert(3, "momentum", np.nan)
    fields = pd.DataFrame(map(_fields, files.values()))
    fields = fields.loc[trials.index].reset_index(drop=True)
    trials = trials.reset_index(drop=True)
    to_goal = [trials[f"steps@{goal:g}"][fields.goal == goal] for goal in fields.goal.unique()]
    steps = pd.concat(to_goal).rename("steps")
    frame = pd.concat([fields, trials, steps], axis=1)
    return _with_attrs(frame, study, files, provenance)


def _fields(search: Search) -> dict:
    work, fields = search.work, {**store.asdict(search)}
    limit = search.max_steps or work.max_steps
    fields |= {"precision": search.arithmetic, "max_steps": limit}
    return fields | (fields.pop("messages") or {}) | {"goal": work.goal}


def status() -> pd.DataFrame:
    """A row per study: searches done and planned, trials, training steps, hours, devices,
    precisions, dates.
    """
    rows, texts = [], ["device", "precision", "torch", "date"]
    table = searches.table().drop_duplicates("record").set_index("record")
    table = table.drop(columns="precision").rename(columns=searches.HEAD)
    for study in STUDIES.values():
        files = searches.recorded(study.searches)
        measured = table.loc[[file.relative_to(DATA).as_posix() for file in files]]
        row = {
            "study": study.name,
            "cells": len(files),
            "planned": len(study.searches),
            "trials": measured.rows.sum(),
            "training steps": measured.trial_steps.sum(),
            "core hours": measured.wall_s.sum() / 3600,
        }
        rows.append(row | {name: ", ".join(sorted(set(measured[name]))) for name in texts})
    return pd.DataFrame(rows)
