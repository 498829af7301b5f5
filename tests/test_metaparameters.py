"""The search is the authors' where it can be, and nested everywhere."""


import numpy as np
import pytest

from lib.methods import METHODS, spaces
from lib.methods.spaces import draw


def test_the_authors_trial_two():
    """The run of the authors' code that is known: learning rate 0.001, momentum 0.98222, trial 2."""
    points = draw("lee2021", "momentum", 3)
    assert points["learning_rate"][2] == pytest.approx(1e-3) and points["momentum"][2] == pytest.approx(
        0.98222, abs=1e-5
    )


def test_the_first_sobol_points_by_hand():
    u = np.array([0.5, 0.75, 0.25, 0.375])  # van der Corput in base 2, Gray-code order, after its first point
    assert np.allclose(draw("lee2021", "sgd", 4)["learning_rate"], 1e-4 * 1e4**u)


def test_more_trials_extend_fewer(replicate=3):
    few, many = (draw("lee2021", "nesterov", n, decay=True, replicate=replicate) for n in (32, 100))
    for name, values in few.items():
        assert np.array_equal(values, many[name][:32])


@pytest.mark.parametrize(("algorithm", "space"), [("adam", "lee2021"), ("nesterov", "low-momentum")])
def test_points_stay_in_their_intervals_and_fill_them(algorithm, space):
    """Those that a method shares with Lee et al. (2021) are the named space's, the others its own."""
    drawn, own = draw(space, algorithm, 100, decay=True), METHODS[algorithm].space
    assert list(drawn) == [*own, "decay_steps", "end_factor"]
    for name, values in drawn.items():
        shared = spaces.LEE2021.get(name) == own.get(name, spaces.LEE2021.get(name))
        axis = spaces.SPACES[space].get(name, spaces.LEE2021[name]) if shared else own[name]
        assert axis.low <= values.min() * (1 + 1e-12) and values.max() <= axis.high * (1 + 1e-12)
        places = axis.place(values)
        assert axis.low == axis.high or places.min() < 0.05 and places.max() > 0.95
