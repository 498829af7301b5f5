"""What a message costs: the time to choose what is sent, measured here, and the time to send it, by a model."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from lib import sparsification, timings
from lib.comm_hook import sum_of_pairs
from lib.sparsification import COMPRESSORS, INDEX_BYTES, VALUE_BYTES

# --- the model --------------------------------------------------------------------------------------------------------


def ring(workers: int, d: float, bandwidth: float, latency: float) -> float:
    """Seconds of a ring all-reduce of d values: 2 (P - 1) messages of d/P values, latency and bytes/bandwidth each."""
    return 2 * (workers - 1) * (latency + VALUE_BYTES * d / workers / bandwidth)


def gather(workers: int, elements: float, bandwidth: float, latency: float) -> float:
    """Seconds of an all-gather of `elements` (value, index) pairs from each of P workers: log2 P rounds, P - 1 messages."""
    return np.log2(workers) * latency + (workers - 1) * elements * (VALUE_BYTES + INDEX_BYTES) / bandwidth


# The same in the language of the charts; a test evaluates both.
EXPRESSIONS = {
    "ring": f"2 * ({{workers}} - 1) * ({{latency}} + {VALUE_BYTES} * {{d}} / {{workers}} / {{bandwidth}})",
    "gather": f"log({{workers}}) / LN2 * {{latency}} + ({{workers}} - 1) * {{elements}} * {VALUE_BYTES + INDEX_BYTES} "
    "/ {bandwidth}",
}

# --- measured ---------------------------------------------------------------------------------------------------------


def library_top_k(u: torch.Tensor, k: int, random: np.random.Generator) -> torch.Tensor:
    """Top-k by PyTorch's own selection over the whole vector, as the authors' code has it."""
    return torch.zeros_like(u, dtype=torch.bool).scatter_(1, u.abs().topk(k, dim=1, sorted=False).indices, True)


TIMED = {
    "torch.topk": library_top_k,
    **{c: COMPRESSORS[c] for c in ("top-k", "gaussian-k", "gaussian-k-band", "dgc-k", "redsync", "rand-k")},
}


@dataclass(frozen=True)
class Operators:
    """Times of the compressors on normal vectors of 2^smallest ... 2^largest entries, at one density, on one core."""

    density: float = 0.001
    smallest: int = 16
    largest: int = 26
    repeats: int = 5

    def definition(self) -> dict:
        return {"timed": list(TIMED)}

    def measure(self) -> pd.DataFrame:
        """compressor, d, seconds (median), low, high (range), elements (sent)."""
        rows, random = [], np.random.default_rng(0)
        for power in range(self.smallest, self.largest + 1):
            u = torch.randn(1, 2**power, generator=torch.Generator().manual_seed(power))
            k = sparsification.target(self.density, 2**power)
            for name, choose in TIMED.items():
                times = timings.spread(lambda choose=choose, u=u, k=k: choose(u, k, random), self.repeats)
                rows.append({"compressor": name, "d": 2**power, **times,
                             "elements": int(choose(u, k, random).count_nonzero())})  # fmt: skip
        return pd.DataFrame(rows)


def over_gaussian(timed: pd.DataFrame) -> pd.DataFrame:
    """Timings of `Operators` as a row per d with a column per compressor, and over Gaussian-k's: library (`torch.topk`'s
    Top-k), own (ours)."""
    if timed.empty:
        return pd.DataFrame(columns=["d", *TIMED, "library", "own"], dtype=float)
    wide = timed.pivot(index="d", columns="compressor", values="seconds").reset_index()
    return wide.assign(library=wide["torch.topk"] / wide["gaussian-k"], own=wide["top-k"] / wide["gaussian-k"])


@dataclass(frozen=True)
class Collectives:
    """Times of gloo's all-reduce of d values and of the exchange of pairs at one density, between processes here."""

    workers: int = 2
    density: float = 0.001
    smallest: int = 14
    largest: int = 24
    repeats: int = 7

    def definition(self) -> dict:
        return {}

    def measure(self) -> pd.DataFrame:
        """what ("all-reduce", "pairs"), d, seconds (median), low, high (range)."""
        with tempfile.TemporaryDirectory() as folder:
            mp.start_processes(_collective, (self, folder), nprocs=self.workers, start_method="spawn")
            return pd.read_csv(Path(folder, "times.csv"))


def _collective(rank: int, own: Collectives, folder: str) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # gloo announces its connections
    torch.set_num_threads(1)
    if sys.platform in ("linux", "darwin"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    dist.init_process_group("gloo", init_method=Path(folder, "store").as_uri(), rank=rank, world_size=own.workers)
    rows = []
    for power in range(own.smallest, own.largest + 1, 2):
        d = 2**power
        k, u = sparsification.target(own.density, d), torch.ones(d)
        index = torch.randperm(d, generator=torch.Generator().manual_seed(rank))[:k]
        value = torch.ones(k)
        kinds = {
            "all-reduce": lambda u=u: dist.all_reduce(u),
            "pairs": lambda i=index, v=value, d=d: sum_of_pairs(i, v, d, None),
        }
        for name, call in kinds.items():
            dist.barrier()
            rows.append({"what": name, "d": d, **timings.spread(call, own.repeats)})
    if rank == 0:
        pd.DataFrame(rows).to_csv(Path(folder, "times.csv"), index=False)
    dist.destroy_process_group()


PLANNED = (Operators(), Operators(density=0.01), Collectives(2), Collectives(4))
