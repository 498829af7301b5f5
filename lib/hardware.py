"""From steps to hours and money: the time of a step on given hardware, and what a goal costs at every batch size."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lib import algorithms, models, own, records, sparse, stacks, sweeps, timings
from lib.workloads import workload

BYTES = 4  # per weight and per gradient entry


@dataclass(frozen=True)
class Hardware:
    """Equal devices that share every batch and add up their gradients in a ring.

    throughput: examples per second of one device that has enough to do.  saturation: examples per device below which a
    step gets no faster.  bandwidth: bytes per second between neighbours in the ring.  latency: seconds per message.
    price: of one device for an hour.  Raises ValueError naming the field, its value and what is allowed.
    """

    devices: int = 1
    throughput: float = 10_000.0
    saturation: float = 1.0
    bandwidth: float = math.inf
    latency: float = 0.0
    price: float = 1.0

    def __post_init__(self):
        for field in fields(self):
            value, zero = getattr(self, field.name), field.name in ("latency", "price")
            if not (value >= 0 if zero else value > 0):
                allowed = "zero or positive" if zero else "positive"
                raise ValueError(f"{field.name}: {value!r} is not allowed; it must be {allowed}")
        if self.devices != int(self.devices):
            raise ValueError(f"devices: {self.devices!r} is not allowed; it must be a whole number from 1")


def step_time(
    hardware: Hardware, batch_size: np.ndarray, parameters: int, measured: pd.DataFrame | None = None
) -> np.ndarray:
    """Seconds per training step [n] at these batch sizes [n] for a network with so many parameters.

    Compute: the share of a device, or its saturation if that is more, over its throughput; or as `measured` on a device
    (`interpolated`).  Communication: a ring all-reduce sends 2 (W - 1) messages of 1/W of the gradient; not overlapped
    with compute.
    """
    w = hardware.devices
    share = np.asarray(batch_size, float) / w
    compute = np.maximum(share, hardware.saturation) / hardware.throughput
    if measured is not None:
        compute = interpolated(measured, share)
    messages = 2 * (w - 1)
    return compute + messages * (BYTES * parameters / w / hardware.bandwidth + hardware.latency)


def interpolated(measured: pd.DataFrame, share: np.ndarray) -> np.ndarray:
    """Seconds [n] of one device's step on these shares of a batch [n], from its measured times (`StepTimes`).

    Both axes logarithmic; below the smallest batch measured its time, above the largest in proportion.
    """
    known = measured.sort_values("batch_size")
    inside = np.interp(np.log(share), np.log(known.batch_size), np.log(known.seconds))
    return np.exp(inside) * np.maximum(np.asarray(share, float) / known.batch_size.iloc[-1], 1)


def described(measured: pd.DataFrame) -> tuple[float, float]:
    """Throughput and saturation, the two constants of `Hardware`, of a device whose step times were measured.

    Throughput is that of the largest batch; a step of `saturation` examples at it takes as long as one of one example.
    """
    known = measured.sort_values("batch_size")
    throughput = known.batch_size.iloc[-1] / known.seconds.iloc[-1]
    return throughput, max(known.seconds.iloc[0] * throughput, 1.0)


def to_goal(
    hardware: Hardware,
    batch_size: np.ndarray,
    steps: np.ndarray,
    parameters: int,
    measured: pd.DataFrame | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and price [n] to reach the goal in `steps` [n] at these batch sizes [n]; measured: see `step_time`."""
    seconds = np.asarray(steps, float) * step_time(hardware, batch_size, parameters, measured)
    return seconds, seconds / 3600 * hardware.devices * hardware.price


