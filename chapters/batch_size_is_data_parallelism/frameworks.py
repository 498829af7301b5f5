"""One training job on two processes under several frameworks: the same steps, with weights and
gradients kept in different places.

`Training` says what is trained, SYSTEMS how it is distributed. All but sparse messages take the
same steps as one process, up to rounding.  `framework_clock` times the steps and counts bytes sent.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from lib.workers.hook import SparseState, sparse_hook
from lib.workloads import models

WORKERS = 2
OPTIMISERS = {
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "adam": (torch.optim.Adam, {}),
}
# steps: after the first, DistributedDataParallel rebuilds its buckets and stages know all shapes
WARM_UP = 3


@dataclass(frozen=True)
class Training:
    """What is trained on two processes: a sequence of layers, by cross-entropy.

    algorithm: one of OPTIMISERS.  batch_size: over both processes.  learning_rate: zero leaves the
    weights as they are, in the same time.  density: share of the gradient that sparse messages
    send.  micro_batches: parts into which stages divide a batch.
    """

    model: str
    algorithm: str = "momentum"
    batch_size: int = 64
    learning_rate: float = 0.05
    precision: str = "float32"
    density: float = 0.01
    micro_batches: int = 4
    seed: int = 0

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
    """The whole batch in process 0, while the other process waits."""

    def __init__(self, training: Training, rank: int, example: Tensor):
        """example: one input [1, ...]."""
        self.training = training
        self.rank = rank
        self.example = example.to(training.type)
        self.network = training.network()
        self.residual = {}  # what messages have not sent yet
        self.model = self.laid_out()
        self.optimizer = self.own_optimizer()

    def laid_out(self) -> nn.Module:
        """The network, wrapped as the framework requires."""
        return self.network

    def own_optimizer(self) -> torch.optim.Optimizer:
        return self.training.optimizer(self.model.parameters())

    def share(self, batch: Tensor) -> Tensor:
        """The part of a batch [B, ...] that this process computes."""
        return batch

    def step(self, x: Tensor, y: Tensor) -> None:
        """Take a training step on a batch x [B, ...], y [B]; every process gets all of it."""
        self.optimizer.zero_grad()
        cross_entropy(self.model(self.share(x)), self.share(y)).backward()
        self.optimizer.step()

    def held(self) -> dict[str, int]:
        """Bytes held between steps, by content; views of one memory block count once."""
        # ZeroRedundancyOptimizer keeps its share in an inner optimizer
        inner = getattr(self.optimizer, "optim", self.optimizer)
        parameters = list(self.model.parameters())
        states = [value for state in inner.state.values() for value in state.values()]
        tensors = [value for value in states if isinstance(value, Tensor)]
        return {
            "parameters": _bytes(parameters),
            "gradients": _bytes(p.grad for p in parameters if p.grad is not None),
            "states": _bytes(tensors),
            "residuals": _bytes(self.residual.values()),
        }


class Replicas(OneProcess):
    """Each process has the whole network and half of the batch; gradients are averaged."""

    def laid_out(self) -> nn.Module:
        # Otherwise gradients are held twice
        return DistributedDataParallel(self.network, gradient_as_bucket_view=True)

    def share(self, batch: Tensor) -> Tensor:
        return batch.chunk(WORKERS)[self.rank]


class ShardedStates(Replicas):
    """Replicas that each keep optimizer states for half the parameters, update and send these."""

    def own_optimizer(self) -> torch.optim.Optimizer:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        kind, settings = OPTIMISERS[self.training.algorithm]
        settings = {"lr": self.training.learning_rate, **settings}
        return ZeroRedundancyOptimizer(self.model.parameters(), kind, **settings)


class FullyShared(Replicas):
    """Each process keeps half of every parameter, and gathers a layer's other half while it
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


class Stages(OneProcess):
    """Each process has one part of the layers; micro-batches flow to the second, gradients back."""

    def laid_out(self) -> nn.Module:
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B

        place = cut(self.network, self.example)
        stage = self.network[:place] if self.rank == 0 else self.network[place:]
        wrapped = PipelineStage(stage, self.rank, WORKERS, torch.device("cpu"))
        micro_batches = self.training.micro_batches
        self.schedule = Schedule1F1B(wrapped, micro_batches, loss_fn=cross_entropy)
        return stage

    def step(self, x: Tensor, y: Tensor) -> None:
        self.optimizer.zero_grad()
        self.schedule.step(x) if self.rank == 0 else self.schedule.step(target=y)
        self.optimizer.step()


class SparseMessages(Replicas):
    """Replicas that send the largest entries of their gradients and keep the rest for later."""

    def laid_out(self) -> nn.Module:
        model = super().laid_out()
        state = SparseState(
            model, seed=self.training.seed, compressor="top-k", density=self.training.density
        )
        model.register_comm_hook(state, sparse_hook)
        self.residual = state.residual
        return model


SYSTEMS = {
    "one": OneProcess,
    "ddp": Replicas,
    "zero": ShardedStates,
    "fsdp": FullyShared,
    "pipeline": Stages,
    "sparse": SparseMessages,
}


@torch.no_grad()
def cut(network: nn.Sequential, x: Tensor) -> int:
    """Index of the layer before which to cut a network so that its costlier part costs least, in
    multiplications forward and backward.

    x: one example [1, ...].  Between equal cuts, the one that fewest values cross.  The first
    layer with weights passes no gradient on, so it takes two products instead of three.
    """
    costs, sizes = [], []
    for layer in network:
        x = layer(x)
        weights = next((p for p in layer.parameters() if p.dim() > 1), None)
        products = 0 if weights is None else weights.numel() * x.numel() // len(weights)
        costs.append(products * (3 if any(costs) else 2))
        sizes.append(x.numel())

    def price(place: int) -> tuple[int, int]:
        return max(sum(costs[:place]), sum(costs[place:])), sizes[place - 1]

    return min(range(1, len(costs)), key=price)


def _bytes(tensors: Iterable[Tensor]) -> int:
    local = [t.to_local() if hasattr(t, "to_local") else t for t in tensors]
    blocks = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in local}
    return sum(blocks.values())


# --- what is sent ---------------------------------------------------------------------------------

# Offset of bytes sent, then bytes retransmitted, in Linux's struct tcp_info (linux/tcp.h); its size
SENT, INFO = 200, 232


def sent() -> float:
    """Bytes that this process has written to its open TCP connections, as Linux counts them,
    without TCP headers but with gloo's; NaN elsewhere.
    """
    if sys.platform != "linux":
        return math.nan
    total = 0
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # closed since it was listed, or not TCP
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as connection:
                    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO)
                written, again = struct.unpack_from("QQ", info, SENT)
                total += written - again
    return total


def everyones(item):
    """The items that all processes pass, in order of rank."""
    items = [None] * WORKERS
    dist.all_gather_object(items, item)
    return items
