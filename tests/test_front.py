"""The front page's pictures, and its link to Colab."""

import json
import re

import pandas as pd
import pytest
import yaml

from lib import ROOT
from lib.page import front

MET = pd.DataFrame({"trial": [0, 0, 1, 1, 2], "goal": [0.05, 0.02, 0.05, 0.02, 0.05], "step": [100, 900, 120, 500, 1500]})


def test_a_search_shows_the_fewest_steps_to_its_hardest_goal():
    page = front.one_search(MET, "One search.")
    assert "steps to result: 500" in page and page.count("<polyline") == 3
    winner = re.findall(r'points="([^"]+)"[^>]*stroke-width="2.6"', page)
    assert len(winner) == 1 and len(winner[0].split()) == 2


@pytest.fixture
def curves():
    """Six batch sizes of one network with two methods, and three of another."""
    sizes = [4, 16, 64, 256, 1024, 4096]
    rows = [("mnist-simple-cnn", method, size, 1000 / size + 10) for method in ("sgd", "momentum") for size in sizes]
    rows += [("mnist-fc-128x3", "sgd", size, 1000 / size + 10) for size in sizes[:3]]
    points = pd.DataFrame(rows, columns=["workload", "algorithm", "batch_size", "steps"])
    return points.assign(network=points.workload, sparsity=0.0)


def test_panels_are_of_curves_long_enough_and_mark_the_critical_batch_size_where_it_is_known(curves):
    known = {"workload": "mnist-simple-cnn", "sparsity": 0.0}
    critical = pd.DataFrame([{**known, "algorithm": "sgd", "critical": 100.0, "identified": True},
                             {**known, "algorithm": "momentum", "critical": 100.0, "identified": False}])  # fmt: skip
    page = front.panels(curves, critical, "x.html")
    assert page.count("<svg") == 2 and "FC-128" not in page
    assert page.count("stroke-dasharray") == 1 and ">100</text>" in page


def test_colab_is_linked_to_where_the_repository_is_known(monkeypatch, tmp_path):
    about = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    notebook = json.loads((ROOT / front.COLAB).read_text(encoding="utf-8"))
    assert f'repository = "{about["url"]}"' in "".join(notebook["cells"][1]["source"])
    assert bool(front.colab()) == ("github.com" in about["url"])
    monkeypatch.setattr(front, "ROOT", tmp_path)
    text = "repository: {url: 'https://github.com/a/b', branch: main}"
    (tmp_path / "_config.yml").write_text(text, encoding="utf-8")
    assert front.colab() == "https://colab.research.google.com/github/a/b/blob/main/binder/colab.ipynb"
