"""Synchronous data parallelism with real processes: W workers with B/W examples each take the same
step as one process with B examples.

The mean gradient over a batch is linear in its examples, so the average of the mean gradients of W
equal shards is the batch's (data parallelism as in Shallue et al. 2019, section 1); only the order
of additions differs.  Anything not linear in the examples breaks the equality, and so do wrong
weights (some are pitfalls in Goyal et al. 2017, section 3): HAZARDS lists five such practices,
each with its remedy.

`train` starts the workers (PyTorch's DistributedDataParallel on the gloo backend), `reference`
trains in the calling process without torch.distributed, and both return the parameters after every
step for comparison.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from lib import require
from lib.engine import lockstep
from lib.fields import Count, Whole, check, spec
from lib.workers.processes import MOST_EXAMPLES, MOST_WORKERS, launch
from lib.workloads import models

HAZARDS = {  # practice: (what breaks the equality, what restores it)
    "batch normalisation": (
        "each worker normalises by its own shard",
        "sum the statistics over the workers",
    ),
    "unequal shards": (
        "every worker's mean counts the same",
        "weight it by the size of its shard",
    ),
    "summed loss": (
        "the average over workers divides by W once more",
        "multiply the loss by W",
    ),
    "dropout": (
        "each worker draws from its own random stream",
        "draw the whole batch's mask on every worker",
    ),
    "gradient clipping": ("each worker clips before the average", "clip after it"),
}
MOST_STEPS = 10**5  # the parameters after every step are returned
RATE, MOMENTUM, SEED = 0.1, 0.9, 0
PRECISIONS = ("float32", "float64")
DROP = 0.2  # share of the inputs that dropout removes
CLIP = 0.5  # largest gradient norm that clipping leaves alone


@spec
class Run:
    """One training run; a worker trains on `batch_size / workers` examples per step.

    model: a name for `lib.workloads.models.build`; batch normalisation goes before its ReLUs.
    hazard: None, or a key of HAZARDS to add to the training.  With "unequal shards" worker r's
    share of the batch is proportional to r + 1; with "summed loss" the rate is divided by
    `batch_size`, so that one process takes the same steps with either loss.
    remedy: whether the hazard's remedy is applied.

    Raises ValueError naming the field, its value and what is allowed.
    """

    workers: Count(MOST_WORKERS) = 1
    model: Literal["mlp-64x2", "digits-cnn"] = "mlp-64x2"
    batch_size: Count(MOST_EXAMPLES) = 64
    steps: Count(MOST_STEPS) = 20
    precision: Literal[*PRECISIONS] = "float32"
    hazard: Literal[None, *HAZARDS] = None
    remedy: bool = False

    def __post_init__(self):
        flat = self.model == "mlp-64x2" or self.hazard != "batch normalisation"
        require(flat, "model", self.model, "mlp-64x2 with batch normalisation")
        plain = not self.remedy or self.hazard
        require(plain, "remedy", self.remedy, "False where hazard is None")
        shards = self._shards(self.workers)
        uneven = self.hazard == "unequal shards" and self.batch_size >= shards
        fits = uneven or self.batch_size % shards == 0
        allowed = f"a multiple of {shards} for these workers"
        require(fits, "batch_size", self.batch_size, allowed)

    def _shards(self, workers: int) -> int:
        """The summed size of the shards of so many workers, in units of the smallest shard."""
        unequal = self.hazard == "unequal shards"
        return workers * (workers + 1) // 2 if unequal else workers

    def shard(self, rank: int) -> slice:
        """The rows of a batch that worker `rank` (0 ... workers - 1) trains on.  Raises ValueError
        for another rank.
        """
        check("rank", rank, Whole(0, self.workers - 1))
        shards = self._shards(self.workers)
        return slice(*(self.batch_size * self._shards(r) // shards for r in (rank, rank + 1)))

    @property
    def type(self) -> torch.dtype:
        return getattr(torch, self.precision)


def train(runs: Sequence[Run], data, timeout: float = 120.0) -> list[Tensor]:
    """Train every run on its `workers` processes, started once for all runs; one thread each.

    data: a split with x [N, ...] float and y [N] int64.  timeout: seconds for everything, including
    the start. Returns for each run the flat parameters before the first and after every step,
    float64 [steps + 1, P].  Raises what `launch` raises, and RuntimeError unless all workers of a
    run end with the same parameters to the last bit.
    """
    most = max(run.workers for run in runs)
    return launch(_train_all, most, timeout, list(runs), data.x.numpy(), data.y.numpy())


def reference(run: Run, data) -> Tensor:
    """The run in this process alone, on the whole batch: flat parameters before the first and after
    every step, float64 [steps + 1, P].
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the workers do: the order of additions may depend on it
    try:
        return _trajectory(run, data.x, data.y)
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
    """Batch normalisation of [n, features] in training (Ioffe & Szegedy 2015), with statistics over
    the workers of `group`, or in this process alone if it is None.

    PyTorch's SyncBatchNorm does this on GPUs only.  Shards are assumed to be equal.
    """

    def __init__(self, features: int, group: dist.ProcessGroup | None = None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        moments = torch.stack([x.mean(0), x.square().mean(0)])
        if self.group is not None:
            # Differentiable: every worker's loss depends on every worker's moments
            moments = all_reduce(moments, group=self.group) / self.group.size()
        mean, square = moments
        return (x - mean) * (square - mean.square() + 1e-5).rsqrt() * self.weight + self.bias


def _network(run: Run, group: dist.ProcessGroup | None) -> nn.Module:
    """The network of a run, initialised in float32 so that every precision starts alike."""
    network = models.initialise(models.build(run.model), SEED)
    if run.hazard == "batch normalisation":
        hidden = [layer for layer in network if isinstance(layer, nn.Linear)][:-1]
        for layer in hidden:
            norm = BatchNorm(layer.out_features, group if run.remedy else None)
            network.insert(list(network).index(layer) + 1, norm)
    return network.to(run.type)


def batches(examples: int, run: Run) -> Tensor:
    """Indices of the examples of every step, reshuffled each epoch and the same for all workers:
    int64 [steps, batch_size].
    """
    order = lockstep.batches(examples, run.batch_size, SEED)
    return torch.stack(list(itertools.islice(order, run.steps)))


def _trajectory(
    run: Run, x: Tensor, y: Tensor, rank: int = 0, group: dist.ProcessGroup | None = None
) -> Tensor:
    """Train as worker `rank` of `group`, or on the whole batch if it is None."""
    network = _network(run, group)
    backward = _shared(run, network, rank, group)
    rate = RATE / (run.batch_size if run.hazard == "summed loss" else 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=MOMENTUM)
    path = [_flat(network)]
    for rows in batches(len(x), run):
        optimizer.zero_grad()
        backward(x[rows].to(run.type), y[rows])
        optimizer.step()
        path.append(_flat(network))
    return torch.stack(path)


def _shared(
    run: Run, network: nn.Module, rank: int, group: dist.ProcessGroup | None
) -> Callable:
    """A function of a batch x, y that leaves its gradient in the network, each worker computing its
    shard, with the hazard applied.
    """
    model, shard, factor = network, slice(None), 1.0
    if group is not None:
        model, shard = DistributedDataParallel(network, process_group=group), run.shard(rank)
        share = (shard.stop - shard.start) / run.batch_size
        factors = {
            "unequal shards": share * run.workers,
            "summed loss": run.workers,
        }
        factor = factors.get(run.hazard, 1.0) if run.remedy else 1.0
    broken = None if run.remedy else run.hazard
    stream = torch.Generator().manual_seed(SEED + rank * (broken == "dropout"))
    clip_first = group is not None and broken == "gradient clipping"
    reduction = "sum" if run.hazard == "summed loss" else "mean"

    def backward(x: Tensor, y: Tensor) -> None:
        if run.hazard == "dropout":
            x = x * (torch.rand(x.shape, generator=stream) >= DROP) / (1 - DROP)
        # Otherwise DistributedDataParallel averages during the backward pass
        with model.no_sync() if clip_first else contextlib.nullcontext():
            loss = cross_entropy(model(x[shard]), y[shard], reduction=reduction)
            (loss * factor).backward()
        if run.hazard == "gradient clipping":
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for parameter in model.parameters() if clip_first else ():
            dist.all_reduce(parameter.grad, group=group)
            parameter.grad /= run.workers

    return backward


def _flat(network: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(network.parameters()).detach().double()


def _train_all(rank, runs, x, y) -> list[Tensor]:
    """The trajectory of every run that includes this worker, in order."""
    x, y, paths = torch.from_numpy(x), torch.from_numpy(y), []
    sizes = sorted({run.workers for run in runs})
    groups = {size: dist.new_group(range(size)) for size in sizes}
    for run in runs:
        if rank < run.workers:
            path = _trajectory(run, x, y, rank, groups[run.workers])
            first = path[-1].clone()
            dist.broadcast(first, src=0, group=groups[run.workers])
            if not torch.equal(first, path[-1]):
                raise RuntimeError(f"workers 0 and {rank} end with different parameters: {run}")
            paths.append(path)
    return paths
