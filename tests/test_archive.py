"""Packed records: found, read and checked as files are, and restored to the byte."""

import dataclasses
import lzma
import os
import signal
import time
import types

import numpy as np
import pandas as pd
import pytest

from lib import ROOT
from lib.records import archive, results, store
from lib.studies.search import Search
from lib.studies.study import Study

CELLS = tuple(
    Search("digits-mlp", b, m, trials=3) for b in (4, 16) for m in ("momentum", "sgd")
)
STUDY = Study("few", "A few searches", CELLS)


def trials(cell):
    """A table whose columns differ by method, with gaps, numbers of all sizes and a comma."""
    table = pd.DataFrame({"trial": [0, 1, 2], "learning_rate": [1 / 3, 1e-7, 2.0]})
    if cell.algorithm == "momentum":
        table["momentum"] = [0.9, 0.99, np.nan]
    table["cause"] = ["", 'died, "early"', ""]
    goals = {f"steps@{g:g}": [float(cell.batch_size), np.nan, 7.0] for g in cell.work.goals}
    return table.assign(**goals)


@pytest.fixture
def data(tmp_path):
    for cell in CELLS:
        about = {"torch": "x", "device": "d", "wall_s": 0.1, "trial_steps": 9, "steps": 3}
        store.write(store.record(cell, tmp_path), cell, trials(cell), about)
    return tmp_path


@pytest.fixture
def folder(data):
    return data / "digits" / "digits-mlp"


def files(data):
    return {file: file.read_bytes() for file in data.rglob("batch-*.csv")}


def test_packed_records_are_read_as_files_are_and_later_ones_are_added(data, folder):
    before, bodies = results.read(STUDY, data), files(data)
    late = store.record(CELLS[-1], data)
    late.unlink()
    assert archive.pack(folder) == len(CELLS) - 1 and not files(data)
    late.parent.mkdir(parents=True, exist_ok=True)
    late.write_bytes(bodies[late])
    assert archive.pack(folder) == 1 and archive.pack(folder) == 0
    assert {file: archive.text(file).encode() for file in bodies} == bodies
    pd.testing.assert_frame_equal(results.read(STUDY, data), before)
    lacking = dataclasses.replace(CELLS[0], replicate=1)
    study = dataclasses.replace(STUDY, searches=(*CELLS, lacking))
    assert results.missing(study, data) == [lacking]


def test_another_record_of_a_packed_search_is_refused_and_neither_is_lost(data, folder):
    file, body = next(iter(files(data).items()))
    archive.pack(folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    changed = body[:-2] + b"9\n"
    file.write_bytes(changed)
    with pytest.raises(store.RecordError, match=f"{file.name}: another record"):
        archive.pack(folder)
    assert file.read_bytes() == changed
    file.unlink()
    assert archive.text(file).encode() == body


def test_pandas_alone_reads_it(data, folder):
    """With the very lines on the page about the code; one is not packed yet."""
    before = results.read(STUDY, data).rename(columns={"algorithm": "method"})
    late, body = next(iter(files(data).items()))
    late.unlink()
    archive.pack(folder)
    late.write_bytes(body)
    page = (ROOT / "chapters/how_the_code_works.md").read_text(encoding="utf-8")
    lines = (
        page.partition("A record is a text file")[2]
        .partition("```python\n")[2]
        .partition("print(")[0]
    )
    names = {}
    exec(lines.replace("data/digits", f"{data}/digits"), names)
    steps = (
        names["trials"]
        .groupby(["head.cell.algorithm", "head.cell.batch_size"])["steps@0.05"]
        .sum()
    )
    assert (
        steps.to_dict()
        == before.groupby(["method", "batch_size"])["steps@0.05"].sum().to_dict()
    )


@pytest.mark.parametrize(
    "damage", ["cut", (b'size\\": 16', b'size\\": 17'), (b"0.33", b"0.34")]
)
def test_a_damaged_archive_is_named(data, folder, damage):
    archive.pack(folder)
    file = folder / archive.PACKED
    body = file.read_bytes()
    text = lzma.decompress(body)
    assert damage == "cut" or damage[0] in text
    file.write_bytes(body[:-20] if damage == "cut" else lzma.compress(text.replace(*damage)))
    with pytest.raises(store.RecordError, match=f"{folder}.* (not a readable|damaged)"):
        results.read(STUDY, data)


def test_what_another_packs_meanwhile_is_kept(data, folder):
    """One of two processes waits while the other compresses."""
    bodies, (late, *_) = files(data), files(data)
    late.unlink()
    go, compress = data / "go", lzma.compress
    if (child := os.fork()) == 0:

        def waiting(body):
            go.touch()
            time.sleep(0.5)
            return compress(body)

        archive.lzma = types.SimpleNamespace(compress=waiting, decompress=lzma.decompress)
        os._exit(archive.pack(folder) != len(CELLS) - 1)
    while not go.exists():
        time.sleep(0.01)
    late.write_bytes(bodies[late])
    archive.pack(folder)
    assert os.waitpid(child, 0)[1] == 0 and not files(data)
    assert {file: archive.text(file).encode() for file in bodies} == bodies


def test_what_a_killed_one_has_left_is_removed(data, folder, monkeypatch):
    if (child := os.fork()) == 0:
        monkeypatch.setattr(os, "fsync", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        archive.pack(folder)
    os.waitpid(child, 0)
    assert len(files(data)) == len(CELLS) and list(folder.glob(".*.part"))
    assert archive.pack(folder) == len(CELLS) and not list(folder.glob(".*.part"))
    assert results.missing(STUDY, data) == []
