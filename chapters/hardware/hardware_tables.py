"""What the page on hardware computes from curves and step times, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib import claims
from lib.analysis import hardware, method_results, ranges, scaling
from lib.analysis.hardware import Hardware
from lib.claims import judging
from lib.page import charts
from lib.probes import timings
from lib.records import selection, store
from lib.wording import brief, number, span
from lib.workloads import catalogue

Curve = tuple  # a key of `scaling.curves`: workload, method, pruning, sparsity


@dataclass(frozen=True)
class Optimum:
    """The best batch size of one curve: with its 5 to 95 % range over drawn searches, its devices,
    and the time or price there.
    """

    batch_size: int
    sizes: tuple[float, float]
    devices: int
    value: float


def optimum(steps: pd.Series, drawn: pd.DataFrame, step: pd.DataFrame, what: str) -> Optimum:
    """Where steps [sizes] times a step's time or price (what: a column of `best_step`) is least.

    drawn: steps of drawn curves [draws, sizes] (`scaling.draws`).
    """
    column = "fast" if what == "seconds" else "cheap"
    values = steps * step[what]
    again = drawn[steps.index] * step[what]
    at = values.idxmin()
    sizes = scaling.span_of(again.idxmin(axis=1))
    return Optimum(int(at), sizes, int(step[column][at]), float(values[at]))


@dataclass(frozen=True)
class Case:
    """A network on given hardware.

    Attributes:
        machine: the devices.
        points: of `scaling.across_replicates`, with parameters; batch sizes as of the curves.
        curves: of `scaling.curves`.
        timed: step times of one device; None where the machine says how fast it is.
    """

    machine: Hardware
    points: pd.DataFrame
    curves: Mapping[Curve, scaling.Curve]
    timed: pd.DataFrame | None

    def keys(self) -> list[Curve]:
        """Its curves, by pruning and sparsity."""
        return [tuple(row) for row in self.points[scaling.CURVE].drop_duplicates().to_numpy()]

    @property
    def densest(self) -> Curve:
        return min(self.keys(), key=lambda curve: curve[3])

    def of(self, curve: Curve) -> pd.DataFrame:
        """A curve's points, by batch size."""
        own = (self.points[scaling.CURVE] == list(curve)).all(axis=1)
        return self.points[own].set_index("batch_size").sort_index()

    def step(self, curve: Curve) -> pd.DataFrame:
        """`hardware.best_step` at its batch sizes."""
        points = self.of(curve)
        return hardware.best_step(
            self.machine, points.index, points.parameters.iloc[0], self.timed
        )

    def best(self, curve: Curve, what: str) -> Optimum:
        """Its optimum; what: "seconds" or "price"."""
        drawn = scaling.draws(self.curves[curve])
        return optimum(self.of(curve).steps, drawn, self.step(curve), what)


def measured(name: str, *methods: str) -> pd.DataFrame:
    """The trials of all curves, the book's at their goals; of a reader's own network those of its
    exact searches, and of adaptive ones for a curve that has none.

    methods: as of `hardware.exact`.  Raises ValueError if there are none of a reader's own.
    """
    exact = hardware.exact(name, methods=methods)
    book = judging.to_goals(selection.curves(exact))
    book = ranges.whole(book, judging.low())
    more = hardware.adaptive(name, methods=methods)
    known = {(cell.algorithm, cell.sparsity) for cell in exact.searches}
    if catalogue.workload(name).steps_timed and more.empty and not known:
        raise ValueError(
            f"workload: no search is on record of {exact.name!r}; measure it with "
            f"own_workload.ipynb and -p budget full"
        )
    if not more.empty:
        pairs = zip(more.algorithm, more.sparsity)
        more = more[[pair not in known for pair in pairs]]
    return scaling.at_goals(book if more.empty else _together(book, more))


