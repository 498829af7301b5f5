"""How long a step of each framework (`frameworks`) takes, what it sends, and how much of it is
spent waiting for a core.
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

from chapters.batch_size_is_data_parallelism import frameworks
from chapters.batch_size_is_data_parallelism.frameworks import (
    OneProcess,
    Training,
    everyones,
    sent,
)

BLOCK = 0.02  # least seconds that one process computes between two readings of the clock


def timed(
    rank: int, training: Training, x: np.ndarray, y: np.ndarray, repeats: int
) -> list[dict]:
    """Times of steps with every system, between this process and the others: `repeats` rounds in
    which all systems take turns.  x, y: a batch.

    A row per system: system; seconds of a step if each process had its own core and messages cost
    only their computing (median over rounds); low, high (quartiles); wall (elapsed seconds,
    median); waited (median share of wall in which a process waited for a core, as Linux counts it;
    NaN elsewhere); sent (bytes per step, of the process that sends more); parameters, gradients,
    states, residuals (bytes, of the process that holds more).
    """
    x, y = torch.from_numpy(x).to(training.type), torch.from_numpy(y)
    systems = {name: kind(training, rank, x[:1]) for name, kind in frameworks.SYSTEMS.items()}
    if rank > 0:
        systems["one"] = None  # the other process works alone
    bytes_ = {name: _bytes(system, x, y) for name, system in systems.items()}
    alone = max(everyones(_block(systems["one"], x, y, frameworks.WARM_UP)[1]))
    steps = math.ceil(BLOCK / alone)
    names = list(systems)
    blocks = {name: [] for name in names}
    for k in range(repeats):
        turn = k % len(names)  # each round starts with another system
        for name in names[turn:] + names[:turn]:
            blocks[name].append(_block(systems[name], x, y, steps))
    rows = []
    for name, mine in blocks.items():
        rounds = np.array(everyones(mine))
        rows.append(_row(name, rounds, training.micro_batches) | bytes_[name])
    systems.clear()
    gc.collect()  # a model that outlives the process group can hang the process
    return rows


def _block(system: OneProcess | None, x: Tensor, y: Tensor, steps: int) -> list[float]:
    """Seconds per step: elapsed from all ready to all done, spent computing by this process, and
    spent waiting for a core.
    """
    dist.barrier()
    began = _clocks()
    for _ in range(steps if system is not None else 0):
        system.step(x, y)
    dist.barrier()
    return ((_clocks() - began) / steps).tolist()


def _clocks() -> np.ndarray:
    """Seconds on the clock, computing, and with a thread of this process ready to compute but
    without a core, as Linux counts them (NaN elsewhere).
    """
    queued = 0
    for thread in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # ended since it was listed
            queued += int(thread.read_text(encoding="utf-8").split()[1])
    waited = queued / 1e9 if sys.platform == "linux" else math.nan
    return np.array([time.perf_counter(), time.process_time(), waited])


def _row(name: str, blocks: np.ndarray, micro_batches: int) -> dict[str, float]:
    """The times in a row of `timed`, from a system's `_block` values [processes, rounds, 3]."""
    wall, computed = blocks[0, :, 0], blocks[:, :, 1]
    # With a core per process, a step takes as long as the busier process computes. In a pipeline,
    # that process also waits while the other computes one micro-batch forward and back.
    busy = computed.max(0) + (computed.min(0) / micro_batches if name == "pipeline" else 0)
    low, middle, high = np.quantile(busy, [0.25, 0.5, 0.75]).tolist()
    waited = float(np.median(blocks[:, :, 2].max(0) / wall))
    times = {"seconds": middle, "low": low, "high": high, "wall": float(np.median(wall))}
    return {"system": name, **times, "waited": waited}


def _bytes(system: OneProcess | None, x: Tensor, y: Tensor) -> dict[str, float]:
    """Bytes that a step sends and that are held between steps, of the process with more."""
    mine = {"sent": 0.0}
    if system is not None:
        for _ in range(frameworks.WARM_UP):
            system.step(x, y)
        before = sent()
        system.step(x, y)
        mine = {"sent": sent() - before, **system.held()}
    processes = everyones(mine)
    return {name: max(process.get(name, 0) for process in processes) for name in processes[0]}
