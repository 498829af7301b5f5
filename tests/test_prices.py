"""The price list: limiting cases of the schedule, and planted times."""

import numpy as np
import pandas as pd
import pytest

from chapters.status import prices


def heads(sizes, a=0.01, b=0.001, steps=lambda size: 6400 / size + 20):
    """Records of searches of 16 trials on one core, whose times and steps are planted."""
    rows = [(size, round(steps(size)), 16 * round(steps(size))) for size in sizes]
    table = pd.DataFrame(rows, columns=["batch_size", "steps", "trial_steps"])
    table = table.assign(workload="mnist-simple-cnn", algorithm="momentum", sparsity=0.0, cpu=True)
    return table.assign(wall_s=table.trial_steps * (a + b * table.batch_size))


def test_planted_times_and_steps_come_back():
    figure = prices.Figure("", "", "mnist-simple-cnn", ("momentum",), sizes=(16, 4096), goal=0.02)
    planted = heads([4, 16, 64, 256, 1024])
    assert prices.seconds_of_a_step(planted) == pytest.approx((0.01, 0.001))
    expected = [100 * (6400 / size + 20) * (0.01 + 0.001 * size) for size in (16, 4096)]
    assert prices.costs(figure, planted) == pytest.approx(expected, rel=0.02)


def test_steps_are_those_to_the_hardest_goal_met_and_not_those_until_a_search_ended(monkeypatch):
    read = pd.DataFrame({"steps@0.02": [100.0, np.nan], "steps@0.1": [20.0, 30.0]})
    read.attrs["provenance"] = [{"device": "cpu", "steps": 900}, {"device": "H100", "steps": 900}]
    monkeypatch.setattr(prices.results, "of_searches", lambda study: read)
    searches = prices.searched()
    assert searches.steps.tolist() == [100, 30] and searches.cpu.tolist() == [True, False]
