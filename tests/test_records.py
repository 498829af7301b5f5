"""Records: whole or absent, and never mixed with those of another cell or protocol."""

import contextlib
import dataclasses
import errno
import hashlib
import json
import os

import numpy as np
import pandas as pd
import pytest

from lib.__main__ import EXPERIMENTS
from lib.measuring.experiment import Collection
from lib.probes import replays
from lib.records import archive, store
from lib.records.store import DATA
from lib.studies import search as searching
from lib.studies.search import Search
from lib.workloads import catalogue

CELL = Search("digits-mlp", 16, sparsity=0.9, trials=2)
STATUS = {"trial": [0, 1], "status": ["complete", "stopped"]}
TABLE = pd.DataFrame(STATUS | {"steps@0.04": [12.0, np.nan], "rate": [1 / 3, 0.1]})


@pytest.fixture
def record(tmp_path):
    file = store.path(tmp_path, CELL)
    store.write(file, CELL, TABLE, {"torch": "x"})
    return file


def test_a_new_field_with_a_default_leaves_old_records_valid(record):
    @dataclasses.dataclass(frozen=True)
    class Search(searching.Search):
        extra: str = "none"

    newer = Search("digits-mlp", 16, sparsity=0.9, trials=2)
    assert store.digest(newer) == store.digest(CELL)
    head, table = store.read(record, newer)
    assert head["torch"] == "x" and head["cell"]["sparsity"] == 0.9
    pd.testing.assert_frame_equal(table, TABLE, rtol=1e-9)
    assert store.digest(dataclasses.replace(newer, extra="some")) != store.digest(CELL)


def test_a_changed_workload_is_another_cell(monkeypatch):
    changed = dataclasses.replace(catalogue.workload("digits-mlp"), goals=(0.5,))
    before = store.digest(CELL)
    monkeypatch.setitem(catalogue.WORKLOADS, "digits-mlp", changed)
    assert store.digest(dataclasses.replace(CELL)) != before


DAMAGE = {
    "damaged": lambda text: text[:-10],
    "damaged .*": lambda text: text.replace('"batch_size": 16', '"batch_size": 32'),
    "damaged .* altered": lambda text: text.replace('"rows": 2', '"rows": 1'),
    "not a record .* move it out of data/": lambda text: text.replace("complete", "\udcff"),
}


@pytest.mark.parametrize("says", DAMAGE)
def test_a_bad_record_is_named_and_refused(record, says):
    damaged = DAMAGE[says](record.read_text(encoding="utf-8"))
    record.write_bytes(damaged.encode(errors="surrogateescape"))
    with pytest.raises(store.RecordError, match=says) as caught:
        store.read(record, CELL)
    assert str(record) in str(caught.value)


def test_whatever_changes_in_a_record_its_sum_tells(record):
    text = record.read_text(encoding="utf-8")
    for i in range(0, len(text), 5):
        letter = "y" if text[i] == "x" else "x"
        record.write_text(f"{text[:i]}{letter}{text[i + 1 :]}", encoding="utf-8")
        with pytest.raises(store.RecordError, match=str(record)):
            store.read(record, CELL)


def test_an_older_record_is_read_and_says_that_its_sum_is_of_the_table(record, tmp_path):
    """Its number of rows and its cell are compared all the same."""
    assert store.head(record)["sha256_of"] == store.ALL
    first, _, body = record.read_text(encoding="utf-8").partition("\n")
    older = json.loads(first) | {"sha256": hashlib.sha256(body.encode()).hexdigest()}
    del older["sha256_of"]
    record.write_text(f"{json.dumps(older)}\n{body}", encoding="utf-8")
    head, table = store.read(record, CELL)
    assert head == older | {"sha256_of": store.TABLE} and len(table) == 2
    cell = older["cell"] | {"batch_size": 32}
    for change, says in (({"rows": 1}, "damaged"), ({"cell": cell}, "batch_size differ")):
        record.write_text(f"{json.dumps(older | change)}\n{body}", encoding="utf-8")
        with pytest.raises(store.RecordError, match=says):
            store.read(record, CELL)


