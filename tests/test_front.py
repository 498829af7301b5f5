"""The front page's pictures, and its link to Colab."""

import dataclasses
import json
import math
import os
import re
import sys
from pathlib import Path

import nbclient
import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.optimize import curve_fit

from chapters.intro import front_figures, one_curve
from chapters.sheet import decide
from lib import ROOT
from lib.claims import front
from lib.claims.claim import NO, UNCLEAR, YES, Claim, Group
from lib.page import charts, vega


def fact(effect, n, name="MLP on digits, SGD", verdict=YES):
    return Group(name, effect, 0.9 * effect, 1.1 * effect, n, verdict=verdict)


def test_facts_are_of_networks_of_three_searches_and_of_bounded_noise_scales(monkeypatch):
    monkeypatch.setattr(front, "one_run", pd.DataFrame)
    ratios = pd.DataFrame({"ratio": [2.0, 4.5]})
    monkeypatch.setattr(front, "pruned_over_dense", lambda: ratios)
    far = Group("Simple-CNN on MNIST, momentum", 0.5, 0.1, math.inf, 5)
    judged = {
        "S7": planted("S7", [fact(2.0, 3), fact(10.6, 1)]),
        "M1": planted("M1", [fact(0.8, 1), fact(1.2, 1), far]),
        "L3": planted("L3", [fact(1.5, 3)]),  # its rule is about the least certain batch size
    }
    facts = front.facts(judged)
    assert front_figures.answers(judged["L3"])["effects"] == "2 to 4.5 times"
    assert facts["momentum"] == "2" and facts["pruned"] == "2 to 4.5"
    assert facts["noise"] == "0.80 to 1.2" and facts["noise_on"] == ["MLP on digits"]
    assert facts["fastest"] is facts["cheapest"] is None


def planted(key, groups):
    return Claim(key, "", "", "", "", groups=tuple(groups), threshold=1.05)


def test_the_table_tells_the_papers_networks_from_ours():
    groups = [fact(2.0, 3), fact(1.5, 5, verdict=NO), fact(1.8, 4, verdict=UNCLEAR)]
    paper_groups = [dataclasses.replace(group, theirs=True) for group in groups[:1]]
    mixed = planted("S7", [*paper_groups, *groups[1:]])
    words = {"word": "yes", "effects": "1.5 to 2 times", "theirs": "1 yes", "ours": "1 no, 1 unclear"}
    assert front_figures.answers(mixed) == words
    assert front_figures.answers(planted("S9", groups[2:]))["theirs"] == "not tested"
    judged = {"S7": mixed, "S9": planted("S9", groups[1:2])}
    assert front_figures.counted(judged) == "1 yes, 1 no"
    page = front_figures.papers({"<b>A</b>": [mixed], "B": []})
    assert page.count("<tr>") == 2 and "claims.html#claim-S7" in page and "<b>A</b>" in page


def planted_points():
    """Two networks whose curves have exactly the form, and a pruned one that is off by a third."""
    curves = [("digits-mlp", "sgd", 0.0, 40.0, 20.0), ("mnist-fc-128x3", "adam", 0.0, 160.0, 400.0)]
    curves += [("digits-mlp", "sgd", 0.9, 60.0, 90.0)]
    rows = [(*curve, size) for curve in curves for size in (4, 16, 64, 256)]
    columns = ["workload", "algorithm", "sparsity", "at", "level", "batch_size"]
    points = pd.DataFrame(rows, columns=columns).assign(pruning="grasp", goal=0.1, replicates=3)
    value = points.level * (1 + points["at"] / points.batch_size)
    value = value.where(points.sparsity == 0, value * 4 / 3)
    return one_curve.steps(points.assign(value=value))


def shown(points, **params):
    """What a chart of these points draws with these control settings."""
    charts.enable()
    spec = one_curve.one_curve(points).properties(description="curves").to_dict()
    for param in spec["params"]:
        param["value"] = params.get(param["name"], param.get("value"))
        param.pop("value") if "expr" in param else None
    return vega.picture(vega.tidy(spec))


def dots(svg, colour):
    """Positions of the curves' symbols, in pixels, in their order."""
    mark = rf'<path [^>]*translate\(([\d.,-]+)\)[^>]*fill="{colour}"[^>]*opacity="0.85"'
    marks = re.findall(mark, svg.partition("role-legend")[0])
    return [tuple(map(float, mark.split(","))) for mark in marks]


