"""Sparse messages between real processes: a communication hook for PyTorch's
DistributedDataParallel.

    state = SparseState(ddp, compressor="top-k", density=0.01)
    ddp.register_comm_hook(state, sparse_hook)

with `scaler=scaler` where a torch.amp.GradScaler multiplies the loss; and, before a checkpoint,
`state.state_dict()`: what a worker keeps back is its own, so every worker saves its own. To see it
work: torchrun --nproc-per-node 4 -m lib.workers.hook --workload digits-mlp --density 0.01
"""

# No `from __future__ import annotations`: DistributedDataParallel reads the hook's, and strings
# will not do.
import argparse

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.futures import Future
from torch.utils import _pytree

from lib import require
from lib.fields import SEED, check
from lib.messages import INDEX_BYTES, VALUE_BYTES, Messages, exchanges
from lib.workers.noise_hook import group_of
from lib.workers.noise_meter import require_dense, scale_of

COUNTS = ("steps", "elements", "entries")  # of a saved state


class SparseState:
    """One worker's side of the exchange: what it keeps back, by parameter, and how much it has
    sent.

    model: the DistributedDataParallel, whose process group's workers exchange.
    seed: of what compressors draw at random.
    scaler: the torch.amp.GradScaler that multiplies the loss, without which a new scale makes what
    is kept back wrong by the ratio.
    messages: the other fields of `lib.messages.Messages`, with its errors.

    All is sent when the last bucket of gradients is there, since k counts over the whole network.
    Nothing here belongs to a bucket: DistributedDataParallel deals its buckets anew after the first
    step, and after a restart.

    What is sent and kept back adds up to all gradients, rounding to a parameter's precision
    included.  A gradient that is not finite, on any worker, makes all gradients of the step NaN on
    every worker, so that a scaler skips it everywhere, and what is kept back stays as it was.
    Passes under `no_sync` add up; within `ddp.join()` a worker without batches sends what it has
    kept back, and sums are divided by the number of all workers.  Every step uses all parameters:
    find_unused_parameters is refused; so are any other module, parameters that it ignores, complex
    ones, and sparse gradients (ValueError from the hook).
    """

    def __init__(
        self,
        model: nn.parallel.DistributedDataParallel,
        seed: int = 0,
        scaler: torch.amp.GradScaler | None = None,
        **messages,
    ):
        check("seed", seed, SEED)
        self.group = group_of(model)
        workers, rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        self.messages = Messages(workers=workers, **messages)
        aggregation = self.messages.aggregation
        require(aggregation == "exact", "aggregation", aggregation, "exact for the hook")
        unused = model.find_unused_parameters
        require(not unused, "find_unused_parameters", unused, "False for the hook")
        self.worker = f"rank {rank} of {workers}"
        self.seed, self.scaler = [seed, rank], scaler
        trained = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
        ignored = sorted(trained.keys() & model.parameters_to_ignore)
        require(not ignored, "ignored parameters", ignored, "none for the hook")
        paired = [name for name, p in trained.items() if p.is_complex()]
        require(not paired, "complex parameters", paired, "none for the hook: view_as_real")
        self.residual = {
            p: p.new_zeros(p.numel(), dtype=torch.promote_types(p.dtype, torch.float32))
            for p in trained.values()
        }
        self.steps = self.elements = self.entries = 0
        # Of the step under way: buckets with what waits for them, and the parts of all parameters
        self.buckets: list[tuple[Tensor, Future]] = []
        self.pieces: dict[nn.Parameter, Tensor] = {}

    def stats(self) -> dict[str, float]:
        """Steps so far; per step the elements this worker sent, their bytes, and those of all
        gradients without indices.

        Everything is sent as pairs of value and index, by the compressor "dense" too.
        """
        elements, entries = (
            count / max(self.steps, 1) for count in (self.elements, self.entries)
        )
        pairs = elements * (VALUE_BYTES + INDEX_BYTES)
        dense = entries * VALUE_BYTES
        return {"steps": self.steps, "elements": elements, "bytes": pairs, "dense_bytes": dense}

    def state_dict(self) -> dict:
        """All that the next step depends on, and whose it is; what is kept back in the order of the
        parameters.
        """
        counts = {name: getattr(self, name) for name in COUNTS}
        return {"worker": self.worker, "residual": list(self.residual.values()), **counts}

    def load_state_dict(self, saved: dict) -> None:
        """Go on from `state_dict`.  Raises ValueError, and changes nothing, for what is none, of
        another network, of another rank or of another number of workers: what each of them has kept
        back would be lost.
        """
        own, told = (
            _pytree.tree_map(
                lambda leaf: (
                    leaf if isinstance(leaf, str) else tuple(getattr(leaf, "shape", ()))
                ),
                state,
            )
            for state in (self.state_dict(), saved)
        )
        require(told == own, "saved", told, f"what state_dict() returned, of shapes {own}")
        pairs = zip(self.residual.items(), saved["residual"], strict=True)
        self.residual = {p: was.to(kept) for (p, kept), was in pairs}
        self.steps, self.elements, self.entries = (saved[name] for name in COUNTS)


