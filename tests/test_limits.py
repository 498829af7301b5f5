"""Numbers that make no sense are refused by name wherever a reader can give them."""

import functools
from typing import Literal

import numpy as np
import pytest

from chapters.batch_size_is_data_parallelism.parallel_runs import Run
from chapters.gradients import energy_bounds as bounds
from lib import fields
from lib.analysis.hardware import Hardware
from lib.messages import target
from lib.methods.spaces import Interval, draw
from lib.probes.timings import SparseTimes
from lib.studies import study
from lib.studies.cells import Cell

NAN, INF, HUGE = float("nan"), float("inf"), 10**12
KINDS = [  # values that a kind refuses: too small, too large, no number, of a wrong type
    (fields.Count(4096), (0, HUGE, 2.0, np.int64(3))),  # records hold Python's numbers
    (fields.SHARE, (0, 1.1, NAN, "0.1")),
    (fields.POSITIVE, (0, INF)),
    (Literal[1, "a"], (True, None)),
]


@pytest.mark.parametrize(("kind", "value"), [(k, v) for k, values in KINDS for v in values])
def test_a_kind_refuses_what_it_cannot_be(kind, value):
    with pytest.raises(ValueError, match="^x: .* is not allowed; it must be"):
        fields.check("x", value, kind)


def _cell(**given):
    return Cell("digits-mlp", **{"batch_size": 64, **given})


FIELDS = [  # what is called, and a field with a value that it refuses
    (_cell, "messages", "dense"),
    (_cell, "tirals", 4),
    (functools.partial(target, d=100), "density", NAN),
    (Hardware, "devices", 0),
    (SparseTimes, "workload", "digits"),
    (Run(4).shard, "rank", 4),
    (functools.partial(draw, "lee2021", trials=4), "algorithm", "lion"),
    (functools.partial(Interval, 0.5), "high", 0.1),
    (bounds.classical, "density", NAN),
]


def _called(value: object) -> str:
    """A test's name, the same in every process: a function's repr holds its address."""
    call = getattr(value, "func", value)
    return getattr(call, "__name__", repr(value)[:30])


@pytest.mark.parametrize(("call", "field", "value"), FIELDS, ids=_called)
def test_a_field_refuses_what_it_cannot_be(call, field, value):
    allowed = "is not allowed; it must be|is unknown; allowed"
    with pytest.raises(ValueError, match=rf"^{field}: .*({allowed})"):
        call(**{field: value})


def test_a_study_without_cells_has_no_toy():
    with pytest.raises(ValueError, match="cells: .* at least one"):
        study.Study("none", "None", ()).smoke()
