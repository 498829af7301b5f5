"""Text is the same on every machine: what editors and git make of its newlines changes nothing."""

import codecs

import lib
from lib import ROOT
from lib.records import store
from lib.studies.search import Search
from lib.workloads import catalogue, own_file

EXAMPLE = "chapters/own/next_letter.py"


def rewritten(text):
    return codecs.BOM_UTF8 + text.replace(b"\n", b"\r\n")


def test_a_rewritten_workload_keeps_its_records(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = []
    for change in (bytes, rewritten):
        (tmp_path / "mine.py").write_bytes(change((ROOT / EXAMPLE).read_bytes()))
        work = catalogue.workload("mine.py:next_letter")
        assert work.source == own_file.load(f"{EXAMPLE}:next_letter").source == "b080dbb45723"
        places.append((work.goals, store.record(Search(work.name, 16), tmp_path)))
    assert places[0] == places[1]


def test_rewritten_code_is_the_same(monkeypatch):
    before, read = lib.code(["**/*.py"]), lib.Path.read_bytes
    monkeypatch.setattr(lib.Path, "read_bytes", lambda file: rewritten(read(file)))
    assert lib.code(["**/*.py"]) == before


def test_a_record_with_other_newlines_is_read(tmp_path):
    (file, *_) = sorted((store.DATA / "own").rglob("*.csv"))
    rewritten_file = tmp_path / file.name
    rewritten_file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    (head, table), (expected, rows) = store.read(rewritten_file), store.read(file)
    assert head == expected and table.equals(rows)
