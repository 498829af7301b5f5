"""From steps to hours and money: the time of a step on given hardware, and what a goal costs at
every batch size.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from lib import own, require, require_all
from lib.analysis import advice, scaling
from lib.fields import AMOUNT, POSITIVE, Count, Number, spec
from lib.records import store
from lib.records.places import DATA, record
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import workload

BYTES = 4  # per weight and per gradient entry
MOST_DEVICES = 2**20
MOST_PARAMETERS = 10**15


def _known(measured: pd.DataFrame) -> pd.DataFrame:
    require(len(measured), "measured", "no row", "a time of at least one batch size")
    for field in ("batch_size", "seconds"):
        _check_sizes(f"measured.{field}", measured[field])
    return measured.sort_values("batch_size")


def _check_sizes(field: str, values: object) -> None:
    require_all(field, values, lambda v: (v > 0) & np.isfinite(v), "a positive finite number")


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
    messages of 1/W of the gradient; not overlapped with compute.  Raises ValueError for a batch
    size that is not positive, and for fewer than one parameter.
    """
    _check_sizes("batch_size", batch_size)
    allowed = f"a whole number from 1 to {MOST_PARAMETERS}"
    require_all(
        "parameters",
        parameters,
        lambda v: (v >= 1) & (v <= MOST_PARAMETERS) & (v == np.floor(v)),
        allowed,
    )
    w = hardware.devices
    share = np.asarray(batch_size, float) / w
    compute = np.maximum(share, hardware.saturation) / hardware.throughput
    if measured is not None:
        compute = interpolated(measured, share)
    messages = 2 * (w - 1)
    return compute + messages * (BYTES * parameters / w / hardware.bandwidth + hardware.latency)


def interpolated(measured: pd.DataFrame, share: np.ndarray) -> np.ndarray:
    """Seconds [n] of one device's step on these shares of a batch [n], from its measured times
    (`StepTimes`).

    Both axes logarithmic; below the smallest batch measured its time, above the largest in
    proportion. Raises ValueError for shares and for measured times that are not positive.
    """
    _check_sizes("share", share)
    known = _known(measured)
    inside = np.interp(np.log(share), np.log(known.batch_size), np.log(known.seconds))
    return np.exp(inside) * np.maximum(np.asarray(share, float) / known.batch_size.iloc[-1], 1)


def described(measured: pd.DataFrame) -> tuple[float, float]:
    """Throughput and saturation, the two constants of `Hardware`, of a device whose step times were
    measured.

    Throughput is that of the largest batch; a step of `saturation` examples at it takes as long as
    one of one example. Raises ValueError for measured times that are not positive.
    """
    known = _known(measured)
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

    Raises ValueError for a number of steps that is negative or none, and as `step_time`.
    """
    require_all(
        "steps", steps, lambda v: v >= 0, "zero or positive, infinite where the goal is not reached"
    )
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


# The same in the language of the charts; a test evaluates both.  {own}: whether datum.measured, a
# device's time, counts.
EXPRESSIONS = {
    "seconds": "datum.steps * (({own} ? datum.measured : max(datum.batch_size / {devices}, {saturation}) / {throughput})"
    " + 2 * ({devices} - 1) * "
    f"({BYTES} * datum.parameters / {{devices}} / {{bandwidth}} + {{latency}}))",
    "cost": "datum.seconds / 3600 * {devices} * {price}",
}
GOAL, SCORED, ROUGH = (
    f"time to the goal{more}" for more in ("", ", scores included", ", dense in bfloat16")
)


def _both(curves: dict, times: pd.DataFrame) -> Iterator[tuple]:
    """Every pruned curve that has a dense one, of workloads that were timed: its key, both curves,
    and what is compared.

    That is, by name, (quick, slow, first, power): few^power quick + first over many^power slow, for
    few and many steps of the pruned and the dense network.
    """
    for name, timed in times.groupby("workload"):
        scores = timed.seconds[timed.what == "scores"].item()
        dense, rough = (
            timed[timed.what == kind].set_index("batch_size").seconds
            for kind in ("dense", "dense, bfloat16")
        )
        for key in (k for k in curves if k[0] == name and scaling.dense_key(k) in curves):
            level = (
                timed[(timed.what == "sparse") & (timed.sparsity == key[3])]
                .set_index("batch_size")
                .seconds
            )
            few, many = curves[key], curves[scaling.dense_key(key)]
            sizes = [b for b in level.index if b in few.logs and b in many.logs]
            if sizes:
                quick, slow, fair = (t[sizes].to_numpy() for t in (level, dense, rough))
                yield (
                    key,
                    few.at(sizes),
                    many.at(sizes),
                    {
                        GOAL: (quick, slow, 0, 1),
                        SCORED: (quick, slow, scores, 1),
                        ROUGH: (quick, fair, 0, 1),
                        "time of a step": (quick, slow, 0, 0),
                        "steps to the goal": (1, 1, 0, 1),
                    },
                )


def skipped(curves: dict, times: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pruned networks over their dense ones if a core skips the zeros: at every batch size, and
    each at its best.

    curves: `scaling.Curve` by key; times: of `SparseTimes`.  Both tables have the curve, what
    (GOAL, ...), ratio, ratio_low and ratio_high (`scaling.estimate`; times count as exact); the
    second has the times to the goal alone, the shortest on either side.  Raises ValueError without
    times.
    """
    if times.empty:
        raise ValueError(
            "timings: none of sparse products is on record; take them with python -m lib run timings"
        )
    rows, best = [], []
    for key, few, many, compared in _both(curves, times):
        about = dict(zip(scaling.CURVE, key, strict=True))
        for what, (quick, slow, first, power) in compared.items():

            def logs(a, b, quick=quick, slow=slow, first=first, power=power):
                return np.log(np.exp(power * a[1]) * quick + first), np.log(
                    np.exp(power * b[1]) * slow
                )

            at = scaling.estimate(lambda a, b, logs=logs: np.subtract(*logs(a, b)), few, many)
            rows += [
                {**about, "batch_size": b, "what": what, **e.row("ratio")}
                for b, e in zip(few.logs.columns, at)
            ]
            if what in (GOAL, SCORED, ROUGH):
                least = scaling.estimate(
                    lambda a, b, logs=logs: np.subtract(*(t.min(1) for t in logs(a, b))), few, many
                )
                best.append({**about, "what": what, **least.row("ratio")})
    columns = [*scaling.CURVE, "batch_size", "what", "ratio", "ratio_low", "ratio_high"]
    return pd.DataFrame(rows, columns=columns), pd.DataFrame(
        best, columns=[c for c in columns if c != "batch_size"]
    )


