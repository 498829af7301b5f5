"""How much a ratio of critical batch sizes scatters between searches, by the fewest steps to one
goal and by later trials and easier goals; and how often its intervals hold the truth.

    python -m chapters.claims.estimator
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from chapters.sparsity.claims import sparsest
from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect
from lib.claims import judging
from lib.claims.names import curve_title

LEAST = 3  # searches that tell their scatter
SIZES = np.array([4, 16, 64, 256, 1024])
RATIO, LEVEL_SD, REST_SD = 1.5, 0.3, 0.15  # planted: of digits, a search's own level and the rest
LAST = 2.0  # times the largest steps of the dense curve, after which planted searches end
PLANTED = 300  # made-up pairs of curves


def table() -> pd.DataFrame:
    """A row per network and method with LEAST shared searches: how much one search's ln ratio
    scatters, and the ratio, by each estimator.
    """
    rows = []
    for key, of_goal, of_all in both():
        rows.append(
            {
                "network": curve_title(key),
                "searches": of_goal.n,
                "sd, fewest steps": f"{spread(of_goal):.2f}",
                "sd, several trials and goals": f"{spread(of_all):.2f}" if of_all else "—",
                "ratio, fewest steps": f"{np.exp(of_goal.value):.2f}",
                "ratio, several": f"{np.exp(of_all.value):.2f}" if of_all else "—",
            }
        )
    return pd.DataFrame(rows)


def both() -> Iterator[tuple[tuple, Effect, Effect | None]]:
    """The key of every pruned network with LEAST searches, and ln of its ratio by the fewest steps,
    and by several trials and goals where searches did not race.
    """
    curves, ladders = judging.curves(), judging.ladders()
    for key, pair in sparsest(curves).items():
        of_goal = scaling.critical_ratio(*pair)
        if of_goal is not None and of_goal.n >= LEAST:
            rungs = ladders[key], ladders[scaling.dense_key(key)]
            several = scaling.shared_ratio(*rungs) if len(rungs[0]) > 1 else None
            yield key, of_goal, several


def spread(effect: Effect) -> float:
    """The standard deviation of one search's estimate."""
    return effect.error * effect.n**0.5


# --- coverage -------------------------------------------------------------------------------------


def planted(n: int, ends: bool, seed: int) -> tuple[Curve, Curve]:
    """Made-up curves 1 + RATIO C/B and 1 + C/B of n searches that share their levels.

    ends: whether searches end after LAST times the dense curve's most steps, so that pruned ones,
    which take four times the steps, miss the goal at small batches.
    """
    random = np.random.default_rng(seed)
    level = random.normal(0, LEVEL_SD, (n, 1))
    index = pd.MultiIndex.from_product([range(n), [0]], names=scaling.SEARCH)
    curves = []
    for critical, factor in ((64 * RATIO, 4.0), (64, 1.0)):
        logs = np.log(20 * factor * (1 + critical / SIZES)) + level
        logs = logs + random.normal(0, REST_SD, logs.shape)
        most = np.log(20 * (1 + 64 / SIZES.min()) * 2 * LAST) if ends else np.inf
        tables = (pd.DataFrame(t, index, SIZES) for t in (np.minimum(logs, most), logs > most))
        curves.append(Curve(*tables, scatter=np.hypot(LEVEL_SD, REST_SD)))
    return curves[0], curves[1]


def coverage(n: int, ends: bool, pairs: int = PLANTED) -> float:
    """The share of 90 % intervals, of n searches each, that hold the planted ratio; of fewer than
    LEAST, with scatter pooled over eight such networks of four searches.
    """
    held = []
    for seed in range(pairs):
        effect = scaling.critical_ratio(*planted(n, ends, seed))
        if n < LEAST:
            others = {
                (str(k),): scaling.critical_ratio(*planted(4, ends, pairs + 8 * seed + k))
                for k in range(8)
            }
            effect = scaling.pooled({("own",): effect, **others}, lambda key: True)["own",]
        held.append(effect.low < np.log(RATIO) < effect.high)
    return float(np.mean(held))


def main() -> None:
    print(table().to_string(index=False))
    for ends in (False, True):
        for n in (1, 3, 5, 20):
            words = "goals missed" if ends else "all goals met"
            print(f"{n} searches, {words}: {coverage(n, ends):.0%} of intervals hold the ratio")


if __name__ == "__main__":
    main()
