"""Timings: what is timed, and that it is kept whole and read back."""


import pytest
import torch

from chapters.operator_cost import message_times
from chapters.operator_cost.message_times import TIMED, Collectives, Hooked, Operators
from lib.messages import exchanges
from lib.messages.settings import Messages
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


def test_the_plainest_code_does_what_ours_does():
    g, kept, w = (
        torch.randn(4, 1, 3000, generator=torch.Generator().manual_seed(0)),
        torch.zeros(4, 3000),
        torch.zeros(1, 3000),
    )
    ours = exchanges.Exchange(Messages(4, "top-k", 0.01), 1, 3000, None, [3000], 0)
    for _ in range(5):
        mean = ours.gradients(message_times.Given(g), w, w, w)[1]
        assert torch.allclose(mean[0], message_times.plainest(kept, g[:, 0], 30), atol=1e-6)
    assert torch.allclose(ours.residual[:, 0], kept, atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_graphics_processor_is_waited_for(tmp_path):
    timings.run([Operators(smallest=20, largest=20, repeats=2, device="cuda")], tmp_path)
    assert (timings.results(Operators(smallest=20, largest=20, repeats=2, device="cuda"), folder=tmp_path).seconds > 0).all()
