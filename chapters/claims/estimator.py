"""How much a ratio of critical batch sizes scatters between searches, estimated from the fewest
steps or from several trials and goals; by how much the two differ; and how often intervals from few
searches hold a planted ratio.

    python -m chapters.claims.estimator
"""

import itertools

import numpy as np
import pandas as pd

from lib import forms
from lib.analysis import scaling
from lib.claims import judging
from lib.claims.names import curve_title

SEARCHES = [1, 3, 5, 20]  # drawn from those of a network
# ln of the last step; at 8, half of the pruned searches miss the hardest goal, at small batches
LAST = np.inf, 8.0
PLANTED = [0.8, 1.0, 1.5]  # ratios
DRAWS = 40  # of all networks, for each of LAST and PLANTED


def ladders(orders: pd.DataFrame) -> dict:
    """The curves of every pruned network and method and of the dense network, in turn, from the
    hardest goal to the easiest; of races, too, although these abandon some of the later trials.

    orders: as for `scaling.ladders`.
    """
    every = scaling.ladders(judging.searches().assign(race=None), orders)
    return {
        key: [curve for rung in zip(*pair) for curve in scaling.alike(*rung)]
        for key, pair in scaling.sparsest(every).items()
    }


def ratio(curves: list) -> scaling.Effect:
    """ln of the ratio, from curves of pruned and dense networks in turn."""
    return scaling.shared_ratio(curves[::2], curves[1::2])


def table() -> pd.DataFrame:
    """Scatter and bias of ln of the ratio, a row per pruned network and method on digits, and one
    for all on images.

    Columns: searches; the standard deviation of one search's value by two estimates (root mean
    square over searches); bias, the mean of the second minus the first, and its standard error.
    """
    orders = judging.orders()
    # Of a search in two halves, the fewest steps are those of the better half
    points = judging.searches().drop(columns="goal").merge(orders)
    halves = points.groupby([*scaling.POINT, "goal"], as_index=False)
    first = ladders(halves[["record", "k1"]].min())
    rows = []
    for key, several in ladders(orders).items():
        fewest = first[key]
        # Half the bias is a mean of ratios, too: as many of the fewest steps, but inverted
        differences = several + fewest[1::-1] * (len(several) // 2)
        effects = [ratio(curves) for curves in (fewest[:2], several, differences)]
        n = effects[0].n
        if n >= scaling.ENOUGH:
            name = curve_title(key) if "digits" in key[0] else "networks on images (races)"
            *variances, halved = [n * effect.error**2 for effect in effects]
            rows += n * [[name, *variances, 2 * effects[2].value, halved]]
    columns = "network|sd, fewest steps|sd, several trials and goals|bias|error".split("|")
    by = pd.DataFrame(rows, columns=columns).groupby("network")
    means = by.mean()
    means[columns[1:3]] **= 0.5
    means["error"] = 2 * (means.error / by.size()) ** 0.5
    means.insert(0, "searches", by.size())
    return means.round(2)


def planted(logs: pd.DataFrame, by: float) -> pd.DataFrame:
    """Searches with the same scatter about curves c1/B + c2, the pruned ones' critical batch sizes
    `by` times those of the dense network.

    logs: of curves of pruned and dense networks in turn, their numbers the upper columns.
    """
    moved = logs - logs.mean()
    for number in logs.columns.levels[0]:
        means = logs[number].mean()
        dense = logs[2 * (number // 2) + 1].mean()
        bend = forms.fit(dense.index.to_numpy(float), dense.to_numpy()).bend
        bend = bend + np.log(by) * (number % 2 == 0)
        line = np.logaddexp(0, bend - np.log(means.index.to_numpy(float)))
        moved[number] += line + (means - line).mean()
    return moved


def coverage() -> pd.DataFrame:
    """The share of 90 % intervals from few of a network's searches on digits that hold a planted
    ratio.  Searches are drawn with replacement and moved to curves that have the ratio.  Fewer than
    ENOUGH have the scatter pooled over the networks drawn, each with a number of searches from
    SEARCHES.
    """
    random = np.random.default_rng(0)
    digits = {}
    for key, curves in ladders(judging.orders()).items():
        if "digits" in key[0]:
            logs = pd.concat(dict(enumerate(curve.logs for curve in curves)), axis=1)
            digits[key] = logs.dropna()
    rows = []
    for last, by in list(itertools.product(LAST, PLANTED)) * DRAWS:
        effects = {}
        for key, logs in digits.items():
            drawn = planted(logs, by).sample(
                random.choice(SEARCHES), replace=True, random_state=random, ignore_index=True
            )
            effects[key] = ratio(
                [
                    scaling.Curve(steps.clip(upper=last), steps > last, scaling.ONE_SPLIT)
                    for steps in map(drawn.get, drawn.columns.levels[0])
                ]
            )
        pooled = scaling.pooled(effects, lambda key: True)
        for key, effect in effects.items():
            effect = effect if effect.n >= scaling.ENOUGH else pooled[key]
            rows.append([effect.n, last, by, effect.low < np.log(by) < effect.high])
    table = pd.DataFrame(rows, columns=["searches", "ln of the last step", "ratio", "share"])
    return table.pivot_table("share", "searches", ["ln of the last step", "ratio"])


def main() -> None:
    print(table().to_string(), coverage().round(2), sep="\n\n")


if __name__ == "__main__":
    main()
