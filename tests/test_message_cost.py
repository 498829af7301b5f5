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


@pytest.mark.parametrize("cost", [links.ring, links.gather])
@pytest.mark.parametrize(("bandwidth", "latency", "message"), [(0, 0, "bandwidth: 0 "), (1e9, -1e-5, "latency: -1e-05 ")])
def test_a_link_that_cannot_be_is_refused(cost, bandwidth, latency, message):
    with pytest.raises(ValueError, match=message):
        cost(16, 1e6, bandwidth, latency)


@pytest.mark.parametrize("workers", [2, 16, 256])
def test_pairs_move_fewer_bytes_below_a_density_of_one_over_the_workers(workers):
    density = 1 / workers
    for factor, cheaper in ((0.9, True), (1.1, False)):
        pairs = links.gather(workers, factor * density * 1e6, 1e9, 0)
        assert bool(pairs < links.ring(workers, 1e6, 1e9, 0)) is cheaper


def test_rebuilding_is_what_the_exchange_takes_for_longer_vectors():
    real = pd.DataFrame({"workers": [2, 2, 4, 2], "what": ["pairs", "pairs", "pairs", "all-reduce"],
                         "d": [1000, 3000, 9000, 9000], "seconds": [0.5, 2.5, 90.0, 90.0]})  # fmt: skip
    assert links.rebuilding(real) == pytest.approx(2 / 2000)
    assert math.isnan(links.rebuilding(real[2:])) and math.isnan(links.rebuilding(pd.DataFrame()))


def test_feedback_is_what_a_worker_takes_beyond_the_choice():
    timed = pd.DataFrame({"compressor": ["top-k", "top-k", "rand-k"], "d": [1000, 4000, 4000], "seconds": [0.1, 0.5, 9.0]})
    fed = pd.DataFrame({"what": ["plain", "ours", "ours"], "workers": 16, "d": [4000, 4000, 1000], "seconds": [90.0, 40.0, 2.0]})
    assert links.keeping(fed, timed) == pytest.approx((40 / 16 - 0.5) / 4000)
    assert math.isnan(links.keeping(pd.DataFrame(), timed)) and math.isnan(links.keeping(fed, pd.DataFrame()))


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