def readers(name: str, folder: Path = DATA) -> Study:
    """The cells of a reader's own workload that are on record, of each curve's largest search; of
    another workload none.

    Raises ValueError if there are none, and RecordError as `lib.records.store.read`.
    """
    name = workload(name).name
    files = (
        sorted((folder / "own" / own.folder_name(name)).rglob("*.csv")) if own.is_own(name) else []
    )
    found = []
    for file in files:
        with contextlib.suppress(
            ValueError
        ):  # a batch that was in the data before the reader's file changed
            cell = Cell(**store.head(file)["cell"])
            # An adaptive search's trials are of several spaces
            fits = cell.workload == name and cell.space is None
            found += [cell] if fits and record(cell, folder) == file else []
    if own.is_own(name) and not found:
        raise ValueError(
            f"workload: no exact search is on record of {name!r}; measure it with "
            f"own_workload.ipynb, -p search exact and -p budget full"
        )
    searches = Counter((c.algorithm, c.sparsity, c.trials) for c in found)
    # (algorithm, sparsity) -> trials of the search with most batch sizes, and of these of the one
    # with most trials
    largest = {}
    for (*curve, trials), _ in sorted(searches.items(), key=lambda item: (item[1], item[0][2])):
        largest[tuple(curve)] = trials
    return Study(
        name, name, tuple(c for c in found if c.trials == largest[c.algorithm, c.sparsity])
    )


def of_searches(trials: pd.DataFrame, curve: tuple) -> pd.DataFrame | None:
    """Step times of a reader's own curve (`scaling.CURVE`), batch_size and seconds, as its searches
    took them; else None.

    Its trials are trained one after another, so that a step of the search is a step of one device
    (`advice.step_seconds`).
    """
    if not own.is_own(curve[0]):
        return None
    seconds = advice.step_seconds(trials).set_index(scaling.CURVE)
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

    drawn: steps of drawn curves [draws, sizes] (`scaling.draws`).  Raises ValueError for another
    column.
    """
    require(what in ("seconds", "price"), "what", what, "seconds or price")
    at, again = (steps * step[what]).idxmin(), drawn[steps.index] * step[what]
    count = step["fast" if what == "seconds" else "cheap"][at]
    value = float(steps[at] * step[what][at])
    return Optimum(
        int(at),
        scaling.span_of(again.idxmin(axis=1)),
        int(count),
        value,
        scaling.span_of(again[at]),
    )
