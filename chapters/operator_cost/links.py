"""What a message costs: the time to send it, by a model, and what its measured parts cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.messages import INDEX_BYTES, VALUE_BYTES

GATHERS = 3  # of `lib.workers.hook.sum_of_pairs`: counts, indices, values
# --- the model ------------------------------------------------------------------------------------


def ring(workers: int, d: float, bandwidth: float, latency: float) -> float:
    """Seconds of a ring all-reduce of d values: 2 (P - 1) messages of d/P values, latency and
    bytes/bandwidth each.

    bandwidth: bytes per second; latency: seconds; d: NaN where it is not known.  All may be arrays.
    """
    return 2 * (workers - 1) * (latency + VALUE_BYTES * d / workers / bandwidth)


def gather(workers: int, elements: float, bandwidth: float, latency: float) -> float:
    """Seconds in which everyone gathers `elements` (value, index) pairs from each of P workers:
    log2 P rounds, P - 1 messages.

    The latency of the rounds is paid for the counts, the indices and the values.  The rest as for
    `ring`.
    """
    waits = GATHERS * np.log2(workers) * latency
    return waits + (workers - 1) * elements * (VALUE_BYTES + INDEX_BYTES) / bandwidth


# --- measured parts -------------------------------------------------------------------------------


def over_gaussian(timed: pd.DataFrame) -> tuple[float, float]:
    """Our Top-k and `torch.topk`'s over Gaussian-k on the longest vector, timings of `Operators`.

    Of the fastest repeats: what disturbs a machine only adds time.
    """
    low = timed[timed.d == timed.d.max()].set_index("compressor").low
    return low["top-k"] / low["gaussian-k"], low["torch.topk"] / low["gaussian-k"]


def exact_over_gaussian(
    timed: pd.DataFrame, least: int = 2**24
) -> tuple[float, float, float, int]:
    """PyTorch's exact Top-k over Gaussian-k, timings of `Operators` on vectors of `least` entries
    and more.

    The median over their lengths; the least and the most that any one's fastest and slowest repeats
    allow; how many lengths.
    """
    long = timed[timed.d >= least].set_index("d")
    exact, ours = (long[long.compressor == name] for name in ("torch.topk", "gaussian-k"))
    middle = (exact.seconds / ours.seconds).astype(float).median()
    return middle, (exact.low / ours.high).min(), (exact.high / ours.low).max(), len(exact)


def _ends(real: pd.DataFrame, what: str) -> tuple[pd.Series, pd.Series]:
    """The rows of two workers' shortest and longest vector."""
    rows = real[(real.workers == 2) & (real.what == what)].sort_values("d")
    return rows.iloc[0], rows.iloc[-1]


def link(real: pd.DataFrame) -> tuple[float, float]:
    """Bandwidth (bytes per second) of the longest all-reduce between two workers of
    `Collectives`, latency (seconds) of the shortest.
    """
    first, last = _ends(real, "all-reduce")
    return VALUE_BYTES * last.d / last.seconds, first.seconds / 2


def rebuilding(real: pd.DataFrame) -> float:
    """Seconds per entry of d that the exchange of pairs takes beyond its latency, between two
    workers of `Collectives`.

    Nearly all of it is spent on the dense vector that the pairs are added to.
    """
    first, last = _ends(real, "pairs")
    return float((last.seconds - first.seconds) / (last.d - first.d))


def keeping(fed: pd.DataFrame, timed: pd.DataFrame) -> float:
    """Seconds per entry of d in which a worker adds its gradient to what it kept back and takes off
    what it sends.

    fed: of `Feedback`; timed: of `Operators` at the same density, for the choice that is not
    counted.  At the longest vector of both.
    """
    choices = timed[timed.compressor == "top-k"]
    both = fed[fed.what == "ours"].merge(choices, on="d", suffixes=("", "_choice"))
    longest = both.sort_values("d").iloc[-1]
    return float((longest.seconds / longest.workers - longest.seconds_choice) / longest.d)
