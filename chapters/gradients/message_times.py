"""Times of compressors, of collectives between processes, and of steps with the hook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from lib.fields import SHARE, Count, Whole, spec
from lib.messages import Messages, exchanges, target
from lib.messages.exchanges import COMPRESSORS
from lib.probes import timings
from lib.workers import processes
from lib.workers.hook import SparseState, sparse_hook, sum_of_pairs
from lib.workloads import models

LONGEST = 28  # vectors have up to 2**LONGEST entries
POWER = Whole(0, LONGEST)


# --- measured -------------------------------------------------------------------------------------


def library_top_k(u: torch.Tensor, k: int, random: np.random.Generator) -> torch.Tensor:
    """Top-k by PyTorch's selection over the whole vector, as in the authors' code."""
    chosen = u.abs().topk(k, dim=1, sorted=False).indices
    return torch.zeros_like(u, dtype=torch.bool).scatter_(1, chosen, True)


OURS = ("top-k", "gaussian-k", "gaussian-k-band", "dgc-k", "redsync", "rand-k")
TIMED = {"torch.topk": library_top_k, **{name: COMPRESSORS[name] for name in OURS}}
DRAWN = {"normal": torch.randn, "uniform": torch.rand}  # entries of the vectors


@spec
class Operators:
    """Times of the compressors on vectors of 2^smallest ... 2^largest entries, at one density, on
    one core or another device.

    drawn: distribution of the entries, a key of `DRAWN`: normal suits Gaussian-k, uniform does not.

    Raises ValueError naming the field, its value and what is allowed, as do all timings here.
    """

    density: SHARE = 0.001
    smallest: POWER = 16
    largest: POWER = 26
    repeats: timings.REPEATS = 5
    device: Literal["cpu", "cuda"] = "cpu"
    drawn: Literal[*DRAWN] = "normal"

    def definition(self) -> dict:
        return {"timed": list(TIMED)}

    def measure(self) -> pd.DataFrame:
        """compressor, d, seconds (median), low, high (range), elements (sent)."""
        rows = []
        random = np.random.default_rng(0)
        for power in range(self.smallest, self.largest + 1):
            d = 2**power
            generator = torch.Generator().manual_seed(power)
            u = DRAWN[self.drawn](1, d, generator=generator).to(self.device)
            k = target(self.density, d)
            for name, choose in TIMED.items():
                times = timings.spread(
                    partial(self._waited, choose, u, k, random), self.repeats
                )
                sent = int(choose(u, k, random).count_nonzero())
                rows.append({"compressor": name, "d": d, **times, "elements": sent})
        return pd.DataFrame(rows)

    def _waited(self, choose: Callable, u: torch.Tensor, *how) -> None:
        """Return when the device has chosen."""
        if choose(u, *how).is_cuda:
            torch.cuda.synchronize(u.device)


TIMEOUT = 600.0  # seconds that timings between processes may take


class Between:
    """Base class: times the calls that `each` yields, between processes on this machine."""

    def definition(self) -> dict:
        return {}

    def measure(self) -> pd.DataFrame:
        """what ("all-reduce", "pairs" or a compressor), d, seconds (median), low, high (range)."""
        return pd.DataFrame(processes.launch(_timed, self.workers, TIMEOUT, self))


@spec
class Collectives(Between):
    """Times of gloo's all-reduce of d values and of the exchange of pairs at one density, between
    processes on this machine.
    """

    workers: Count(processes.MOST_WORKERS) = 2
    density: SHARE = 0.001
    smallest: POWER = 14
    largest: POWER = 24
    repeats: timings.REPEATS = 7

    def each(self) -> Iterator[tuple[str, int, Callable]]:
        """The calls that every process times: name, d, and the call."""
        for power in range(self.smallest, self.largest + 1, 2):
            d = 2**power
            k = target(self.density, d)
            u = torch.ones(d)
            index = torch.randperm(d, generator=torch.Generator().manual_seed(dist.get_rank()))[
                :k
            ]
            value = torch.ones(k)
            yield "all-reduce", d, lambda u=u: dist.all_reduce(u)
            yield "pairs", d, lambda i=index, v=value, d=d: sum_of_pairs(i, v, d)


@spec
class Hooked(Between):
    """Times of gradients under DistributedDataParallel between processes on this machine: with its
    default all-reduce, and with the hook.
    """

    model: Literal[*models.MODELS]
    workers: Count(processes.MOST_WORKERS) = 2
    density: SHARE = 0.001
    batch_size: Count(processes.MOST_EXAMPLES) = 32  # per worker
    repeats: timings.REPEATS = 15

    def each(self) -> Iterator[tuple[str, int, Callable]]:
        x = torch.randn(self.batch_size, 1, 28, 28)
        y = torch.arange(self.batch_size) % 10
        for name in ("all-reduce", "top-k", "gaussian-k"):
            model = DistributedDataParallel(models.fresh(self.model, 0))
            if name != "all-reduce":
                state = SparseState(model, compressor=name, density=self.density)
                model.register_comm_hook(state, sparse_hook)
            yield name, models.parameter_count(model), partial(self._backward, model, x, y)

    def _backward(
        self, model: DistributedDataParallel, x: torch.Tensor, y: torch.Tensor
    ) -> None:
        F.cross_entropy(model(x), y).backward()


def _timed(rank: int, timing: Collectives | Hooked) -> list[dict]:
    rows = []
    for name, d, call in timing.each():
        dist.barrier()
        rows.append({"what": name, "d": d, **timings.spread(call, timing.repeats)})
    return rows


@spec
class Feedback:
    """Times for one core to do what P workers with Top-k and error feedback do per step after their
    gradients.
    """

    workers: Count(64) = 16  # this process holds the vectors of all
    density: SHARE = 0.001
    smallest: POWER = 16
    largest: POWER = 22
    repeats: timings.REPEATS = 9

    def measure(self) -> pd.DataFrame:
        """what ("ours", "plain"), d, seconds (median), low, high (range)."""
        rows = []
        for power in range(self.smallest, self.largest + 1, 2):
            d = 2**power
            generator = torch.Generator().manual_seed(power)
            g = torch.randn(self.workers, 1, d, generator=generator)
            messages = Messages(self.workers, "top-k", self.density)
            w = torch.zeros(1, d)
            exchange = exchanges.Exchange(messages, w, None, [d], 0)
            kept = torch.zeros(self.workers, d)
            k = target(self.density, d)
            kinds = {
                "ours": partial(exchange.gradients, Given(g), w, w, w),
                "plain": partial(plainest, kept, g[:, 0], k),
            }
            for name, call in kinds.items():
                rows.append({"what": name, "d": d, **timings.spread(call, self.repeats)})
        return pd.DataFrame(rows)


class Given:
    """Stands in for an executor: returns the gradients g [P, T, d] instead of computing any."""

    def __init__(self, g: torch.Tensor):
        self.g = g

    def gradients_by_worker(self, w: torch.Tensor, *batch) -> tuple[torch.Tensor, ...]:
        shape = self.g.shape[:2]
        return self.g.new_zeros(shape), self.g, torch.ones(shape, dtype=torch.bool)


def plainest(kept: torch.Tensor, gradients: torch.Tensor, k: int) -> torch.Tensor:
    """The mean [d] of Top-k messages with error feedback, as plainly as possible; kept [P, d] is
    changed in place.
    """
    total = torch.zeros_like(gradients[0])
    for residual, g in zip(kept, gradients, strict=True):
        residual += g
        index = residual.abs().topk(k).indices
        total[index] += residual[index]
        residual[index] = 0
    return total / len(kept)


ON_A_GPU = (
    Operators(largest=LONGEST, repeats=20, device="cuda"),
    Operators(largest=LONGEST, repeats=20, device="cuda", drawn="uniform"),
    Operators(density=0.01, repeats=20, device="cuda"),
)
PLANNED = (
    Operators(),
    Operators(density=0.01),
    Collectives(2),
    Collectives(4),
    Hooked("fnn-3"),
    Hooked("fc-1024x3"),
    Feedback(),
)
