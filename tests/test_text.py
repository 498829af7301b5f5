"""Text is the same on every machine: its encoding is named, and what git makes of its newlines changes nothing."""

import ast
import codecs
import json
import shutil
import subprocess

import pytest

import lib
from chapters.language_model import read
from lib import ROOT
from lib.records import store
from lib.studies.cells import Cell
from lib.workloads import catalogue, own_file, own_text

OWN = ROOT / "chapters" / "own"


AT = {"read_text": 0, "write_text": 1}  # where an encoding stands that is given without its name
BINARY = {"os", "gzip", "lzma", "tarfile", "webbrowser"}  # modules whose `open` is of bytes


def unnamed(source):
    """The calls in a source that read or write text and leave it to the machine in which encoding."""
    return {ast.unparse(n) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call) and _unnamed(n)}


def _unnamed(call):
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    named = {word.arg: word.value for word in call.keywords}
    if "encoding" in named:
        return False
    if name in AT:
        return len(call.args) <= AT[name]
    if name in ("open", "NamedTemporaryFile", "TemporaryFile"):
        of = getattr(getattr(call.func, "value", None), "id", "")
        given = [a.value for a in [*call.args, *named.values()] if isinstance(a, ast.Constant)]
        modes = [mode for mode in given if isinstance(mode, str) and set(mode) <= set("rwxabt+")]
        is_text = modes and "b" not in modes[0] or not modes and name == "open"
        return is_text and of not in BINARY
    return any(isinstance(v := named.get(word), ast.Constant) and v.value is True for word in ("text", "universal_newlines"))


@pytest.mark.parametrize(("source", "found"), [
    ("file.read_text()", True), ("file.write_text(text, encoding='utf-8')", False), ("open(file, mode='w')", True),
    ("open(file, 'rb')", False), ("run(call, text=True)", True),
])  # fmt: skip
def test_what_leaves_the_encoding_to_the_machine_is_found(source, found):
    assert bool(unnamed(source)) == found


def test_text_is_read_and_written_as_utf_8_on_every_machine():
    sources = {f: f.read_text(encoding="utf-8") for f in (ROOT / "conftest.py", *ROOT.glob("[lbct]*/**/*.py"))}
    for chapter in (ROOT / "chapters").glob("*.ipynb"):
        cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
        sources[chapter] = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    found = {str(file.relative_to(ROOT)): calls for file, text in sources.items() if (calls := unnamed(text))}
    assert len(sources) > 200 and found == {}


REWRITTEN = {
    "CRLF": lambda text: text.replace(b"\n", b"\r\n"),
    "BOM and CRLF": lambda text: codecs.BOM_UTF8 + text.replace(b"\n", b"\r\n"),
}
rewritten = pytest.mark.parametrize("how", REWRITTEN)


@pytest.fixture
def both(tmp_path, monkeypatch):
    """A function that reads a file of a reader's own as it is, and again once it is rewritten in place."""
    monkeypatch.chdir(tmp_path)

    def read(name, of, how):
        file = tmp_path / name
        before = of(name)
        file.write_bytes(REWRITTEN[how](file.read_bytes()))
        return before, of(name)

    return read


@rewritten
def test_a_rewritten_workload_keeps_its_records(how, both, tmp_path):
    shutil.copy(OWN / "next_letter.py", tmp_path / "mine.py")

    def place(name):
        work = catalogue.workload(f"{name}:next_letter")
        return work.source, work.goals, store.record(Cell(work.name, 16), tmp_path)

    before, after = both("mine.py", place, how)
    assert before == after and before[0] == own_file.source(str(OWN / "next_letter.py:next_letter"))


@rewritten
def test_a_rewritten_text_has_the_same_symbols(how, both, tmp_path):
    read.write_toy(tmp_path / "mine.txt")

    def told(name):
        text = own_text.read(name)
        return text.ids.tolist(), text.symbols, text.source

    before, after = both("mine.txt", told, how)
    assert before == after


def test_digests_of_files_as_they_are_here_stay_what_they_were():
    assert own_file.source("chapters/own/next_letter.py:next_letter") == "b080dbb45723"
    assert own_file.digest(b"a\nb\n") == "911169ddaaf1"


@rewritten
def test_rewritten_code_is_the_same(how, monkeypatch):
    before, read = lib.code(["."]), lib.Path.read_bytes
    monkeypatch.setattr(lib.Path, "read_bytes", lambda file: REWRITTEN[how](read(file)))
    assert lib.code(["."]) == before


def test_a_record_with_other_newlines_is_read(tmp_path):
    (file, *_) = sorted((store.DATA / "own").rglob("*.csv"))
    (other := tmp_path / file.name).write_bytes(REWRITTEN["CRLF"](file.read_bytes()))
    (head, table), (expected, rows) = store.read(other), store.read(file)
    assert head == expected and table.equals(rows)


@pytest.mark.skipif(not shutil.which("git") or not (ROOT / ".git").exists(), reason="no clone")
def test_git_keeps_newlines_and_records_as_they_are():
    def told(*call):
        return subprocess.run(["git", *call], cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout

    files = "Makefile", ".ci/run", "lib/__init__.py", "chapters/own/next_letter.py", "requirements.txt"
    assert told("check-attr", "eol", *files).count(": eol: lf\n") == len(files)
    assert told("check-attr", "text", "data/own/x/sgd/sparsity-0/batch-4-x.csv").endswith(": text: unset\n")
    assert {line.split()[0] for line in told("ls-files", "--eol").splitlines()} <= {"i/lf", "i/none", "i/-text"}
