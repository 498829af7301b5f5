"""Chapters as a reader reruns them: papermill trains what is missing, and bad parameters stop at once."""

import json
import re
import subprocess
import sys

import nbformat
import pytest

from lib import ROOT
from lib.records import store

CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))


def papermill(tmp_path, chapter, **parameters):
    """Run a chapter with parameters in a copy of the book's code, so that nothing is written into data/."""
    for name in ("lib", "chapters"):
        if not (tmp_path / name).exists():
            subprocess.run(["cp", "-r", ROOT / name, tmp_path], check=True)
    given = [word for name, value in parameters.items() for word in ("-p", name, str(value))]
    command = [sys.executable, "-m", "papermill", f"chapters/{chapter}.ipynb", str(tmp_path / "out.ipynb"), *given]
    for _ in range(2):  # on a busy machine a kernel now and then dies before it begins
        done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, encoding="utf-8")
        if "Kernel died before replying" not in done.stderr:
            break
    return done


def environment(folder):
    import os

    # In a test of its own a kernel keeps no way to the terminal
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return {**kept, "PYTHONPATH": str(folder)}


def test_papermill_trains_what_is_missing_and_draws(tmp_path):
    done = papermill(tmp_path, "steps_to_result", workload="digits-mlp", batch_size=256, trials=8, budget="full")
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(list((tmp_path / "data").rglob("batch-256-*.csv"))) == 1
    outputs = [o for c in nbformat.read(tmp_path / "out.ipynb", 4).cells for o in c.get("outputs", [])]
    figures = [
        o for o in outputs if "vl-chart" in str(o.get("data", {}).get("application/papermill.record/text/html", o))
    ]
    assert figures
    assert any("digits" in o.get("text", "") and "cell" in o.get("text", "") for o in outputs), "no progress was shown"
    assert re.search(r"digits[^\r\n]*\| 0/1 ", done.stderr), "no progress in the terminal"


def test_bad_parameters_stop_at_once_and_say_what_is_allowed(tmp_path):
    done = papermill(tmp_path, "steps_to_result", sparcity=0.5, budget="full")
    assert done.returncode != 0 and "sparcity: unknown parameter; did you mean sparsity" in done.stderr
    assert not (tmp_path / "data").exists(), "something was trained"


def test_the_readmes_complete_file_gets_its_answer(tmp_path):
    """The whole file and its command as a reader types them, but for the minutes that it may take."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    file = re.search(r"```python\n(import torch\n.*?)```", readme, re.S)[1]
    (tmp_path / "mine.py").write_text(file, encoding="utf-8")
    command = next(line for line in readme.splitlines() if "-p workload mine.py:task" in line)
    done = papermill(tmp_path, "own_workload", **dict(re.findall(r"-p (\S+) (\S+)", command)), minutes=1)
    assert done.returncode == 0, done.stderr[-2000:]
    convert = next(line for line in readme.splitlines() if line.startswith("jupyter nbconvert")).split("#")[0].split()
    convert = [sys.executable, "-m", *convert[:-1], "out.ipynb"]
    subprocess.run(convert, cwd=tmp_path, env=environment(tmp_path), check=True, capture_output=True)
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "Use batch size" in page and "tuned runs so far" not in page
    assert "three regimes" in page and not re.search(r'href="[^"#]', page), "a link without the book leads nowhere"


OWN = """
import torch
from torch import nn
from lib.own import Own

def task():
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    y = (x.sum(1) > 0).long()
    return Own(model=lambda: nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2)),
               train=(x[:150], y[:150]), validation=(x[150:], y[150:]), goals=(0.1, 0.2), max_steps=300)
"""


FAULT = "nn.Linear(16, 2)", "nn.Linear(15, 2)"


@pytest.mark.parametrize("message", [None, "model: on 32 examples it raised RuntimeError"])
def test_a_readers_own_workload_runs_through_papermill_or_says_what_is_wrong(tmp_path, message):
    """By races; the adaptive search is that of the README's file."""
    (tmp_path / "mine.py").write_text(OWN.replace(*FAULT) if message else OWN, encoding="utf-8")
    given = {"workload": "mine.py:task", "batch_sizes": "4 16 64", "trials": 8, "search": "race"}
    done = papermill(tmp_path, "own_workload", **given, budget="full")
    files = list(tmp_path.rglob("data/own/mine.py-task/**/*.csv"))
    if message:
        assert done.returncode != 0 and message in done.stderr and not files
    else:
        assert done.returncode == 0, done.stderr[-2000:]
        assert files and all(store.head(file)["cell"]["rungs"] == "losses" for file in files)


def test_called_from_another_folder_a_chapter_says_where_to_call_it(tmp_path):
    command = [sys.executable, "-m", "papermill", ROOT / "chapters" / "status.ipynb", tmp_path / "out.ipynb"]
    bare = {name: value for name, value in environment(tmp_path).items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, encoding="utf-8")
    assert done.returncode != 0 and "Start papermill in the top folder of the book" in done.stderr


def test_chapters_are_committed_clean():
    for chapter in CHAPTERS:
        notebook = json.loads(chapter.read_text(encoding="utf-8"))
        code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
        assert notebook["metadata"]["kernelspec"]["name"] == "python3", chapter.name
        assert not any(c["outputs"] or c["execution_count"] for c in code), chapter.name
        nbformat.validate(nbformat.read(chapter, 4))
