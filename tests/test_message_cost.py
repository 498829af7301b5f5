"""The cost of messages: the model's limits, and the model in the charts."""

import math

import altair as alt
import pandas as pd
import pytest
import vl_convert as vlc

from chapters.operator_cost import links
from lib.page import vega


def test_one_worker_sends_nothing_and_the_ring_tends_to_twice_the_gradient():
    assert links.ring(1, 1e6, 1e9, 1e-3) == links.gather(1, 1e3, 1e9, 1e-3) == 0
    assert links.ring(10_000, 1e9, 1e9, 0) == pytest.approx(2 * 4, rel=1e-3)
    assert links.ring(16, 1e6, float("inf"), 1e-4) == pytest.approx(30e-4)
    assert links.gather(16, 1e3, float("inf"), 1e-4) == pytest.approx(3 * 4e-4)


def test_pairs_move_fewer_bytes_below_a_density_of_one_over_the_workers(workers=16):
    density = 1 / workers
    for factor, cheaper in ((0.9, True), (1.1, False)):
        pairs = links.gather(workers, factor * density * 1e6, 1e9, 0)
        assert bool(pairs < links.ring(workers, 1e6, 1e9, 0)) is cheaper


def test_the_charts_compute_the_same():
    case = {"workers": 16, "d": 2e6, "elements": 2e3, "bandwidth": 1.25e9, "latency": 5e-5}
    chart = alt.Chart(pd.DataFrame({"at": [0]})).mark_point()
    chart = chart.transform_calculate(**{n: e.format(**case) for n, e in links.EXPRESSIONS.items()})
    spec = chart.encode(x="ring:Q", y="gather:Q").to_json()
    compiled = vlc.vegalite_to_vega(spec, vl_version=vega.VEGALITE)
    formulas = {t["as"]: t["expr"] for d in compiled["data"] for t in d.get("transform", []) if t["type"] == "formula"}
    names = {"log": math.log, "LN2": math.log(2)}
    own = {k: v for k, v in case.items() if k != "elements"}
    assert eval(formulas["ring"], {}, names) == pytest.approx(links.ring(**own))
    own = {k: v for k, v in case.items() if k != "d"}
    assert eval(formulas["gather"], {}, names) == pytest.approx(links.gather(**own))