def test_a_full_disk_names_the_file_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", refusing(errno.ENOSPC))
    file = store.path(tmp_path, CELL)
    with pytest.raises(OSError, match=rf"\(No space left on device\): '{file}'") as caught:
        store.write(file, CELL, TABLE, {})
    assert caught.value.errno == errno.ENOSPC and not list(file.parent.iterdir())


REFUSALS = errno.EPERM, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP


def refusing(number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("number", REFUSALS)
def test_a_file_system_without_modes_and_fsync_keeps_records(tmp_path, monkeypatch, number):
    monkeypatch.setattr(os, "chmod", refusing(number))
    monkeypatch.setattr(os, "fsync", refusing(number))
    file = store.path(tmp_path, CELL)
    store.prepare(file)
    assert not list(file.parent.iterdir())
    store.write(file, CELL, TABLE, {})
    assert store.head(file, CELL)["rows"] == 2 and list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("bytes_", [255, 256])
def test_a_name_is_tried_before_anything_is_measured(tmp_path, bytes_):
    file = tmp_path / f"{'b' * (bytes_ - 5)}.part"
    refused = pytest.raises(OSError, match=f"cannot be written .*{file.name}")
    with refused if bytes_ > 255 else contextlib.nullcontext():
        store.prepare(file)
        store.write(file.with_suffix(".csv"), CELL, TABLE, {})


def test_a_rename_is_tried_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", refusing(errno.EPERM))
    file = store.path(tmp_path, CELL)
    with pytest.raises(OSError, match=rf"cannot be written \(Operation not permitted\): '{file}'"):
        store.prepare(file)
    assert not list(file.parent.iterdir())


def test_a_long_path_makes_a_name_that_fits():
    deep = "/very/deep" * 40 + "/mine.py:task"
    name = store.folder_name(deep)
    assert len(name) < 200 and name.endswith("mine.py-task")
    assert name != store.folder_name("/other" + deep)
    assert store.folder_name("/" + 250 * "a") == "-" + 250 * "a"


def kinds():
    """Folder under data/ -> where such a record lies, and by name the kinds of its specs."""
    kinds = {"replays": (replays.place, {"Replay": replays.Replay})}
    for experiment in EXPERIMENTS.values():
        if isinstance(experiment, Collection):
            types = {type(spec).__name__: type(spec) for spec in experiment.planned()}
            _, others = kinds.get(experiment.name, (None, {}))
            kinds[experiment.name] = experiment.record, {**others, **types}
    return kinds


def committed():
    """Where all records lie or lay, also in archives; of readers' own, only the example's."""
    ours = store.folder_name("chapters/own/next_letter.py:next_letter")
    for file in DATA.rglob("*.csv"):
        if "own" not in file.relative_to(DATA).parts or ours in file.parts:
            yield file
    for file in DATA.rglob(archive.PACKED):
        yield from (file.parent / place for place in archive.texts(file.parent))


def spec_of(file, types):
    """A record's spec; in a folder of several kinds, its name begins with the kind's."""
    fields, (kind, *more) = store.head(file)["cell"], types.values()
    if more:
        kind = {name.lower(): kind for name, kind in types.items()}[file.stem.partition("-")[0]]
    return kind(**fields)


WAITING = {"resnet-20-as-published"}  # runs of hours, none of which has ended


def test_every_committed_record_is_whole_and_one_of_ours():
    files, by_folder = list(committed()), kinds()
    searches = store.record, {"Search": Search}
    folders = {file.relative_to(DATA).parts[0] for file in files}
    assert folders >= {*by_folder, "digits", "own"} - WAITING
    closed = {file for pattern in store.CLOSED.values() for file in DATA.glob(pattern)}
    assert len(closed) == 444 and all(store.head(file)["rows"] for file in closed)
    for file in set(files) - closed:
        place, types = by_folder.get(file.relative_to(DATA).parts[0], searches)
        spec = spec_of(file, types)
        assert place(spec) == file, "it would not be found"
        head = store.head(file, spec)  # whose sum and count of rows are the table's
        timed = "timings" in file.parts
        assert {"date", "torch", "device", "cores" if timed else "source"} <= {*head}, file
        assert timed or {"wall_s"} <= {*head} and head["rows"], file
        assert not isinstance(spec, Search) or head["rows"] == spec.trials, file
