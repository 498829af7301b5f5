"""Sparse messages between real processes: a communication hook for PyTorch's DistributedDataParallel.

    state = SparseState(ddp, compressor="top-k", density=0.01)
    ddp.register_comm_hook(state, sparse_hook)

and, before a checkpoint, `state.state_dict()`: what a worker keeps back is its own, so every worker saves its own.
To see it work: torchrun --nproc-per-node 4 -m lib.workers.hook --workload digits-mlp --density 0.01
"""

# No `from __future__ import annotations`: DistributedDataParallel reads the hook's, and strings will not do.
import argparse
import math
import os
import time
from collections.abc import Callable
from typing import NoReturn

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.elastic.multiprocessing.errors import get_error_handler
from torch.futures import Future

from lib import require, require_number, require_whole
from lib.messages import compressors
from lib.messages.settings import INDEX_BYTES, VALUE_BYTES, Messages
from lib.workloads import datasets
from lib.workloads.catalogue import Workload, workload

MOST_STEPS = 10**8


class SparseState:
    """One worker's side of the exchange: what it keeps back, by parameter, and how much it has sent.

    model: the module or its DistributedDataParallel.  seed: of what compressors draw at random.  The other arguments
    are those of `lib.messages.settings.Messages`, with its errors.  By layer, every bucket of gradients is sent as soon as it
    is there, while the backward pass goes on; else all wait for the last, since k counts over the whole network.
    Nothing here belongs to a bucket: DistributedDataParallel deals its buckets anew after the first step, and after a
    restart.
    """

    def __init__(self, model: nn.Module, group: dist.ProcessGroup | None = None, seed: int = 0, **messages):
        workers = dist.get_world_size(group)
        self.messages = Messages(workers=workers, **messages)
        require(self.messages.aggregation == "exact", "aggregation", self.messages.aggregation, "exact for the hook")
        require_whole("seed", seed, 0, 2**32 - 1)
        module = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
        self.names = {p: name for name, p in module.named_parameters() if p.requires_grad}
        self.place = {p: i for i, p in enumerate(self.names)}
        self.group, self.seed = group, [seed, dist.get_rank(group)]
        self.residual = {name: torch.zeros_like(p).flatten() for p, name in self.names.items()}
        self.steps, self.elements, self.entries = 0, 0, 0
        self.waiting: list[tuple[Tensor, list[nn.Parameter], Future]] = []

    def stats(self) -> dict[str, float]:
        """Steps so far; per step the elements this worker sent, their bytes, and those of all gradients without indices.

        Everything is sent as pairs of value and index, by the compressor "dense" too.
        """
        elements, entries = (count / max(self.steps, 1) for count in (self.elements, self.entries))
        pairs = elements * (VALUE_BYTES + INDEX_BYTES)
        dense = entries * VALUE_BYTES
        return {"steps": self.steps, "elements": elements, "bytes": pairs, "dense_bytes": dense}

    def state_dict(self) -> dict:
        """All that the next step depends on."""
        kept = {name: r.clone() for name, r in self.residual.items()}
        counts = {"steps": self.steps, "elements": self.elements, "entries": self.entries}
        return {"residual": kept, **counts}

    def load_state_dict(self, saved: dict) -> None:
        """Go on from `state_dict`.  Raises ValueError if it is of a network with other parameters."""
        ours, other = ({k: v.numel() for k, v in r.items()} for r in (self.residual, saved["residual"]))
        if ours != other:
            raise ValueError(
                f"residual: {sorted(set(ours.items()) ^ set(other.items()))} differ; load another checkpoint"
            )
        for name, kept in saved["residual"].items():
            self.residual[name].copy_(kept)
        self.steps, self.elements, self.entries = saved["steps"], saved["elements"], saved["entries"]


def sparse_hook(state: SparseState, bucket: dist.GradBucket) -> Future[Tensor]:
    """Average the bucket's gradients over the workers through sparse messages; see SparseState."""
    future: Future[Tensor] = Future()
    state.waiting.append((bucket.buffer(), bucket.parameters(), future))
    if state.messages.by_layer or bucket.is_last():
        pieces = {}
        for buffer, parameters, _ in state.waiting:
            pieces |= dict(zip(parameters, buffer.split([p.numel() for p in parameters]), strict=True))
        order = [p for p in state.names if p in pieces]  # the network's, so that ties go as in a single process
        mean = _exchange(state, torch.cat([pieces[p] for p in order]), order)
        for p, part in zip(order, mean.split([p.numel() for p in order]), strict=True):
            pieces[p].copy_(part)
        for buffer, _, waiting in state.waiting:
            waiting.set_result(buffer)
        state.waiting = []
    state.steps += bucket.is_last()
    return future


def _exchange(state: SparseState, u: Tensor, parameters: list[nn.Parameter]) -> Tensor:
    """Mean over the workers of what they send of u [d], which holds the parameters' gradients one after another."""
    messages, names = state.messages, [state.names[p] for p in parameters]
    if messages.feedback:
        u = u + torch.cat([state.residual[n] for n in names])
    parts = u.split([p.numel() for p in parameters]) if messages.by_layer else [u]
    chosen = torch.cat([_chosen(state, part, state.place[p]) for part, p in zip(parts, parameters, strict=False)])
    index = chosen.nonzero()[:, 0]
    state.elements += len(index)
    state.entries += len(u)
    if messages.feedback:
        kept = torch.where(chosen, 0, u)
        for name, part in zip(names, kept.split([p.numel() for p in parameters]), strict=True):
            state.residual[name].copy_(part)
    return sum_of_pairs(index, u[index], len(u), state.group).div_(messages.workers)


