"""The page for newcomers names what exists, its examples run, and a chapter is one folder."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys

import nbformat
import pandas as pd

from lib import ROOT
from lib.measuring import sweeps
from lib.records import selection
from tests.test_chapters import papermill

PAGE = (ROOT / "chapters" / "how_the_code_works.md").read_text(encoding="utf-8")
WALK = PAGE.partition("## Add a training method")[0]
# A line such as "- `lib/studies/search.py`: `Search`", as (path, names), in the page's order.
LINES = [
    (path, re.findall(r"`([^`]+)`", names))
    for path, names in re.findall(r"^- `([^`]+)`(.*)$", WALK, re.M)
]
# An example's place, given by its first line, and its text.
EXAMPLES = {
    place: f"# {place}\n{text}"
    for place, text in re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE, re.M | re.S)
}
METHOD, WORKLOAD = "chapters/own/unit_sgd.py", "chapters/own/odd_digits.py"
CLAIMS, EXPERIMENTS = "chapters/large_batches/claims.py", "chapters/large_batches/experiments.py"
NOTEBOOK = "chapters/large_batches.ipynb"


def test_every_path_that_the_page_names_exists_or_is_an_example():
    paths = set(re.findall(r"[\w./-]+/[\w.-]+\.(?:py|ipynb|json|md)\b", PAGE))
    paths.discard("_build/runs/out.ipynb")
    assert len(paths) > 25
    assert {path for path in paths if not (ROOT / path).exists()} == set(EXAMPLES)


def test_every_name_of_the_walk_is_defined_where_it_says():
    for path, names in LINES:
        source = (ROOT / path).read_text(encoding="utf-8")
        for name in names:
            defined = rf"^ *(def|class) {name.rpartition('.')[2]}\b|^{name}\b.* = "
            assert path.endswith(".ipynb") or re.search(defined, source, re.M), (path, name)
    assert WALK.count("\n### ") == 10


def test_the_method_of_the_page_learns_the_workload_of_the_page(write, tmp_path):
    method, name = write(EXAMPLES[METHOD], "m.py"), write(EXAMPLES[WORKLOAD], "w.py")
    method, name = method.replace("task", "unit_sgd"), name.replace("task", "odd_digits")
    study = selection.grid(name, [64], [method], [0.0, 0.9], trials=8, hits=1, max_steps=300)
    frame = sweeps.results(study, "full", folder=tmp_path / "data")
    assert (frame.groupby("sparsity").best_error.min() < 0.2).all(), "chance is 0.5"
    records = [file.relative_to(tmp_path / "data") for file in tmp_path.rglob("*.csv")]
    assert {record.parts[0] for record in records} == {"own"} and (frame.goal == 0.05).all()


REGISTERED = """
import dataclasses, json, lib
from lib.__main__ import gathered
from lib.claims.judging import registered

about = {key: dataclasses.asdict(claim) for key, claim in registered().items()}
about |= {name: {"chapter": "", "help": run.help} for name, run in gathered().items()}
print(json.dumps([about, lib.SOURCE]))
"""


def copy(folder):
    """Copy the book's code, notebooks and plan, without records, into a folder; returns it."""
    left_out = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in ("lib", "chapters"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    (folder / "data").mkdir()
    shutil.copy(ROOT / "data/studies.yaml", folder / "data")
    return folder


def called_in(tree, *arguments):
    """What a new process in the copy prints."""
    shell = {"cwd": tree, "env": {**os.environ, "PYTHONPATH": str(tree)}, "encoding": "utf-8"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, **shell)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def registered_in(tree):
    """The copy's claims and experiments, by name, and the digest of its measuring code."""
    return json.loads(called_in(tree, "-c", REGISTERED))


def add_chapter(tree):
    """The page's chapter, added by hand as the page says: one cell of the notebook per # %%."""
    (tree / CLAIMS).parent.mkdir()
    for place in (CLAIMS, EXPERIMENTS):
        (tree / place).write_text(EXAMPLES[place], encoding="utf-8")
    parts = EXAMPLES[NOTEBOOK].split("# %%\n")[1:]
    cells = [nbformat.v4.new_code_cell(part.strip()) for part in parts]
    cells[1].metadata["tags"] = ["parameters"]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), tree / NOTEBOOK)


SIDE = "disputed", "other_networks", "other_workers"


def test_chapters_come_and_go_with_their_folders(tmp_path):
    """The page's chapter is added and all side studies are removed: nothing else changes."""
    tree = copy(tmp_path)
    before, code_before = registered_in(tree)
    files = [importlib.import_module(f"chapters.{side}.experiments") for side in SIDE]
    of_sides = {name for file in files for name in file.EXPERIMENTS}
    of_sides |= {key for key, about in before.items() if about["chapter"] in SIDE}
    for side in SIDE:
        shutil.rmtree(tree / "chapters" / side)
        (tree / "chapters" / f"{side}.ipynb").unlink()
    add_chapter(tree)
    after, code_after = registered_in(tree)
    assert after.pop("S99")["chapter"] == "large_batches" and after.pop("fresh-losses")
    assert after == {key: about for key, about in before.items() if key not in of_sides}
    assert code_after == code_before
    called_in(tree, "-m", "lib", "run", "fresh-losses")
    (file,) = (tree / "data" / "fresh-losses").iterdir()
    losses = pd.read_csv(file, skiprows=1).loss
    assert len(losses) == 20 and 2.2 < losses.mean() < 3.5, "ln 10, of ten equal chances, or more"


def test_the_chapter_of_the_page_is_made_of_its_records(tmp_path):
    """As papermill runs it, with the records of one network and no other chapter's folder."""
    tree = copy(tmp_path)
    for folder in (tree / "chapters").iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    add_chapter(tree)
    place = "data/digits/digits-mlp"
    shutil.copytree(ROOT / place, tree / place)
    done = papermill(tree, "large_batches")
    assert done.returncode == 0, done.stderr[-2000:]
    shown = json.dumps(nbformat.read(tree / "out.ipynb", 4))
    assert "vl-chart" in shown and "6 of 6 searches" in shown
    assert re.search(r"SGD takes \d\.\d times", shown)
