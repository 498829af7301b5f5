"""The front page's pictures, and its link to Colab."""

import json
import re

import pandas as pd
import yaml

from lib import ROOT
from lib.page import front

MET = pd.DataFrame({"trial": [0, 0, 1, 1, 2], "goal": [0.05, 0.02, 0.05, 0.02, 0.05], "step": [100, 900, 120, 500, 1500]})


def test_a_search_shows_the_fewest_steps_to_its_hardest_goal():
    page = front.one_search(MET, "One search.")
    assert "steps to result: 500" in page and page.count("<polyline") == 3
    winner = re.findall(r'points="([^"]+)"[^>]*stroke-width="2.6"', page)
    assert len(winner) == 1 and len(winner[0].split()) == 2


def test_colab_is_linked_to_where_the_repository_is_known(monkeypatch, tmp_path):
    about = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    notebook = json.loads((ROOT / front.COLAB).read_text(encoding="utf-8"))
    assert f'repository = "{about["url"]}"' in "".join(notebook["cells"][1]["source"])
    assert bool(front.colab()) == ("github.com" in about["url"])
    monkeypatch.setattr(front, "ROOT", tmp_path)
    text = "repository: {url: 'https://github.com/a/b', branch: main}"
    (tmp_path / "_config.yml").write_text(text, encoding="utf-8")
    assert front.colab() == "https://colab.research.google.com/github/a/b/blob/main/binder/colab.ipynb"