def _together(book: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    """Both, with the first lines of the records that their rows are of."""
    found = pd.concat([book, more], ignore_index=True)
    pairs = set(zip(more.algorithm, more.sparsity))
    heads = [h for h in more.attrs["provenance"] if (h["algorithm"], h["sparsity"]) in pairs]
    found.attrs.update(book.attrs, provenance=store.Shared([*book.attrs["provenance"], *heads]))
    return found


def parameters(name: str) -> int:
    """Weights and biases that a workload's network trains."""
    module = catalogue.workload(name).network()
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def of_searches(trials: pd.DataFrame, curve: tuple) -> pd.DataFrame | None:
    """Step times of a reader's own curve (`scaling.CURVE`), batch_size and seconds, as its searches
    took them; else None.

    Its trials are trained one after another, so that a step of the search is a step of one device
    (`hardware.step_seconds`).
    """
    if not catalogue.workload(curve[0]).steps_timed:
        return None
    seconds = hardware.step_seconds(trials).set_index(scaling.CURVE)
    return seconds.loc[[curve]].reset_index(drop=True)


def devices_timed(cores: Mapping[str, pd.DataFrame | None]) -> pd.DataFrame:
    """Milliseconds of a step on one core of ours, a row per workload.

    cores: workload -> its step times, or None.
    """
    known = {
        catalogue.workload(name): times for name, times in cores.items() if times is not None
    }
    rows = [
        {
            "workload": work.title,
            **{f"{n:,}": brief(1e3 * s) for n, s in zip(times.batch_size, times.seconds)},
        }
        for work, times in known.items()
        if not work.steps_timed
    ]
    return pd.DataFrame(rows)


def skipped(curves: Mapping[Curve, scaling.Curve]) -> pd.DataFrame:
    """The sparsest pruned networks over dense ones if a core skips the zeros.

    scaling.CURVE; curve (its name); batch_size, the largest, and step, a step's time over the dense
    one's at it; ratio, ratio_low, ratio_high (`scaling.estimate`; step times count as exact): the
    time to the goal, each at its best batch size.
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
    found = scaling.by_curve(rows, columns)
    return found.assign(curve=scaling.curve_names)


def _over_dense(
    few: scaling.Curve, many: scaling.Curve, quick: pd.Series, slow: pd.Series
) -> dict[str, float]:
    """A row of `skipped`: few steps of quick seconds, by batch size, over many of slow ones."""
    sizes = [b for b in quick.index if b in few.logs and b in many.logs]
    few_seconds = np.log(quick[sizes].to_numpy())
    many_seconds = np.log(slow[sizes].to_numpy())

    def least(a: tuple, b: tuple) -> np.ndarray:
        above = (a[1] + few_seconds).min(1)
        below = (b[1] + many_seconds).min(1)
        return above - below

    ratio = scaling.estimate(least, few.at(sizes), many.at(sizes))
    largest = sizes[-1]
    step = quick[largest] / slow[largest]
    return {"batch_size": largest, "step": step, **ratio.row("ratio")}


def of_skipped(zeros: pd.DataFrame) -> pd.DataFrame:
    """`skipped` as the page shows it."""
    return pd.DataFrame(
        {
            "network, sparse over dense": zeros.curve,
            f"time of a step, {number(zeros.batch_size.max())} examples": zeros.step.map(brief),
            "time to the goal": zeros.ratio.map(brief),
            "5–95 %": [span(ends) for ends in zip(zeros.ratio_low, zeros.ratio_high)],
        }
    )


def dearer(workload: str) -> pd.DataFrame:
    """Time over SGD's at the largest batch size, by examples on each device (share), of this
    network or another with several searches by all methods; the fewest steps first.
    """
    shared = pd.DataFrame(claims.kept("shared-out", _shared))
    shared = shared[~shared.algorithm.isin(charts.VARIANTS)]
    known = workload if workload in set(shared.workload) else shared.workload.max()
    return shared[shared.workload == known].sort_values(["steps", "share"], kind="stable")


def _shared() -> dict[str, list]:
    times, every = timings.over_sgd(), method_results.compared()
    every = every[every.workload.isin(set(times.workload)) & (every.sparsity == 0)]
    curves = scaling.summaries(every)[1]
    several = {key: curve for key, curve in curves.items() if curve.n >= scaling.ENOUGH}
    return shared_out(several, times).to_dict("list")


def shared_out(curves: dict, times: pd.DataFrame) -> pd.DataFrame:
    """A network's largest batch size by all its methods that were timed, shared by devices: a row
    for each share that was timed.

    Networks without one are left out.  A device makes the whole update, beside the gradient of its
    share alone; what it sends is left out.  Columns: as those of `method_results.in_time`, and
    share (examples on each device), at which `dearer` and times are read.
    """
    every = method_results.in_time(curves, times)
    methods = every.groupby("workload").algorithm.transform("nunique")
    common = every.groupby(["workload", "batch_size"]).algorithm.transform("nunique") == methods
    every = every[common]
    largest = every[every.batch_size == every.groupby("workload").batch_size.transform("max")]
    shares = times.rename(columns={"batch_size": "share", "ratio": "dearer"})
    shares = shares[["workload", "algorithm", "share", "dearer"]]
    found = largest.drop(columns="dearer").merge(shares, on=["workload", "algorithm"])
    found = found[found.share <= found.batch_size]
    ends = ("", "_low", "_high")
    return found.assign(**{f"time{end}": found[f"steps{end}"] * found.dearer for end in ends})


def of_dearer(times: pd.DataFrame) -> pd.DataFrame:
    """`dearer` as a table, a row per method."""
    heads = times.share.map(lambda n: f"time, {number(n)} on each device")
    told = times.assign(head=heads, told=times.time.map(brief))
    wide = told.pivot(index="algorithm", columns="head", values="told")[heads.unique()]
    each = times.groupby("algorithm", sort=False)
    steps = each.steps.first()
    wide.insert(0, "steps over SGD’s", steps.map(brief))
    wide = wide.loc[steps.index].assign(saves=[_saves(own) for _, own in each])
    wide.insert(0, "training method", wide.index.map(method_results.title))
    return wide.rename(columns={"saves": "saves time"})


def _saves(own: pd.DataFrame) -> str:
    """From how many examples on each device on a method takes less time than SGD by its whole
    interval, in words.
    """
    slow = own.share[own.time_high >= 1]
    fast = own.share[own.share > slow.max()] if len(slow) else own.share
    return (
        "at any share"
        if not len(slow)
        else f"from {number(fast.min())} on"
        if len(fast)
        else "—"
    )


def answers(case: Case) -> pd.DataFrame:
    """The fastest and the cheapest batch size, a row per curve."""
    rows = []
    for curve in case.keys():
        row = {"sparsity": f"{curve[3]:g}", "searches": case.curves[curve].n}
        for name, what, unit in (
            ("fastest", "seconds", "time (s)"),
            ("cheapest", "price", "price"),
        ):
            best = case.best(curve, what)
            row[f"{name} size"] = f"{number(best.batch_size)} ({span(best.sizes)})"
            row |= {f"devices, {name}": best.devices, unit: brief(best.value)}
        rows.append(row)
    return pd.DataFrame(rows)
