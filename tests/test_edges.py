"""Winners at an edge of their search space: a planted optimum there is marked, and two searches are read as one."""

import numpy as np
import pandas as pd

from lib.analysis import edges
from lib.methods.intervals import LEE2021, LOW_MOMENTUM

KEY = ("digits-mlp", "momentum", "connection-sensitivity", 0.0)


def won(rates, momenta, space=None):
    """Ten batch sizes of one search, two trials each, of which the first wins."""
    rows = [
        {"workload": KEY[0], "algorithm": KEY[1], "pruning": KEY[2], "sparsity": KEY[3], "batch_size": 2**j, "replicate": 0,
         "split": 0, "space": space, "steps": steps, "learning_rate": rate if steps == 10 else 1e-2,
         "momentum": momentum if steps == 10 else 0.99}
        for j, (rate, momentum) in enumerate(zip(rates, momenta)) for steps in (10, 20)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def spread(interval):
    return interval.at(np.linspace(0.05, 0.95, 10))


def test_winners_that_fill_their_intervals_are_not_marked():
    found = edges.at_edges(won(spread(LEE2021["learning_rate"]), spread(LEE2021["momentum"])))
    assert found.hyperparameter.tolist() == ["learning_rate", "momentum"] and (found.winners == 10).all()
    assert found.lower.tolist() == found.upper.tolist() == [0.1, 0.1] and not found.marked.any() and edges.marks(found) == {}


def test_an_optimum_planted_at_an_edge_is_marked_on_its_side():
    found = edges.at_edges(won(np.r_[[0.9] * 3, [0.01] * 7], [0.91] * 10)).set_index("hyperparameter")
    assert found.upper.to_dict() == {"learning_rate": 0.3, "momentum": 0}
    assert found.lower.to_dict() == {"learning_rate": 0, "momentum": 1}
    words = edges.marks(found.reset_index())[KEY]
    assert words == "30\u00a0% at the upper edge of learning rate; 100\u00a0% at the lower edge of momentum"


def test_momentum_that_was_searched_below_too_has_the_edges_of_both_searches():
    """0.91 is the lower edge of the published space, and the middle of both; SGD, 0, is the edge of both."""
    half = won([0.01] * 10, [0.91] * 10)
    found = edges.at_edges(half.assign(space="whole")).set_index("hyperparameter")
    assert not found.marked.any() and (found.low["momentum"], found.high["momentum"]) == (0, LEE2021["momentum"].high)
    plain = edges.at_edges(won([0.01] * 10, [0.0] * 10, "whole")).set_index("hyperparameter")
    assert plain.lower["momentum"] == 1 and plain.marked["momentum"]
    below = edges.at_edges(half.assign(space="low-momentum", momentum=0.89)).set_index("hyperparameter")
    assert below.upper["momentum"] == 1 and below.high["momentum"] == LOW_MOMENTUM["momentum"].high
