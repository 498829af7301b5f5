"""Figures on sparse networks: intervals without a bound stay on the page, and marks say in words what they are."""

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
