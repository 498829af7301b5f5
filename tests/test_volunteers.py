"""Volunteers: the formula in its limits, and a simulation that must agree with it."""

import re

import numpy as np
import pytest
import vl_convert as vlc

from lib.analysis import volunteers
from lib.analysis.volunteers import Team, simulated
from lib.page.vega import VEGALITE

C1, C2 = 30_000.0, 150.0  # a critical batch size of 200
SIZES = np.unique(np.geomspace(16, 6000, 28).round().astype(int))


@pytest.mark.parametrize("overlap", [False, True])
def test_the_best_batch_is_where_the_formula_is_least(overlap):
    fine = np.geomspace(1, 1e6, 200_001)
    for latency, speed in ((0.1, 50.0), (2.0, 100.0), (30.0, 1000.0)):
        time = volunteers.to_goal(C1, C2, fine, latency, speed, overlap)
        assert fine[time.argmin()] == pytest.approx(volunteers.best_batch(C1 / C2, latency, speed, overlap), rel=1e-3)


@pytest.mark.parametrize("overlap", [False, True])
def test_equal_peers_that_stay_take_as_long_as_the_formula_exactly(overlap):
    for peers, micro, per_peer in ((1, 1, 7), (8, 4, 3), (40, 1, 1), (13, 5, 20)):
        team = Team(peers=peers, speed=80.0, spread=0.0, micro_batch=micro)
        batch = peers * micro * per_peer
        run = simulated(team, batch, 1.5, 300, seed=0, overlap=overlap)
        assert run.per_round == pytest.approx(volunteers.round_time(batch, 1.5, 80.0, overlap), rel=1e-12)
        assert run.examples == 300 * batch


def fitted(team, latency, seed=0):
    """Simulated time to the goal [sizes] on the curve c1/B + c2."""
    rounds = [simulated(team, int(b), latency, 40, seed).per_round for b in SIZES]
    return (C1 / SIZES + C2) * rounds


@pytest.mark.parametrize(("spread", "departures"), [(0.0, 0.0), (0.5, 3.0)])
def test_the_simulated_best_batch_is_that_of_the_formula(spread, departures):
    """Stated tolerance: a batch within a factor of 1.5, and 3 % of the time; the speed is the mean of those online."""
    team = Team(peers=20, speed=400.0, spread=spread).leaving(departures)
    best = volunteers.best_batch(C1 / C2, 2.0, 400.0)
    time = np.mean([fitted(team, 2.0, seed) for seed in range(2)], axis=0)
    assert best / 1.5 < SIZES[time.argmin()] < best * 1.5
    assert time[np.abs(np.log(SIZES / best)).argmin()] < 1.03 * time.min()


def test_the_charts_compute_the_same():
    """Draw the expressions' values as text and read them off the picture."""
    numbers = {"c1": C1, "c2": C2, "latency": 2.5, "speed": 70.0}
    steps = [{"calculate": e.format(**numbers), "as": name} for name, e in volunteers.EXPRESSIONS.items()]
    spec = {
        "data": {"values": [{"batch_size": 96.0}]},
        "transform": [*steps, {"calculate": "format(datum.time, '.8e') + ' ' + format(datum.best, '.8e')", "as": "both"}],
        "mark": "text",
        "encoding": {"text": {"field": "both"}},
    }
    svg = vlc.vegalite_to_svg(spec, vl_version=VEGALITE)
    drawn = [float(v) for v in re.search(r">(\S+e[+-−]\d+) (\S+e[+-−]\d+)<", svg).groups()]
    expected = [volunteers.to_goal(C1, C2, 96, 2.5, 70.0), volunteers.best_batch(C1 / C2, 2.5, 70.0)]
    assert drawn == pytest.approx(expected, rel=1e-6)
