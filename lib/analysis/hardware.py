"""From steps to hours and money: the time of a step on given hardware, and what a goal costs at
every batch size.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from lib import own
from lib.fields import AMOUNT, POSITIVE, Count, Number, spec
from lib.records import on_record
from lib.records.store import DATA
from lib.studies.study import Study
from lib.workloads.catalogue import workload

BYTES = 4  # per weight and per gradient entry
MOST_DEVICES = 2**20


@spec
class Hardware:
    """Equal devices that share every batch and add up their gradients in a ring.

    throughput: examples per second of one device that has enough to do.  saturation: examples per
    device below which a step gets no faster.  bandwidth: bytes per second between neighbours in the
    ring.  latency: seconds per message. price: of one device for an hour.  Raises ValueError naming
    the field, its value and what is allowed.
    """

    devices: Count(MOST_DEVICES) = 1
    throughput: POSITIVE = 10_000.0
    saturation: POSITIVE = 1.0
    bandwidth: Number("(0, inf]", "a positive number, or infinite") = math.inf
    latency: AMOUNT = 0.0
    price: AMOUNT = 1.0


def step_time(
    hardware: Hardware,
    batch_size: np.ndarray,
    parameters: int,
    measured: pd.DataFrame | None = None,
) -> np.ndarray:
    """Seconds per training step [n] at these batch sizes [n] for a network with so many parameters.

    Compute: the share of a device, or its saturation if that is more, over its throughput; or as
    `measured` on a device (`interpolated`).  Communication: a ring all-reduce sends 2 (W - 1)
    messages of 1/W of the gradient; not overlapped with compute.
    """
    w = hardware.devices
    share = np.asarray(batch_size, float) / w
    if measured is None:
        compute = np.maximum(share, hardware.saturation) / hardware.throughput
    else:
        compute = interpolated(measured, share)
    message = BYTES * parameters / w / hardware.bandwidth + hardware.latency
    return compute + 2 * (w - 1) * message


def interpolated(measured: pd.DataFrame, share: np.ndarray) -> np.ndarray:
    """Seconds [n] of one device's step on these shares of a batch [n], from its measured times
    (`StepTimes`).

    Both axes logarithmic; below the smallest batch measured its time, above the largest in
    proportion.
    """
    known = measured.sort_values("batch_size")
    inside = np.interp(np.log(share), np.log(known.batch_size), np.log(known.seconds))
    return np.exp(inside) * np.maximum(np.asarray(share, float) / known.batch_size.iloc[-1], 1)


def to_goal(
    hardware: Hardware,
    batch_size: np.ndarray,
    steps: np.ndarray,
    parameters: int,
    measured: pd.DataFrame | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and price [n] to reach the goal in `steps` [n] at these batch sizes [n]; measured:
    see `step_time`.
    """
    seconds = np.asarray(steps, float) * step_time(hardware, batch_size, parameters, measured)
    return seconds, seconds / 3600 * hardware.devices * hardware.price


def best_step(
    hardware: Hardware,
    batch_size: np.ndarray,
    parameters: int,
    measured: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The best a step can be at every batch size [n] (the index) on a power of two of devices, up
    to those there are.

    seconds, on `fast` devices, where it is shortest; price, on `cheap` devices, where it is lowest.
    """
    counts = 2 ** np.arange(int(hardware.devices).bit_length())
    each = [replace(hardware, devices=int(w)) for w in counts]
    costs = np.array([to_goal(one, batch_size, 1.0, parameters, measured) for one in each])
    seconds, price = costs.min(0)
    fast, cheap = counts[costs.argmin(0)]
    table = {"seconds": seconds, "fast": fast, "price": price, "cheap": cheap}
    return pd.DataFrame(table, index=batch_size)


def readers(name: str) -> Study:
    """The cells of a reader's own workload that `exact` finds; of another workload none.

    Raises ValueError if there are none, and RecordError as `lib.records.store.read`.
    """
    found = exact(name)
    if not found.cells and own.is_own(name):
        raise ValueError(
            f"workload: no exact search is on record of {found.name!r}; measure it with "
            f"own_workload.ipynb, -p search exact and -p budget full"
        )
    return found


def exact(name: str, folder: Path = DATA) -> Study:
    """The cells of a reader's own workload that are on record, of each curve's largest search, but
    for those of adaptive searches; of another workload none.

    Raises RecordError as `lib.records.store.read`.
    """
    name = workload(name).name
    # An adaptive search's trials are of several spaces
    known = on_record.of_own(name, folder) if own.is_own(name) else ()
    found = [cell for cell in known if cell.space is None]
    searches = Counter((c.algorithm, c.sparsity, c.trials) for c in found)
    # (algorithm, sparsity) -> trials of the search with most batch sizes, and of these of the one
    # with most trials
    ordered = sorted(searches, key=lambda search: (searches[search], search[2]))
    largest = {search[:2]: search[2] for search in ordered}
    kept = tuple(c for c in found if c.trials == largest[c.algorithm, c.sparsity])
    return Study(name, name, kept)
