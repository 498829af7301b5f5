"""What a step, a message and a goal cost: against limits, simulations and the charts' own sums."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
import vl_convert as vlc

from chapters.batch_size_is_data_parallelism import framework_costs
from chapters.gradients import message_costs
from chapters.gradients.message_times import TIMED, Collectives, Hooked, Operators
from chapters.hardware import hardware_figures, volunteers
from chapters.hardware.volunteers import Team, simulated
from lib.analysis import hardware
from lib.page.vega import VEGALITE
from lib.probes import timings
from lib.probes.timings import StepTimes

SIZES = 2.0 ** np.arange(11)


@pytest.mark.parametrize("devices", [2, 4, 1024])
def test_slow_links_cost_what_a_ring_sends(devices):
    """In the limit of many devices, each sends the gradient twice, however many there are."""
    slow = hardware.Hardware(devices, 1e12, 1e-9, bandwidth=1e6, latency=0.5)
    expected = 2 * 4 * (1 - 1 / devices) + 2 * (devices - 1) * 0.5
    assert hardware.step_time(slow, np.ones(1), 10**6) == pytest.approx(expected, rel=1e-6)


def test_measured_step_times_are_met_and_continued():
    """Between and beyond the timed sizes, a device that follows the model gives the model."""
    model = hardware.Hardware(devices=4, throughput=500.0, saturation=16.0, bandwidth=1e8, latency=1e-4)
    sizes = 4.0 ** np.arange(6)
    timed = pd.DataFrame({"batch_size": sizes, "seconds": np.maximum(sizes, 16) / 500})
    shares = np.array([1.0, 8, 16, 100, 1024, 5000])
    assert hardware.interpolated(timed, shares) == pytest.approx(np.maximum(shares, 16) / 500)
    entered = hardware.step_time(model, 4 * shares, 10**6)
    assert hardware.step_time(model, 4 * shares, 10**6, timed) == pytest.approx(entered)


def test_one_worker_sends_nothing_and_the_ring_tends_to_twice_the_gradient():
    assert message_costs.ring(1, 1e6, 1e9, 1e-3) == message_costs.gather(1, 1e3, 1e9, 1e-3) == 0
    assert message_costs.ring(10_000, 1e9, 1e9, 0) == pytest.approx(2 * 4, rel=1e-3)
    assert message_costs.ring(16, 1e6, np.inf, 1e-4) == pytest.approx(30e-4)
    assert message_costs.gather(16, 1e3, np.inf, 1e-4) == pytest.approx(3 * 4e-4)
    dense = message_costs.ring(16, 1e6, 1e9, 0)
    below, above = (message_costs.gather(16, factor / 16 * 1e6, 1e9, 0) for factor in (0.9, 1.1))
    assert below < dense < above, "pairs move fewer bytes below a density of one over the workers"


ABOUT = {"workload": "digits-cnn", "algorithm": "adam"}
TIMES = pd.DataFrame(
    {"batch_size": [64] * 3 + [256] * 3, "system": ["one", "ddp", "sparse"] * 2}
    | {"wall": [4.0, 3, 5, 9, 5, 1], "waits": [0, 2, 3] * 2, "sent": [0.0, 400, 40] * 2}
).assign(**ABOUT)
POINTS = pd.DataFrame({"batch_size": [64, 256, 1024], "steps": [30.0, 10, 8]}).assign(**ABOUT)


def test_frameworks_are_compared_at_their_best_batch_and_sparse_messages_are_not():
    gains = framework_costs.gains(POINTS, TIMES)
    assert gains.index.get_level_values("framework").tolist() == ["data parallelism"]
    assert gains.tolist() == [90 / 50]


C1, C2 = 30_000.0, 150.0  # a critical batch size of 200
BATCHES = np.unique(np.geomspace(16, 6000, 28).round().astype(int))


SPEED = 80.0  # examples per second, all peers


def seconds_to_goal(sizes, rounds):
    """On the curve c1/B + c2, with the seconds of a round at each size."""
    return (C1 / sizes + C2) * rounds


@pytest.mark.parametrize(("latency", "speed"), [(0.1, 50.0), (2.0, 100.0), (30.0, 1000.0)])
def test_the_best_batch_is_where_the_formula_is_least(latency, speed):
    fine = np.geomspace(1, 1e6, 200_001)
    best = fine[seconds_to_goal(fine, fine / speed + latency).argmin()]
    assert best == pytest.approx(volunteers.best_batch(C1 / C2, latency, speed), rel=1e-3)


@pytest.mark.parametrize(("peers", "examples"), [(1, 7), (8, 12), (40, 1), (13, 100)])
def test_equal_peers_that_stay_take_as_long_as_the_formula_exactly(peers, examples):
    batch = peers * examples
    seconds, complete = simulated(Team(peers=peers, speed=SPEED, spread=0.0), batch, 1.5, 300, seed=0)
    assert seconds == pytest.approx(batch / SPEED + 1.5, rel=1e-12) and complete == 300 * batch


@pytest.mark.parametrize(("spread", "departures"), [(0.0, 0.0), (0.5, 3.0)])
def test_the_simulated_best_batch_is_that_of_the_formula(spread, departures):
    """Stated tolerance: a factor of 1.5 in the batch, 3 % in its time; the speed is the mean of the peers online."""
    team = Team(peers=20, speed=400.0, spread=spread).leaving(departures)
    best = volunteers.best_batch(C1 / C2, 2.0, 400.0)
    rounds = [[simulated(team, int(b), 2.0, 40, seed)[0] for b in BATCHES] for seed in range(2)]
    time = seconds_to_goal(BATCHES, np.mean(rounds, axis=0))
    assert best / 1.5 < BATCHES[time.argmin()] < best * 1.5
    assert time[np.abs(np.log(BATCHES / best)).argmin()] < 1.03 * time.min()


def test_the_chart_computes_the_same():
    """Seconds and price of a row, by the chart's expressions: drawn as text, and read off."""
    timed = pd.DataFrame({"batch_size": [16.0, 256.0], "seconds": [0.01, 0.1]})
    machine = hardware.Hardware(4, 700.0, 8.0, 2e6, 1e-3, 2.5)
    alone = hardware.interpolated(timed, np.array([64.0]))[0]
    row = {"batch_size": 256.0, "steps": 275.0, "parameters": 5000, "measured": alone}
    numbers = {**dataclasses.asdict(machine), "own": "true"}
    steps = {name: text.format(**numbers) for name, text in hardware_figures.EXPRESSIONS.items()}
    steps["text"] = "format(datum.seconds, '.8e') + ' ' + format(datum.cost, '.8e')"
    spec = {
        "data": {"values": [row]},
        "transform": [{"calculate": text, "as": name} for name, text in steps.items()],
        "mark": "text",
        "encoding": {"text": {"field": "text"}},
    }
    svg = vlc.vegalite_to_svg(spec, vl_version=VEGALITE)
    values = re.search(r">(\S+e[+-−]\d+) (\S+e[+-−]\d+)<", svg).groups()
    expected = hardware.to_goal(machine, np.array([256.0]), np.array([275.0]), 5000, timed)
    assert [float(value) for value in values] == pytest.approx(np.ravel(expected), rel=1e-6)


TIMINGS = [
    (Operators(smallest=10, largest=11, repeats=2), "compressor", set(TIMED)),
    (Collectives(2, smallest=8, largest=8, repeats=2), "what", {"all-reduce", "pairs"}),
    (StepTimes("digits-mlp", largest=4, repeats=2), "batch_size", {1, 4, 16}),
    (Hooked("fnn-3", repeats=2), "what", {"all-reduce", "top-k", "gaussian-k"}),
]


@pytest.mark.parametrize(("what", "column", "timed"), TIMINGS)
def test_timings_are_kept_whole_and_read_back(what, column, timed, tmp_path):
    assert timings.results(what, data=tmp_path).empty
    timings.TIMINGS.run([what], tmp_path)
    table = timings.results(what, data=tmp_path)
    assert (0 < table.low).all() and (table.low <= table.seconds).all()
    assert (table.seconds <= table.high).all() and set(table[column]) == timed
