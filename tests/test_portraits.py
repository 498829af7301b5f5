"""Portraits of known distributions, and of a run."""


import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from chapters.gradients.claims import bell_shaped
from lib.probes import portraits


def scalars(u):
    told = portraits.describe(u)
    return told[told.x.isna()].set_index("measure").value


@pytest.mark.parametrize("name", ["normal", "laplace", "student"])
def test_the_nearest_distribution_is_the_one_it_was_drawn_from(name):
    r = np.random.default_rng(0)
    u = {"normal": r.normal(size=40_000), "laplace": r.laplace(size=40_000), "student": r.standard_t(3, size=40_000)}
    told = scalars(0.01 * u[name])
    assert told[name] == min(told["normal"], told["laplace"], told["student"]) or told[name] < 0.01
    others = {"normal", "laplace"} - {name}
    assert all(told[o] > 0.01 for o in others)
    if name == "student":
        assert 2.5 < told["freedom"] < 3.6


@pytest.mark.parametrize(
    "kind, bell",
    [("normal", True), ("logistic", True), ("uniform", False), ("two peaks", False), ("aside", False)],
)
def test_a_bell_has_one_peak_at_zero_and_is_not_flat(kind, bell):
    r = np.random.default_rng(0)
    normal = r.normal(size=50_000)
    vector = {
        "normal": normal, "logistic": r.logistic(size=50_000), "uniform": r.uniform(-1, 1, 50_000),
        "two peaks": normal + 1.5 * r.choice([-1, 1], 50_000), "aside": normal + 0.5,
    }[kind]  # fmt: skip
    table = portraits.describe(vector).assign(workload="w", compressor="top-k", density=0.001, feedback=True, step=1)
    shapes = portraits.shapes(table)
    assert len(shapes) == 1 and shapes.convex.between(0.5, 1).all()
    assert shapes.far.iloc[0] == pytest.approx(np.abs(vector).max() / vector.std(), rel=1e-6)
    assert bell_shaped(shapes).tolist() == [bell]


def test_the_tail_of_a_normal_vector_is_as_long_as_its_threshold_says():
    vector = np.random.default_rng(0).normal(size=200_000)
    at = {"workload": "w", "compressor": "top-k", "feedback": True}
    taken = pd.concat([portraits.describe(u).assign(step=step, **at) for step, u in enumerate((vector, vector.clip(-2.5, 2.5)))])
    for share in (0.1, 0.01, 0.001):
        found = portraits.beyond(taken, -ndtri(share / 2))
        assert found.iloc[0] == pytest.approx(share, rel=0.15) and (found.iloc[1] < 1e-9) == (share < 0.05)
