"""Numbers that make no sense are refused by name wherever a reader can give them, before anything is computed."""

import functools
from typing import Literal

import numpy as np
import pytest

from chapters.batch_size_is_data_parallelism.parallel_runs import Run
from chapters.contraction import energy_bounds as bounds
from chapters.noisy_quadratic import searches
from chapters.operator_cost import links
from chapters.operator_cost.message_times import Collectives, Feedback, Hooked, Operators
from lib import fields
from lib.analysis import hardware, noisy_quadratic
from lib.analysis.hardware import Hardware
from lib.messages.settings import Messages, target
from lib.methods.spaces import Interval, draw
from lib.probes import portraits
from lib.probes.step_times import SparseTimes, StepTimes
from lib.records import on_record
from lib.studies import study
from lib.studies.cells import Cell
from lib.workers import processes
from lib.workers.hook import SparseState

NAN, INF, HUGE = float("nan"), float("inf"), 10**12
KINDS = [  # values that a kind refuses: too small, too large, no number, of a wrong type
    # Records hold Python's numbers
    (fields.Count(4096), (0, HUGE, NAN, INF, 2.0, True, None, np.int64(3))),
    (fields.SEED, (-1, True, 2**40)),
    (fields.SHARE, (0, 1.1, NAN, "0.1")),
    (fields.PART, (1.0, -0.1, NAN, None)),
    (fields.POSITIVE, (0, NAN, INF, "1")),
    (fields.AMOUNT, (-1.0, INF, None)),
    (Literal[1, "a"], (True, 1.0, "b", None)),
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


FIELDS = [  # what is called, a field, values that it refuses: of its kind one
    (_cell, "trials", (0,)),
    (_cell, "label_smoothing", (1.0,)),
    (_cell, "messages", (3, "dense", [4])),
    (_grid, "batch_sizes", ([], "sgd", None, 64)),
    (_grid, "hits", (0,)),
    (_grid, "tirals", (4,)),
    (on_record.gathered, "tirals", (4,)),
    (Messages, "warm_up", (-1,)),
    (Messages, "feedback", (1, None, "yes")),
    (functools.partial(target, d=100), "density", (0, 1.1, NAN)),
    (Hardware, "devices", (0,)),
    (functools.partial(StepTimes, "digits-mlp"), "largest", (-1,)),
    (functools.partial(SparseTimes, "digits-mlp"), "repeats", (0,)),
    (SparseTimes, "workload", ("digits", 3)),
    (Operators, "density", (0,)),
    (Collectives, "workers", (0,)),
    (Feedback, "smallest", (-1,)),
    (Hooked, "model", ("mlp", 3)),
    (Run, "steps", (0,)),
    (Run, "momentum", (1.0,)),
    (Run(4).shard, "rank", (-1, 4, 1.0)),
    (functools.partial(processes.launch, print, 2), "timeout", (0,)),
    (_draw, "trials", (0,)),
    (_draw, "algorithm", ("lion", None)),
    (functools.partial(Interval, high=1.0), "low", (0, NAN, 2.0 * INF, "0")),
    (functools.partial(Interval, 0.5), "high", (0.1, NAN, "1")),
    (functools.partial(Interval, 0.5, 0.9), "scale", ("cubic", None)),
    (noisy_quadratic.power_law, "dimensions", (0,)),
    (noisy_quadratic.power_law, "target", (0,)),
]
CASES = [(call, field, value) for call, field, values in FIELDS for value in values]


def _called(value: object) -> str:
    """A test's name, the same in every process: a function's repr holds its address."""
    call = getattr(value, "func", value)
    return getattr(call, "__name__", repr(value)[:30])


@pytest.mark.parametrize(("call", "field", "value"), CASES, ids=_called)
def test_a_field_refuses_what_it_cannot_be(call, field, value):
    with pytest.raises(ValueError, match=rf"^{field}: .*(is not allowed; it must be|is unknown; allowed)"):
        call(**{field: value})


MODEL = noisy_quadratic.power_law(5, target=0.1)
VECTOR = np.arange(1.0, 9)
STEP = functools.partial(hardware.step_time, Hardware())
RING = functools.partial(links.ring, workers=4, d=100, bandwidth=1e9, latency=0)
GATHER = functools.partial(links.gather, workers=4, elements=100, bandwidth=1e9, latency=0)
ARRAYS = [  # functions of one number or of many
    *((call, "workers", (0, 2.5, [4, 0])) for call in (RING, GATHER)),
    (RING, "bandwidth", (0, NAN, [1.0, 0.0])),
    (GATHER, "latency", (-1e-9, INF, [0.0, -1.0])),
    (RING, "d", (-1, INF, [1.0, -1.0])),
    (GATHER, "elements", (-1, "5")),
    (functools.partial(searches.searched, MODEL, [4], replicate=0), "trials", (0, NAN)),
    *((call, "density", (-0.1, NAN, [0.5, -0.1])) for call in (
        bounds.classical, bounds.tighter, bounds.gaussian, functools.partial(portraits.left, VECTOR))),
    (functools.partial(portraits.left, density=0.1), "u", ([], [[1.0, 2.0]], 3.0)),
    (functools.partial(portraits.profile, VECTOR), "bins", (1, 9, 2.0, NAN)),
    (functools.partial(bounds.bell, VECTOR, 4), "tolerance", (-1.0, NAN)),
    (functools.partial(portraits.convex, VECTOR), "rounding", (-1.0, INF)),
    (portraits.convex, "profile", ([], [1.0, 2.0])),
    (bounds.iterations, "delta", (1.1, [0.5, 2.0])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "field", "value"), [(c, f, v) for c, f, values in ARRAYS for v in values], ids=_called
)
def test_a_function_refuses_what_it_cannot_compute_with(call, field, value):
    with pytest.raises(ValueError, match=rf"^{field}: .*is not allowed; it must be"):
        call(**{field: value})


def test_numbers_of_numpy_are_welcome_where_they_are_computed_with():
    assert RING(workers=np.int64(4), d=np.float32(100)) == RING()
    assert (GATHER(workers=np.array([2, 4]))[1:] == GATHER()).all()
    assert STEP(np.array([4, 8]), np.int32(10)) == pytest.approx(STEP([4.0, 8.0], 10))
    assert Hardware(throughput=np.float64(5)) == Hardware(throughput=5.0), "a float64 is a Python float"
    assert np.isnan(RING(d=NAN)) and np.isnan(bounds.iterations(NAN)), "nothing measured"


def test_a_study_without_cells_has_no_toy():
    with pytest.raises(ValueError, match="cells: .* at least one"):
        study.Study("none", "None", ()).smoke()


def test_the_hook_refuses_a_seed_that_cannot_be(monkeypatch):
    monkeypatch.setattr("torch.distributed.get_world_size", lambda group: 1)
    for seed in (-1, 2**40, 1.0, True):
        with pytest.raises(ValueError, match=f"^seed: {seed} is not allowed; it must be a whole number from 0"):
            SparseState(None, seed=seed)
