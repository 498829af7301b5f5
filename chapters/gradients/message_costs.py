"""What a message costs: a model of the time per step, and its measured parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.gradients.message_times import ON_A_GPU, PLANNED, Collectives, Feedback, Operators
from lib.messages import INDEX_BYTES, VALUE_BYTES, target
from lib.probes import timings
from lib.wording import between

GATHERS = 3  # of `lib.workers.hook.sum_of_pairs`: counts, indices, values
CORE, CARD, LINK, FEEDBACK = Operators(), ON_A_GPU[0], Collectives(2), Feedback()
HOOKS = tuple(work for work in PLANNED if type(work).__name__ == "Hooked")
READ = (CORE, CARD, *HOOKS, LINK, FEEDBACK)


def ring(workers: int, d: float, bandwidth: float, latency: float) -> float:
    """Seconds of a ring all-reduce of d values: 2 (P - 1) messages of d/P values, latency and
    bytes/bandwidth each.

    bandwidth: bytes per second; latency: seconds.
    """
    return 2 * (workers - 1) * (latency + VALUE_BYTES * d / workers / bandwidth)


def gather(workers: int, elements: float, bandwidth: float, latency: float) -> float:
    """Seconds to gather `elements` (value, index) pairs from each of P workers on all of them:
    log2 P rounds, P - 1 messages.

    Counts, indices and values each pay the latency of the rounds.
    """
    waits = GATHERS * np.log2(workers) * latency
    return waits + (workers - 1) * elements * (VALUE_BYTES + INDEX_BYTES) / bandwidth


@dataclass(frozen=True)
class Measured:
    """The timings on record.

    Attributes:
        core, card: times to choose entries, on one core and on a GPU.
        hooked: milliseconds of a backward pass with its communication, a row per model, smallest
            first.
        linked: from `Collectives` between two workers, by `what`, the shortest vector first.
        kept: from `Feedback`.
    """

    core: pd.DataFrame
    card: pd.DataFrame
    hooked: pd.DataFrame
    linked: dict[str, pd.DataFrame]
    kept: pd.DataFrame

    @property
    def chosen(self) -> pd.DataFrame:
        """The rows of `core` for Top-k."""
        return self.core[self.core.compressor == "top-k"]

    @property
    def feeding_back(self) -> float:
        """Seconds per entry of d that a worker takes to add its gradient to what it kept back and
        subtract what it sends, without choosing; for the longest vector.
        """
        ours = self.kept[self.kept.what == "ours"]
        pairs = ours.merge(self.chosen, on="d", suffixes=("", "_choice")).sort_values("d")
        longest = pairs.iloc[-1]
        return (longest.seconds / longest.workers - longest.seconds_choice) / longest.d

    @property
    def rebuilding(self) -> float:
        """Seconds per entry of d that the exchange of pairs takes beyond its latency, nearly all
        spent on the dense vector to which the pairs are added.
        """
        first, last = (self.linked["pairs"].iloc[end] for end in (0, -1))
        return (last.seconds - first.seconds) / (last.d - first.d)

    @property
    def hook(self) -> float:
        """Seconds per entry that the hook takes besides choosing and exchanging, on the larger
        network: its extra time over a pass with an all-reduce, plus that all-reduce itself, taken
        not to overlap with computing.
        """
        network, dense = self.hooked.iloc[-1], self.linked["all-reduce"]
        d = int(network.d)
        first, last = dense.iloc[0], dense.iloc[-1]
        bandwidth = VALUE_BYTES * last.d / last.seconds
        spared = np.interp(d, dense.d, dense.seconds)
        choose = np.interp(d, self.chosen.d, self.chosen.seconds)
        sent = gather(2, target(CORE.density, d), bandwidth, first.seconds / 2)
        more = network["top-k"] - network["all-reduce"]
        return (more / 1e3 + spared - choose - sent) / d


def read() -> Measured:
    """Read the timings that the page uses."""
    core, card, linked, kept = map(timings.results, (CORE, CARD, LINK, FEEDBACK))
    passes = timings.results(*HOOKS)
    wide = passes.pivot_table(index=["model", "d"], columns="what", values="seconds")
    hooked = (1e3 * wide).sort_values("d").reset_index()
    return Measured(core, card, hooked, dict(iter(linked.sort_values("d").groupby("what"))), kept)


def findings(data: Measured, chosen) -> dict:
    """The values of the sentences on time; chosen: the page's parameters."""
    times, hooked = data.chosen.set_index("d"), data.hooked
    wanted = 1e6 * chosen.parameters_millions
    d = min(times.index, key=lambda length: abs(length - wanted))
    link = chosen.bandwidth, chosen.latency
    choice = times.loc[d]
    sent = choice.seconds + gather(chosen.linked_workers, choice.elements, *link)
    return {
        "hook_top": between(*(hooked["top-k"] / hooked["all-reduce"])),
        "hook_gaussian": between(*(hooked["gaussian-k"] / hooked["all-reduce"])),
        "core_slower": _slower(data.core),
        "card_slower": _slower(data.card),
        "dense": ring(chosen.linked_workers, d, *link),
        "sparse": sent + d * (data.feeding_back + data.rebuilding),
        "hook": sent + d * data.hook,
    }


def _slower(times: pd.DataFrame) -> float:
    """Top-k's time to choose from the longest vector, over Gaussian-k's."""
    # The fastest repeat: disturbances only add time
    fastest = times[times.d == times.d.max()].set_index("compressor").low
    return fastest["top-k"] / fastest["gaussian-k"]
