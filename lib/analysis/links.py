"""What a message costs: the time to send it, by a model, and what its measured parts cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.messages.settings import INDEX_BYTES, VALUE_BYTES
from lib.probes.message_times import TIMED

# --- the model --------------------------------------------------------------------------------------------------------


GATHERS = 3  # of `comm_hook.sum_of_pairs`: counts, indices, values


def ring(workers: int, d: float, bandwidth: float, latency: float) -> float:
    """Seconds of a ring all-reduce of d values: 2 (P - 1) messages of d/P values, latency and bytes/bandwidth each.

    bandwidth: bytes per second, positive; latency: seconds, not negative.  Raises ValueError naming field and value.
    """
    _check_link(bandwidth, latency)
    return 2 * (workers - 1) * (latency + VALUE_BYTES * d / workers / bandwidth)


def gather(workers: int, elements: float, bandwidth: float, latency: float) -> float:
    """Seconds in which everyone gathers `elements` (value, index) pairs from each of P workers: log2 P rounds, P - 1 messages.

    The latency of the rounds is paid for the counts, the indices and the values.  bandwidth, latency: as for `ring`.
    """
    _check_link(bandwidth, latency)
    return GATHERS * np.log2(workers) * latency + (workers - 1) * elements * (VALUE_BYTES + INDEX_BYTES) / bandwidth


def _check_link(bandwidth: float, latency: float) -> None:
    if not bandwidth > 0:
        raise ValueError(f"bandwidth: {bandwidth!r} is not allowed; it must be positive (bytes per second)")
    if not latency >= 0:
        raise ValueError(f"latency: {latency!r} is not allowed; it must be zero or positive (seconds)")


# The same in the language of the charts; a test evaluates both.
EXPRESSIONS = {
    "ring": f"2 * ({{workers}} - 1) * ({{latency}} + {VALUE_BYTES} * {{d}} / {{workers}} / {{bandwidth}})",
    "gather": f"{GATHERS} * log({{workers}}) / LN2 * {{latency}} + ({{workers}} - 1) * {{elements}} * {VALUE_BYTES + INDEX_BYTES} "
    "/ {bandwidth}",
}


def over_gaussian(timed: pd.DataFrame) -> pd.DataFrame:
    """Timings of `Operators` as a row per d with a column per compressor, and over Gaussian-k's: library (`torch.topk`'s
    Top-k), own (ours).

    Of the fastest repeats: what disturbs a machine only adds time.
    """
    if timed.empty:
        return pd.DataFrame(columns=["d", *TIMED, "library", "own"], dtype=float)
    wide = timed.pivot(index="d", columns="compressor", values="low").reset_index()
    return wide.assign(library=wide["torch.topk"] / wide["gaussian-k"], own=wide["top-k"] / wide["gaussian-k"])


def rebuilding(real: pd.DataFrame) -> float:
    """Seconds per entry of d that the exchange of pairs takes beyond its latency, between the two workers of `Collectives`.

    Nearly all of it is spent on the dense vector that the pairs are added to; nan without timings.
    """
    own = real[(real.workers == 2) & (real.what == "pairs")].sort_values("d") if len(real) else real
    if len(own) < 2:
        return float("nan")
    first, last = own.iloc[0], own.iloc[-1]
    return float((last.seconds - first.seconds) / (last.d - first.d))


def keeping(fed: pd.DataFrame, timed: pd.DataFrame) -> float:
    """Seconds per entry of d in which a worker adds its gradient to what it kept back and takes off what it sends.

    fed: of `Feedback`; timed: of `Operators` at the same density, for the choice that is not counted.  At the longest vector
    of both; nan without timings.
    """
    if not len(fed) or not len(timed):
        return float("nan")
    both = fed[fed.what == "ours"].merge(timed[timed.compressor == "top-k"], on="d", suffixes=("", "_choice"))
    longest = both.sort_values("d").iloc[-1]
    return float((longest.seconds / longest.workers - longest.seconds_choice) / longest.d)
