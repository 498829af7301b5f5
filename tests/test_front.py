"""The front page's pictures, and its link to Colab."""

import itertools
import json
import os
import re
import sys
from pathlib import Path

import nbclient
import nbformat
import pandas as pd
import pytest
import yaml

from chapters.intro import front_figures
from lib import ROOT
from lib.claims import front
from lib.claims.claim import FOR, UNDECIDED, Claim, Group

PAGES = "intro.md", "chapters/answers.ipynb", "chapters/sheet.ipynb"


def fact(effect, n, name="MLP on digits, SGD", verdict=FOR):
    return Group(name, effect, 0.9 * effect, 1.1 * effect, n, verdict=verdict)


def test_facts_are_of_networks_of_three_searches_and_of_clear_noise_scales(monkeypatch):
    monkeypatch.setattr(front, "one_run", pd.DataFrame)
    ratios = pd.DataFrame({"ratio": [2.0, 4.5]})
    monkeypatch.setattr(front, "pruned_over_dense", lambda: ratios)
    far = fact(0.5, 5, "Simple-CNN on MNIST, momentum", UNDECIDED)
    groups = {
        "S7": [fact(2.0, 3), fact(10.6, 1)],
        "M1": [fact(0.8, 1), fact(1.2, 1), far],
    }
    facts = front.facts({key: planted(key, found) for key, found in groups.items()})
    assert facts["momentum"] == "2" and facts["pruned"] == "2 to 4.5"
    assert facts["noise"] == "0.80 to 1.2" and facts["noise_data"] == ["digits"]
    assert facts["noise_unclear"] == ["0.50 (0.45–0.55) with Simple-CNN on MNIST, momentum"]
    assert facts["fastest"] is facts["cheapest"] is None
    pages = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
    for name in facts:
        shared = [page for page in pages if re.search(rf"\b{name}\b[^{{]*}}}}", page)]
        assert len(shared) > 1, f"{name} is no fact of several pages"


def planted(key, groups):
    return Claim(key, "", "", "", "", "", "above", 1.05, groups=tuple(groups))


def test_panels_are_of_curves_long_enough_and_mark_the_critical_batch_size_where_it_is_known():
    """Six batch sizes of one network with two methods, and three of another."""
    cnn, sizes = "mnist-simple-cnn", [4, 16, 64, 256, 1024, 4096]
    rows = [(cnn, way, size) for way in ("sgd", "momentum") for size in sizes]
    rows += [("mnist-fc-128x3", "sgd", size) for size in sizes[:3]]
    points = pd.DataFrame(rows, columns=["workload", "algorithm", "batch_size"])
    points = points.assign(network=points.workload, sparsity=0.0, steps=1000 / points.batch_size)
    critical = pd.DataFrame({"algorithm": ["sgd", "momentum"], "identified": [True, False]})
    critical = critical.assign(workload=cnn, sparsity=0.0, critical=100.0)
    drawn = front_figures.every_curve(points, critical).to_dict()
    (rows,) = drawn["datasets"].values()
    sgd, momentum = "Simple-CNN on MNIST, SGD", "Simple-CNN on MNIST, momentum"
    assert drawn["facet"]["sort"] == [sgd, momentum]
    assert [(row["panel"], row["told"]) for row in rows if row["told"]] == [(sgd, "100")]


def test_colab_is_linked_to_where_the_repository_is_known(monkeypatch, tmp_path):
    about = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    notebook = json.loads((ROOT / front_figures.COLAB).read_text(encoding="utf-8"))
    assert f'repository = "{about["url"]}"' in "".join(notebook["cells"][1]["source"])
    assert bool(front_figures.colab()) == ("github.com" in about["url"])
    monkeypatch.setattr(front_figures, "ROOT", tmp_path)
    text = "repository: {url: 'https://github.com/a/b', branch: main}"
    (tmp_path / "_config.yml").write_text(text, encoding="utf-8")
    here = "https://colab.research.google.com/github/a/b/blob/main/binder/colab.ipynb"
    assert front_figures.colab() == here


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no clone")
def test_the_notebook_for_colab_clones_reruns_and_shows_a_chapter(monkeypatch, tmp_path):
    notebook = nbformat.read(ROOT / front_figures.COLAB, as_version=4)
    told = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    # Packages are there, and other tests run chapters
    instead = {
        f'"{told["url"]}"': f'"{ROOT.as_uri()}"',
        "%pip": "# %pip",
        ".ipynb -p": ".ipynb --prepare-only -p",
    }
    for cell, (plain, other) in itertools.product(notebook.cells, instead.items()):
        cell.source = cell.source.replace(plain, other)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": tmp_path}}).execute()
    rerun = nbformat.read(tmp_path / "book/_build/runs/out.ipynb", as_version=4)
    chosen = {"workload": "digits-cnn", "algorithm": "sgd"}
    assert rerun.metadata.papermill.parameters == chosen
    shown = [output.data["text/html"] for output in notebook.cells[-1].outputs if "data" in output]
    title = rerun.cells[0].source.splitlines()[0].removeprefix("# ")
    assert title in shown[-1]
