"""The whole range of momentum: the better of two searches, for all of a network's curves or for none."""

import pandas as pd
import pytest

from lib.analysis import ranges

SIZES = (1, 4, 16, 64, 256)


def searched(sparsity, searches, steps, sizes=SIZES):
    """Two trials of every search; the faster takes `steps` at every batch size."""
    rows = [
        {"workload": "digits-mlp", "algorithm": "momentum", "pruning": "connection-sensitivity", "sparsity": sparsity,
         "batch_size": size, "replicate": n, "split": n, "trial": trial, "trials": 2, "hits": 1, "space": None,
         "steps": steps + 10 * trial}
        for size in sizes for n in range(searches) for trial in range(2)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def joined(published, low):
    """Sparsity -> the least steps and the number of searches and trials, of curves over the whole range."""
    found = ranges.whole(pd.concat(published), pd.concat(low))
    whole = found[found.space == ranges.WHOLE]
    return {s: (own.steps.min(), own.replicate.nunique(), own.trials.max()) for s, own in whole.groupby("sparsity")}


def test_a_search_of_the_whole_range_is_the_union_of_two_where_both_are():
    """Five searches above 0.9, three below: three of either, of twice the trials."""
    both = joined([searched(0.0, 5, 100)], [searched(0.0, 3, 70)])
    assert both == {0.0: (70, 3, 4)}


@pytest.mark.parametrize(("low", "sizes"), [(2, SIZES), (3, SIZES[:4])], ids=["two searches", "four sizes"])
def test_a_pruned_curve_that_is_too_short_keeps_the_dense_one_as_published(low, sizes):
    """They are divided by each other, which two ranges of momentum must not be."""
    published = [searched(0.0, 5, 100), searched(0.9, 5, 300)]
    below = [searched(0.0, 3, 70), searched(0.9, low, 200, sizes)]
    assert joined(published, below) == {}
    assert set(joined(published, [searched(0.0, 3, 70), searched(0.9, 3, 200)])) == {0.0, 0.9}


def test_searches_count_at_each_batch_size():
    """A third search at one batch size alone makes no curve of three searches."""
    below = pd.concat([searched(0.0, 2, 70), searched(0.0, 3, 70, SIZES[:1])]).drop_duplicates()
    assert joined([searched(0.0, 5, 100)], [below]) == {}
