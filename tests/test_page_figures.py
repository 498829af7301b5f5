"""What the figures of learning rates and of budgets draw: the rows they should, nothing at zero, no missing number in words."""

import math

import numpy as np
import pandas as pd
import pytest

from chapters.accuracy import budget_figures
from chapters.metaparameters import rate_figures


def drawn(chart):
    """The rows of every data set of a chart, and its parameters' values."""
    spec = chart.to_dict()
    return list(spec["datasets"].values()), {p["name"]: p.get("value") for p in spec["params"]}


def views(spec, data=None):
    """All single views of a specification, each with the name of its data, which a layer may have from the one around it."""
    name = spec.get("data", {}).get("name", data)
    return [v for part in spec["layer"] for v in views(part, name)] if "layer" in spec else [(spec, name)]


def no_gaps(chart):
    """Whether every field of every tooltip has a value in all rows of its view."""
    spec = chart.to_dict()
    told = [(name, t["field"]) for v, name in views(spec) for t in v["encoding"].get("tooltip", [])]
    values = [row[field] for name, field in told for row in spec["datasets"][name]]
    return bool(values) and all(v is not None and v == v for v in values)


@pytest.fixture
def best():
    """Two batch sizes and three budgets; one validation error is zero."""
    rows = [{"batch_size": b, "budget": 2**k, "validation": e, "low": e, "high": e, "test": 0.1, "noise": 0.02, "trials": 4,
             "learning_rate": 0.1} for b in (1, 64) for k, e in ((4, 0.5), (5, 0.2), (6, 0.0 if b == 64 else 0.1))]  # fmt: skip
    return pd.DataFrame(rows)


def test_budgets_open_at_their_largest_and_keep_zero_off_the_logarithm(best):
    chart = budget_figures.errors(best, "budget", "steps", "value")
    tables, values = drawn(chart)
    assert values["budget_place"] == 2
    rows = pd.DataFrame(next(t for t in tables if "error" in t[0]))
    zero = rows[rows.error == 0]
    assert len(rows) == 12 and len(zero) == 1 and zero["at"].item() == rows.error[rows.error > 0].min() / 2
    assert (rows[["at", "lower", "upper"]] > 0).all(axis=None)
    assert np.allclose(rows["at"][rows.error > 0], rows.error[rows.error > 0]) and no_gaps(chart)


@pytest.fixture
def costs():
    """A rule that takes 1.5 times the tuned steps, retraining apart, and one that misses the goal."""
    row = {"network": "n", "batch_size": 64, "least": 80.0, "middle": 120.0, "most": math.inf}
    lost = {"rule": "no change", "least": 90.0, "middle": math.inf, "over": math.inf, "beyond": math.inf}
    return pd.DataFrame([{**row, "rule": "linear rule", "over": 3.0, "beyond": 1.5}, {**row, **lost}])


def test_bars_of_a_rule_are_in_units_of_the_tuned_steps_and_a_miss_is_no_point(costs):
    chart = rate_figures.rule_costs(costs, "n", 20_000)
    tables, _ = drawn(chart)
    met = [r for t in tables for r in t if "beyond" in r]
    missed = [r for t in tables for r in t if "told" in r]
    assert [r["rule"] for r in met] == ["linear rule"] and [r["rule"] for r in missed] == ["no change"]
    assert met[0]["low"] == pytest.approx(1.0) and met[0]["high"] == pytest.approx(2.25)  # cut where crosses begin
    assert missed[0]["at"] > met[0]["high"] and no_gaps(chart)
    assert "No records" in str(rate_figures.rule_costs(costs[1:], "n", 20_000).to_dict())


def test_a_map_tells_which_settings_never_reach_the_goal():
    rows = pd.DataFrame({"batch_size": [1, 64], "trial": 0, "learning_rate": [1e-3, 0.5], "slowness": 0.05, "kind": "fixed steps",
                         "outcome": ["reached the goal", "did not"], "steps": [1500, np.nan], "within": 2000})  # fmt: skip
    chart = rate_figures.outcomes(rows, 64)
    tables, values = drawn(chart)
    shown = next(t for t in tables if "told" in t[0])
    assert [r["told"] for r in shown] == ["1,500", "not reached"] and values["batch_size_place"] == 1
    assert shown[0]["momentum"] == pytest.approx(0.95) and no_gaps(chart)
