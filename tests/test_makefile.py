"""`make` installs nothing twice, and calls no environment that does not work."""

import os
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


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A folder, with a space in its name, with the Makefile and a requirement."""
    for name in ("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL"):  # of `make test`
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "a book"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "requirements.txt").write_text("this\n", encoding="utf-8")
    return folder


@pytest.fixture
def called(tmp_path):
    """A function that makes the environment of a folder; returns what was called."""
    stub, calls = tmp_path / "python", tmp_path / "calls"
    stub.write_text(STUB.format(python=sys.executable, calls=calls), encoding="utf-8")
    stub.chmod(0o755)

    def call(folder):
        calls.write_text("", encoding="utf-8")
        command = ["make", "environment", f"PYTHON={stub}"]
        subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8")
        return calls.read_text(encoding="utf-8").split()

    return call


def test_an_environment_is_made_once(book, called):
    assert called(book) == ["venv", "pip"] and called(book) == []
    ahead = time.time() + 86_400
    os.utime(book / "requirements.txt", (ahead, ahead))
    assert called(book) == [] and called(book) == []
    (book / "requirements.txt").write_text("that\n", encoding="utf-8")
    assert called(book) == ["pip"] and called(book) == []


def test_an_environment_that_no_longer_fits_is_made_anew(book, called):
    """Its folder was renamed, or the system's Python raised: pip then lies in another's folder."""
    called(book)
    book = book.rename(book.with_name("the same book"))
    assert called(book) == ["venv", "pip"] and called(book) == []
    (pip,) = (book / ".venv" / "lib").glob("python*/site-packages/pip")
    shutil.rmtree(pip)
    assert called(book) == ["venv", "pip"] and called(book) == []
