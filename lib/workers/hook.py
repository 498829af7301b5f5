"""Sparse messages between real processes: a communication hook for PyTorch's
DistributedDataParallel.

    state = SparseState(ddp, compressor="top-k", density=0.01)
    ddp.register_comm_hook(state, sparse_hook)

Pass `scaler=scaler` if a torch.amp.GradScaler multiplies the loss.  For checkpoints, every worker
saves its `state.state_dict()`, since each keeps back something different.  To see it work:
torchrun --nproc-per-node 4 -m lib.workers.hook --workload digits-mlp --density 0.01
"""

# No `from __future__ import annotations`: DistributedDataParallel inspects the hook's annotations,
# which must not be strings.
import argparse

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.futures import Future

from lib import require
from lib.fields import SEED, check
from lib.messages import INDEX_BYTES, VALUE_BYTES, Messages, exchanges
from lib.workers.noise_hook import group_of

BATCH_SIZE = 16  # examples per worker and step in the command below


class SparseState:
    """One worker's side of the exchange: what it keeps back, by parameter, and how much it has
    sent.

    model: the DistributedDataParallel; the workers of its process group exchange gradients.
    seed: for what compressors draw at random.
    scaler: the torch.amp.GradScaler that multiplies the loss; without it, a change of scale makes
    what is kept back wrong by the ratio.
    messages: the other fields of `lib.messages.Messages`, with its errors.

    Everything is sent when the last bucket of gradients is ready, since k counts over the whole
    network.  Nothing here belongs to a bucket: DistributedDataParallel reassigns its buckets after
    the first step, and after a restart.

    What is sent and kept back adds up to all gradients, including rounding to a parameter's
    precision.  If a gradient on any worker is not finite, all gradients of the step become NaN on
    every worker, so that a scaler skips it everywhere, and what is kept back does not change.
    Passes under `no_sync` add up; within `ddp.join()` a worker without batches sends what it has
    kept back, and sums are divided by the number of all workers.  Every step must use all
    parameters: find_unused_parameters is refused, and so are any other module, parameters that it
    ignores, complex ones, and sparse gradients (ValueError from the hook).
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
        trained = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
        aggregation, unused = self.messages.aggregation, model.find_unused_parameters
        ignored = sorted(trained.keys() & model.parameters_to_ignore)
        paired = [name for name, p in trained.items() if p.is_complex()]
        require(aggregation == "exact", "aggregation", aggregation, "exact for the hook")
        require(not unused, "find_unused_parameters", unused, "False for the hook")
        require(not ignored, "ignored parameters", ignored, "none for the hook")
        require(not paired, "complex parameters", paired, "none for the hook: view_as_real")
        self.worker = f"rank {rank} of {workers}"
        self.seed, self.scaler = [seed, rank], scaler
        self.residual = {
            p: p.new_zeros(p.numel(), dtype=torch.promote_types(p.dtype, torch.float32))
            for p in trained.values()
        }
        self.steps = self.elements = self.entries = 0
        # Of the current step: buckets with their futures, and the gradients of all parameters
        self.buckets: list[tuple[Tensor, Future]] = []
        self.pieces: dict[nn.Parameter, Tensor] = {}

    def stats(self) -> dict[str, float]:
        """Number of steps; per step the elements sent by this worker, their bytes, and those of all
        gradients without indices.

        Everything is sent as pairs of value and index, also with the compressor "dense".
        """
        elements = self.elements / max(self.steps, 1)
        entries = self.entries / max(self.steps, 1)
        sizes = {
            "bytes": elements * (VALUE_BYTES + INDEX_BYTES),
            "dense_bytes": entries * VALUE_BYTES,
        }
        return {"steps": self.steps, "elements": elements, **sizes}

    def state_dict(self) -> dict:
        """Everything that the next step depends on, and the worker it belongs to; what is kept back
        is in the order of the parameters.
        """
        counts = {"steps": self.steps, "elements": self.elements, "entries": self.entries}
        return {"worker": self.worker, "residual": list(self.residual.values()), **counts}

    def load_state_dict(self, saved: dict) -> None:
        """Continue from `state_dict`.  Raises ValueError, and changes nothing, if it is not one, or
        from another network, rank or number of workers: what each has kept back would be lost.
        """
        shapes, ours = _shapes(saved), _shapes(self.state_dict())
        require(
            shapes == ours, "saved", shapes, f"what state_dict() returned, of shapes {ours}"
        )
        pairs = zip(self.residual.items(), saved["residual"], strict=True)
        self.residual = {p: part.to(kept) for (p, kept), part in pairs}
        self.steps, self.elements, self.entries = map(
            saved.get, ("steps", "elements", "entries")
        )


def _shapes(state: object) -> object:
    """A saved state with shapes instead of tensors, and without its counts."""
    if not isinstance(state, dict):
        return state
    residual = [tuple(getattr(part, "shape", ())) for part in state.get("residual", ())]
    return {name: None for name in state} | {
        "worker": state.get("worker"),
        "residual": residual,
    }


def sparse_hook(state: SparseState, bucket: dist.GradBucket) -> Future[Tensor]:
    """Average the bucket's gradients over the workers through sparse messages; see SparseState."""
    buffer, future = bucket.buffer(), Future()
    allowed = "dense: give the embedding sparse=False"
    require(not buffer.is_sparse, "gradient", "a sparse tensor, of nn.Embedding", allowed)
    if bucket.index() == 0:
        state.buckets = []
    state.buckets.append((buffer, future))
    state.pieces |= zip(bucket.parameters(), bucket.gradients(), strict=True)
    if bucket.is_last():
        # In the network's order, so that ties are broken as in a single process
        _exchange(state, {p: state.pieces[p].view(-1) for p in state.residual})
        for buffer, waiting in state.buckets:
            waiting.set_result(buffer)
        state.steps += 1
    return future


