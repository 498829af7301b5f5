"""Timings: what is timed, and that it is kept whole and read back."""

import dataclasses

import pandas as pd
import pytest
import torch
from torch.utils import flop_counter

from benchmarks import engine
from chapters.frameworks import framework_times
from chapters.operator_cost import links, message_times
from chapters.operator_cost.message_times import TIMED, Collectives, Feedback, Hooked, Operators
from lib.__main__ import main
from lib.measuring import runner
from lib.messages import exchanges
from lib.messages.settings import Messages
from lib.methods import METHODS
from lib.probes import method_times, step_times, timings
from lib.probes.step_times import StepTimes
from lib.records import store
from lib.studies.cells import Cell
from lib.workloads import models, texts


def test_timings_are_kept_whole_and_read_back(tmp_path):
    operators, pairs = Operators(smallest=10, largest=11, repeats=2), Collectives(2, smallest=8, largest=8, repeats=2)
    steps = StepTimes("digits-mlp", largest=4, repeats=2)
    hooked, feedback = Hooked("fnn-3", repeats=2), Feedback(4, 0.1, smallest=8, largest=10, repeats=2)
    timings.run(all_of_them := (operators, pairs, steps, hooked, feedback), tmp_path)
    for what in all_of_them:
        table = timings.results(what, folder=tmp_path)
        assert (table.low <= table.seconds).all() and (table.seconds <= table.high).all() and (table.seconds > 0).all()
    assert set(timings.results(operators, folder=tmp_path).compressor) == set(TIMED)
    assert set(timings.results(pairs, folder=tmp_path).what) == {"all-reduce", "pairs"}
    assert set(timings.results(hooked, folder=tmp_path).what) == {"all-reduce", "top-k", "gaussian-k"}
    assert set(timings.results(feedback, folder=tmp_path).d) == {2**8, 2**10}
    assert list(timings.results(steps, folder=tmp_path).batch_size) == [1, 4, 16]
    assert timings.results(Operators(smallest=9), folder=tmp_path).empty


def test_the_command_line_says_what_is_to_be_taken(monkeypatch, capsys):
    taken = []
    monkeypatch.setattr(runner, "run", lambda todo, *_, **__: taken.extend(todo))
    monkeypatch.setattr(store, "missing", lambda planned, *_: list(planned))
    here, messages = {*method_times.PLANNED, *step_times.PLANNED}, {*message_times.PLANNED}
    every = {"timings": here, "timings-messages": messages, "timings-frameworks": {*framework_times.PLANNED}}
    for name, planned in every.items():
        main(["run", name])
        assert capsys.readouterr().out == f"{name}: {len(planned)} of {len(planned)} sets of timings to measure\n"
        assert planned <= set(taken)
    assert len(taken) == sum(map(len, every.values()))


def test_both_forms_of_top_k_that_are_timed_choose_the_same():
    u = torch.randn(3, 5000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(message_times.TIMED["top-k"](u, 50, None), message_times.library_top_k(u, 50, None))


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


def test_methods_are_timed_beside_sgd_and_divided_by_it(tmp_path):
    few = tuple(method_times.MethodTimes("digits-mlp", name, trials=2, largest=4, repeats=2) for name in ("momentum", "adam"))
    assert method_times.over_sgd(*few, folder=tmp_path).empty
    timings.run(few, tmp_path)
    table = timings.results(*few, folder=tmp_path)
    assert set(table.timed) == {"sgd", "momentum", "adam"} and set(table.batch_size) == {4, 16}
    assert (table.parameters == 64 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10).all() and (table.widest == 64).all()
    over = method_times.over_sgd(*few, folder=tmp_path).set_index(["algorithm", "batch_size"])
    assert (over.loc["sgd"].ratio == 1).all() and ((over.low <= over.ratio) & (over.ratio <= over.high)).all()
    own = table[(table.algorithm == "adam") & (table.batch_size == 16)].set_index("timed").seconds
    assert over.ratio["adam", 16] == own["adam"] / own["sgd"]


def test_a_method_learns_nothing_while_it_is_timed_and_its_steps_are_numbered():
    cell = Cell("digits-mlp", 4, "momentum", trials=2)
    seen, untimed = [], METHODS["momentum"].step

    def step(w, g, buffers, drawn, k, layers):
        seen.append((k, w.clone()))
        untimed(w, g, buffers, drawn, k, layers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "momentum", dataclasses.replace(METHODS["momentum"], step=step))
        block, _ = method_times._run(cell)
        block(), block()
    assert [k for k, _ in seen] == list(range(1, 2 * method_times.BLOCK + 1))
    assert all(torch.equal(w, seen[0][1]) for _, w in seen)


def test_the_engine_s_benchmark_runs_and_counts_the_operations_of_a_sequence():
    for cell in (Cell("digits-mlp", 4, trials=2), Cell("digits-mlp", 4, "adam", trials=2)):
        assert engine.engine_rate(cell, 2) > 0 and engine.plain_rate(cell, 2, threads=1) > 0
    net = models.build("decoder-64x2")
    with flop_counter.FlopCounterMode(display=False) as counted:
        net(torch.zeros(1, texts.CONTEXT, dtype=torch.int64)).sum().backward()
    attention = 12 * 2 * texts.CONTEXT**2 * 64  # of two blocks, 64 wide, which torch does not count
    assert engine.decoder_flops(net) == counted.get_flop_counts()["Global"][torch.ops.aten.mm] + attention


def test_exact_top_k_over_gaussian_k_is_the_median_over_long_vectors_and_its_range_that_of_the_repeats():
    rows = [("torch.topk", 2.0, 1.9, 2.2), ("gaussian-k", 1.0, 0.8, 1.25)]
    timed = pd.DataFrame([{"compressor": name, "d": 2**k, "seconds": s * (1 if k < 26 else 2 if name == "torch.topk" else 1),
                           "low": low, "high": high} for k in (20, 24, 25, 26) for name, s, low, high in rows])  # fmt: skip
    assert links.exact_over_gaussian(timed) == pytest.approx((2.0, 1.9 / 1.25, 2.2 / 0.8, 3))
    assert links.exact_over_gaussian(timed[:0])[3] == links.exact_over_gaussian(timed[timed.d < 2**24])[3] == 0


def test_on_uniform_entries_gaussian_k_sends_next_to_nothing(tmp_path):
    """Its threshold is that of a normal distribution with the same deviation, beyond the largest entry."""
    uniform = Operators(smallest=14, largest=14, repeats=1, drawn="uniform")
    timings.run([uniform], tmp_path)
    sent = timings.results(uniform, folder=tmp_path).set_index("compressor").elements
    assert sent["gaussian-k"] == 0 and sent["top-k"] == sent["torch.topk"] == 16
    with pytest.raises(ValueError, match="drawn: 'exponential' is not allowed"):
        Operators(drawn="exponential")
    with pytest.raises(ValueError, match="device: 'tpu' is not allowed"):
        Operators(device="tpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_graphics_processor_is_waited_for(tmp_path):
    timings.run([Operators(smallest=20, largest=20, repeats=2, device="cuda")], tmp_path)
    assert (timings.results(Operators(smallest=20, largest=20, repeats=2, device="cuda"), folder=tmp_path).seconds > 0).all()
