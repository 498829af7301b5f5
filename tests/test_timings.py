"""Timings: what is timed, and that it is kept whole and read back."""

import torch

from lib import message_cost, timings
from lib.hardware import StepTimes
from lib.message_cost import TIMED, Collectives, Operators


def test_timings_are_kept_whole_and_read_back(tmp_path):
    operators, pairs = Operators(smallest=10, largest=11, repeats=2), Collectives(2, smallest=8, largest=8, repeats=2)
    steps = StepTimes("digits-mlp", largest=4, repeats=2)
    timings.run((operators, pairs, steps), tmp_path)
    for what in (operators, pairs, steps):
        table = timings.results(what, folder=tmp_path)
        assert (table.low <= table.seconds).all() and (table.seconds <= table.high).all() and (table.seconds > 0).all()
    assert set(timings.results(operators, folder=tmp_path).compressor) == set(TIMED)
    assert set(timings.results(pairs, folder=tmp_path).what) == {"all-reduce", "pairs"}
    assert list(timings.results(steps, folder=tmp_path).batch_size) == [1, 4, 16]
    assert timings.results(Operators(smallest=9), folder=tmp_path).empty


def test_both_forms_of_top_k_that_are_timed_choose_the_same():
    u = torch.randn(3, 5000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(message_cost.TIMED["top-k"](u, 50, None), message_cost.library_top_k(u, 50, None))