def sparse_hook(state: SparseState, bucket: dist.GradBucket) -> Future[Tensor]:
    """Average the bucket's gradients over the workers through sparse messages; see SparseState."""
    require_dense(bucket.buffer())
    if bucket.index() == 0:
        state.buckets = []
    future: Future[Tensor] = Future()
    state.buckets.append((bucket.buffer(), future))
    state.pieces |= zip(bucket.parameters(), bucket.gradients(), strict=True)
    if bucket.is_last():
        # In the network's order, so that ties go as in a single process
        _exchange(state, {p: state.pieces[p].view(-1) for p in state.residual})
        for buffer, waiting in state.buckets:
            waiting.set_result(buffer)
        state.steps += 1
    return future


def _exchange(state: SparseState, pieces: dict[nn.Parameter, Tensor]) -> None:
    """Replace gradients by the mean over the workers of what they send; pieces: of the parameters,
    in the network's order.
    """
    messages, scale = state.messages, scale_of(state.scaler)
    own = [state.residual[p].add(piece, alpha=1 / scale) for p, piece in pieces.items()]
    u, sizes = torch.cat(own), [len(part) for part in own]
    state.entries += len(u)
    spoilt = (~_finite(u)).int()
    dist.all_reduce(spoilt, dist.ReduceOp.MAX, state.group)
    if not spoilt:
        random = np.random.default_rng([*state.seed, state.steps, 0])
        layers = sizes if messages.by_layer else None
        asked = messages.compressor, u[None], messages.density_at(state.steps), random, layers
        (chosen,) = exchanges.compress(*asked)
        index = chosen.nonzero()[:, 0]
        state.elements += len(index)
        total = sum_of_pairs(index, u[index], len(u), state.group)
        mean = total.div_(messages.workers)
        kept = dict(zip(pieces, torch.where(chosen, 0, u).split(sizes), strict=True))
        for (p, piece), part in zip(pieces.items(), mean.split(sizes), strict=True):
            torch.mul(part, scale, out=piece)
            if piece.dtype != part.dtype:
                kept[p] += part - piece / scale  # what rounding takes from all workers alike
    if spoilt or not _finite(torch.cat(list(pieces.values()))):
        for piece in pieces.values():
            piece.fill_(torch.nan)
    elif messages.feedback:
        state.residual |= kept


def _finite(x: Tensor) -> Tensor:
    """Whether all of x [d] is, bool []: far faster than asking every entry."""
    return torch.stack(x.aminmax()).isfinite().all()


def sum_of_pairs(
    index: Tensor, value: Tensor, d: int, group: dist.ProcessGroup | None = None
) -> Tensor:
    """Sum over the group's workers of their (index, value) pairs as a vector [d]; every worker may
    send another number.  None: the world's.
    """
    workers = dist.get_world_size(group)
    counts = torch.zeros(workers, dtype=torch.int64, device=value.device)
    counts[dist.get_rank(group)] = len(index)
    dist.all_reduce(counts, group=group)
    counts, total = counts.tolist(), value.new_zeros(d)
    if not any(counts):
        return total
    indices, values = (_gathered(part, max(counts), group) for part in (index.int(), value))
    # In the order of ranks, on every worker
    for count, at, added in zip(counts, indices, values, strict=True):
        total.index_add_(0, at[:count].long(), added[:count])
    return total


def _gathered(part: Tensor, longest: int, group: dist.ProcessGroup | None) -> list[Tensor]:
    """Every worker's vector, padded to the longest."""
    own = nn.functional.pad(part, (0, longest - len(part)))
    everyone = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(everyone, own, group)
    return everyone


# --- torchrun -m lib.workers.hook -----------------------------------------------------------------

BATCH_SIZE = 16  # examples per worker and step


def main() -> None:
    """Train a workload of the book under torchrun with sparse messages."""
    parser = argparse.ArgumentParser(
        prog="torchrun -m lib.workers.hook", description=main.__doc__
    )
    parser.add_argument(
        "--workload", default="digits-mlp", help="as lib/workloads/catalogue.py"
    )
    parser.add_argument("--density", type=float, default=0.01, help="share of entries to send")
    parser.add_argument("--steps", type=int, default=500)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    # In a function: a model that outlives the process group can hang the process
    told = _trained(**vars(chosen))
    if dist.get_rank() == 0:
        print(told)
    dist.destroy_process_group()


def _trained(workload: str, density: float, steps: int) -> str:
    """How the training went, in a sentence."""
    from lib.engine import lockstep
    from lib.workloads import catalogue

    work = catalogue.workload(workload)
    rank, workers = dist.get_rank(), dist.get_world_size()
    data = work.data()
    examples, validation = data.train, data.validation
    model = nn.parallel.DistributedDataParallel(work.network())
    state = SparseState(model, compressor="top-k", density=density)
    model.register_comm_hook(state, sparse_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    order = lockstep.batches(len(examples), workers * BATCH_SIZE, seed=0)
    for _, rows in zip(range(steps), order, strict=False):
        mine = rows.chunk(workers)[rank]
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(examples.x[mine]), examples.y[mine]).backward()
        optimizer.step()
    with torch.no_grad():
        wrong = model.module(validation.x).argmax(1) != validation.y
    sent = state.stats()
    return (
        f"{work.title}, {workers} workers, top-k at density {density:g}: "
        f"validation error {wrong.float().mean():.3f} after {steps} steps; "
        f"{sent['bytes']:,.0f} bytes sent per worker and step instead of {sent['dense_bytes']:,.0f}"
    )


if __name__ == "__main__":
    main()
