"""Real processes that do not wait: workers push gradients, each at its pace, to one that holds the
weights.  It applies each gradient when it arrives (plain SGD), counts the updates since it
sent weights to that worker, and sends the new weights to that worker alone.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch import Tensor

from lib.engine import flattening, lockstep
from lib.engine.sequential import SequentialExecutor
from lib.engine.validation import Validation
from lib.workers import processes
from lib.workloads import datasets
from lib.workloads.catalogue import workload

STOP = -1.0  # sent in place of a version of the weights
SEED = 0
TIMEOUT = 600.0  # seconds that a job may take


def push(job) -> dict:
    """Run a `delays.Job`.  Returns delays and workers of all gradients, in order of arrival
    [steps], and error, the final validation error.  Raises what `processes.launch` raises.
    """
    return processes.launch(_take_part, job.workers + 1, TIMEOUT, job)


def _take_part(rank: int, job) -> dict | None:
    work = workload(job.workload)
    module = work.network(SEED)
    executor = SequentialExecutor(module)
    w = flattening.flatten(module)
    if rank > 0:
        return _work(rank, job, executor, w, work.train())
    delays = _hold(job, w)
    validation = work.data().validation
    wrong = Validation(executor, validation).costs(w[None])[0]
    return delays | {"error": float(wrong / len(validation))}


def _message(number: float, w: Tensor) -> Tensor:
    head = torch.tensor([number], dtype=torch.float64)
    return torch.cat([head, w.double()])


def _hold(job, w: Tensor) -> dict:
    """Update w in place with every gradient that arrives."""
    delays, workers = [], []
    for worker in range(1, job.workers + 1):
        dist.send(_message(0, w), worker)
    left = job.workers
    message = torch.empty(1 + len(w), dtype=torch.float64)
    while left:
        worker = dist.recv(message)
        if len(delays) < job.steps:
            delays.append(len(delays) - int(message[0]))
            workers.append(worker)
            w -= job.learning_rate * message[1:].float()
        done = len(delays) == job.steps
        dist.send(_message(STOP if done else len(delays), w), worker)
        left -= done
    return {"delays": delays, "workers": workers}


def _work(
    rank: int, job, executor: SequentialExecutor, w: Tensor, data: datasets.Split
) -> None:
    """Answer weights with their gradient on this worker's batches, until STOP arrives."""
    message = torch.empty(1 + len(w), dtype=torch.float64)
    inputs = executor.inputs(data.x)
    for pick in lockstep.batches(len(data), job.batch_size, rank):
        dist.recv(message, 0)
        if message[0] == STOP:
            return
        time.sleep(job.pause if rank == job.workers else 0.0)
        w = message[None, 1:].float()
        _, g, _ = executor.gradients(w, inputs[pick], data.y[pick])
        dist.send(_message(message[0], g[0]), 0)
