"""Volunteers: the formula in its limits, and a simulation that must agree with it."""

import heapq
import re

import numpy as np
import pandas as pd
import pytest
import vl_convert as vlc

from chapters.volunteers import volunteer_figures
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


def test_without_latency_the_smallest_batch_is_best():
    time = volunteers.to_goal(C1, C2, SIZES, 0.0, 100.0)
    assert volunteers.best_batch(C1 / C2, 0.0, 100.0) == 0 and (np.diff(time) > 0).all()
    small = volunteers.best_batch(C1 / C2, 10.0 ** -np.arange(8), 100.0)
    assert (np.diff(small) < 0).all() and small[-1] < 0.1


def test_a_batch_off_the_best_loses_as_the_formula_says_and_never_more_than_the_bound():
    for factor in (0.25, 0.5, 3.0, 4.0):
        for latency, speed in ((0.01, 100.0), (2.0, 100.0), (64.0, 1000.0)):
            best = volunteers.best_batch(C1 / C2, latency, speed)
            off, least = volunteers.to_goal(C1, C2, np.array([factor * best, best]), latency, speed)
            lost = volunteers.loss(factor, C1 / C2, latency, speed)
            assert lost == pytest.approx(off / least - 1) and lost <= volunteers.most_lost(factor) * (1 + 1e-12)
    assert volunteers.loss(4.0, 200.0, 2.0, 100.0) == pytest.approx(volunteers.most_lost(4.0)) == 0.5625


@pytest.mark.parametrize("overlap", [False, True])
def test_equal_peers_that_stay_take_as_long_as_the_formula_exactly(overlap):
    for peers, micro, per_peer in ((1, 1, 7), (8, 4, 3), (40, 1, 1), (13, 5, 20)):
        team = Team(peers=peers, speed=80.0, spread=0.0, micro_batch=micro)
        batch = peers * micro * per_peer
        run = simulated(team, batch, 1.5, 300, seed=0, overlap=overlap)
        assert run.per_round == pytest.approx(volunteers.round_time(batch, 1.5, 80.0, overlap), rel=1e-12)
        assert run.examples == 300 * batch


def by_hand(team, batch, latency, rounds, seed):
    """Seconds of these rounds, micro-batch by micro-batch, of peers that stay."""
    rates, now = team.rates(np.random.default_rng(seed)), 0.0
    for _ in range(rounds):
        due = [(now + 1 / rate, rate) for rate in rates]
        heapq.heapify(due)
        for _ in range(batch // team.micro_batch):
            at, rate = due[0]
            heapq.heapreplace(due, (at + 1 / rate, rate))
        now = at + latency
    return now


@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0])
def test_unequal_peers_take_as_long_as_micro_batch_by_micro_batch(spread):
    for batch in (4, 24, 400, 4000):
        team = Team(peers=12, speed=50.0, spread=spread, micro_batch=4)
        assert simulated(team, batch, 0.5, 3, 7).seconds == pytest.approx(by_hand(team, batch, 0.5, 3, 7), rel=1e-9)


@pytest.mark.parametrize(("stay", "away"), [(100.0, 0.0), (100.0, 50.0), (5.0, 5.0), (0.5, 2.0)])
def test_every_round_hands_in_its_batch_whoever_comes_and_leaves(stay, away):
    team = Team(peers=15, speed=60.0, spread=1.0, stay=stay, away=away, micro_batch=2)
    for batch in (2, 30, 500):
        for overlap in (False, True):
            run = simulated(team, batch, 0.7, 40, 3, overlap)
            assert run.examples == 40 * batch and run.seconds > 39.9 * 0.7


def test_a_lone_peer_that_comes_and_goes_is_as_fast_as_its_time_online():
    """Over many short stays; what it has not finished is lost, a share that a renewal argument gives."""
    team = Team(peers=1, speed=100.0, spread=0.0, stay=0.05, away=0.15, micro_batch=1)
    takes = 0.25 / 100  # seconds of an example while online: it is online a quarter of its time
    kept = takes / (0.05 * np.expm1(takes / 0.05))  # expected whole examples of a stay, over those without loss
    run = simulated(team, 1000, 0.0, 100, 0)
    assert run.seconds == pytest.approx(100 * 1000 / 100 / kept, rel=0.03)


def fitted(team, latency, seed=0):
    """Simulated time to the goal [sizes] on the curve c1/B + c2."""
    rounds = [simulated(team, int(b), latency, 40, seed).per_round for b in SIZES]
    return (C1 / SIZES + C2) * rounds


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.5])
@pytest.mark.parametrize("departures", [0.0, 3.0])
def test_the_simulated_best_batch_is_that_of_the_formula(spread, departures):
    """Stated tolerance: a batch within a factor of 1.5, and 3 % of the time; the speed is the mean of those online."""
    team = Team(peers=20, speed=400.0, spread=spread).leaving(departures)
    best = volunteers.best_batch(C1 / C2, 2.0, 400.0)
    time = np.mean([fitted(team, 2.0, seed) for seed in range(2)], axis=0)
    assert best / 1.5 < SIZES[time.argmin()] < best * 1.5
    assert time[np.abs(np.log(SIZES / best)).argmin()] < 1.03 * time.min()


@pytest.mark.parametrize("micro_batch", [1, 4, 16])
def test_unfinished_micro_batches_count_as_latency(micro_batch):
    team = Team(peers=40, speed=100.0, micro_batch=micro_batch)
    for batch in (640, 1600, 4000):
        extra = np.mean([simulated(team, batch, 1.0, 1, seed).seconds for seed in range(40)]) - batch / 100 - 1.0
        assert extra == pytest.approx(team.unfinished, rel=0.1)


