"""What is computed from the records is kept for this code and these data, wherever it can be."""

import errno
import json
import math
import os
from types import SimpleNamespace

import pytest

from lib import claims
from lib.claims import cache, prepared


def test_what_is_kept_is_read_back_and_made_anew_for_other_code_or_data(tmp_path, monkeypatch):
    calls = []

    def compute():
        calls.append(1)
        return {"low": 0.5, "high": math.inf}

    assert claims.kept("x", compute, (tmp_path,)) == claims.kept("x", compute, (tmp_path,)) == {"low": 0.5, "high": math.inf}
    assert len(calls) == 1 and len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(cache, "_digest", lambda: "other")
    assert claims.kept("x", compute, (tmp_path,)) and len(calls) == 2

    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        claims.kept("y", broken, (tmp_path,))
    left = [json.loads(file.read_text(encoding="utf-8")) for file in tmp_path.iterdir()]
    assert all(found["low"] == 0.5 for found in left)  # nothing half-written


def no_room(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


HINDRANCES = {  # a cache that cannot be written, by how: of a folder, and of the file that is to be there
    "a file in the folder's place": lambda folder, file, _: folder.write_bytes(b""),
    "a folder in the file's place": lambda folder, file, _: file.mkdir(parents=True),
    "a full disk": lambda folder, file, monkeypatch: monkeypatch.setattr(os, "fsync", no_room),
}


@pytest.mark.parametrize("how", HINDRANCES)
def test_what_cannot_be_kept_is_computed_once_or_kept_elsewhere(how, tmp_path, monkeypatch):
    calls, first = [], tmp_path / "claims"
    HINDRANCES[how](first, first / f"x-{cache._digest()}.json", monkeypatch)
    monkeypatch.setattr(cache, "UNWRITTEN", {})

    def compute():
        calls.append(1)
        return {"low": 0.5}

    for _ in range(2):
        assert claims.kept("x", compute, (first,)) == {"low": 0.5}
    assert len(calls) == 1 and not [file for file in tmp_path.rglob("*") if file.is_file() and file != first]
    monkeypatch.undo()
    for _ in range(2):
        assert claims.kept("y", compute, (tmp_path / "claims" / "x" if first.is_file() else first, tmp_path / "b"))
    assert len(calls) == 2


def test_what_is_kept_but_damaged_is_computed_anew(tmp_path):
    (file := tmp_path / f"x-{cache._digest()}.json").write_bytes(b'{"low": 0.')
    assert claims.kept("x", lambda: {"low": 0.5}, (tmp_path,)) == {"low": 0.5} == json.loads(file.read_bytes())


def test_a_build_elsewhere_keeps_there_what_the_book_s_folder_does_not_take(tmp_path, monkeypatch):
    (tmp_path / "book").write_bytes(b"")
    monkeypatch.setattr(cache, "ROOT", tmp_path / "book")
    monkeypatch.setenv(cache.BUILD, "")
    prepared.setup(SimpleNamespace(doctreedir=tmp_path / "out" / "_build" / ".doctrees", connect=lambda *_, **__: None))
    assert claims.kept("x", lambda: {"low": 0.5}) == {"low": 0.5}
    assert [file.parent for file in tmp_path.rglob("*.json")] == [tmp_path / "out" / "_build" / "claims"]
