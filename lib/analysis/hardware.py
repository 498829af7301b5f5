"""From steps to hours and money: the time of a step on given hardware, and what a goal costs at
every batch size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from lib import own
from lib.analysis import scaling
from lib.fields import AMOUNT, POSITIVE, Count, Number, spec
from lib.methods import spaces
from lib.records import on_record, results
from lib.records.store import DATA
from lib.studies.cells import Cell
from lib.studies.plans import USUAL
from lib.studies.study import Study
from lib.workloads.catalogue import workload

SEEDS = 10  # of an adaptive search of a batch size: each of its trials has its own
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
    compute = np.maximum(share, hardware.saturation) / hardware.throughput
    if measured is not None:
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


def described(measured: pd.DataFrame) -> tuple[float, float]:
    """Throughput and saturation, the two constants of `Hardware`, of a device whose step times were
    measured.

    Throughput is that of the largest batch; a step of `saturation` examples at it takes as long as
    one of one example.
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
    once = np.ones(len(batch_size))
    each = [replace(hardware, devices=int(w)) for w in counts]
    costs = [to_goal(h, batch_size, once, parameters, measured) for h in each]
    found = np.array(costs)
    least = found.min(0)
    where = counts[found.argmin(0)]  # [seconds and price, n]
    table = {"seconds": least[0], "fast": where[0], "price": least[1], "cheap": where[1]}
    return pd.DataFrame(table, index=batch_size)


# The same in the language of the charts; a test evaluates both.  {own}: whether datum.measured, a
# device's time, counts.
EXPRESSIONS = {
    "seconds": "datum.steps * (({own} ? datum.measured : "
    "max(datum.batch_size / {devices}, {saturation}) / {throughput})"
    " + 2 * ({devices} - 1) * "
    f"({BYTES} * datum.parameters / {{devices}} / {{bandwidth}} + {{latency}}))",
    "cost": "datum.seconds / 3600 * {devices} * {price}",
}


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
    largest = {(algorithm, sparsity): trials for algorithm, sparsity, trials in ordered}
    kept = tuple(c for c in found if c.trials == largest[c.algorithm, c.sparsity])
    return Study(name, name, kept)


def adaptive(name: str, folder: Path = DATA, cells: Iterable[Cell] | None = None) -> pd.DataFrame:
    """Trials of adaptive searches as of `lib.records.results.read`, of which curves are made:
    `replicate` is the number of the search, and what tells the cells of a search apart is the same.

    cells: of one plan; None: all of a reader's own workload that are on record, in its own
    precision.  Plans of other outermost batch sizes share their records: what several plans tried
    as the same search of a batch size counts as one search.  Raises RecordError as
    `lib.records.store.read`.
    """
    work = workload(name)
    if cells is None:
        known = on_record.of_own(work.name, folder) if own.is_own(work.name) else ()
        usual = USUAL.keys() - {"space", "max_steps"}  # of which every trial has its own
        alike = (c for c in known if all(getattr(c, field) == USUAL[field] for field in usual))
        cells = [cell for cell in alike if cell.space is not None]
    found = results.read(Study(work.name, "", tuple(cells)), folder)
    if found.empty:
        return found
    same = {"space": spaces.ADAPTIVE, "trials": 1, "max_steps": work.max_steps}
    return found.assign(replicate=found.replicate // SEEDS, **same)


def step_seconds(trials: pd.DataFrame) -> pd.DataFrame:
    """Seconds of one trial's step, as the searches took it, checks included: those of
    `scaling.CURVE`, batch_size, seconds.

    trials: a table of `lib.records.results.read`.
    """
    keys = [*scaling.CURVE, "batch_size"]
    heads = pd.DataFrame([*trials.attrs["provenance"]])
    heads = heads[heads.trial_steps > 0].groupby(keys)[["wall_s", "trial_steps"]].sum()
    return (heads.wall_s / heads.trial_steps).rename("seconds").reset_index()


def of_searches(trials: pd.DataFrame, curve: tuple) -> pd.DataFrame | None:
    """Step times of a reader's own curve (`scaling.CURVE`), batch_size and seconds, as its searches
    took them; else None.

    Its trials are trained one after another, so that a step of the search is a step of one device
    (`step_seconds`).
    """
    if not own.is_own(curve[0]):
        return None
    seconds = step_seconds(trials).set_index(scaling.CURVE)
    return seconds.loc[[curve]].reset_index(drop=True)


@dataclass(frozen=True)
class Optimum:
    """The best batch size of one curve: with its 5 to 95 % range over drawn searches, its devices,
    and the time or price there.
    """

    batch_size: int
    sizes: tuple[float, float]
    devices: int
    value: float
    values: tuple[float, float]


def optimum(steps: pd.Series, drawn: pd.DataFrame, step: pd.DataFrame, what: str) -> Optimum:
    """Where steps [sizes] times a step's time or price (what: a column of `best_step`) is least.

    drawn: steps of drawn curves [draws, sizes] (`scaling.draws`).
    """
    column = "fast" if what == "seconds" else "cheap"
    values = steps * step[what]
    again = drawn[steps.index] * step[what]
    at = values.idxmin()
    sizes = scaling.span_of(again.idxmin(axis=1))
    spread = scaling.span_of(again[at])
    return Optimum(int(at), sizes, int(step[column][at]), float(values[at]), spread)
