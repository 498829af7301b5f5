"""What sparse messages cost, as ratios measured in one run.

    python -m benchmarks.messages          # all three; a few minutes
    python -m benchmarks.messages hook     # only the hook

Run it on an idle machine.  Every ratio compares things measured side by side, alternately, by their medians.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

import benchmarks
from chapters.gradients.message_times import library_top_k
from lib.engine.sequential import SequentialExecutor
from lib.measuring import machine
from lib.messages import Messages, target
from lib.messages.exchanges import COMPRESSORS, Exchange
from lib.workers.hook import SparseState, sparse_hook
from lib.workloads import models

ROUNDS = 7
DENSITY = 0.001


def alternately(*calls: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Median seconds of several calls, taken in turn after one round to warm up."""
    times = [[_seconds(call) for call in calls] for _ in range(rounds + 1)][1:]
    return np.median(times, axis=0).tolist()


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def operators() -> None:
    """Exact Top-k, PyTorch's and ours in two levels, over Gaussian-k, on normal vectors of 2^20 to 2^26 entries."""
    machine.use_one_core()
    for power in range(20, 27):
        u, k = torch.randn(1, 2**power), target(DENSITY, 2**power)
        plain, exact, guessed = alternately(
            lambda u=u, k=k: library_top_k(u, k, None),
            lambda u=u, k=k: COMPRESSORS["top-k"](u, k, None),
            lambda u=u, k=k: COMPRESSORS["gaussian-k"](u, k, None),
        )
        print(
            f"2^{power}: over Gaussian-k ({guessed:.4f} s): torch.topk {plain / guessed:.2f} x, Top-k {exact / guessed:.2f} x"
        )


def feedback() -> None:
    """One exchange of 16 workers with Top-k and error feedback, ours over the plainest torch code for the same."""
    machine.use_one_core()
    workers, d = 16, models.parameter_count(models.build("fnn-3"))
    k, gradients = target(DENSITY, d), torch.randn(workers, 1, d)
    kept = [torch.zeros(d) for _ in range(workers)]

    class Given:
        def gradients(self, w, x, y):
            return torch.zeros(1), gradients[int(x[0])], torch.ones(1, dtype=torch.bool)

        gradients_by_worker = SequentialExecutor.gradients_by_worker

    x, y, w = torch.arange(workers), torch.zeros(workers, dtype=torch.long), torch.zeros(1, d)
    exchange = Exchange(Messages(workers, "top-k", DENSITY), w, None, [d], 0)

    def plain() -> torch.Tensor:
        total = torch.zeros(d)
        for p in range(workers):
            u = kept[p] + gradients[p, 0]
            index = torch.topk(u.abs(), k).indices
            sent = torch.zeros(d)
            sent[index] = u[index]
            kept[p] = u - sent
            total += sent
        return total / workers

    ours, theirs = alternately(lambda: exchange.gradients(Given(), w, x, y), plain, rounds=30)
    print(
        f"{workers} workers, {d:,} parameters: ours {1e3 * ours:.1f} ms, plain {1e3 * theirs:.1f} ms: {ours / theirs:.2f} x"
    )


def _step_times(rank: int, folder: str, steps: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo", init_method=Path(folder, "store").as_uri(), rank=rank, world_size=2
    )
    x, y = torch.randn(32, 1, 28, 28), torch.randint(0, 10, (32,))
    nets = [nn.parallel.DistributedDataParallel(models.fresh("fnn-3", 0)) for _ in range(2)]
    nets[1].register_comm_hook(
        SparseState(nets[1], compressor="top-k", density=DENSITY), sparse_hook
    )
    calls = [lambda net=net: F.cross_entropy(net(x), y).backward() for net in nets]
    medians = alternately(*calls, rounds=steps)
    if rank == 0:
        torch.save([float(m) for m in medians], Path(folder, "times"))
    dist.destroy_process_group()


def hook() -> None:
    """A training step with the hook over one with DistributedDataParallel's own all-reduce, two processes."""
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(_step_times, (folder, 200), nprocs=2, start_method="spawn")
        plain, sparse = torch.load(Path(folder, "times"), weights_only=True)
    print(
        f"FNN-3, P = 2: all-reduce {1e3 * plain:.2f} ms, hook {1e3 * sparse:.2f} ms: {sparse / plain:.2f} x"
    )


if __name__ == "__main__":
    measures = {"operators": operators, "feedback": feedback, "hook": hook}
    for name in benchmarks.chosen(__doc__, measures):
        measures[name]()
