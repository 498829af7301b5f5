"""Chapters as a reader reruns them: papermill trains what is missing, and the README's file gets its answer."""

import json
import os
import re
import runpy
import subprocess
import sys

import nbformat
import pytest

from lib import ROOT

HARNESSES = sorted(f"benchmarks.{file.stem}" for file in (ROOT / "benchmarks").glob("[!_]*.py"))
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))


def papermill(tmp_path, chapter, **parameters):
    """Run a chapter with parameters in a copy of the book's code: nothing is written to data/."""
    for name in ("lib", "chapters"):
        if not (tmp_path / name).exists():
            subprocess.run(["cp", "-r", ROOT / name, tmp_path], check=True)
    (tmp_path / "data").mkdir(exist_ok=True)
    subprocess.run(["cp", ROOT / "data/studies.yaml", tmp_path / "data"], check=True)
    options = [word for name, value in parameters.items() for word in ("-p", name, str(value))]
    command = [sys.executable, "-m", "papermill", f"chapters/{chapter}.ipynb", "out.ipynb", *options]
    for _ in range(2):  # on a busy machine a kernel sometimes dies before it starts
        done = started(command, tmp_path)
        if "Kernel died before replying" not in done.stderr:
            break
    return done


def started(command, folder):
    about = {"cwd": folder, "env": environment(folder), "encoding": "utf-8"}
    return subprocess.run(command, **about, capture_output=True)


def environment(folder):
    # A kernel that knows it is in a test keeps no way to the terminal
    names = os.environ.keys() - {"PYTEST_CURRENT_TEST"}
    return {**{name: os.environ[name] for name in names}, "PYTHONPATH": str(folder)}


def test_papermill_trains_what_is_missing_and_draws(tmp_path):
    toy = {"workload": "digits-mlp", "batch_size": 256, "trials": 8}
    done = papermill(tmp_path, "steps_to_result", **toy, budget="full")
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(list((tmp_path / "data").rglob("batch-256-*.csv"))) == 1
    cells = nbformat.read(tmp_path / "out.ipynb", 4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert any("vl-chart" in str(output) for output in outputs)
    progress = [output.get("text", "") for output in outputs]
    assert any("digits" in text and "cell" in text for text in progress), "no progress was shown"
    assert re.search(r"digits[^\r\n]*\| 0/1 ", done.stderr), "no progress in the terminal"


def test_the_readmes_complete_file_gets_its_answer(tmp_path):
    """The whole file and its command as a reader types them, except for the minutes."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    file = re.search(r"```python\n(import numpy as np\n.*?)```", readme, re.S)[1]
    (tmp_path / "mine.py").write_text(file, encoding="utf-8")
    command = next(line for line in readme.splitlines() if "-p workload mine.py:task" in line)
    parameters = dict(re.findall(r"-p (\S+) (\S+)", command))
    done = papermill(tmp_path, "own_workload", **parameters, minutes=3)
    assert done.returncode == 0, done.stderr[-2000:]
    convert = next(line for line in readme.splitlines() if line.startswith("jupyter nbconvert"))
    *convert, _ = convert.partition("#")[0].split()
    done = started([sys.executable, "-m", *convert, "out.ipynb"], tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "Use batch size" in page and "tuned runs, about" not in page
    assert "three regimes" in page and not re.search(r'href="[^"#]', page), "a link to nowhere"


def test_chapters_are_committed_clean():
    for chapter in CHAPTERS:
        notebook = json.loads(chapter.read_text(encoding="utf-8"))
        code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
        assert notebook["metadata"]["kernelspec"]["name"] == "python3", chapter.name
        assert not any(c["outputs"] or c["execution_count"] for c in code), chapter.name
        nbformat.validate(nbformat.read(chapter, 4))


@pytest.mark.parametrize("module", [*HARNESSES, "tests.kills"])
@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_a_harness_says_how_it_is_called(module, monkeypatch, capsys):
    for option, status in ("--help", 0), ("--nonsense", 2):
        monkeypatch.setattr(sys, "argv", [module, option])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(module, run_name="__main__")
        assert ended.value.code == status and "usage: " in "".join(capsys.readouterr())
