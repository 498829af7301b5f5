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
import os
import time
from collections.abc import Callable, Iterable
from typing import NoReturn

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.elastic.multiprocessing.errors import get_error_handler
from torch.futures import Future

from lib import require
from lib.fields import POSITIVE, SEED, Count, Whole, check
from lib.messages import compressors
from lib.messages.settings import INDEX_BYTES, VALUE_BYTES, Messages
from lib.workers.hooked import require_dense, require_fields, require_scaler, scale_of
from lib.workloads import datasets
from lib.workloads.catalogue import Workload, workload

MOST_STEPS = 10**8
MOST_COUNTED = 2**62
COUNTS = ("steps", "elements", "entries")  # of a saved state


class SparseState:
    """One worker's side of the exchange: what it keeps back, by parameter, and how much it has
    sent.

    model: the module or its DistributedDataParallel.  seed: of what compressors draw at random.
    scaler: the torch.amp.GradScaler that multiplies the loss, without which a new scale makes what
    is kept back wrong by the ratio. The other arguments are those of
    `lib.messages.settings.Messages`, with its errors.  By layer, every bucket of gradients is sent
    as soon as it is there, while the backward pass goes on; else all wait for the last, since k
    counts over the whole network.  Nothing here belongs to a bucket: DistributedDataParallel deals
    its buckets anew after the first step, and after a restart.

    What is sent and kept back adds up to all gradients, rounding to a parameter's precision
    included.  A gradient that is not finite, on any worker, makes all gradients of the step NaN on
    every worker, so that a scaler skips it everywhere, and what is kept back stays as it was.
    Parameters that no worker used keep theirs.  Passes under `no_sync` add up; within `ddp.join()`
    a worker without batches sends what it has kept back, and sums are divided by the number of all
    workers. Sparse gradients are refused (ValueError from the hook).
    """

    def __init__(
        self,
        model: nn.Module,
        group: dist.ProcessGroup | None = None,
        seed: int = 0,
        scaler: torch.amp.GradScaler | None = None,
        **messages,
    ):
        workers = dist.get_world_size(group)
        self.messages = Messages(workers=workers, **messages)
        require(
            self.messages.aggregation == "exact",
            "aggregation",
            self.messages.aggregation,
            "exact for the hook",
        )
        check("seed", seed, SEED)
        require_scaler(scaler)
        module = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
        self.names = {p: name for name, p in module.named_parameters() if p.requires_grad}
        self.place = {p: i for i, p in enumerate(self.names)}
        self.group, self.seed, self.scaler = group, [seed, dist.get_rank(group)], scaler
        self.residual = {
            name: torch.zeros_like(p, dtype=_exact(p.dtype)).flatten()
            for p, name in self.names.items()
        }
        self.steps, self.elements, self.entries = 0, 0, 0
        self.used = _used(self.names)
        self._begin()

    def _begin(self) -> None:
        """A new step.  What it keeps back is pending until all of it is known to be finite."""
        self.buckets: list[tuple[Tensor, list[nn.Parameter], Future]] = []
        self.pending: dict[str, Tensor] = {}
        self.finite, self.scale = True, scale_of(self.scaler)

    def _end(self) -> None:
        """Only now are gradients handed back: a bucket that is not finite stops those that were
        sent before it.
        """
        if self.finite:
            for name, kept in self.pending.items():
                self.residual[name].copy_(kept)
        for buffer, _, future in self.buckets:
            future.set_result(buffer if self.finite else buffer.fill_(torch.nan))
        self.buckets, self.pending = [], {}
        self.used.clear()
        self.steps += 1

    def stats(self) -> dict[str, float]:
        """Steps so far; per step the elements this worker sent, their bytes, and those of all
        gradients without indices.

        Everything is sent as pairs of value and index, by the compressor "dense" too.
        """
        elements, entries = (count / max(self.steps, 1) for count in (self.elements, self.entries))
        pairs = elements * (VALUE_BYTES + INDEX_BYTES)
        dense = entries * VALUE_BYTES
        return {"steps": self.steps, "elements": elements, "bytes": pairs, "dense_bytes": dense}

    def state_dict(self) -> dict:
        """All that the next step depends on."""
        kept = {name: r.clone() for name, r in self.residual.items()}
        return {"residual": kept, **{name: getattr(self, name) for name in COUNTS}}

    def load_state_dict(self, saved: dict) -> None:
        """Go on from `state_dict`.  Raises ValueError, and changes nothing, for what is none, or of
        another network.
        """
        require_fields("saved", saved, ("residual", *COUNTS))
        for name in COUNTS:
            check(name, saved[name], Whole(0, MOST_COUNTED))
        require_fields("residual", saved["residual"], self.residual)
        for name, kept in saved["residual"].items():
            ours = self.residual[name]
            fine = isinstance(kept, Tensor) and kept.shape == ours.shape and kept.isfinite().all()
            require(
                fine,
                f"residual {name}",
                kept,
                f"a tensor of {len(ours)} finite numbers; load another checkpoint",
            )
        self.residual = {
            name: saved["residual"][name].to(r, copy=True) for name, r in self.residual.items()
        }
        self.steps, self.elements, self.entries = (saved[name] for name in COUNTS)