def best_step(
    hardware: Hardware, batch_size: np.ndarray, parameters: int, measured: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The best a step can be at every batch size [n] (the index) on a power of two of devices, up to those there are.

    seconds, on `fast` devices, where it is shortest; price, on `cheap` devices, where it is lowest.
    """
    counts = 2 ** np.arange(int(hardware.devices).bit_length())
    each = [replace(hardware, devices=int(w)) for w in counts]
    seconds, price = np.array(
        [to_goal(h, batch_size, np.ones(len(batch_size)), parameters, measured) for h in each]
    ).swapaxes(0, 1)  # each [counts, n]
    return pd.DataFrame(
        {
            "seconds": seconds.min(0),
            "fast": counts[seconds.argmin(0)],
            "price": price.min(0),
            "cheap": counts[price.argmin(0)],
        },
        index=batch_size,
    )


# The same in the language of the charts; a test evaluates both.  own: whether datum.measured, a device's time, counts.
EXPRESSIONS = {
    "seconds": "datum.steps * (({own} ? datum.measured : max(datum.batch_size / {devices}, {saturation}) / {throughput})"
    " + 2 * ({devices} - 1) * "
    f"({BYTES} * datum.parameters / {{devices}} / {{bandwidth}} + {{latency}}))",
    "cost": "datum.seconds / 3600 * {devices} * {price}",
}


@dataclass(frozen=True)
class StepTimes:
    """Times of one trial's training step on one core, gradient and update, at 4^0 ... 2^largest examples."""

    workload: str
    largest: int = 10
    repeats: int = 9

    def definition(self) -> dict:
        work = workload(self.workload)
        return {"model": work.model, "precision": work.precision}

    def measure(self) -> pd.DataFrame:
        """batch_size, seconds (median), low, high (range)."""
        work = workload(self.workload)
        executor = stacks.Loop(models.build(work.model), getattr(torch, work.precision))
        data, w = work.train(), stacks.flatten(models.fresh(work.model, 0))[None]
        x, v, rate = executor.inputs(data.x[: 2**self.largest]), torch.zeros_like(w), torch.full((1, 1), 1e-3)

        def step(size: int) -> None:
            g = executor.gradients(w, x[:size], data.y[:size])[1]
            algorithms.update("momentum", w, v, g, rate, rate)

        sizes = [2**j for j in range(0, self.largest + 1, 2)]
        return pd.DataFrame([{"batch_size": b, **timings.spread(lambda b=b: step(b), self.repeats)} for b in sizes])


@dataclass(frozen=True)
class SparseTimes:
    """Times of a trial's step on one core, of many trials trained at once, by dense and by sparse matrix products."""

    workload: str
    sparsity: float
    trials: int = 100
    largest: int = 10
    repeats: int = 5

    def definition(self) -> dict:
        return {"model": workload(self.workload).model}

    def measure(self) -> pd.DataFrame:
        """batch_size (16, 64, ... 2^largest), products ("dense", "sparse"), seconds (median), low, high (range)."""
        work = workload(self.workload)
        start = sweeps.start(sweeps.Cell(work.name, 16, sparsity=self.sparsity, trials=self.trials))
        w, v, data, rows = start.w.clone(), torch.zeros_like(start.w), work.train(), []

        def step(executor: stacks.Stack, size: int) -> None:
            g = executor.gradients(w, data.x[:size], data.y[:size], start.mask)[1]
            algorithms.update("momentum", w, v, g, start.rate * 0, start.momentum * 0)

        for size in (2**j for j in range(4, self.largest + 1, 2)):
            for products, kind in (("dense", stacks.Stack), ("sparse", sparse.Sparse)):
                executor = kind(models.build(work.model))
                times = timings.spread(lambda executor=executor, size=size: step(executor, size), self.repeats)
                rows.append({"batch_size": size, "products": products, **{k: t / self.trials for k, t in times.items()}})
        return pd.DataFrame(rows)


SKIPPED = tuple(SparseTimes(name, sparsity) for name in ("digits-mlp", "digits-cnn") for sparsity in (0.5, 0.7, 0.9))
PLANNED = SKIPPED + tuple(
    StepTimes(name)
    for name in (
        "digits-mlp", "digits-cnn", "mnist-fc-128x3", "mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8",
    )
)  # fmt: skip


def skipped(curves: pd.DataFrame, searches: dict, times: pd.DataFrame) -> pd.DataFrame:
    """Sparse networks over their dense ones, if a core skips the zeros: a row per curve, batch size and what is compared.

    curves: medians of `scaling.across_replicates`; searches: curve -> its redrawn steps [draws, batch sizes]; times: of
    `SparseTimes`.  what: "steps to the goal", "time of a step", "time to the goal"; ratio, with low and high, 5 to 95 % over
    redrawn searches (a step's time is taken as exact).
    """
    keys = ["workload", "algorithm", "pruning", "sparsity", "batch_size"]
    steps, rows = curves.set_index(keys).steps, []
    if times.empty:
        return pd.DataFrame(columns=[*keys, "what", "ratio", "low", "high"])
    step = times.pivot_table(index=["workload", "sparsity", "batch_size"], columns="products", values="seconds")
    for (name, sparsity, size), seconds in step.iterrows():
        for curve in [k for k in searches if k[0] == name and k[3] == sparsity and size in searches[k]]:
            dense = (*curve[:3], 0.0)
            if dense in searches and size in searches[dense]:
                ratio, faster = steps[(*curve, size)] / steps[(*dense, size)], seconds["sparse"] / seconds["dense"]
                low, high = (searches[curve][size] / searches[dense][size]).quantile([0.05, 0.95])
                about = dict(zip(keys, (*curve, size)))
                for what, (middle, *ends) in {
                    "steps to the goal": (ratio, low, high),
                    "time of a step": (faster, faster, faster),
                    "time to the goal": (ratio * faster, low * faster, high * faster),
                }.items():
                    rows.append({**about, "what": what, "ratio": middle, "low": ends[0], "high": ends[1]})
    return pd.DataFrame(rows, columns=[*keys, "what", "ratio", "low", "high"])


def one_core(name: str) -> pd.DataFrame | None:
    """The measured step times of a workload on one core of ours, or None."""
    measured = timings.results(StepTimes(name))
    return None if measured.empty else measured


def readers(name: str, folder: Path = sweeps.DATA) -> sweeps.Study:
    """The cells of a reader's own workload that are on record, of each curve's largest search; of another workload none.

    Raises ValueError if there are none, and RecordError as `lib.records.read`.
    """
    files = sorted((folder / "own" / records.folder_name(name)).rglob("*.csv")) if own.is_own(name) else []
    found = []
    for file in files:
        with contextlib.suppress(ValueError):  # a batch that was in the data before the reader's file changed
            cell = sweeps.Cell(**records.head(file)["cell"])
            found += [cell] if cell.workload == name and sweeps.record(cell, folder) == file else []
    if own.is_own(name) and not found:
        raise ValueError(f"workload: no record is kept of {name!r}; measure it with own_workload.ipynb and -p budget full")
    searches = Counter((c.algorithm, c.sparsity, c.trials) for c in found)
    largest = {}  # (algorithm, sparsity) -> trials of the search with most batch sizes, and of these of the one with most trials
    for (*curve, trials), _ in sorted(searches.items(), key=lambda item: (item[1], item[0][2])):
        largest[tuple(curve)] = trials
    return sweeps.Study(name, name, tuple(c for c in found if c.trials == largest[c.algorithm, c.sparsity]))
