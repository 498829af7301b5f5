"""Synchronous data parallelism with real processes: W workers x B/W examples make the step of one
process x B.

The mean gradient over a batch is linear in its examples, so the average of W equal shards' mean
gradients is the batch's own (data parallelism as in Shallue et al. 2019, section 1): only the order
of the additions differs.  What is not linear in the examples breaks the equality, and so does a
wrong weight (some are among the pitfalls of Goyal et al. 2017, section 3): HAZARDS lists five such
practices, each with its remedy.

`train` starts the workers (PyTorch's DistributedDataParallel on the gloo backend), `reference`
trains in the calling process without torch.distributed, and both return the parameters after every
step, ready to be compared.  A script (a notebook need not) calls `train` below `if __name__ ==
"__main__":`, as ever with Python's multiprocessing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from lib import require
from lib.engine import lockstep
from lib.engine.sequential import SequentialExecutor
from lib.fields import PART, POSITIVE, SEED, Count, Number, Whole, check, spec
from lib.messages import exchanges
from lib.messages.settings import Messages
from lib.workers.hook import SparseState, sparse_hook
from lib.workloads import models

HAZARDS = {  # practice: (what breaks the equality, what restores it)
    "batch normalisation": (
        "each worker normalises by its own shard",
        "sum the statistics over the workers",
    ),
    "unequal shards": ("every worker's mean counts the same", "weight it by the size of its shard"),
    "summed loss": ("the average over workers divides by W once more", "multiply the loss by W"),
    "dropout": (
        "each worker draws from its own random stream",
        "draw the whole batch's mask on every worker",
    ),
    "gradient clipping": ("each worker clips before the average", "clip after it"),
}
MOST_WORKERS = 256  # processes on this machine
MOST_EXAMPLES = 2**20  # in a batch
MOST_STEPS = 10**5  # all of whose parameters are returned
PRECISIONS = ("float32", "float64")
DROP = 0.2  # share of the inputs that dropout removes
CLIP = 0.5  # largest gradient norm that clipping leaves alone
# Windows has no fork
START = "forkserver" if "forkserver" in mp.get_all_start_methods() else "spawn"


@spec
class Run:
    """One training run; a worker trains on `batch_size / workers` examples per step.

    model: a name that `lib.workloads.models.build` knows (with batch normalisation: "mlp-64x2",
    normalised before its ReLUs). hazard: None or a key of HAZARDS, which becomes part of the
    training; remedy: whether its remedy is applied. With "unequal shards" worker r's share of the
    batch grows like r + 1; under "summed loss" the rate is divided by `batch_size`, so that one
    process takes the same steps with either loss.  messages: what the workers send each other
    instead of whole gradients (`lib.messages.compressors`), through the hook of `lib.workers.hook`.
    Raises ValueError naming field, value and what is allowed.
    """

    workers: Count(MOST_WORKERS) = 1
    model: str = "mlp-64x2"
    batch_size: Count(MOST_EXAMPLES) = 64
    steps: Count(MOST_STEPS) = 20
    learning_rate: POSITIVE = 0.1
    momentum: PART = 0.9
    precision: Literal[*PRECISIONS] = "float32"
    seed: SEED = 0
    hazard: Literal[None, *HAZARDS] = None
    remedy: bool = False
    messages: Messages | None = None

    def __post_init__(self):
        plain = tuple(m for m in models.MODELS if m not in models.NORMALISED)
        known = ("mlp-64x2",) if self.hazard == "batch normalisation" else plain
        require(self.model in known, "model", self.model, f"one of {known}")
        require(not self.remedy or self.hazard, "remedy", self.remedy, "False where hazard is None")
        if self.messages is not None:
            allowed = f"None or Messages of as many workers ({self.workers}), without a hazard"
            fits = self.messages.workers == self.workers and not self.hazard
            require(fits, "messages", self.messages, allowed)
        if self.hazard == "unequal shards":
            least = self.workers * (self.workers + 1) // 2
            require(
                self.batch_size >= least,
                "batch_size",
                self.batch_size,
                f"at least {least} for {self.workers} unequal shards",
            )
        else:
            require(
                self.batch_size % self.workers == 0,
                "batch_size",
                self.batch_size,
                f"a multiple of workers ({self.workers})",
            )

    def shard(self, rank: int) -> slice:
        """The rows of a batch that worker `rank` (0 ... workers - 1) trains on.  Raises ValueError
        for another rank.
        """
        check("rank", rank, Whole(0, self.workers - 1))
        share = (lambda r: r * (r + 1)) if self.hazard == "unequal shards" else (lambda r: r)
        start, stop = (self.batch_size * share(r) // share(self.workers) for r in (rank, rank + 1))
        return slice(start, stop)


def train(runs: Sequence[Run], data, timeout: float = 120.0) -> list[Tensor]:
    """Train every run on its `workers` processes, started once for all runs; one thread each.

    data: a split with x [N, ...] float and y [N] int64.  timeout: seconds for all of it, the start
    included. Returns per run the flat parameters before the first and after every step, float64
    [steps + 1, P]. Raises RuntimeError with the traceback of the worker that failed first,
    TimeoutError when time is up; no worker outlives the call.  All workers of a run must end with
    the same parameters, to the last bit: it is checked.
    """
    runs = _checked(runs, data)
    return launch(
        _train_all, max(run.workers for run in runs), timeout, runs, data.x.numpy(), data.y.numpy()
    )


def launch(work: Callable, workers: int, timeout: float, *arguments):
    """What `work(rank, *arguments)` returns in process 0 of `workers`, which form one gloo group;
    one thread each.

    work: a module's function that returns tensors, numbers and strings, or lists and dictionaries
    of them.  timeout, errors: as for `train`.
    """
    check("workers", workers, Count(MOST_WORKERS))
    check("timeout", timeout, Number("(0, 1e6]", "a positive number of seconds, up to 10**6"))
    deadline = time.monotonic() + timeout
    if (
        START == "forkserver"
    ):  # it imports PyTorch once; every worker is then a copy of it, started in milliseconds
        mp.get_context(START).set_forkserver_preload(["torch", "torch._dynamo"])
    with tempfile.TemporaryDirectory() as folder:
        context = mp.start_processes(
            _worker,
            (workers, folder, timeout, work, arguments),
            nprocs=workers,
            join=False,
            daemon=True,
            start_method=START,
        )
        try:
            while not context.join(max(0.0, deadline - time.monotonic()), grace_period=2.0):
                if time.monotonic() >= deadline:
                    raise TimeoutError(
                        f"{workers} workers did not finish within timeout={timeout} s"
                    )
        except mp.ProcessRaisedException:
            raise RuntimeError(Path(folder, "error").read_text(encoding="utf-8")) from None
        except mp.ProcessExitedException as error:
            raise RuntimeError(f"a worker died: {error}") from None
        finally:
            for process in context.processes:
                if process.is_alive():
                    process.kill()
                process.join()
        return torch.load(Path(folder, "result"), weights_only=True)


def reference(run: Run, data) -> Tensor:
    """The run as one process would do it, here and on the whole batch: flat parameters, float64
    [steps + 1, P].

    With messages, the one process simulates all workers; compressors that draw at random draw other
    entries there. Raises FloatingPointError if training diverges (so do the workers of `train`,
    inside its RuntimeError).
    """
    _checked([run], data)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the workers do: the order of additions may depend on it
    try:
        return (_simulated if run.messages else _trajectory)(run, data.x, data.y)
    finally:
        torch.set_num_threads(threads)


def largest_difference(parameters: Tensor, expected: Tensor) -> Tensor:
    """Largest absolute difference of any parameter, per step: [steps + 1]."""
    return (parameters - expected).abs().amax(dim=1)


def relative_deviation(parameters: Tensor, expected: Tensor) -> Tensor:
    """|w - w*| / |w* - w*_0| (Euclidean) after each step: deviation over distance travelled,
    [steps].
    """
    return (parameters - expected)[1:].norm(dim=1) / (expected[1:] - expected[0]).norm(dim=1)


class BatchNorm(nn.Module):
    """Batch normalisation of [n, features] in training (Ioffe & Szegedy 2015), its statistics over
    `group`'s workers.

    PyTorch's own SyncBatchNorm does this on GPUs only.  Shards are taken to be equal; group None:
    this process alone.
    """

    def __init__(self, features: int, group: dist.ProcessGroup | None = None):
        super().__init__()
        self.weight, self.bias = (
            nn.Parameter(torch.ones(features)),
            nn.Parameter(torch.zeros(features)),
        )
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        mean, square = _mean_over_workers(torch.stack([x.mean(0), x.square().mean(0)]), self.group)
        return (x - mean) * (square - mean.square() + 1e-5).rsqrt() * self.weight + self.bias


class _Sum(torch.autograd.Function):
    """all_reduce through which gradients flow: every worker's loss depends on every worker's
    summand.
    """

    @staticmethod
    def forward(ctx, x, group):
        ctx.group, total = group, x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient):
        return _Sum.apply(gradient, ctx.group), None


def _mean_over_workers(x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    return x if group is None else _Sum.apply(x, group) / group.size()


# Drawn in float32, so that every precision starts alike
def _network(run: Run, group: dist.ProcessGroup | None) -> nn.Module:
    network = models.initialise(models.build(run.model), run.seed)
    if run.hazard == "batch normalisation":
        hidden = [layer for layer in network if isinstance(layer, nn.Linear)][:-1]
        for layer in hidden:
            norm = BatchNorm(layer.out_features, group if run.remedy else None)
            network.insert(list(network).index(layer) + 1, norm)
    return network.to(getattr(torch, run.precision))


def batches(examples: int, run: Run) -> Tensor:
    """The order of the data, shuffled anew each epoch and shared by all workers: int64 [steps,
    batch_size].
    """
    return torch.stack(
        list(itertools.islice(lockstep.batches(examples, run.batch_size, run.seed), run.steps))
    )


class _Network:
    """The network as `lib.messages.exchanges.Exchange` wants it: one trial, in the run's precision."""

    def __init__(self, module: nn.Module):
        self.parameters = list(module.parameters())
        self.loss = lambda x, y: cross_entropy(module(x), y)

    def gradients(self, w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        loss = self.loss(x, y)
        g = torch.cat([g.flatten() for g in torch.autograd.grad(loss, self.parameters)])
        return loss.detach()[None], g[None], torch.ones(1, dtype=torch.bool)

    gradients_by_worker = SequentialExecutor.gradients_by_worker


def _simulated(run: Run, x: Tensor, y: Tensor) -> Tensor:
    """All workers of a run with messages, in this process."""
    network = _network(run, None)
    optimizer = torch.optim.SGD(network.parameters(), lr=run.learning_rate, momentum=run.momentum)
    sizes, path = [p.numel() for p in network.parameters()], [_flat(network)]
    exchange = exchanges.Exchange(run.messages, 1, sum(sizes), None, sizes, run.seed)
    for rows in batches(len(x), run):
        inputs = x[rows].to(getattr(torch, run.precision))
        _, g, _ = exchange.gradients(_Network(network), path[-1][None], inputs, y[rows])
        for p, part in zip(network.parameters(), g[0].split(sizes), strict=True):
            p.grad = part.view_as(p)
        optimizer.step()
        path.append(_flat(network))
    return torch.stack(path)


def _trajectory(
    run: Run, x: Tensor, y: Tensor, rank: int = 0, group: dist.ProcessGroup | None = None
) -> Tensor:
    """Train worker `rank` of `group`; group None: one process with the whole batch."""
    network = _network(run, group)
    model = network if group is None else DistributedDataParallel(network, process_group=group)
    if group is not None and run.messages:
        fields = {k: v for k, v in dataclasses.asdict(run.messages).items() if k != "workers"}
        model.register_comm_hook(SparseState(model, group, seed=run.seed, **fields), sparse_hook)
    shard = slice(None) if group is None else run.shard(rank)
    own_stream = run.hazard == "dropout" and not run.remedy
    stream = torch.Generator().manual_seed(run.seed + rank * own_stream)
    rate = run.learning_rate / (run.batch_size if run.hazard == "summed loss" else 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=run.momentum)
    path = [_flat(network)]
    for rows in batches(len(x), run):
        inputs, labels = x[rows].to(getattr(torch, run.precision)), y[rows]
        if run.hazard == "dropout":
            inputs = inputs * (torch.rand(inputs.shape, generator=stream) >= DROP) / (1 - DROP)
        optimizer.zero_grad()
        _backward(run, model, inputs[shard], labels[shard], group)
        optimizer.step()
        path.append(_flat(network))
        if not path[-1].isfinite().all():
            raise FloatingPointError(
                f"parameters overflow at step {len(path) - 1}: learning_rate "
                f"{run.learning_rate} is too large for momentum {run.momentum}"
            )
    return torch.stack(path)


def _backward(
    run: Run, model: nn.Module, x: Tensor, y: Tensor, group: dist.ProcessGroup | None
) -> None:
    """Leave in `model` the gradient that the optimiser uses: over all workers of `group`, the
    hazard included.
    """
    clip_first = run.hazard == "gradient clipping" and not run.remedy and group is not None
    with (
        model.no_sync() if clip_first else contextlib.nullcontext()
    ):  # else DDP averages during the backward pass
        loss = cross_entropy(
            model(x), y, reduction="sum" if run.hazard == "summed loss" else "mean"
        )
        (loss * _remedy_factor(run, len(y), group)).backward()
    if run.hazard == "gradient clipping":
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    if clip_first:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=group)
            parameter.grad /= run.workers


