"""Computations from curves and step times for the page on hardware, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib import BookError
from lib.analysis import hardware, ranges, scaling
from lib.analysis.hardware import Hardware
from lib.claims import judging
from lib.records import selection, store
from lib.wording import brief, number, span
from lib.workloads import catalogue

Curve = tuple  # a key of `scaling.curves`: workload, method, pruning, sparsity


@dataclass(frozen=True)
class Optimum:
    """The best batch size of one curve, its 5 to 95 % range over resampled searches, the number of
    devices, and the time or price there.
    """

    batch_size: int
    sizes: tuple[float, float]
    devices: int
    value: float


@dataclass(frozen=True)
class Case:
    """A network on given hardware.

    Attributes:
        machine: the devices.
        points: from `scaling.across_replicates`, with parameters; batch sizes as in `curves`.
        curves: from `scaling.curves`.
        timed: step times of one device; None: they follow from the machine's throughput.
    """

    machine: Hardware
    points: pd.DataFrame
    curves: Mapping[Curve, scaling.Curve]
    timed: pd.DataFrame | None

    def keys(self) -> list[Curve]:
        """Keys of the curves, one per pruning and sparsity."""
        return [tuple(row) for row in self.points[scaling.CURVE].drop_duplicates().to_numpy()]

    @property
    def densest(self) -> Curve:
        return min(self.keys(), key=lambda curve: curve[3])

    def of(self, curve: Curve) -> pd.DataFrame:
        """A curve's points, by batch size."""
        rows = (self.points[scaling.CURVE] == list(curve)).all(axis=1)
        return self.points[rows].set_index("batch_size").sort_index()

    def best(self, curve: Curve, what: str) -> Optimum:
        """The batch size with the least time to the goal, or price; what: "seconds" or "price"."""
        points = self.of(curve)
        weights = points.parameters.iloc[0]
        step = hardware.best_step(self.machine, points.index, weights, self.timed)
        values = points.steps * step[what]
        drawn = scaling.draws(self.curves[curve])[points.index] * step[what]
        size = values.idxmin()
        devices = step["fast" if what == "seconds" else "cheap"][size]
        sizes = scaling.span_of(drawn.idxmin(axis=1))
        return Optimum(int(size), sizes, int(devices), float(values[size]))


def measured(name: str, *methods: str) -> pd.DataFrame:
    """The trials of all of a network's curves at their goals; for a reader's own network, those of
    its exact searches, or of adaptive ones for a curve without exact searches.

    methods: as for `hardware.exact`.  Raises BookError if a reader's own network has no trials.
    """
    exact = hardware.exact(name, methods=methods)
    book = ranges.whole(judging.to_goals(selection.curves(exact)), judging.low())
    adaptive = hardware.adaptive(name, methods=methods)
    searched = {(cell.algorithm, cell.sparsity) for cell in exact.searches}
    if adaptive.empty and not searched and catalogue.workload(name).steps_timed:
        raise BookError(
            f"workload: no search of {exact.name!r} is on record; run "
            f"own_workload.ipynb with -p budget full"
        )
    if adaptive.empty:
        return scaling.at_goals(book)
    pairs = zip(adaptive.algorithm, adaptive.sparsity)
    lacking = adaptive[[pair not in searched for pair in pairs]]
    heads = [
        head
        for head in adaptive.attrs["provenance"]
        if (head["algorithm"], head["sparsity"]) not in searched
    ]
    trials = pd.concat([book, lacking], ignore_index=True)
    trials.attrs.update(
        book.attrs, provenance=store.Shared([*book.attrs["provenance"], *heads])
    )
    return scaling.at_goals(trials)


def of_searches(trials: pd.DataFrame, curve: tuple) -> pd.DataFrame | None:
    """Step times (batch_size, seconds) of a reader's own curve, from its searches, which ran one
    trial after another (`hardware.step_seconds`); None for any other network.
    """
    if not catalogue.workload(curve[0]).steps_timed:
        return None
    seconds = hardware.step_seconds(trials).set_index(scaling.CURVE)
    return seconds.loc[[curve]].reset_index(drop=True)


def skipped(curves: Mapping[Curve, scaling.Curve]) -> pd.DataFrame:
    """The sparsest pruned networks over dense ones if a core skips zeros.

    Columns: scaling.CURVE; curve (its name); batch_size (the largest) and step (a step's time over
    the dense one's there); ratio, ratio_low, ratio_high (`scaling.estimate`; step times count as
    exact): time to the goal over the dense network's, each at its best batch size.
    """
    times = store.closed("sparse steps")
    by = ["workload", "what", "sparsity", "batch_size"]
    seconds = times.set_index(by).seconds.sort_index()
    timed, sparsest = set(times.workload), times.sparsity.max()
    rows = []
    for key, few, many in scaling.with_partner(curves, scaling.dense_key):
        if key[0] in timed and key[3] == sparsest:
            quick = seconds[key[0], "sparse", sparsest]
            slow = seconds[key[0], "dense", 0]
            rows.append((key, _over_dense(few, many, quick, slow)))
    columns = ["batch_size", "step", "ratio", "ratio_low", "ratio_high"]
    return scaling.by_curve(rows, columns).assign(curve=scaling.curve_names)


def _over_dense(
    few: scaling.Curve, many: scaling.Curve, quick: pd.Series, slow: pd.Series
) -> dict[str, float]:
    """A row of `skipped`: curve `few` with step times `quick`, over curve `many` with `slow`."""
    sizes = [b for b in quick.index if b in few.logs and b in many.logs]
    few_seconds = np.log(quick[sizes].to_numpy())
    many_seconds = np.log(slow[sizes].to_numpy())

    def least(a: tuple, b: tuple) -> np.ndarray:
        above = (a[1] + few_seconds).min(1)
        below = (b[1] + many_seconds).min(1)
        return above - below

    ratio = scaling.estimate(least, few.select(sizes), many.select(sizes))
    largest = sizes[-1]
    step = quick[largest] / slow[largest]
    return {"batch_size": largest, "step": step, **ratio.row("ratio")}


def of_skipped(zeros: pd.DataFrame) -> pd.DataFrame:
    """The table of `skipped` on the page."""
    return pd.DataFrame(
        {
            f"network, sparsity {zeros.sparsity.max():g} over dense": zeros.curve,
            f"time of a step, {number(zeros.batch_size.max())} examples": zeros.step.map(brief),
            "time to the goal": zeros.ratio.map(brief),
            "5–95 %": [span(ends) for ends in zip(zeros.ratio_low, zeros.ratio_high)],
        }
    )


def answers(case: Case) -> pd.DataFrame:
    """The fastest and the cheapest batch size, a row per curve."""
    rows = []
    for curve in case.keys():
        pruned = f"sparsity {curve[3]:g}" if curve[3] else "dense"
        row = {"network": pruned, "searches": case.curves[curve].n}
        for name, what, unit in (
            ("fastest", "seconds", "time (s)"),
            ("cheapest", "price", f"price ({case.machine.price:g} per device-hour)"),
        ):
            best = case.best(curve, what)
            row[f"{name} size"] = f"{number(best.batch_size)} ({span(best.sizes)})"
            row |= {f"devices, {name}": best.devices, unit: brief(best.value)}
        rows.append(row)
    return pd.DataFrame(rows)
