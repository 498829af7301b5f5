"""What a chapter says of its own records: what is missing, and what stands behind its figures."""

import pandas as pd
import pytest

from lib.page import boxes
from lib.records import store
from lib.studies.cells import Cell


def results(workload, found, missing=(), planned=None):
    """A table as `sweeps.results` gives it, with a record for every name in found."""
    heads = [{"sha256": name, "workload": workload, "rows": 2, "trial_steps": 10, "wall_s": 60.0, "date": "2026-01-01",
              "torch": "2", "device": "cpu", "precision": "float32", "source": "abc"} for name in found]  # fmt: skip
    frame = pd.DataFrame({"workload": [workload] * len(heads)})
    frame.attrs.update(provenance=store.Shared(heads), missing=list(missing), cells_planned=planned or len(heads))
    return frame


CELL = Cell("digits-mlp", 64, "sgd")


def test_records_in_several_tables_count_once():
    told = boxes.provenance(results("digits-mlp", "ab", [CELL]), results("digits-mlp", "bc", [CELL]))
    assert "3 of 4 searches, 6 trials, 30 training steps in 3.0 core-minutes" in told


def test_what_is_missing_is_told_and_nothing_at_all_stops_the_chapter():
    assert boxes.absent(results("digits-mlp", "a")) is None
    some = boxes.absent(results("digits-mlp", "a", [CELL], 2))
    assert "Not measured yet: 1 of 2 searches" in some and "MLP on digits, SGD, dense: batch size 64<" in some
    first = "the first of them MLP on digits, SGD, dense, batch size 64; .*-p budget full"
    with pytest.raises(ValueError, match=f"no record is kept of any of these 1 searches, {first}"):
        boxes.absent(results("digits-mlp", "", [CELL], 1))
    with pytest.raises(ValueError, match="budget: no record is kept of such paths; measure them with -p budget full"):
        boxes.some(pd.DataFrame(), "paths")
