"""What a message costs: the time to send it, by a model, and what its measured parts cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib import require_all
from lib.messages.settings import INDEX_BYTES, VALUE_BYTES

GATHERS = 3  # of `lib.workers.hook.sum_of_pairs`: counts, indices, values
# --- the model ------------------------------------------------------------------------------------


MOST_WORKERS = 2**20  # that the formulas take


def _check_amount(field: str, amount: float) -> None:
    require_all(field, amount, lambda v: ~((v < 0) | np.isinf(v)), "zero or positive and finite")


def ring(workers: int, d: float, bandwidth: float, latency: float) -> float:
    """Seconds of a ring all-reduce of d values: 2 (P - 1) messages of d/P values, latency and
    bytes/bandwidth each.

    workers: from 1; bandwidth: bytes per second, positive; latency: seconds, not negative; d: not
    negative, NaN where it is not known.  All may be arrays.  Raises ValueError naming the field,
    its value and what is allowed.
    """
    _check_link(workers, bandwidth, latency)
    _check_amount("d", d)
    return 2 * (workers - 1) * (latency + VALUE_BYTES * d / workers / bandwidth)


def gather(workers: int, elements: float, bandwidth: float, latency: float) -> float:
    """Seconds in which everyone gathers `elements` (value, index) pairs from each of P workers:
    log2 P rounds, P - 1 messages.

    The latency of the rounds is paid for the counts, the indices and the values.  Limits and errors
    as for `ring`.
    """
    _check_link(workers, bandwidth, latency)
    _check_amount("elements", elements)
    return (
        GATHERS * np.log2(workers) * latency
        + (workers - 1) * elements * (VALUE_BYTES + INDEX_BYTES) / bandwidth
    )


def _check_link(workers: int, bandwidth: float, latency: float) -> None:
    whole = f"a whole number from 1 to {MOST_WORKERS}"
    require_all(
        "workers", workers, lambda v: (v >= 1) & (v <= MOST_WORKERS) & (v == np.floor(v)), whole
    )
    require_all("bandwidth", bandwidth, lambda v: v > 0, "positive (bytes per second)")
    require_all(
        "latency",
        latency,
        lambda v: (v >= 0) & np.isfinite(v),
        "zero or positive and finite (seconds)",
    )


# The same in the language of the charts; a test evaluates both.
EXPRESSIONS = {
    "ring": f"2 * ({{workers}} - 1) * ({{latency}} + {VALUE_BYTES} * {{d}} / {{workers}} / {{bandwidth}})",
    "gather": f"{GATHERS} * log({{workers}}) / LN2 * {{latency}} + ({{workers}} - 1) * {{elements}} * {VALUE_BYTES + INDEX_BYTES} "
    "/ {bandwidth}",
}


def over_gaussian(timed: pd.DataFrame) -> pd.DataFrame:
    """Timings of `Operators` as a row per d with a column per compressor, and over Gaussian-k's:
    library (`torch.topk`'s Top-k), own (ours).

    Of the fastest repeats: what disturbs a machine only adds time.
    """
    if timed.empty:
        return pd.DataFrame(
            columns=["d", "torch.topk", "top-k", "gaussian-k", "library", "own"], dtype=float
        )
    wide = timed.pivot(index="d", columns="compressor", values="low").reset_index()
    return wide.assign(
        library=wide["torch.topk"] / wide["gaussian-k"], own=wide["top-k"] / wide["gaussian-k"]
    )


def exact_over_gaussian(timed: pd.DataFrame, least: int = 2**24) -> tuple[float, float, float, int]:
    """PyTorch's exact Top-k over Gaussian-k, timings of `Operators` on vectors of `least` entries
    and more.

    The median over their lengths; the least and the most that any one's fastest and slowest repeats
    allow; how many lengths.
    """
    long = timed[timed.d >= least] if len(timed) else timed
    if not len(long):
        return np.nan, np.nan, np.nan, 0
    wide = long.pivot(index="d", columns="compressor", values=["seconds", "low", "high"])

    def over(of: str, by: str) -> pd.Series:
        return wide[of, "torch.topk"] / wide[by, "gaussian-k"]

    return (
        over("seconds", "seconds").median(),
        over("low", "high").min(),
        over("high", "low").max(),
        len(wide),
    )


def rebuilding(real: pd.DataFrame) -> float:
    """Seconds per entry of d that the exchange of pairs takes beyond its latency, between the two
    workers of `Collectives`.

    Nearly all of it is spent on the dense vector that the pairs are added to; nan without timings.
    """
    pairs = (
        real[(real.workers == 2) & (real.what == "pairs")].sort_values("d") if len(real) else real
    )
    if len(pairs) < 2:
        return float("nan")
    first, last = pairs.iloc[0], pairs.iloc[-1]
    return float((last.seconds - first.seconds) / (last.d - first.d))


def keeping(fed: pd.DataFrame, timed: pd.DataFrame) -> float:
    """Seconds per entry of d in which a worker adds its gradient to what it kept back and takes off
    what it sends.

    fed: of `Feedback`; timed: of `Operators` at the same density, for the choice that is not
    counted.  At the longest vector of both; nan without timings.
    """
    if not len(fed) or not len(timed):
        return float("nan")
    both = fed[fed.what == "ours"].merge(
        timed[timed.compressor == "top-k"], on="d", suffixes=("", "_choice")
    )
    longest = both.sort_values("d").iloc[-1]
    return float((longest.seconds / longest.workers - longest.seconds_choice) / longest.d)
