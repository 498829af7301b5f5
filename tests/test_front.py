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

MET = pd.DataFrame(
    {
        "trial": [0, 0, 1, 1, 2],
        "goal": [0.05, 0.02, 0.05, 0.02, 0.05],
        "step": [100, 900, 120, 500, 1500],
    }
)


def spec(text):
    """The specification of the chart in a page."""
    return json.loads(
        re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)[1]
    )


def test_a_search_shows_the_fewest_steps_to_its_hardest_goal():
    page = front_figures.one_search(MET, "One search.")
    _, lines, dot, words = spec(page)["layer"]
    assert words["encoding"]["text"]["value"] == "steps to result: 500"
    assert lines["encoding"]["detail"]["field"] == "trial"
    data = spec(page)["datasets"]
    assert data[dot["data"]["name"]] == {"trial": [1], "goal": [0.02], "step": [500]}
    assert len(data[lines["data"]["name"]]["step"]) == len(MET)


@pytest.fixture
def curves():
    """Six batch sizes of one network with two methods, and three of another."""
    sizes = [4, 16, 64, 256, 1024, 4096]
    rows = [
        ("mnist-simple-cnn", method, size, 1000 / size + 10)
        for method in ("sgd", "momentum")
        for size in sizes
    ]
    rows += [("mnist-fc-128x3", "sgd", size, 1000 / size + 10) for size in sizes[:3]]
    points = pd.DataFrame(rows, columns=["workload", "algorithm", "batch_size", "steps"])
    return points.assign(network=points.workload, sparsity=0.0)


def test_panels_are_of_curves_long_enough_and_mark_the_critical_batch_size_where_it_is_known(
    curves,
):
    known = {"workload": "mnist-simple-cnn", "sparsity": 0.0, "critical": 100.0}
    ways = {"sgd": True, "momentum": False}
    rows = [known | {"algorithm": name, "identified": whether} for name, whether in ways.items()]
    critical = pd.DataFrame(rows)
    drawn = front_figures.every_curve(curves, critical).to_dict()
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
    assert (
        front_figures.colab()
        == "https://colab.research.google.com/github/a/b/blob/main/binder/colab.ipynb"
    )


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
