"""`make` trusts an environment for what it is: nothing is installed twice, and none is called that does not work."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from lib import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="no make")
# A Python whose environments have a pip that only says that it was called.
STUB = """#!/bin/sh
case "$*" in "-m venv"*) "{python}" "$@" --without-pip || exit 1; for last; do :; done
  echo venv >> "{calls}"
  pip=$(echo "$last"/lib/python*/site-packages)/pip
  mkdir "$pip" && touch "$pip/__init__.py" && echo 'open("{calls}", "a").write("pip\\\\n")' > "$pip/__main__.py" ;;
*) exec "{python}" "$@" ;; esac
"""


def older(file):
    """Write a Python there that says of itself that it is 3.9."""
    patched = "import sys; sys.version_info = (3, 9); $2"
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{patched}" "$3"\n', encoding="utf-8")
    file.chmod(0o755)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """What `make test VENV=...` was called with reaches its children in MAKEFLAGS, and is not meant for these."""
    for name in ("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def book(tmp_path):
    """A folder, with a space in its name, with the Makefile and a requirement."""
    folder = tmp_path / "a book"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "requirements.txt").write_text("this\n", encoding="utf-8")
    return folder


@pytest.fixture
def called(tmp_path):
    """A function that makes the environment of a folder; returns what was called, and how it ended."""
    stub, calls = tmp_path / "python", tmp_path / "calls"
    stub.write_text(STUB.format(python=sys.executable, calls=calls), encoding="utf-8")
    stub.chmod(0o755)

    def call(folder, *more):
        calls.write_text("", encoding="utf-8")
        command = ["make", "environment", f"PYTHON={stub}", *more]
        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8")
        return calls.read_text(encoding="utf-8").split(), done

    return call


def test_an_environment_is_made_once(book, called):
    assert called(book)[0] == ["venv", "pip"] and called(book)[0] == []
    ahead = time.time() + 86_400
    os.utime(book / "requirements.txt", (ahead, ahead))
    assert called(book)[0] == [] and called(book)[0] == []
    (book / "requirements.txt").write_text("that\n", encoding="utf-8")
    assert called(book)[0] == ["pip"] and called(book)[0] == []


def test_the_environment_of_a_renamed_folder_is_made_anew(book, called):
    called(book)
    book = book.rename(book.with_name("the same book"))
    assert called(book)[0] == ["venv", "pip"] and called(book)[0] == []


@pytest.mark.parametrize("found", ["an older Python", "another's pip"])
def test_an_environment_whose_python_will_not_do_is_made_anew(found, book, called):
    called(book)
    python = book / ".venv" / "bin" / "python"
    if found == "another's pip":  # as after the system's Python was raised from 3.11 to 3.12
        (pip,) = (book / ".venv" / "lib").glob("python*/site-packages/pip")
        shutil.rmtree(pip)
    else:
        python.unlink()
    if found == "an older Python":
        older(python)
    assert called(book)[0] == ["venv", "pip"] and called(book)[0] == []


def test_no_script_of_the_environment_is_called(book):
    """Scripts hold the place where they were installed, and a folder may be renamed."""
    for target in ("book", "test", "lint", "sweep", "status"):
        said = subprocess.run(["make", "-n", target], cwd=book, capture_output=True, encoding="utf-8", check=True).stdout
        assert set(re.findall(r"\.venv/bin/([\w-]+)", said)) == {"python"}


def test_a_hint_names_a_folder_with_spaces_whole(book):
    call = ["make", "-f", str(book / "Makefile"), "lint"]
    done = subprocess.run(call, cwd=book.parent, capture_output=True, encoding="utf-8")
    assert done.returncode and f'or so: make -C "{book}/" lint' in done.stderr