def _chosen(state: SparseState, u: Tensor, place: int) -> Tensor:
    """Which entries of u [d] to send; what is random about it depends on seed, worker, step and the place in the network."""
    messages, random = state.messages, np.random.default_rng([*state.seed, state.steps, place])
    return compressors.compress(messages.compressor, u[None], messages.density_at(state.steps), random)[0]


def sum_of_pairs(index: Tensor, value: Tensor, d: int, group: dist.ProcessGroup | None) -> Tensor:
    """Sum over the workers of their (index, value) pairs as a vector [d]; every worker may send another number."""
    workers = dist.get_world_size(group)
    counts = [torch.zeros(1, dtype=torch.int64, device=value.device) for _ in range(workers)]
    dist.all_gather(counts, torch.tensor([len(index)], device=value.device), group=group)
    longest = int(max(counts))
    total = torch.zeros(d, dtype=value.dtype, device=value.device)
    if longest == 0:
        return total
    gathered = []
    for part in (index.int(), value):
        mine = part.new_zeros(longest)
        mine[: len(part)] = part
        everyone = [torch.empty_like(mine) for _ in range(workers)]
        dist.all_gather(everyone, mine, group=group)
        gathered.append(everyone)
    for count, indices, values in zip(counts, *gathered, strict=True):  # in the order of ranks, on every worker
        total.index_add_(0, indices[:count].long(), values[:count])
    return total


# --- torchrun -m lib.workers.hook ----------------------------------------------------------------------------------------


WAIT = 60  # seconds at most in which the first worker of a machine has said what is wrong


class _Parser(argparse.ArgumentParser):
    """Of the workers of a machine, who all read the same arguments, the first alone says what is wrong with them."""

    def error(self, message: str) -> NoReturn:
        if int(os.environ.get("LOCAL_RANK", "0")):
            time.sleep(WAIT)  # torchrun ends all as soon as one has failed: let the one that speaks be that one
            self.exit(2)
        try:
            raise ValueError(message) from None
        except ValueError as wrong:
            get_error_handler().record_exception(wrong)  # torchrun ends its own report with it
        self.exit(2, f"{self.prog}: error: {message}\n")


def _chosen_workload(chosen: argparse.Namespace, workers: int) -> Workload:
    """The workload, after all arguments are checked.  Raises ValueError naming the one that does not fit."""
    work = workload(chosen.workload)
    Messages(workers, chosen.compressor, chosen.density)
    require_whole("steps", chosen.steps, 1, MOST_STEPS)
    require_number("learning-rate", chosen.learning_rate, lambda v: 0 < v < math.inf, "a positive finite number")
    n = work.train_size
    require(workers <= n, "nproc-per-node", workers, f"at most {n}, one for each training example of {work.name}")
    share = f" ({work.name} has {n} training examples for {workers} workers)"
    require_whole("batch-size", chosen.batch_size, 1, n // workers, share)
    return work


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> None:
    """Train a workload of the book under torchrun with sparse messages; worker 0 tells how it went."""
    parser = _Parser(prog="torchrun --nproc-per-node P -m lib.workers.hook", description=main.__doc__)
    parser.add_argument("--workload", default="digits-mlp", help="a name in lib/workloads/catalogue.py, or file.py:function")
    parser.add_argument("--compressor", default="top-k", choices=list(compressors.COMPRESSORS))
    parser.add_argument("--density", type=float, default=0.01, help="share of the gradient's entries to send, (0, 1]")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=16, help="examples per worker and step")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    chosen = parser.parse_args(arguments)
    if "RANK" not in os.environ:
        parser.error(f"RANK: it is not set; start the workers with {parser.prog}")
    try:
        work = _chosen_workload(chosen, int(os.environ["WORLD_SIZE"]))
        data = work.train(), datasets.load(work.dataset).validation
    except (ValueError, datasets.DatasetError) as error:
        parser.error(str(error))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        # In a function: a model that outlives the process group can hang the process.
        _demonstrate(work.title, work.model, data, chosen, say)
    finally:
        dist.destroy_process_group()


def _demonstrate(
    title: str, network: str, data: tuple[datasets.Split, datasets.Split], chosen: argparse.Namespace, say: Callable[[str], None]
) -> None:
    from lib.engine import lockstep
    from lib.workloads import models

    examples, validation = data
    rank, workers = dist.get_rank(), dist.get_world_size()
    model = nn.parallel.DistributedDataParallel(models.fresh(network, seed=0))
    state = SparseState(model, compressor=chosen.compressor, density=chosen.density)
    model.register_comm_hook(state, sparse_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=chosen.learning_rate, momentum=0.9)
    order = lockstep.batches(len(examples), workers * chosen.batch_size, seed=0)
    for _, rows in zip(range(chosen.steps), order, strict=False):
        mine = rows.chunk(workers)[rank]
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(examples.x[mine]), examples.y[mine]).backward()
        optimizer.step()
    if rank == 0:
        with torch.no_grad():
            answers = model.module(validation.x)
        error = f"validation error {(answers.argmax(1) != validation.y).float().mean():.3f}"
        told, met = state.stats(), error if answers.isfinite().all() else "diverged (it needs a smaller learning rate)"
        say(f"{title}, {workers} workers, {chosen.compressor} at density {chosen.density:g}: {met} "
            f"after {chosen.steps} steps; {told['bytes']:,.0f} bytes sent per worker and step "
            f"instead of {told['dense_bytes']:,.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