def test_a_slider_moves_every_curve_onto_one():
    """C is 40 and 160, and each batch size is four times the last: once moved, points coincide."""
    dense = planted_points().query("sparsity == 0")
    colours = charts.ALGORITHM_COLOURS["sgd"], charts.ALGORITHM_COLOURS["adam"]
    raw = np.array([dots(shown(dense, together=0), colour) for colour in colours])
    assert (raw[0, :, 0] == raw[1, :, 0]).all(), "batch sizes as they are"
    assert (raw[0, :, 1] > raw[1, :, 1]).all(), "fewer steps lie lower"
    moved = [dots(shown(dense, together=1), colour) for colour in colours]
    assert np.allclose(moved[0][:3], moved[1][1:], atol=0.2)
    counts = [len(dots(shown(planted_points(), pruned=p), colours[0])) for p in (False, True)]
    assert counts == [4, 8], "pruned networks are shown when they are ticked"


def test_shares_count_points_near_their_curve():
    values = one_curve.findings(planted_points())
    assert values["curves"] == 2 and values["all_points"] == 12
    assert values["fifth"] == values["half"] == values["all_half"] == "100\u00a0%"
    assert values["all_fifth"] == "67\u00a0%"


def test_the_readers_diamond_is_that_of_the_sheet():
    best = decide.decide([(1, 0.4001), (1000, 0.5)], 500)
    svg = shown(planted_points(), C="500", a="0.4", b="0.0001")
    assert "your batch" in svg and "your batch" not in shown(planted_points())
    spec = one_curve.one_curve(planted_points()).to_dict()
    formulas = {p["name"]: p.get("expr", "").partition(" ? ")[2] for p in spec["params"]}
    job = {"C": 500.0, "a": 0.4, "b": 0.0001, "sqrt": math.sqrt}
    size, reach = (eval(formulas[name].rpartition(" : ")[0], job) for name in ("best", "reach"))
    ends = size, size / reach, size * reach
    assert ends == pytest.approx((best.best, best.low, best.high), rel=1e-3)


def test_learning_rates_are_drawn_the_same_way_where_there_are_any():
    rates = pd.DataFrame({"batch_size": [4, 30, 256], "eta_inf": 0.5, "b_eta": 30.0, "n": 3, "sparsity": 0.0})
    about = {"workload": "digits-mlp", "algorithm": "sgd", "network": "MLP on digits"}
    rates = one_curve.rates(rates.assign(rate=0.5 / (1 + 30 / rates.batch_size), **about))
    assert rates.off.tolist() == pytest.approx([1, 1, 1])
    points = pd.concat([planted_points(), rates])
    assert "paid for" in shown(points)
    picture = shown(points, quantity="learning rates")
    assert "grows with" in picture and "paid for" not in picture


def test_every_curve_on_record_is_read_at_the_numbers_fitted_to_it():
    """An independent fit of c2 (1 + C/B) to ln K of complete curves, by scipy."""
    points = front.collapsed()
    points = points[points.algorithm == "muon"]
    assert len(points) > 20
    for _, curve in points.groupby(["workload", "sparsity", "pruning"]):
        form = lambda b, level, at: level + np.logaddexp(0, at - np.log(b))  # noqa: E731
        fitted, _ = curve_fit(form, curve.batch_size.astype(float), np.log(curve.value), p0=(2, 4))
        numbers = curve[["level", "at"]].iloc[0].tolist()
        assert np.exp(fitted) == pytest.approx(numbers, rel=0.02)


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
    url = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]
    for cell in notebook.cells:
        source = cell.source.replace(f'"{url}"', f'"{ROOT.as_uri()}"').replace("%pip", "# %pip")
        # Packages are installed; other tests run chapters
        cell.source = source.replace(".ipynb -p", ".ipynb --prepare-only -p")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": tmp_path}}).execute()
    rerun = nbformat.read(tmp_path / "book/_build/runs/out.ipynb", as_version=4)
    chosen = {"workload": "digits-cnn", "algorithm": "sgd"}
    assert rerun.metadata.papermill.parameters == chosen
    shown = [output.data["text/html"] for output in notebook.cells[-1].outputs if "data" in output]
    title = rerun.cells[0].source.splitlines()[0].removeprefix("# ")
    assert title in shown[-1]