def _exact(precision: torch.dtype) -> torch.dtype:
    """In which small differences add up: of half precisions, the single one."""
    return torch.promote_types(precision, torch.float32)


def _used(names: dict[nn.Parameter, str]) -> set[str]:
    """The names of parameters that had a gradient since this set was last emptied.

    DistributedDataParallel counts those as used, too; a parameter that no worker used keeps the
    gradient it has, whatever a hook says.
    """
    used: set[str] = set()
    for p, name in names.items():
        p.register_post_accumulate_grad_hook(lambda _, name=name: used.add(name))
    return used


def sparse_hook(state: SparseState, bucket: dist.GradBucket) -> Future[Tensor]:
    """Average the bucket's gradients over the workers through sparse messages; see SparseState."""
    require_dense(bucket)
    if bucket.index() == 0:
        state._begin()
    future: Future[Tensor] = Future()
    state.buckets.append((bucket.buffer(), bucket.parameters(), future))
    state.entries += bucket.buffer().numel()
    # Ties go as in a single process
    if state.messages.by_layer or bucket.is_last():
        ready = state.buckets[-1:] if state.messages.by_layer else state.buckets
        pieces = {}
        for buffer, parameters, _ in ready:
            pieces |= dict(
                zip(parameters, buffer.split([p.numel() for p in parameters]), strict=True)
            )
        _exchange(state, {p: pieces[p] for p in state.names if p in pieces})
    if bucket.is_last():
        state._end()
    return future


def _exchange(state: SparseState, pieces: dict[nn.Parameter, Tensor]) -> None:
    """Replace gradients by the mean over the workers of what they send; pieces: of the parameters,
    in the network's order.
    """
    if not state.finite:  # all workers know it
        return
    own = {p: _with_residual(state, p, piece) for p, piece in pieces.items()}
    state.finite, used = _agreed(state, own)
    if not (state.finite and used):
        return
    u, sizes = torch.cat([own[p] for p in used]), [p.numel() for p in used]
    parts = u.split(sizes) if state.messages.by_layer else [u]
    chosen = torch.cat(
        [_chosen(state, part, state.place[p]) for part, p in zip(parts, used, strict=False)]
    )
    index = chosen.nonzero()[:, 0]
    state.elements += len(index)
    mean = sum_of_pairs(index, u[index], len(u), state.group).div_(state.messages.workers)
    kept = torch.where(chosen, 0, u)
    for p, part, rest in zip(used, mean.split(sizes), kept.split(sizes), strict=True):
        torch.mul(part, state.scale, out=pieces[p])
        if pieces[p].dtype != part.dtype:
            rest += part - pieces[p] / state.scale  # what rounding takes from all workers alike
        if state.messages.feedback:
            state.pending[state.names[p]] = rest
    state.finite = bool(_finite(pieces[p] for p in used))


def _finite(vectors: Iterable[Tensor]) -> Tensor:
    """Whether all of them are, bool []."""
    # Far faster than asking every entry
    ends = [torch.stack(vector.aminmax()) for vector in vectors if len(vector)]
    return torch.cat(ends).isfinite().all()


def _with_residual(state: SparseState, p: nn.Parameter, gradient: Tensor) -> Tensor:
    """A parameter's gradient without the loss scale, and what was kept back of earlier ones: [d]."""
    kept = state.residual[state.names[p]]
    if state.messages.feedback:
        return kept.add(gradient, alpha=1 / state.scale)
    return gradient.to(kept.dtype) / state.scale


