"""Records: whole or absent, and never mixed with those of another cell or protocol."""

import dataclasses
import errno
import os

import numpy as np
import pandas as pd
import pytest

from lib import own
from lib.__main__ import EXPERIMENTS
from lib.measuring.experiment import Collection
from lib.probes import replays
from lib.records import archive, store
from lib.records.store import DATA
from lib.studies import cells
from lib.studies.cells import Cell
from lib.workloads import catalogue

CELL = Cell("digits-mlp", 16, sparsity=0.9, trials=2)
STATUS = {"trial": [0, 1], "status": ["complete", "stopped"]}
TABLE = pd.DataFrame(STATUS | {"steps@0.04": [12.0, np.nan], "rate": [1 / 3, 0.1]})


@pytest.fixture
def record(tmp_path):
    file = store.path(tmp_path, CELL)
    store.write(file, CELL, TABLE, {"torch": "x"})
    return file


def test_what_is_written_is_read(record):
    head, table = store.read(record, CELL)
    assert head["torch"] == "x" and head["cell"]["sparsity"] == 0.9
    pd.testing.assert_frame_equal(table, TABLE, rtol=1e-9)


def test_a_new_field_with_a_default_leaves_old_records_valid(record):
    @dataclasses.dataclass(frozen=True)
    class Cell(cells.Cell):
        extra: str = "none"

    newer = Cell("digits-mlp", 16, sparsity=0.9, trials=2)
    assert store.digest(newer) == store.digest(CELL)
    assert len(store.read(record, newer)[1]) == 2
    assert store.digest(dataclasses.replace(newer, extra="some")) != store.digest(CELL)


def test_a_changed_workload_is_another_cell(monkeypatch):
    changed = dataclasses.replace(catalogue.workload("digits-mlp"), goals=(0.5,))
    before = store.digest(CELL)
    monkeypatch.setitem(catalogue.WORKLOADS, "digits-mlp", changed)
    assert store.digest(CELL) != before


DAMAGE = {
    "damaged": lambda text: text[:-10],
    "batch_size": lambda text: text.replace('"batch_size": 16', '"batch_size": 32'),
    "not a record .* move it out of data/": lambda text: text.replace("complete", "\udcff"),
}


@pytest.mark.parametrize("says", DAMAGE)
def test_a_bad_record_is_named_and_refused(record, says):
    damaged = DAMAGE[says](record.read_text(encoding="utf-8"))
    record.write_bytes(damaged.encode(errors="surrogateescape"))
    with pytest.raises(store.RecordError, match=says) as caught:
        store.read(record, CELL)
    assert str(record) in str(caught.value)


def test_a_full_disk_names_the_file_and_leaves_nothing_behind(tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "fsync", lambda *_: (_ for _ in ()).throw(full))
    file = store.path(tmp_path, CELL)
    told = rf"cannot be written \(No space left on device\): '{file}'"
    with pytest.raises(OSError, match=told) as caught:
        store.write(file, CELL, TABLE, {})
    assert caught.value.errno == errno.ENOSPC and not list(file.parent.iterdir())


def kinds():
    """Folder under data/ -> where such a record lies, and the kinds of what it tells of by name."""
    found = {"replays": (replays.place, {"Replay": replays.Replay})}
    for one in EXPERIMENTS.values():
        if isinstance(one, Collection):
            types = {type(what).__name__: type(what) for what in one.planned()}
            _, others = found.get(one.name, (None, {}))
            found[one.name] = one.record, {**others, **types}
    return found


def committed():
    """Where all records lie or lay, in archives too; of readers' own the example's alone."""
    ours = own.folder_name("chapters/own/next_letter.py:next_letter")
    for file in DATA.rglob("*.csv"):
        if "own" not in file.relative_to(DATA).parts or ours in file.parts:
            yield file
    for file in DATA.rglob(archive.HEADS):
        yield from (file.parent / name for name in archive.names(file.parent))


def spec_of(file, types):
    """What a record tells of; of several kinds in a folder, its name begins with the kind's."""
    own, (first, *more) = store.head(file)["cell"], types.values()
    if not more:
        return first(**own)
    return {name.lower(): kind for name, kind in types.items()}[file.stem.partition("-")[0]](**own)


WAITING = {"resnet-20-as-published"}  # of hours a run, none of which has ended


def test_every_committed_record_is_whole_and_one_of_ours():
    files, known = list(committed()), kinds()
    cells_of = store.record, {"Cell": Cell}
    assert {file.relative_to(DATA).parts[0] for file in files} >= {*known, "digits", "own"} - WAITING
    for file in files:
        place, types = known.get(file.relative_to(DATA).parts[0], cells_of)
        one = spec_of(file, types)
        assert place(one) == file, "it would not be found"
        head = store.head(file, one)  # whose sum and count of rows are the table's
        timed = "timings" in file.parts
        assert {"date", "torch", "device", "cores" if timed else "source"} <= {*head}, file
        assert timed or {"wall_s"} <= {*head} and head["rows"], file
        assert not isinstance(one, Cell) or head["rows"] == one.trials, file
