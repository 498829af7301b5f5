"""Numbers that make no sense are refused by name wherever a reader can give them, before anything is computed."""

import functools
from typing import Literal

import numpy as np
import pytest

from chapters.batch_size_is_data_parallelism.parallel_runs import Run
from chapters.contraction import energy_bounds as bounds
from chapters.noisy_quadratic import searches
from chapters.operator_cost.message_times import Collectives, Feedback, Hooked, Operators
from lib import fields
from lib.analysis import hardware, noisy_quadratic
from lib.analysis.hardware import Hardware
from lib.messages.settings import Messages, target
from lib.methods.spaces import Interval, draw
from lib.probes.timings import SparseTimes, StepTimes
from lib.records import on_record
from lib.studies import study
from lib.studies.cells import Cell
from lib.workers.hook import SparseState

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


def _grid(**given):
    return on_record.grid(**{"name": "digits-mlp", "batch_sizes": [64], "algorithms": ["sgd"], "sparsities": [0.0], **given})


def _draw(**given):
    return draw(**{"space": "lee2021", "algorithm": "sgd", "trials": 4, **given})


FIELDS = [  # what is called, and a field with a value that it refuses
    (_cell, "label_smoothing", 1.0),
    (_cell, "messages", "dense"),
    (_grid, "batch_sizes", 64),
    (_grid, "tirals", 4),
    (on_record.gathered, "tirals", 4),
    (Messages, "feedback", "yes"),
    (functools.partial(target, d=100), "density", NAN),
    (Hardware, "devices", 0),
    (functools.partial(StepTimes, "digits-mlp"), "largest", -1),
    (SparseTimes, "workload", "digits"),
    (Operators, "density", 0),
    (Collectives, "workers", 0),
    (Feedback, "smallest", -1),
    (Hooked, "model", "mlp"),
    (Run, "momentum", 1.0),
    (Run(4).shard, "rank", 4),
    (_draw, "algorithm", "lion"),
    (functools.partial(Interval, 0.5), "high", 0.1),
    (functools.partial(Interval, 0.5, 0.9), "scale", "cubic"),
    (noisy_quadratic.power_law, "target", 0),
]
def _called(value: object) -> str:
    """A test's name, the same in every process: a function's repr holds its address."""
    call = getattr(value, "func", value)
    return getattr(call, "__name__", repr(value)[:30])


@pytest.mark.parametrize(("call", "field", "value"), FIELDS, ids=_called)
def test_a_field_refuses_what_it_cannot_be(call, field, value):
    with pytest.raises(ValueError, match=rf"^{field}: .*(is not allowed; it must be|is unknown; allowed)"):
        call(**{field: value})


MODEL = noisy_quadratic.power_law(5, target=0.1)
VECTOR = np.arange(1.0, 9)
STEP = functools.partial(hardware.step_time, Hardware())
ARRAYS = [  # functions of one number or of many
    (functools.partial(searches.searched, MODEL, [4], replicate=0), "trials", NAN),
    (bounds.classical, "density", NAN),
    (functools.partial(bounds.bell, VECTOR, 4), "tolerance", NAN),
    (bounds.iterations, "delta", [0.5, 2.0]),
]


@pytest.mark.parametrize(("call", "field", "value"), ARRAYS, ids=_called)
def test_a_function_refuses_what_it_cannot_compute_with(call, field, value):
    with pytest.raises(ValueError, match=rf"^{field}: .*is not allowed; it must be"):
        call(**{field: value})


def test_numbers_of_numpy_are_welcome_where_they_are_computed_with():
    assert STEP(np.array([4, 8]), np.int32(10)) == pytest.approx(STEP([4.0, 8.0], 10))
    assert Hardware(throughput=np.float64(5)) == Hardware(throughput=5.0), "a float64 is a Python float"
    assert np.isnan(bounds.iterations(NAN)), "nothing measured"


def test_a_study_without_cells_has_no_toy():
    with pytest.raises(ValueError, match="cells: .* at least one"):
        study.Study("none", "None", ()).smoke()


def test_the_hook_refuses_a_seed_that_cannot_be(monkeypatch):
    monkeypatch.setattr("torch.distributed.get_world_size", lambda group: 1)
    with pytest.raises(ValueError, match="^seed: -1 is not allowed; it must be a whole number from 0"):
        SparseState(None, seed=-1)
