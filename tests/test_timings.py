"""Timings: what is timed, and that it is kept whole and read back."""


import pytest
import torch

from chapters.operator_cost.message_times import TIMED, Collectives, Hooked, Operators
from lib.probes import timings
from lib.probes.step_times import StepTimes


def test_timings_are_kept_whole_and_read_back(tmp_path):
    operators, pairs = Operators(smallest=10, largest=11, repeats=2), Collectives(2, smallest=8, largest=8, repeats=2)
    steps, hooked = StepTimes("digits-mlp", largest=4, repeats=2), Hooked("fnn-3", repeats=2)
    timings.run(all_of_them := (operators, pairs, steps, hooked), tmp_path)
    for what in all_of_them:
        table = timings.results(what, folder=tmp_path)
        assert (table.low <= table.seconds).all() and (table.seconds <= table.high).all() and (table.seconds > 0).all()
    assert set(timings.results(operators, folder=tmp_path).compressor) == set(TIMED)
    assert set(timings.results(pairs, folder=tmp_path).what) == {"all-reduce", "pairs"}
    assert set(timings.results(hooked, folder=tmp_path).what) == {"all-reduce", "top-k", "gaussian-k"}
    assert list(timings.results(steps, folder=tmp_path).batch_size) == [1, 4, 16]
    assert timings.results(Operators(smallest=9), folder=tmp_path).empty


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_graphics_processor_is_waited_for(tmp_path):
    timings.run([Operators(smallest=20, largest=20, repeats=2, device="cuda")], tmp_path)
    assert (timings.results(Operators(smallest=20, largest=20, repeats=2, device="cuda"), folder=tmp_path).seconds > 0).all()
