"""How long a step of every framework takes, what it sends, and how often it waits: see
`frameworks`.
"""

from __future__ import annotations

import contextlib
import gc
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from chapters.frameworks import frameworks
from chapters.frameworks.frameworks import OneProcess, Training, everyones, sent
from lib import require

BLOCK = 0.02  # seconds that one process computes between two looks at the clock, at least


def timed(
    rank: int, training: Training, x: np.ndarray, y: np.ndarray, repeats: int
) -> list[dict]:
    """Times of steps of every system between this process and others, all in turn, so many rounds.

    x, y: a batch.  A row per system: system, seconds of a step if each process had a core and
    messages took no time beyond the computing that they ask for (median over rounds), low, high
    (their quartiles), processor (seconds that both processes computed, median), wall (seconds that
    went by, median), waited (median share of these in which a process waited for a core, as Linux
    counts it; NaN elsewhere); sent (bytes of a step of the process that sends more), waits
    (messages of a step one after the other, if none goes beside another), parameters, gradients,
    states, residuals (bytes held by the process that holds more).  Raises ValueError for a
    collective that is not known here.
    """
    x = torch.from_numpy(x).to(training.type)
    y = torch.from_numpy(y)
    systems = {name: kind(training, rank, x[:1]) for name, kind in frameworks.SYSTEMS.items()}
    if rank > 0:
        systems["one"] = None  # the other process works alone
    about = {name: _about(system, x, y) for name, system in systems.items()}
    alone = max(everyones(_block(systems["one"], x, y, frameworks.WARM_UP)[1]))
    steps = math.ceil(BLOCK / alone)
    names = list(systems)
    blocks = {name: [] for name in names}
    for k in range(repeats):
        turn = k % len(names)  # another one is first in every round
        for name in names[turn:] + names[:turn]:
            blocks[name].append(_block(systems[name], x, y, steps))
    rows = [
        _row(name, np.array(everyones(own)), training.micro_batches) | about[name]
        for name, own in blocks.items()
    ]
    systems.clear()
    gc.collect()  # a model that outlives the process group can hang the process
    return rows


def _block(system: OneProcess | None, x: Tensor, y: Tensor, steps: int) -> list[float]:
    """Of a step: seconds from when all are ready until all are done, those that this process
    computed, and waited for a core.
    """
    dist.barrier()
    began = _clocks()
    for _ in range(steps if system is not None else 0):
        system.step(x, y)
    dist.barrier()
    return ((_clocks() - began) / steps).tolist()


def _clocks() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time(), queued()])


def queued() -> float:
    """Seconds in which this process's threads were ready to compute and had no core, as Linux
    counts them; elsewhere NaN.
    """
    total = 0
    for thread in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # ended since it was listed
            total += int(thread.read_text(encoding="utf-8").split()[1])
    return total / 1e9 if sys.platform == "linux" else math.nan


def _row(name: str, blocks: np.ndarray, micro_batches: int) -> dict[str, float]:
    """What `timed` reports of a system's blocks [processes, rounds, 3], each as `_block` has it."""
    wall = blocks[0, :, 0]
    computed = blocks[:, :, 1]
    waited = blocks[:, :, 2].max(0)
    # On cores of its own, a step takes as long as its busier process computes. Of two stages, this
    # one waits besides for a micro-batch of the other to come and to go.
    busy = computed.max(0) + (computed.min(0) / micro_batches if name == "pipeline" else 0)
    low, middle, high = np.quantile(busy, [0.25, 0.5, 0.75]).tolist()
    return {
        "system": name,
        "seconds": middle,
        "low": low,
        "high": high,
        "processor": float(np.median(computed.sum(0))),
        "wall": float(np.median(wall)),
        "waited": float(np.median(waited / wall)),
    }


def _about(system: OneProcess | None, x: Tensor, y: Tensor) -> dict[str, float]:
    """What a step sends, its waits for messages, and what is held; of the process with more."""
    found = {"waits": 0, "sent": 0.0}
    if system is not None:
        for _ in range(frameworks.WARM_UP):
            system.step(x, y)
        before = sent()
        with Collectives() as counted:
            system.step(x, y)
        found = {"waits": counted.waits, "sent": sent() - before, **system.held()}
    every = everyones(found)
    return {name: max(one.get(name, 0) for one in every) for name in every[0]}


# Messages that one process sends one after the other, by what PyTorch calls it: with gloo, a sum is
# scattered and gathered, and a reduce-scatter is a sum of all
ONCE = ("allgather", "allgather_base", "broadcast", "send", "recv")
ROUNDS = {"allreduce": 2, "reduce_scatter_base": 2, **dict.fromkeys(ONCE, 1)}


class Collectives(TorchDispatchMode):
    """Counts the messages of what processes send each other while it is entered, by ROUNDS."""

    waits = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        space, _, name = func.name().partition("::")
        if space == "c10d":
            call = name.partition(".")[0].strip("_")
            require(call in ROUNDS, "call", call, f"of {tuple(ROUNDS)}")
            self.waits += ROUNDS[call]
        return func(*args, **(kwargs or {}))
