"""Claims on pruned networks follow from planted curves, in either direction, on each network by itself."""

import numpy as np
import pandas as pd
import pytest

from chapters.sparsity import claims as sparsity
from lib.analysis import scaling
from lib.claims.claim import judged
from lib.claims.judging import registered

SIZES = 2 ** np.arange(11)


def curve(c1, c2, searches=12, seed=0, scatter=0.05, odd=None):
    """A curve near c1/B + c2; odd: a batch size and the factor by which it is off."""
    steps = (c1 / SIZES + c2) * np.where(SIZES == (odd or (0, 1))[0], (odd or (0, 1))[1], 1.0)
    logs = np.log(steps) + np.random.default_rng(seed).normal(0, scatter, (searches, len(SIZES)))
    index = pd.MultiIndex.from_product([range(searches), [0]], names=["replicate", "split"])
    own = pd.DataFrame(logs, index, SIZES)
    return scaling.Curve(own, own.isna(), 0.3)


def pair(name, sparse, algorithm="momentum", level=0.9, **options):
    key = (name, algorithm, "connection-sensitivity")
    return {(*key, 0.0): curve(6400, 100, **options), (*key, level): sparse}


def told(key, function, curves):
    return judged(registered()[key], function(curves))


@pytest.mark.parametrize(
    ("factor", "less", "much"), [(4, "for", "for"), (1, "for", "against"), (0.2, "against", "against")]
)
def test_critical_batch_sizes_are_compared_at_the_highest_sparsity_by_network(factor, less, much):
    curves = pair("mnist-simple-cnn", curve(2 * 6400 * factor, 200, seed=1))
    curves |= {("mnist-simple-cnn", "momentum", "connection-sensitivity", 0.5): curve(6400 / 9, 100)}
    (group,) = told("L4", sparsity.critical_over_dense, curves).groups
    assert group.effect == pytest.approx(factor, rel=0.1) and (group.verdict, group.n, group.own) == (less, 12, True)
    (group,) = told("L5", sparsity.critical_with_momentum, curves).groups
    assert group.verdict == much
    assert group.note == "direction: " + ("larger" if factor > 1.2 else "smaller" if factor < 0.8 else "not decided")


def test_networks_that_disagree_are_in_part_and_nesterov_is_no_own_row_of_momentum():
    curves = pair("digits-mlp", curve(4 * 6400, 100, seed=1)) | pair("mnist-simple-cnn", curve(6400 / 4, 100, seed=2))
    assert told("L4", sparsity.critical_over_dense, curves).verdict == "contradicted"
    claim = told("L4", sparsity.critical_over_dense, curves | pair("mnist-simple-cnn", curve(6400, 100, seed=3), "sgd"))
    assert claim.verdict == "in part"
    nesterov = pair("mnist-simple-cnn", curve(6400, 100, seed=2), "nesterov") | pair("mnist-simple-cnn", curve(6400, 100), "sgd")
    (group,) = told("L5", sparsity.critical_with_momentum, nesterov).groups
    assert not group.own and group.verdict == "against"


def test_the_cost_of_sparsity_is_judged_at_its_least_sure_batch_size():
    cases = {
        "for": curve(3 * 6400, 300, seed=1),
        "against": curve(3 * 6400, 300, seed=1, odd=(64, 0.2)),
        "not decided": curve(3 * 6400, 300, seed=1, odd=(64, 0.42)),
    }
    for verdict, sparse in cases.items():
        (group,) = told("L3", sparsity.steps_over_dense, pair("digits-mlp", sparse)).groups
        assert group.verdict == verdict
        assert verdict == "for" or group.note == "batch size 64"
