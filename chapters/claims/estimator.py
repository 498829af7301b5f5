"""How much a ratio of critical batch sizes scatters between searches, estimated from the fewest
steps to one goal or from several trials and goals; and how often its intervals cover the truth.

    python -m chapters.claims.estimator
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Curve
from lib.claims import judging
from lib.claims.names import curve_title

LEAST = 3  # searches that suffice to estimate their scatter
SIZES = np.array([4, 16, 64, 256, 1024])
RATIO, LEVEL_SD, REST_SD = (
    1.5,
    0.3,
    0.15,
)  # planted, as on digits: standard deviations of a search's level and of the rest
LAST = 2.0  # planted searches end after this many times the dense curve's most steps
PLANTED = 300  # simulated pairs of curves


def table() -> pd.DataFrame:
    """A row per pruned network and method with LEAST shared searches that were no races: the scatter
    of one search's ln ratio, and the ratio, from the fewest steps and from several trials and goals.
    """
    curves, ladders = judging.curves(), judging.ladders()
    rows = []
    for key, pair in scaling.sparsest(curves).items():
        of_goal = scaling.critical_ratio(*pair)
        rungs = ladders[key], ladders[scaling.dense_key(key)]
        of_all = scaling.shared_ratio(*rungs)
        raced = len(rungs[0]) == 1
        if raced or not of_goal or not of_all or of_goal.n < LEAST:
            continue
        effects = of_goal, of_all
        scatters = [f"{effect.error * effect.n**0.5:.2f}" for effect in effects]
        ratios = [f"{np.exp(effect.value):.2f}" for effect in effects]
        title = curve_title(key)
        rows.append([title, of_goal.n, *scatters, *ratios])
    columns = "network|searches|sd, fewest steps|sd, several trials and goals"
    columns += "|ratio, fewest steps|ratio, several"
    return pd.DataFrame(rows, columns=columns.split("|"))


# --- coverage -------------------------------------------------------------------------------------


def planted(n: int, ends: bool, seed: int) -> tuple[Curve, Curve]:
    """Simulated curves 1 + RATIO C/B and 1 + C/B of n searches that share their levels.

    ends: whether searches end after LAST times the dense curve's most steps, so that pruned
    searches, which take four times the steps, miss the goal at small batches.
    """
    random = np.random.default_rng(seed)
    level = random.normal(0, LEVEL_SD, (n, 1))
    index = pd.MultiIndex.from_product([range(n), [0]], names=scaling.SEARCH)
    curves = []
    last = np.inf
    if ends:
        last = np.log(20 * (1 + 64 / SIZES.min()) * 2 * LAST)
    scatter = np.hypot(LEVEL_SD, REST_SD)
    for critical, factor in ((64 * RATIO, 4.0), (64, 1.0)):
        logs = np.log(20 * factor * (1 + critical / SIZES)) + level
        logs = logs + random.normal(0, REST_SD, logs.shape)
        steps = pd.DataFrame(np.minimum(logs, last), index, SIZES)
        missed = pd.DataFrame(logs > last, index, SIZES)
        curves.append(Curve(steps, missed, scatter))
    return curves[0], curves[1]


def coverage(n: int, ends: bool, pairs: int = PLANTED) -> float:
    """The share of 90 % intervals, each from n searches, that hold the planted ratio.  Below LEAST
    searches, the scatter is pooled with eight more simulated networks of four searches.
    """
    hits = []
    for seed in range(pairs):
        effect = scaling.critical_ratio(*planted(n, ends, seed))
        if n < LEAST:
            networks = {("own",): effect}
            for k in range(8):
                pair = planted(4, ends, pairs + 8 * seed + k)
                networks[str(k),] = scaling.critical_ratio(*pair)
            effect = scaling.pooled(networks, lambda key: True)["own",]
        hit = effect.low < np.log(RATIO) < effect.high
        hits.append(hit)
    return float(np.mean(hits))


def main() -> None:
    print(table().to_string(index=False))
    for ends in (False, True):
        for n in (1, 3, 5, 20):
            words = "goals missed" if ends else "all goals met"
            print(f"{n} searches, {words}: {coverage(n, ends):.0%} of intervals hold the ratio")


if __name__ == "__main__":
    main()
