"""Late gradients in theory and in records: the model against its roots and a simulation, the analysis against planted curves."""

import itertools

import numpy as np
import pandas as pd
import pytest

from chapters.late_workers import claims, late_quadratic, late_results
from lib.analysis import noisy_quadratic as nqm
from lib.claims import AGAINST, FOR
from lib.claims.claim import REGISTRY, judged

C1, C2 = 2000.0, 25.0
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)


@pytest.mark.parametrize("s", [0, 7])
def test_the_stability_limit_is_that_of_the_characteristic_polynomial(s):
    for share, stable in ((0.999, True), (1.001, False)):
        polynomial = np.zeros(s + 2)  # z^(s+1) - z^s + x
        polynomial[:2] += (1, -1)
        polynomial[-1] += share * late_quadratic.stability_limit(s)
        assert (np.abs(np.roots(polynomial)).max() < 1) == stable


@pytest.mark.parametrize(("rate", "momentum"), [(0.5, 0.0), (0.02, 0.8)])
def test_without_delay_the_model_is_the_noisy_quadratic_one(rate, momentum):
    model, sizes = nqm.power_law(40, target=0.2), np.array([8, 64, 1024])
    found, best = late_quadratic.fewest(model, sizes, [rate], 0, momentum)
    np.testing.assert_array_equal(found, nqm.steps(model, sizes, rate, momentum))
    assert (best == rate).all()


def test_late_moments_are_those_of_simulated_runs():
    model, rate, b, s, random = nqm.power_law(20, noise=0.5, target=0.4), 0.1, 4, 5, np.random.default_rng(0)
    crossing = int(late_quadratic.fewest(model, [b], [rate], s)[0][0])
    path, losses = [np.ones((4000, 20))], []
    for step in range(crossing):
        g = model.curvature * path[max(0, step - s)] + random.normal(size=path[0].shape) * np.sqrt(model.noise / b)
        path = [*path, path[-1] - rate * g]
        losses.append(0.5 * (model.curvature * path[-1] ** 2).sum(1).mean())
    assert losses[-1] <= model.target * 1.02 and min(losses[:-1]) >= model.target * 0.98


def searched(algorithm, s, factor=None, workload="digits-mlp", spread=0.1):
    """Three searches of c1/B + f c2, f the floor's growth unless given, and as many of an easier goal in half the steps."""
    random, cells = np.random.default_rng(0), []  # the same scatter for all: they share their searches
    for search, size in itertools.product((3, 4, 5), SIZES):
        steps = (C1 / size + (factor or late_results.floor(s)) * C2) * random.lognormal(0, spread)
        cells.append({
            "workload": workload, "algorithm": algorithm, "pruning": "connection-sensitivity", "sparsity": 0.0, "batch_size": size,
            "trials": 1, "replicate": search, "split": search, "staleness": s, "delays": "fixed", "goal": 0.04,
            "status": "complete", "last_step": steps, "steps": steps, "steps@0.04": steps, "steps@0.05": steps / 2,
        })  # fmt: skip
    return pd.DataFrame(cells)


def test_growth_and_workers_are_those_planted():
    found = late_results.curves(pd.concat([searched("sgd", s) for s in (0, 1, 7)]))
    growth = late_results.growth(found).set_index("staleness")
    for s in (1, 7):
        f = late_results.floor(s)
        planted = [(C1 / b + f * C2) / (C1 / b + C2) for b in (4, 256)]
        assert growth.loc[s, ["small", "large"]].tolist() == pytest.approx(planted)
        assert growth.floor[s] == f and growth.small_low[s] <= growth.small[s] * (1 + 1e-9)
    turns = late_results.without_waiting(found, "digits-mlp", "sgd").set_index("workers")
    assert turns.sizes.to_dict() == {2: 8, 8: 6}
    for workers in (2, 8):
        each = [b for b in SIZES if b * workers <= SIZES[-1]]
        late = np.array([C1 / b + late_results.floor(workers - 1) * C2 for b in each])
        planted = late / workers / np.array([C1 / (b * workers) + C2 for b in each])
        assert turns.ratio[workers] == pytest.approx(np.exp(np.log(planted).mean()), rel=0.15)


@pytest.mark.parametrize(("rival", "verdict"), [(60.0, FOR), (4.0, AGAINST)])
def test_the_claims_follow_what_is_planted(rival, verdict, monkeypatch):
    table = [searched("sgd", 0), searched("sgd", 7)]
    table += [searched(m, s, f) for m in ("momentum", "adam") for s, f in ((0, 1.0), (7, rival))]
    monkeypatch.setattr(late_results, "measured", lambda: pd.concat(table))
    slow, more = (judged(REGISTRY.claims[key], REGISTRY.functions[key]()) for key in ("A1", "A2"))
    assert {g.verdict for g in slow.groups} == {FOR} and len(slow.groups) == 3
    assert {g.verdict for g in more.groups} == {verdict} and len(more.groups) == 2
    monkeypatch.setattr(late_results, "measured", lambda: searched("sgd", 0))
    assert claims.late_over_timely() == claims.beside_sgd() == []
