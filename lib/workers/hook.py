"""Sparse messages between real processes: a communication hook for PyTorch's DistributedDataParallel.

    state = SparseState(ddp, compressor="top-k", density=0.01)
    ddp.register_comm_hook(state, sparse_hook)

and, before a checkpoint, `state.state_dict()`: what a worker keeps back is its own, so every worker saves its own.
To see it work: torchrun --nproc-per-node 4 -m lib.workers.hook --workload digits-mlp --density 0.01
"""

# No `from __future__ import annotations`: DistributedDataParallel reads the hook's, and strings will not do.
import argparse
from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.futures import Future

from lib.messages import compressors
from lib.messages.settings import INDEX_BYTES, VALUE_BYTES, Messages


class SparseState:
    """One worker's side of the exchange: what it keeps back, by parameter, and how much it has sent.

    model: the module or its DistributedDataParallel.  The other arguments are those of `lib.messages.settings.Messages`,
    with its errors.  By layer, every bucket of gradients is sent as soon as it is there, while the backward pass goes
    on; else all wait for the last, since k counts over the whole network.  Nothing here belongs to a bucket:
    DistributedDataParallel deals its buckets anew after the first step, and after a restart.
    """

    def __init__(self, model: nn.Module, group: dist.ProcessGroup | None = None, seed: int = 0, **messages):
        workers = dist.get_world_size(group)
        self.messages = Messages(workers=workers, **messages)
        if self.messages.aggregation != "exact":
            raise ValueError(f"aggregation: {self.messages.aggregation!r} is not allowed; the hook's is exact")
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
        own, other = ({k: v.numel() for k, v in r.items()} for r in (self.residual, saved["residual"]))
        if own != other:
            raise ValueError(
                f"residual: {sorted(set(own.items()) ^ set(other.items()))} differ; load another checkpoint"
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
    own, names = state.messages, [state.names[p] for p in parameters]
    if own.feedback:
        u = u + torch.cat([state.residual[n] for n in names])
    parts = u.split([p.numel() for p in parameters]) if own.by_layer else [u]
    chosen = torch.cat([_chosen(state, part, state.place[p]) for part, p in zip(parts, parameters, strict=False)])
    index = chosen.nonzero()[:, 0]
    state.elements += len(index)
    state.entries += len(u)
    if own.feedback:
        kept = torch.where(chosen, 0, u)
        for name, part in zip(names, kept.split([p.numel() for p in parameters]), strict=True):
            state.residual[name].copy_(part)
    return sum_of_pairs(index, u[index], len(u), state.group).div_(own.workers)


def _chosen(state: SparseState, u: Tensor, place: int) -> Tensor:
    """Which entries of u [d] to send; what is random about it depends on seed, worker, step and the place in the network."""
    own, random = state.messages, np.random.default_rng([*state.seed, state.steps, place])
    return compressors.compress(own.compressor, u[None], own.density_at(state.steps), random)[0]


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


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> None:
    """Train a workload of the book under torchrun with sparse messages; worker 0 tells how it went."""
    parser = argparse.ArgumentParser(prog="torchrun --nproc-per-node P -m lib.workers.hook", description=main.__doc__)
    parser.add_argument("--workload", default="digits-mlp", help="a name in lib/workloads/catalogue.py")
    parser.add_argument("--compressor", default="top-k", choices=list(compressors.COMPRESSORS))
    parser.add_argument("--density", type=float, default=0.01, help="share of the gradient's entries to send, (0, 1]")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=16, help="examples per worker and step")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        _demonstrate(chosen, say)  # of its own: a model that outlives the process group can hang the process
    finally:
        dist.destroy_process_group()


def _demonstrate(chosen: argparse.Namespace, say: Callable[[str], None]) -> None:
    from lib.engine import lockstep
    from lib.workloads import datasets, models
    from lib.workloads.catalogue import workload

    work = workload(chosen.workload)
    examples, validation = work.train(), datasets.load(work.dataset).validation
    rank, workers = dist.get_rank(), dist.get_world_size()
    model = nn.parallel.DistributedDataParallel(models.fresh(work.model, seed=0))
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
            wrong = model.module(validation.x).argmax(1) != validation.y
        told = state.stats()
        say(f"{work.title}, {workers} workers, {chosen.compressor} at density {chosen.density:g}: validation error "
            f"{wrong.float().mean():.3f} after {chosen.steps} steps; {told['bytes']:,.0f} bytes sent per worker and step "
            f"instead of {told['dense_bytes']:,.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
