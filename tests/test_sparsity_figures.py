"""Figures on sparse networks: intervals without a bound stay on the page, and marks say in words what they are."""

import json
import math

import pandas as pd

from lib.page import charts, sparsity_figures


def rows(**changed):
    """Two ratios on one network."""
    columns = {"row": "MLP on digits", "label": ["SGD", "momentum"], "algorithm": ["sgd", "momentum"], "sizes": 11,
               "ratio": [0.5, 2.0], "ratio_low": [0.25, 1.0], "ratio_high": [1.0, 4.0]}  # fmt: skip
    return pd.DataFrame({**columns, **changed})


def drawn(frame, **options):
    return sparsity_figures.ratios(frame, "ratio", charts.by_algorithm(["sgd", "momentum"]), **options).to_dict()


def values(spec):
    """All rows that a chart carries."""
    return [row for data in spec["datasets"].values() for row in data]


def scales(spec):
    """The horizontal scales of all layers."""
    return [layer["encoding"]["x"]["scale"] for layer in spec["layer"] if "scale" in layer["encoding"]["x"]]


def test_an_interval_without_a_bound_is_cut_at_the_edge_and_told_whole():
    spec = drawn(rows(ratio_low=[0.0, 1.0], ratio_high=[math.inf, 4.0]), beyond=4)
    shown = next(row for row in values(spec) if row.get("label") == "SGD")
    assert (shown["ratio_low"], shown["ratio_high"]) == (0.5 / 4, 2.0 * 4)
    assert shown["interval"] == "0–∞" and shown["estimate"] == 0.5
    assert {tuple(scale["domain"]) for scale in scales(spec)} == {(0.125, 8.0)}


def test_every_layer_shares_the_scale_of_the_ratios():
    spec = drawn(rows(effect=object()), lines=(1, 2))
    assert len(spec["layer"]) == 3 and len({json.dumps(scale, sort_keys=True) for scale in scales(spec)}) == 1
    assert {"at": 2} in values(spec) and not any("effect" in row for row in values(spec))


def test_without_pairs_a_sentence_stands_in():
    assert "No two curves" in json.dumps(drawn(rows()[:0]))


def test_a_point_without_draws_has_no_interval_in_words():
    frame = pd.DataFrame({"x_low": [1.0, math.nan], "x_high": [2.0, math.nan]})
    assert sparsity_figures.intervals(frame, "x") == ["1–2", "—"]


def test_tooltips_are_in_words():
    curves = pd.DataFrame({
        "sparsity": [0.0, 0.9], "batch_size": 64, "relative": [1.0, 4.0], "relative_low": [1.0, 3.0],
        "relative_high": [1.0, 5.0], "steps": [50.0, 200.0], "replicates": 11, "curve": "MLP",
    })  # fmt: skip
    text = json.dumps(sparsity_figures.relative(curves, charts.menu("curve", ["MLP"], "MLP", "network")).to_dict())
    tips = [tip for part in text.split('"tooltip": ')[1:] for tip in json.JSONDecoder().raw_decode(part)[0]]
    assert len(tips) >= 5 and all(tip["title"] and "_" not in tip["title"] for tip in tips)
