"""From steps to hours and money: the time of a step on given hardware, and what a goal costs at
every batch size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from lib import BookError
from lib.analysis import scaling, surface
from lib.fields import AMOUNT, POSITIVE, Count, Number, spec
from lib.methods import spaces
from lib.records import results, selection
from lib.records.store import DATA, of_own
from lib.studies.search import Search
from lib.studies.study import Study
from lib.workloads.catalogue import Workload, workload

BYTES = 4  # per weight and per gradient entry
# Seconds of a search, at least: older records round to hundredths, the shortest to zero
LEAST = 0.005


@spec
class Hardware:
    """Equal devices that share every batch and sum their gradients in a ring.

    throughput: examples per second of a fully used device.  saturation: examples per device below
    which a step gets no faster.  bandwidth: bytes per second between neighbours in the ring.
    latency: seconds per message.  price: of one device per hour.  Raises ValueError naming the
    field, its value and what is allowed.
    """

    devices: Count(2**20) = 1
    throughput: POSITIVE = 10_000.0
    saturation: POSITIVE = 1.0
    bandwidth: Number("(0, inf]") = math.inf
    latency: AMOUNT = 0.0
    price: AMOUNT = 1.0


def step_time(
    hardware: Hardware,
    batch_size: np.ndarray,
    parameters: int,
    measured: pd.DataFrame | None = None,
) -> np.ndarray:
    """Seconds per training step [n] at these batch sizes [n] for a network with so many parameters.

    Compute: a device's share of the batch, or its saturation if larger, over its throughput; or as
    `measured` on a device (`interpolated`).  Communication: a ring all-reduce sends 2 (W - 1)
    messages of 1/W of the gradient, not overlapped with compute.
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
    """Seconds [n] of one device's step on these shares of a batch [n], from measured times
    (`StepTimes`).

    Interpolated on logarithmic axes; constant below the smallest batch measured, proportional above
    the largest.
    """
    timed = measured.sort_values("batch_size")
    inside = np.interp(np.log(share), np.log(timed.batch_size), np.log(timed.seconds))
    return np.exp(inside) * np.maximum(np.asarray(share, float) / timed.batch_size.iloc[-1], 1)


def to_goal(
    hardware: Hardware,
    batch_size: np.ndarray,
    steps: np.ndarray,
    parameters: int,
    measured: pd.DataFrame | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and price [n] of reaching the goal in `steps` [n] at these batch sizes [n]; measured:
    as for `step_time`.
    """
    seconds = np.asarray(steps, float) * step_time(hardware, batch_size, parameters, measured)
    return seconds, seconds / 3600 * hardware.devices * hardware.price


def best_step(
    hardware: Hardware,
    batch_size: np.ndarray,
    parameters: int,
    measured: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The best step at every batch size [n] (the index), over powers of two of devices up to their
    number.

    Columns: seconds, the shortest, on `fast` devices; price, the lowest, on `cheap` devices.
    """
    counts = 2 ** np.arange(int(hardware.devices).bit_length())
    shares = [replace(hardware, devices=int(w)) for w in counts]
    costs = np.array([to_goal(h, batch_size, 1.0, parameters, measured) for h in shares])
    seconds, price = costs.min(0)
    fast, cheap = counts[costs.argmin(0)]
    table = {"seconds": seconds, "fast": fast, "price": price, "cheap": cheap}
    return pd.DataFrame(table, index=batch_size)


def readers(name: str, *methods: str) -> Study:
    """The searches of a reader's own workload that `exact` selects; for another workload, none.

    methods: as for `exact`.  Raises BookError if there are none, and RecordError as
    `lib.records.store.read`.
    """
    study = exact(name, methods=methods)
    if not study.searches and workload(name).steps_timed:
        raise BookError(
            f"workload: no exact search of {study.name!r} is on record; run "
            f"own_workload.ipynb with -p search exact -p budget full"
        )
    return study


def exact(name: str, folder: Path = DATA, *, methods: Collection[str] = ()) -> Study:
    """The searches of a reader's own workload on record, without adaptive ones, for each curve only
    those of its largest set; for another workload, none.

    methods: as for `lib.records.store.of_own`.  Raises RecordError as `lib.records.store.read`.
    """
    name = workload(name).name
    # The trials of an adaptive search have several spaces
    recorded = [search for search in of_own(name, folder, methods) if search.space is None]
    sizes = Counter((*selection.curve(s), s.trials) for s in recorded)
    # By curve, the number of trials that the most searches have; the largest if several do
    ordered = sorted(sizes, key=lambda key: (sizes[key], key[-1]))
    trials = {key[:-1]: key[-1] for key in ordered}
    largest = (s for s in recorded if s.trials == trials[selection.curve(s)])
    return Study(name, name, largest)


def adaptive(
    name: str,
    folder: Path = DATA,
    cells: Iterable[Search] | None = None,
    *,
    methods: Collection[str] = (),
) -> pd.DataFrame:
    """Trials of adaptive searches, as from `lib.records.results.read`, prepared for curves: each
    counts as a search, with its steps converted to the best learning rate by the law fitted to all
    of them (`lib.analysis.surface`) and the fields that distinguish searches made equal.

    Args:
        cells: of one plan; None: all on record of a reader's own workload, in its precision, with
            the most frequent values of other hyperparameters.
        methods: as for `lib.records.store.of_own`.

    Raises RecordError as `lib.records.store.read`.
    """
    work = workload(name)
    if cells is None:
        recorded = of_own(work.name, folder, methods)
        # Every trial has a separate space
        cells = (s for s in recorded if s.space and s.is_usual("space", "max_steps"))
    trials = results.read(Study(work.name, "", cells), folder)
    if trials.empty:
        return trials
    curves = trials.groupby(["algorithm", "sparsity"])
    rows = pd.concat([_at_best(curve, method, work) for (method, _), curve in curves])
    same = {"space": spaces.ADAPTIVE, "trials": 1, "max_steps": work.max_steps}
    rows = rows.assign(replicate=rows.groupby("batch_size").cumcount(), **same)
    rows.attrs.update(trials.attrs)
    return rows.reset_index(drop=True)


def _at_best(trials: pd.DataFrame, algorithm: str, work: Workload) -> pd.DataFrame:
    """Trials of a curve with the steps that they would have taken at the best learning rate."""
    tuned = spaces.intervals(work.space, algorithm, work.decay)
    others = [name for name in tuned if name != "learning_rate"]
    if others:
        values = trials.set_index(others).index
        trials = trials[values == values.value_counts().index[0]]
    steps = [f"steps@{goal:g}" for goal in sorted(work.goals)]
    hardest = next((name for name in steps if trials[name].notna().any()), None)
    if hardest is None:
        return trials
    factors = surface.fit(trials, [hardest]).at_best(trials)
    return trials.assign(**{name: trials[name] * factors for name in ["steps", *steps]})


def step_seconds(trials: pd.DataFrame) -> pd.DataFrame:
    """Seconds per step of one trial in the searches, checks included; columns: those of
    `scaling.CURVE`, batch_size, seconds.

    trials: a table from `lib.records.results.read`.
    """
    keys = [*scaling.CURVE, "batch_size"]
    heads = pd.DataFrame([*trials.attrs["provenance"]]).query("trial_steps > 0")
    heads = heads.assign(wall_s=heads.wall_s.clip(lower=LEAST))
    heads = heads.groupby(keys)[["wall_s", "trial_steps"]].sum()
    return (heads.wall_s / heads.trial_steps).rename("seconds").reset_index()
