"""Winners trained again: they meet the goal at the step of the record, and dense and pruned ones are paired by search."""

import pandas as pd
import pytest

from lib.analysis import unseen_errors
from lib.measuring import sweeps
from lib.probes import unseen
from lib.records import store
from lib.records.places import record
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study


def test_a_winner_trained_again_meets_the_goal_at_its_step_and_not_before(tmp_path, monkeypatch, sparsity=0.9):
    cells = tuple(Cell("digits-mlp", 64, sparsity=sparsity, trials=24, hits=1, replicate=n, split=n, max_steps=400) for n in (1, 2))
    sweeps.run(Study("twice", "", cells), tmp_path)
    monkeypatch.setitem(plans.STUDIES, "twice", Study("twice", "", cells))
    what = unseen.Winners("twice", "digits-mlp", sparsity, 0.05)
    rows = what.measure(tmp_path).set_index("replicate")
    for cell in cells:
        trials = store.read(record(cell, tmp_path), cell)[1]
        steps = trials["steps@0.05"]
        assert rows.steps[cell.replicate] == steps.min() and rows.trial[cell.replicate] == steps.idxmin()
        assert rows.validation[cell.replicate] <= 0.05 < unseen.errors(cell, steps.idxmin(), int(steps.min()) // 2)[0]
    assert (rows.test != rows.validation).any()


def test_dense_and_pruned_winners_are_paired_by_search():
    """One search lacks a batch size when pruned; each pruned winner errs on one share in a hundred more than the dense one."""
    dense = pd.DataFrame({"workload": "digits-mlp", "goal": 0.05, "sparsity": 0.0, "batch_size": [1, 2] * 3,
                          "replicate": [1, 1, 2, 2, 3, 3], "split": 0, "test": [0.05, 0.5, 0.06, 0.07, 0.04, 0.04]})  # fmt: skip
    pruned = dense.assign(sparsity=0.9, test=dense.test + 0.01).drop(1)
    (found,) = unseen_errors.table(pd.concat([dense, pruned])).itertuples()
    assert (found.dense, found.pruned) == pytest.approx((0.155 / 3, 0.185 / 3))
    assert (found.more_low, found.more, found.more_high, found.n) == pytest.approx((0.01, 0.01, 0.01, 3))
    told = unseen_errors.told(pd.concat([dense, pruned]), "digits-mlp")
    assert told == {"unseen_goal": "5\u00a0%", "unseen_dense": "5.2\u00a0%", "unseen_pruned": "6.2\u00a0%"}
    assert set(unseen_errors.told(pruned, "digits-mlp").values()) == {"—"}