def _agreed(state: SparseState, own: dict[nn.Parameter, Tensor]) -> tuple[bool, list[nn.Parameter]]:
    """Whether all workers' vectors are finite, and the parameters that any worker used."""
    finite = _finite(own.values())
    used = [state.names[p] in state.used for p in own]
    flags = torch.tensor([False, *used], dtype=torch.int32, device=finite.device)
    flags[0] = ~finite
    dist.all_reduce(flags, dist.ReduceOp.MAX, group=state.group)
    spoilt, *used = flags.tolist()
    return not spoilt, [p for p, so in zip(own, used, strict=True) if so]


def _chosen(state: SparseState, u: Tensor, place: int) -> Tensor:
    """Which entries of u [d] to send; what is random about it depends on seed, worker, step and the
    place in the network.
    """
    messages, random = state.messages, np.random.default_rng([*state.seed, state.steps, place])
    return compressors.compress(
        messages.compressor, u[None], messages.density_at(state.steps), random
    )[0]


def sum_of_pairs(index: Tensor, value: Tensor, d: int, group: dist.ProcessGroup | None) -> Tensor:
    """Sum over the workers of their (index, value) pairs as a vector [d]; every worker may send
    another number.
    """
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
    for count, indices, values in zip(
        counts, *gathered, strict=True
    ):  # in the order of ranks, on every worker
        total.index_add_(0, indices[:count].long(), values[:count])
    return total


# --- torchrun -m lib.workers.hook -----------------------------------------------------------------


WAIT = 60  # seconds at most in which the first worker of a machine has said what is wrong


class _Parser(argparse.ArgumentParser):
    """Of the workers of a machine, who all read the same arguments, the first alone says what is
    wrong with them.
    """

    def error(self, message: str) -> NoReturn:
        if int(os.environ.get("LOCAL_RANK", "0")):
            # Torchrun ends all as soon as one has failed: let the one that speaks be that one
            time.sleep(WAIT)
            self.exit(2)
        try:
            raise ValueError(message) from None
        except ValueError as wrong:
            get_error_handler().record_exception(wrong)  # torchrun ends its own report with it
        self.exit(2, f"{self.prog}: error: {message}\n")


def _chosen_workload(chosen: argparse.Namespace, workers: int) -> Workload:
    """The workload, after all arguments are checked.  Raises ValueError naming the one that does
    not fit.
    """
    work = workload(chosen.workload)
    Messages(workers, chosen.compressor, chosen.density)
    check("steps", chosen.steps, Count(MOST_STEPS))
    check("learning-rate", chosen.learning_rate, POSITIVE)
    n = work.train_size
    require(
        workers <= n,
        "nproc-per-node",
        workers,
        f"at most {n}, one for each training example of {work.name}",
    )
    share = f" ({work.name} has {n} training examples for {workers} workers)"
    check("batch-size", chosen.batch_size, Whole(1, n // workers, share))
    return work


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> None:
    """Train a workload of the book under torchrun with sparse messages; worker 0 tells how it went."""
    parser = _Parser(
        prog="torchrun --nproc-per-node P -m lib.workers.hook", description=main.__doc__
    )
    parser.add_argument(
        "--workload",
        default="digits-mlp",
        help="a name in lib/workloads/catalogue.py, or file.py:function",
    )
    parser.add_argument("--compressor", default="top-k", choices=list(compressors.COMPRESSORS))
    parser.add_argument(
        "--density",
        type=float,
        default=0.01,
        help="share of the gradient's entries to send, (0, 1]",
    )
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
    title: str,
    network: str,
    data: tuple[datasets.Split, datasets.Split],
    chosen: argparse.Namespace,
    say: Callable[[str], None],
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
        told, met = (
            state.stats(),
            error if answers.isfinite().all() else "diverged (it needs a smaller learning rate)",
        )
        say(
            f"{title}, {workers} workers, {chosen.compressor} at density {chosen.density:g}: {met} "
            f"after {chosen.steps} steps; {told['bytes']:,.0f} bytes sent per worker and step "
            f"instead of {told['dense_bytes']:,.0f}"
        )


if __name__ == "__main__":
    main()