@pytest.mark.parametrize("departures", [0.0, 1.0])
def test_with_that_latency_the_formula_holds_for_large_micro_batches(departures):
    team = Team(peers=20, speed=100.0).leaving(departures)
    found = volunteers.with_micro_batches(team, C1, C2, 1.0, (1, 16))
    assert team.peers * team.online == 20
    small, large = found.itertuples()
    assert small.plain == large.plain == pytest.approx(np.sqrt(200 * 100)) and small.lost < 0.02 and small.lost_corrected < 0.02
    assert large.corrected == pytest.approx(np.sqrt(200 * (100 + 16 * 20 / 2)))
    assert large.lost_corrected < 0.02 < large.lost and large.corrected / 1.5 < large.found < 1.5 * large.corrected


def law(sizes):
    """Points of one curve that lies on its line."""
    return pd.DataFrame({"curve": "a", "batch_size": sizes, "steps": C1 / sizes + C2, "c1": C1, "c2": C2})


def test_on_its_line_a_curve_is_fitted_and_the_formula_loses_little_however_often_peers_leave():
    points = pd.concat([law(np.array([4, 16, 64, 256, 1024, 4096])).assign(curve=name) for name in ("a", "b")])
    own = volunteers.fitted(points.drop(columns=["c1", "c2"]))
    assert own.c1.tolist() == pytest.approx([C1] * 12, rel=1e-3) and own.c2.tolist() == pytest.approx([C2] * 12, rel=1e-3)
    assert volunteers.fitted(points[points.batch_size < 300]).empty
    rounds = volunteers.of_settings(Team(volunteers.ONLINE), own.batch_size.unique().tolist(), *volunteers.settings().values(), 0)
    told = volunteers.compared(own, rounds)
    assert told.groupby("departures").curve.nunique().to_dict() == {0.0: 2, 1.0: 2, 6.0: 2}
    assert told.groupby("departures").lost.mean().between(0, 0.1).all()


def test_a_curve_on_its_line_loses_what_the_formula_says():
    points = law(2 ** np.arange(3, 15))
    smooth = Team(peers=1, speed=100.0, spread=0.0)
    rounds = volunteers.of_settings(smooth, points.batch_size, [2.0], [100.0, 1e6], [0.0], 0)
    (row,) = volunteers.compared(points, rounds).itertuples()  # at the larger speed, B* is beyond the sizes
    assert (row.best, row.picked, row.found, row.lost) == (200.0, 256, 256, 0.0)
    least, *off = volunteers.to_goal(C1, C2, np.array([256, 1024, 64]), 2.0, 100.0)
    assert row.off == pytest.approx(np.mean(off) / least - 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Team(peers=0), "peers: 0 is not allowed; it must be a whole number from 1"),
        (lambda: Team(speed=-1.0), "speed: -1.0 is not allowed; it must be a positive finite number"),
        (lambda: Team(spread=9.0), r"spread: 9.0 is not allowed; it must be a number in \[0, 5\]"),
        (lambda: Team(away=-1.0), "away: -1.0 is not allowed; it must be zero or a positive finite number"),
        (lambda: Team(micro_batch=1.5), "micro_batch: 1.5 is not allowed; it must be a whole number from 1"),
        (lambda: Team().leaving(-1.0), "departures: -1.0 is not allowed"),
        (lambda: simulated(Team(micro_batch=4), 6, 1.0, 1, 0), "batch_size: 6 is not allowed; it must be a multiple of the micro"),
        (lambda: simulated(Team(), 6, float("nan"), 1, 0), "latency: nan is not allowed; it must be zero or a positive"),
        (lambda: simulated(Team(), 6, 1.0, 0, 0), "rounds: 0 is not allowed; it must be a whole number from 1"),
        (lambda: simulated(Team(), 6, 1.0, 1, -1), "seed: -1 is not allowed"),
        (lambda: volunteers.best_batch(0.0, 1.0, 1.0), "critical: 0.0 is not allowed; it must be a positive finite number"),
        (lambda: volunteers.best_batch(1.0, -1.0, 1.0), "latency: -1.0 is not allowed; it must be zero or a positive"),
        (lambda: volunteers.to_goal(1.0, 1.0, np.array([4, 0]), 1.0, 1.0), "batch_size: 0 is not allowed; it must be a positive"),
        (lambda: volunteers.loss(-2.0, 1.0, 1.0, 1.0), "factor: -2.0 is not allowed; it must be a positive"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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


def test_the_figure_has_a_simulated_round_for_every_setting_it_can_be_given():
    points = law(np.array([4, 64, 1024])).assign(low=1.0, high=9.0)
    start = {"latency": 1.0, "speed": 100.0, "departures": 1.0, "price": 0.3}
    grid = volunteers.settings(start)
    assert {len(grid[name]) for name in grid} <= {3, 4} and all(list(v) == sorted(set(v)) for v in grid.values())
    rounds = volunteers.of_settings(Team(peers=2), points.batch_size, *grid.values(), 0)
    chart = volunteer_figures.by_batch_size(points, rounds, volunteers.EXPRESSIONS, start, "a", 2)
    spec = chart.to_dict()
    shown = {p["name"]: p["bind"]["max"] for p in spec["params"] if p.get("bind", {}).get("input") == "range"}
    assert shown == {f"{name}_at": len(values) - 1 for name, values in grid.items()} | {"price_at": len(volunteer_figures.PRICES)}
    with pytest.raises(ValueError, match="rounds: .* it must be one for every setting"):
        volunteer_figures.by_batch_size(points, rounds[1:], volunteers.EXPRESSIONS, start, "a", 2)
