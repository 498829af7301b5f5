"""One training on two processes, laid out by several frameworks: the same steps, with weights and
gradients in other places.

`Training` says what is trained, SYSTEMS how it is laid out: by the whole batch in one process, by
shards of the batch (DistributedDataParallel), with the optimiser's states or everything sharded as
well (ZeroRedundancyOptimizer, fully_shard), by two stages of the network through which parts of the
batch flow (torch.distributed.pipelining), or by shards whose gradients are sent as their largest
entries (`lib.workers.hook`).  All but the last take the steps of one process, to rounding.

`train` returns their weights, and the bytes that every process sent, which the kernel counts for
its connections.  `framework_clock` times their steps.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from lib import require
from lib.engine import lockstep
from lib.fields import AMOUNT, SEED, SHARE, Count, spec
from lib.workers import processes
from lib.workers.hook import SparseState, sparse_hook
from lib.workloads import models

WORKERS = 2
OPTIMISERS = {
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "adam": (torch.optim.Adam, {}),
}
# steps: DistributedDataParallel deals its buckets anew after the first, the stages agree on shapes
WARM_UP = 3
STEPS = 10  # by which systems are compared
TIMEOUT = 120.0  # seconds that these may take


@spec
class Training:
    """What is trained on two processes: cross-entropy of a network that is a sequence of layers.

    batch_size: over both processes.  learning_rate: zero trains nothing and takes as long.
    density: share of the gradient that sparse messages send.  micro_batches: parts of a batch that
    flow through the stages. Raises ValueError naming field, value and what is allowed.
    """

    model: str
    algorithm: Literal[*OPTIMISERS] = "momentum"
    batch_size: Count(processes.MOST_EXAMPLES) = 64
    learning_rate: AMOUNT = 0.05
    precision: Literal["float32", "float64"] = "float32"
    density: SHARE = 0.01
    micro_batches: Count(processes.MOST_EXAMPLES) = 4
    seed: SEED = 0

    def __post_init__(self):
        known = self.model in models.MODELS
        sequence = known and isinstance(models.build(self.model), nn.Sequential)
        allowed = "a name in lib/workloads/models.py, of a network that is a sequence of layers"
        require(sequence, "model", self.model, allowed)
        parts = math.lcm(WORKERS, self.micro_batches)
        allowed = f"a multiple of {parts}, for {WORKERS} processes and the micro-batches"
        shared = self.batch_size % parts == 0
        require(shared, "batch_size", self.batch_size, allowed)

    @property
    def type(self) -> torch.dtype:
        return getattr(torch, self.precision)

    def network(self) -> nn.Sequential:
        return models.fresh(self.model, self.seed).to(self.type)

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        kind, settings = OPTIMISERS[self.algorithm]
        return kind(parameters, lr=self.learning_rate, **settings)


# --- the systems ----------------------------------------------------------------------------------


class OneProcess:
    """The whole batch in process 0, while the other waits."""

    def __init__(self, training: Training, rank: int, example: Tensor):
        """example: one input [1, ...]."""
        self.training, self.rank, self.example = training, rank, example.to(training.type)
        self.network = training.network()
        self.model = self.laid_out()
        self.optimizer = self.own_optimizer()

    def laid_out(self) -> nn.Module:
        """The network, wrapped as the framework wants it."""
        return self.network

    def own_optimizer(self) -> torch.optim.Optimizer:
        return self.training.optimizer(self.model.parameters())

    def share(self, whole: Tensor) -> Tensor:
        """What this process computes of a batch [B, ...]."""
        return whole

    def step(self, x: Tensor, y: Tensor) -> None:
        """Take a training step on a batch x [B, ...], y [B], of which all processes are given the
        whole.
        """
        self.optimizer.zero_grad()
        cross_entropy(self.model(self.share(x)), self.share(y)).backward()
        self.optimizer.step()

    def weights(self) -> Tensor:
        """All parameters, flat, float64 [P], on every process."""
        return _flat(self.network.parameters())

    def held(self) -> dict[str, int]:
        """Bytes between steps, by what they hold: parameters, gradients, states of the optimiser,
        residuals of the hook.

        Counted by memory blocks, so that views of one count once.
        """
        # ZeroRedundancyOptimizer keeps its share in one inside
        own = getattr(self.optimizer, "optim", self.optimizer)
        parameters = list(self.model.parameters())
        states = [value for state in own.state.values() for value in state.values()]
        return {
            "parameters": _bytes(parameters),
            "gradients": _bytes(p.grad for p in parameters if p.grad is not None),
            "states": _bytes(value for value in states if isinstance(value, Tensor)),
            "residuals": _bytes(self.residuals()),
        }

    def residuals(self) -> list[Tensor]:
        """What the messages have not sent yet."""
        return []


class Replicas(OneProcess):
    """Every process has the whole network and half of the batch; gradients are averaged as they
    come.
    """

    def laid_out(self) -> nn.Module:
        # Else gradients are held twice
        return DistributedDataParallel(self.network, gradient_as_bucket_view=True)

    def share(self, whole: Tensor) -> Tensor:
        return whole.chunk(WORKERS)[self.rank]


class ShardedStates(Replicas):
    """Replicas that keep the states of half the parameters, update these, and send them."""

    def own_optimizer(self) -> torch.optim.Optimizer:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        kind, settings = OPTIMISERS[self.training.algorithm]
        settings = {"lr": self.training.learning_rate, **settings}
        return ZeroRedundancyOptimizer(self.model.parameters(), kind, **settings)


class FullyShared(Replicas):
    """Every process keeps half of each parameter, and gathers a layer's other half while it
    computes that layer.
    """

    def laid_out(self) -> nn.Module:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (WORKERS,))
        for layer in self.network:
            if list(layer.parameters()):
                fully_shard(layer, mesh=mesh)
        return fully_shard(self.network, mesh=mesh)

    def weights(self) -> Tensor:
        return _flat(p.full_tensor() for p in self.network.parameters())


class Stages(OneProcess):
    """Each process has one part of the layers; micro-batches flow from the first to the second,
    gradients back.
    """

    def laid_out(self) -> nn.Module:
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B

        at = cut(self.network, self.example)
        stage = self.network[:at] if self.rank == 0 else self.network[at:]
        wrapped = PipelineStage(stage, self.rank, WORKERS, torch.device("cpu"))
        self.schedule = Schedule1F1B(wrapped, self.training.micro_batches, loss_fn=cross_entropy)
        return stage

    def step(self, x: Tensor, y: Tensor) -> None:
        self.optimizer.zero_grad()
        self.schedule.step(x) if self.rank == 0 else self.schedule.step(target=y)
        self.optimizer.step()

    def weights(self) -> Tensor:
        return torch.cat(everyones(_flat(self.model.parameters())))


class SparseMessages(Replicas):
    """Replicas that send the largest entries of their gradients and keep the rest for later."""

    def laid_out(self) -> nn.Module:
        model = super().laid_out()
        sent = {"compressor": "top-k", "density": self.training.density}
        self.state = SparseState(model, seed=self.training.seed, **sent)
        model.register_comm_hook(self.state, sparse_hook)
        return model

    def residuals(self) -> list[Tensor]:
        return list(self.state.residual.values())


SYSTEMS = {
    "one": OneProcess,
    "ddp": Replicas,
    "zero": ShardedStates,
    "fsdp": FullyShared,
    "pipeline": Stages,
    "sparse": SparseMessages,
}
EXACT = tuple(name for name in SYSTEMS if name != "sparse")  # they take the steps of one process


@torch.no_grad()
def cut(network: nn.Sequential, x: Tensor) -> int:
    """Before which layer to cut a network, so that its costlier part costs least: multiplications,
    forward and backward.

    x: one example [1, ...].  Of cuts that cost as much, the one at which the fewest values pass.
    The first layer with weights passes no gradient on: two products of three.  Raises ValueError
    for fewer than two layers with weights.
    """
    costs, sizes = [], []
    for layer in network:
        x = layer(x)
        weights = next((p for p in layer.parameters() if p.dim() > 1), None)
        places = 0 if weights is None else weights.numel() * x.numel() // len(weights)
        costs.append(places * (3 if any(costs) else 2))
        sizes.append(x.numel())
    allowed = "a sequence with two layers that have weights, or more"
    require(sum(map(bool, costs)) >= 2, "network", network, allowed)

    def price(at: int) -> tuple[int, int]:
        return max(sum(costs[:at]), sum(costs[at:])), sizes[at - 1]

    return min(range(1, len(costs)), key=price)


def _flat(tensors: Iterable[Tensor]) -> Tensor:
    return torch.cat([t.detach().double().flatten() for t in tensors])


def _bytes(tensors: Iterable[Tensor]) -> int:
    local = [t.to_local() if hasattr(t, "to_local") else t for t in tensors]
    blocks = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in local}
    return sum(blocks.values())


# --- what is sent ---------------------------------------------------------------------------------

# Where Linux has them in struct tcp_info (linux/tcp.h), and its length
SENT, RETRANSMITTED, INFO = 200, 208, 232


def sent() -> int | None:
    """Bytes that this process has written to its TCP connections that are open, as Linux counts
    them; None elsewhere.

    Without the headers of TCP, with those of gloo.
    """
    if sys.platform != "linux":
        return None
    total = 0
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # closed since it was listed, or not of TCP
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as one:
                    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO)
                (written,), (again,) = (
                    struct.unpack_from("Q", info, at) for at in (SENT, RETRANSMITTED)
                )
                total += written - again
    return total


def everyones(one):
    """What every process passes, in the order of ranks."""
    every = [None] * WORKERS
    dist.all_gather_object(every, one)
    return every


# --- training and timing --------------------------------------------------------------------------


def train(trainings: Sequence[Training], data) -> list[dict[str, dict]]:
    """Train each of these with every system for STEPS, all on two processes that are started once.

    data: a split with x [N, ...] float and y [N] int64.  Returns, per training and system: weights
    [P] float64 after the last step; sent, bytes per step of each process after WARM_UP steps.
    Raises as `lib.workers.processes.launch`.
    """
    x, y = data.x.numpy(), data.y.numpy()
    return processes.launch(_trained, WORKERS, TIMEOUT, list(trainings), x, y)


def _trained(rank: int, trainings: list[Training], x, y) -> list[dict[str, dict]]:
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    found = [{name: _outcome(rank, one, name, x, y) for name in SYSTEMS} for one in trainings]
    gc.collect()  # a model that outlives the process group can hang the process
    return found


def _outcome(rank: int, training: Training, name: str, x: Tensor, y: Tensor) -> dict:
    system, before = build(training, name, rank, x[:1]), sent()
    for k, rows in enumerate(batches(training, len(x))):
        if k == WARM_UP:
            before = sent()
        if system is not None:
            system.step(x[rows].to(training.type), y[rows])
    told = None if before is None else (sent() - before) / (STEPS - WARM_UP)
    weights = None if system is None else system.weights()
    return {"weights": weights, "sent": everyones(told)}


def build(training: Training, name: str, rank: int, example: Tensor) -> OneProcess | None:
    """The system on this process; none where the other works alone."""
    return None if name == "one" and rank else SYSTEMS[name](training, rank, example)


def batches(training: Training, examples: int) -> Iterator[Tensor]:
    """The examples of each step, int64 [batch_size]."""
    return itertools.islice(lockstep.batches(examples, training.batch_size, training.seed), STEPS)


def reference(training: Training, data) -> Tensor:
    """Weights [P] float64 after STEPS of one process, here."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the processes do: the order of additions may depend on it
    try:
        one = OneProcess(training, 0, data.x[:1])
        for rows in batches(training, len(data.x)):
            one.step(data.x[rows].to(training.type), data.y[rows])
        return one.weights()
    finally:
        torch.set_num_threads(threads)