def _exchange(state: SparseState, pieces: dict[nn.Parameter, Tensor]) -> None:
    """Replace gradients by the mean over workers of what they send; pieces: by parameter, in the
    network's order.
    """
    messages, scale = state.messages, state.scaler.get_scale() if state.scaler else 1.0
    parts = [state.residual[p].add(piece, alpha=1 / scale) for p, piece in pieces.items()]
    u, sizes = torch.cat(parts), [len(part) for part in parts]
    state.entries += len(u)
    spoilt = (~_finite(u)).int()
    dist.all_reduce(spoilt, dist.ReduceOp.MAX, state.group)
    if not spoilt:
        random = np.random.default_rng([*state.seed, state.steps, 0])
        layers = sizes if messages.by_layer else None
        density = messages.density_at(state.steps)
        (chosen,) = exchanges.compress(messages.compressor, u[None], density, random, layers)
        index = chosen.nonzero()[:, 0]
        state.elements += len(index)
        total = sum_of_pairs(index, u[index], len(u), state.group)
        mean = total.div_(messages.workers)
        kept = dict(zip(pieces, torch.where(chosen, 0, u).split(sizes), strict=True))
        for (p, piece), part in zip(pieces.items(), mean.split(sizes), strict=True):
            torch.mul(part, scale, out=piece)
            if piece.dtype != part.dtype:
                kept[p] += part - piece / scale  # what rounding takes, equal on all workers
    if spoilt or not _finite(torch.cat(list(pieces.values()))):
        for piece in pieces.values():
            piece.fill_(torch.nan)
    elif messages.feedback:
        state.residual |= kept


def _finite(x: Tensor) -> Tensor:
    """Whether all of x [d] is finite, bool []: much faster than testing every entry."""
    return torch.stack(x.aminmax()).isfinite().all()


def sum_of_pairs(
    index: Tensor, value: Tensor, d: int, group: dist.ProcessGroup | None = None
) -> Tensor:
    """Sum over the group's workers of their (index, value) pairs, as a vector [d]; workers may send
    different numbers of pairs.  group None: all workers.
    """
    counts = torch.zeros(dist.get_world_size(group), dtype=torch.int64, device=value.device)
    counts[dist.get_rank(group)] = len(index)
    dist.all_reduce(counts, group=group)
    total, gathered = value.new_zeros(d), []
    if not counts.any():
        return total
    for part in index.int(), value:
        padded = nn.functional.pad(part, (0, int(counts.max()) - len(part)))
        gathered.append([torch.empty_like(padded) for _ in counts])
        dist.all_gather(gathered[-1], padded, group)
    # In the order of ranks, on every worker
    for count, indices, values in zip(counts.tolist(), *gathered, strict=True):
        total.index_add_(0, indices[:count].long(), values[:count])
    return total


def train(workload: str, density: float, steps: int) -> str:
    """How training a workload of the book with sparse messages went, in a sentence."""
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
        shard = rows.chunk(workers)[rank]
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(examples.x[shard]), examples.y[shard]).backward()
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
    parser = argparse.ArgumentParser(
        prog="torchrun -m lib.workers.hook", description=train.__doc__
    )
    parser.add_argument(
        "--workload", default="digits-mlp", help="as lib/workloads/catalogue.py"
    )
    parser.add_argument("--density", type=float, default=0.01, help="share of entries to send")
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    # In a function: a model that outlives the process group can hang the process
    outcome = train(**vars(options))
    if dist.get_rank() == 0:
        print(outcome)
    dist.destroy_process_group()