def _remedy_factor(run: Run, examples: int, group: dist.ProcessGroup | None) -> float:
    if group is None or not run.remedy:
        return 1.0
    return {
        "unequal shards": examples * run.workers / run.batch_size,
        "summed loss": run.workers,
    }.get(run.hazard, 1.0)


def _flat(network: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().double().flatten() for parameter in network.parameters()])


def _worker(rank, workers, folder, timeout, work, arguments):
    """What process `rank` does; rank 0 leaves the result in `folder`."""
    # Gloo announces its connections on standard output
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        torch.set_num_threads(1)
        if sys.platform in ("linux", "darwin"):  # loopback: the machine's name need not resolve
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
        dist.init_process_group(
            "gloo",
            init_method=Path(folder, "store").as_uri(),
            rank=rank,
            world_size=workers,
            timeout=timedelta(
                seconds=2 * timeout + 10
            ),  # the caller's ends first, also on a busy machine
        )
        # Of its own: a model that outlives the process group can hang the process
        result = work(rank, *arguments)
        if rank == 0:
            torch.save(result, Path(folder, "result"))
        dist.destroy_process_group()
    except Exception:
        error = Path(folder, "error")
        with (
            contextlib.suppress(FileExistsError),
            error.open("x", encoding="utf-8") as report,
        ):  # the first to fail
            report.write(f"worker {rank} of {workers} failed:\n{traceback.format_exc()}")
        raise


def _train_all(rank, runs, x, y) -> list[Tensor]:
    """Every run that needs this worker, in order."""
    groups = {size: dist.new_group(range(size)) for size in sorted({run.workers for run in runs})}
    return [
        _train_together(run, torch.from_numpy(x), torch.from_numpy(y), rank, groups[run.workers])
        for run in runs
        if rank < run.workers
    ]


def _train_together(run: Run, x: Tensor, y: Tensor, rank: int, group: dist.ProcessGroup) -> Tensor:
    path = _trajectory(run, x, y, rank, group)
    first = path[-1].clone()
    dist.broadcast(first, src=0, group=group)
    if not torch.equal(first, path[-1]):
        raise RuntimeError(f"workers 0 and {rank} ended with different parameters: {run}")
    return path


def _checked(runs: Sequence[Run], data) -> list[Run]:
    runs = list(runs)
    require(
        runs and all(isinstance(run, Run) for run in runs),
        "runs",
        runs,
        "a non-empty sequence of Run",
    )
    require(
        len(data.x) == len(data.y) > 0,
        "data",
        (len(data.x), len(data.y)),
        "as many examples as labels",
    )
    return runs
