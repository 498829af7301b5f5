"""Frameworks in time: the link's share, time to the goal, and the link at which two processes pay."""

import math

import altair as alt
import pandas as pd
import pytest
import vl_convert as vlc

from chapters.frameworks import framework_costs, framework_figures
from chapters.operator_cost import links
from lib.page import vega

TIMES = pd.DataFrame({
    "workload": "digits-cnn", "algorithm": "adam", "batch_size": [64] * 3 + [256] * 3, "system": ["one", "ddp", "sparse"] * 2,
    "seconds": [4.0, 3.0, 5.0, 9.0, 5.0, 1.0], "waits": [0, 2, 3] * 2, "sent": [0.0, 400.0, 40.0] * 2,
})  # fmt: skip
POINTS = pd.DataFrame({
    "workload": "digits-cnn", "algorithm": "adam", "batch_size": [64, 256, 1024], "goal": 0.04, "steps": [30.0, 10.0, 8.0],
    "low": [25.0, 9.0, 7.0], "high": [33.0, 12.0, 9.0],
})  # fmt: skip
LINK = {"latency": 0.25, "bandwidth": 100.0}


def test_data_parallelism_pays_for_its_link_what_a_ring_does():
    more = framework_costs.step_seconds(TIMES, **LINK) - TIMES.seconds
    assert more[0] == 0 and more[1] == pytest.approx(links.ring(2, 100, 100.0, 0.25))
    assert framework_costs.step_seconds(TIMES).equals(TIMES.seconds), "no link, no time"


def test_sparse_messages_are_never_called_the_fastest():
    goals = framework_costs.to_goal(POINTS, TIMES)
    assert goals.loc[goals.time.idxmin()].system == "sparse"
    best = framework_costs.fastest(goals)
    assert (best.system, best.batch_size, best.time) == ("ddp", 256, 50)
    assert framework_costs.fastest(framework_costs.to_goal(POINTS, TIMES, latency=100.0)).system == "one"
    with pytest.raises(ValueError, match="goals: no row"):
        framework_costs.fastest(goals[goals.system == "sparse"])


def test_over_the_slowest_link_that_pays_both_take_as_long():
    even = framework_costs.breaks_even(TIMES)
    assert even.bandwidth[[0, 2]].isna().all() and even.latency[[0, 2]].isna().all()
    for i in (1, 4, 5):
        one = TIMES.seconds[0 if i < 3 else 3]
        assert framework_costs.step_seconds(TIMES, bandwidth=even.bandwidth[i])[i] == pytest.approx(one)
        assert framework_costs.step_seconds(TIMES, latency=even.latency[i])[i] == pytest.approx(one)
    assert framework_costs.over_one(TIMES).tolist() == pytest.approx([1, 0.75, 1.25, 1, 5 / 9, 1 / 9])
    assert framework_costs.over_one(TIMES[1:3]).isna().all()


def test_the_chart_computes_the_same_and_begins_where_it_is_told():
    start = {"latency": 0.001, "bandwidth": 3e6}
    goals = framework_costs.to_goal(POINTS, TIMES).assign(curve="a")
    names = [framework_costs.NAMES[name] for name in ("one", "ddp", "sparse")]
    chart = framework_figures.to_goal(goals, framework_costs.EXPRESSION, start, "a", names, names[-1])
    parameters = {p.name: p for p in chart.params}
    assert {"latency_at", "bandwidth_at", "curve_chosen"} <= set(parameters)
    assert sorted({*framework_figures.BANDWIDTHS, 3e6})[parameters["bandwidth_at"].value] == 3e6
    row = goals.iloc[1]
    alone = alt.Chart(pd.DataFrame([row])).mark_point().encode(x="step:Q")
    spec = alone.transform_calculate(step=framework_costs.EXPRESSION.format(**start)).to_json()
    compiled = vlc.vegalite_to_vega(spec, vl_version=vega.VEGALITE)
    (formula,) = [t["expr"] for d in compiled["data"] for t in d.get("transform", []) if t.get("as") == "step"]
    found = eval(formula.replace("datum.", "row."), {}, {"row": row, "log": math.log})
    assert found == pytest.approx(framework_costs.step_seconds(TIMES, **start)[1])
