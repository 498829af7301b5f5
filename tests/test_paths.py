"""Paths: exact geometry of quadratics, random walks that must be as theory says, and laws planted and found again."""


import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from chapters.paths import path_geometry
from lib.engine.training_state import Trials
from lib.measuring import sweeps
from lib.methods import method
from lib.probes import paths, trained_again, walking
from lib.studies.cells import Cell
from lib.studies.study import Study

SIZES = (4, 16, 64, 256, 1024)


def test_on_a_quadratic_both_constants_lie_between_the_least_and_the_largest_curvature():
    random = torch.Generator().manual_seed(0)
    curvature, end = torch.linspace(0.5, 8, 30), torch.randn(30, generator=random)
    for _ in range(20):
        w = end + torch.randn(30, generator=random)
        found = walking.toward(curvature * (w - end), w, end)
        assert 0.5 <= found["secant"] <= found["bound"] <= 8
        assert found["cosine"] == pytest.approx(found["secant"] / found["bound"])
        assert found["cosine"] >= 2 * (0.5 * 8) ** 0.5 / 8.5  # Kantorovich's inequality
    steepest = end + F.one_hot(torch.tensor(29), 30)
    assert walking.toward(curvature * (steepest - end), steepest, end)["secant"] == pytest.approx(8)


def expected(lengths, momentum=0.0):
    """Cosine [n] of each random gradient with the way ahead, in endless dimensions, from what each adds to each step."""
    n = len(lengths)
    kept = np.tril(momentum ** np.clip(np.subtract.outer(np.arange(n), np.arange(n)), 0, None))  # [step, gradient]
    reach = np.cumsum(kept[::-1], axis=0)[::-1] * lengths  # [from, gradient]: what it adds from this step to the end
    return np.diag(reach) / np.sqrt((reach**2).sum(1))


def test_a_random_walk_points_to_its_end_by_one_over_the_root_of_the_steps_left():
    n, free = 100, torch.ones(10_000)
    found = walking.random_walk(np.ones(n), free, {1, 20, 60, 91, 100}, torch.Generator().manual_seed(0))
    assert found == pytest.approx({1: 0.1, 20: 81**-0.5, 60: 41**-0.5, 91: 10**-0.5, 100: 1}, abs=0.03)
    lengths = np.geomspace(1, 30, n)
    uneven = walking.random_walk(lengths, free, {30, 99}, torch.Generator().manual_seed(0))
    assert uneven == pytest.approx({30: expected(lengths)[29], 99: expected(lengths)[98]}, abs=0.03)


def test_random_gradients_lead_through_the_method_as_theory_says():
    name, drawn = "momentum", {"momentum": 0.8}
    size, n, random = 10_000, 40, torch.Generator().manual_seed(0)
    lengths, at = np.linspace(1, 3, n), set(range(1, n + 1))
    values = {key: torch.tensor([[value]]) for key, value in {"learning_rate": 0.1, **drawn}.items()}
    trial = Trials(torch.zeros(1, size), None, values)

    def gradient(step, w):
        g = torch.randn(1, size, generator=random)
        return g * (lengths[step - 1] / g.norm()).item()

    left = walking.walked(method(name), (), trial, n, at, gradient)
    found = [walking.cosine(g, w - left.end) for w, g in left.seen.values()]
    assert found == pytest.approx(expected(lengths, drawn.get("momentum", 0.0)), abs=0.04)
    assert left.norms == pytest.approx(lengths, rel=1e-4)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder of records, the walk of a half-pruned network's winner, and its points."""
    folder = tmp_path_factory.mktemp("data")
    cell = Cell("digits-mlp", 256, "sgd", 0.5, trials=8, hits=1, replicate=3, split=3)
    sweeps.run(Study("s", "", (cell,)), folder)
    walk = paths.winner(cell, folder, points=12)
    return folder, walk, walking.measured(walk, folder)


def test_a_walk_ends_where_the_record_says(measured):
    folder, walk, points = measured
    steps = trained_again.met_at(walk, folder)
    assert points.step.iloc[[0, -1]].tolist() == [1, steps] and (points.step + points.left == steps + 1).all()
    assert (points.error <= 0.04).all() and len(points) == 12
    last = points.iloc[-1]
    assert last.batch_cosine == pytest.approx(1, abs=1e-4)  # the way ahead is the last step
    assert last.batch_secant == pytest.approx(1 / last.rate, rel=1e-3) and last.random == pytest.approx(1, abs=1e-4)
    assert points.walk_theory.iloc[-1] == 1 and points.cosine.between(-1, 1).all()


def planted(law, steps, searches=6, random=None):
    """Points of paths whose batch gradients have the cosine law(B) at every point; random: the control's."""
    rows, noise = [], np.random.default_rng(0)
    for size in SIZES:
        for search in range(searches):
            count = int(steps(size))
            step = np.unique(np.linspace(1, count, 40).round())
            cosine = law(size) * np.exp(0.01 * noise.standard_normal())
            rows.append(pd.DataFrame({
                "step": step, "left": count - step + 1, "batch_cosine": cosine, "cosine": 0.5, "twin_cosine": 0.5,
                "twin_batch_cosine": cosine, "random": (count - step + 1) ** -0.5 if random is None else random,
                "between": 0.9, "square": 1.0, "trace": 50.0, "secant": 2.0, "bound": 4.0, "workload": "digits-mlp",
                "algorithm": "sgd", "sparsity": 0.0, "batch_size": size, "replicate": search,
            }))  # fmt: skip
    return pd.concat(rows, ignore_index=True)


def test_the_scale_of_cosines_that_was_planted_is_found():
    points = planted(lambda b: 0.4 / (1 + 50 / b) ** 0.5, lambda b: 200 * (1 + 50 / b))
    found = path_geometry.scales(path_geometry.by_path(points)).set_index("kind")
    own = found.loc["batch_cosine"]
    assert own.scale == pytest.approx(50, rel=0.05) and own.low < 50 < own.high and own["product"] < 1.1
    assert found.scale["noise_scale"] == pytest.approx(50)
    flat = path_geometry.scale_of_cosines(path_geometry.by_path(planted(lambda b: 0.3, lambda b: 200)), "batch_cosine")
    assert flat.scale.item() < 1
    assert path_geometry.scale_of_cosines(path_geometry.by_path(planted(lambda b: -0.1, lambda b: 200)), "batch_cosine").empty
