"""The hardware model in its limits, and its twin in the charts' language."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
import vl_convert as vlc

from lib.analysis import hardware
from lib.page.vega import VEGALITE

SIZES, STEPS = 2.0 ** np.arange(11), 5e4 / 2.0 ** np.arange(11) + 80


def test_one_device_is_steps_times_examples_over_throughput():
    seconds, cost = hardware.to_goal(hardware.Hardware(throughput=500.0, price=3.6), SIZES, STEPS, 10**6)
    assert seconds == pytest.approx(STEPS * SIZES / 500) and cost == pytest.approx(seconds / 1000)


def test_endless_bandwidth_divides_time_by_the_devices_until_they_are_idle():
    many = hardware.Hardware(devices=8, throughput=500.0, saturation=4.0)
    seconds, cost = hardware.to_goal(many, SIZES, STEPS, 10**6)
    busy = SIZES / 8 >= 4
    assert seconds[busy] == pytest.approx((STEPS * SIZES / 500 / 8)[busy])
    assert seconds[~busy] == pytest.approx((STEPS * 4 / 500)[~busy])
    assert cost == pytest.approx(seconds / 3600 * 8)


def test_slow_links_cost_what_a_ring_sends():
    """In the limit of many devices every device sends twice the gradient, whatever their number."""
    for devices in (2, 4, 1024):
        time = hardware.step_time(hardware.Hardware(devices, 1e12, 1e-9, bandwidth=1e6, latency=0.5), np.ones(1), 10**6)
        assert time == pytest.approx(2 * 4 * (1 - 1 / devices) + 2 * (devices - 1) * 0.5, rel=1e-6)


def test_measured_step_times_are_met_and_continued():
    """A device that follows the model exactly gives the model back between and beyond the sizes it was timed at."""
    model = hardware.Hardware(devices=4, throughput=500.0, saturation=16.0, bandwidth=1e8, latency=1e-4)
    sizes = 4.0 ** np.arange(6)
    timed = pd.DataFrame({"batch_size": sizes, "seconds": np.maximum(sizes, 16) / 500})
    shares = np.array([1.0, 8, 16, 100, 1024, 5000])
    assert hardware.interpolated(timed, shares) == pytest.approx(np.maximum(shares, 16) / 500)
    assert hardware.described(timed) == pytest.approx((500, 16))
    entered = hardware.step_time(model, 4 * shares, 10**6)
    assert hardware.step_time(model, 4 * shares, 10**6, timed) == pytest.approx(entered)


def test_the_charts_compute_the_same(own=True):
    """Draw the expressions' values as text and read them off the picture."""
    timed = pd.DataFrame({"batch_size": [16.0, 256.0], "seconds": [0.01, 0.1]})
    alone = hardware.interpolated(timed, np.array([64.0]))[0]
    machine = hardware.Hardware(4, 700.0, 8.0, 2e6, 1e-3, 2.5)
    numbers = {**dataclasses.asdict(machine), "own": str(own).lower()}
    spec = {
        "data": {"values": [{"batch_size": 256.0, "steps": 275.0, "parameters": 5000, "measured": alone}]},
        "transform": [{"calculate": e.format(**numbers), "as": name} for name, e in hardware.EXPRESSIONS.items()]
        + [{"calculate": "format(datum.seconds, '.8e') + ' ' + format(datum.cost, '.8e')", "as": "both"}],
        "mark": "text",
        "encoding": {"text": {"field": "both"}},
    }
    svg = vlc.vegalite_to_svg(spec, vl_version=VEGALITE)
    drawn = [float(v) for v in re.search(r">(\S+e[+-−]\d+) (\S+e[+-−]\d+)<", svg).groups()]
    seconds, cost = hardware.to_goal(machine, np.array([256.0]), np.array([275.0]), 5000, timed if own else None)
    assert drawn == pytest.approx([seconds[0], cost[0]], rel=1e-6)
