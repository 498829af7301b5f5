"""What the page on the cost of messages reads, and its tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.operator_cost import links, message_times
from lib.messages import settings
from lib.probes import timings
from lib.wording import brief

METHODS = {
    "torch.topk": "torch.topk",
    "top-k": "Top-k",
    "gaussian-k": "Gaussian-k",
    "gaussian-k-band": "Gaussian-k, banded",
    "dgc-k": "DGC-k",
    "redsync": "RedSync",
    "rand-k": "Rand-k",
}
HOOKS = tuple(work for work in message_times.PLANNED if isinstance(work, message_times.Hooked))
HOOKED = {
    "network": "network",
    "d": "parameters",
    "all-reduce": "all-reduce",
    "gaussian-k": "Gaussian-k",
    "top-k": "Top-k",
    "top-k / all-reduce": "Top-k over all-reduce",
    "gaussian-k / all-reduce": "Gaussian-k over all-reduce",
}
BETWEEN = ["all-reduce", "pairs", "model: exchange", "model: with reassembly"]  # in seconds


@dataclass(frozen=True)
class Measured:
    """What the page is written from.

    Attributes:
        timed: times to choose at the page's density on one core; empty where it is not timed.
        normal: the same of normal entries on a graphics processor.
        uniform: the same of uniform entries.
        hooked: of `hooked`.
        real: of `message_times.Collectives`.
        fed: of `message_times.Feedback`.
        usual: times to choose at the density of these three.
    """

    timed: pd.DataFrame
    normal: pd.DataFrame
    uniform: pd.DataFrame
    hooked: pd.DataFrame
    real: pd.DataFrame
    fed: pd.DataFrame
    usual: pd.DataFrame

    @property
    def rebuilding(self) -> float:
        """Seconds an entry of adding up what arrives."""
        return links.rebuilding(self.real)

    @property
    def keeping(self) -> float:
        """Seconds an entry of error feedback."""
        return links.keeping(self.fed, self.usual)

    @property
    def spent(self) -> float:
        """Seconds an entry of both."""
        return self.keeping + self.rebuilding


def read(density: float) -> Measured:
    """The timings on record; those of choosing at this density."""
    on_card = [
        [t for t in message_times.ON_A_GPU if (t.density, t.drawn) == (density, drawn)]
        for drawn in message_times.DRAWN
    ]
    feedback = message_times.Feedback()
    return Measured(
        _choices(message_times.Operators(density=density)),
        *(_choices(*wanted) for wanted in on_card),
        _hooked(timings.results(*HOOKS)),
        timings.results(*(message_times.Collectives(workers) for workers in (2, 4))),
        timings.results(feedback),
        timings.results(message_times.Operators(density=feedback.density)),
    )


def _choices(*wanted: message_times.Operators) -> pd.DataFrame:
    timed = timings.results(*wanted)
    if not len(timed):
        return pd.DataFrame(columns="method d elements seconds low high compressor".split())
    return timed.assign(method=timed.compressor.map(METHODS))


def _hooked(timed: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds of a backward pass with its communication, a row per model, smallest first."""
    wide = timed.pivot_table(index=["model", "d"], columns="what", values="seconds")
    table = (1e3 * wide).sort_values("d").reset_index()
    for name in ("top-k", "gaussian-k"):
        table[f"{name} / all-reduce"] = table[name] / table["all-reduce"]
    return table


def hooked(table: pd.DataFrame) -> pd.DataFrame:
    """`Measured.hooked` as the page shows it."""
    titles = table.model.str.upper().str.replace("X", "×")
    return _brief(table.assign(network=titles)[[*HOOKED]].rename(columns=HOOKED), 2)


def link(real: pd.DataFrame) -> tuple[float, float]:
    """Bandwidth (bytes per second) of the longest all-reduce between two processes, latency
    (seconds) of the shortest.
    """
    own = real[(real.workers == 2) & (real.what == "all-reduce")].sort_values("d")
    first, last = own.iloc[0], own.iloc[-1]
    return settings.VALUE_BYTES * last.d / last.seconds, first.seconds / 2


def between(data: Measured) -> pd.DataFrame:
    """Seconds of collectives between real processes, and what the model makes of them."""
    table = data.real.pivot_table(index=["workers", "d"], columns="what", values="seconds")
    table = table.reset_index().assign(
        **{"pairs over all-reduce": lambda t: t.pairs / t["all-reduce"]}
    )
    density = message_times.Collectives().density
    sent = np.array([settings.target(density, int(d)) for d in table.d])
    exchange = links.gather(table.workers, sent, *link(data.real))
    together = exchange + data.rebuilding * table.d
    return table.assign(**dict(zip(BETWEEN[2:], (exchange, together), strict=True)))


def in_milliseconds(table: pd.DataFrame) -> pd.DataFrame:
    """`between` as the page shows it."""
    scaled = table.assign(**{name: 1e3 * table[name] for name in BETWEEN})
    return _brief(scaled.rename(columns={name: f"{name}, ms" for name in BETWEEN}), 2)


def of_feedback(fed: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds of feedback and choosing, ours and the plainest."""
    wide = 1e3 * fed.pivot(index="d", columns="what", values="seconds")
    table = wide.assign(ratio=wide.ours / wide.plain).reset_index()
    titles = {"ours": "ours, ms", "plain": "plain, ms", "ratio": "ours / plain"}
    return _brief(table.rename(columns=titles), 1)


def _brief(table: pd.DataFrame, first: int) -> pd.DataFrame:
    """The table with its columns from `first` on as sentences have them."""
    return table.assign(**{name: table[name].map(brief) for name in list(table)[first:]})
