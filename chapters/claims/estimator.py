"""How much a ratio of critical batch sizes scatters between searches, estimated from the fewest
steps or from several trials and goals; by how much the two differ; and how often intervals from few
searches hold the ratio of all.

    python -m chapters.claims.estimator
"""

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.ranges import POINT
from lib.claims import judging
from lib.claims.names import curve_title

SEARCHES = [1, 3, 5, 20]  # drawn from those of a network
# ln of the last step; at 8, half of the pruned searches miss the hardest goal, at small batches
LAST = np.inf, 8.0
DRAWS = 100  # of all networks, for each of LAST


def ladders(orders: pd.DataFrame) -> dict:
    """The curves of every pruned network and method and of the dense network, in turn, from the
    hardest goal to the easiest; of races, too, although these abandon some of the later trials.

    orders: as for `scaling.ladders`.
    """
    found = scaling.ladders(judging.searches().assign(race=None), orders)
    return {
        key: [curve for rung in zip(*pair) for curve in scaling.alike(*rung)]
        for key, pair in scaling.sparsest(found).items()
    }


def ratio(curves: list) -> scaling.Effect:
    """ln of the ratio, from curves of pruned and dense networks in turn."""
    return scaling.shared_ratio(curves[::2], curves[1::2])


def table() -> pd.DataFrame:
    """Scatter and bias of ln of the ratio, a row per pruned network and method on digits, and one
    for all on images.

    Columns: searches; the standard deviation of one search's value by three estimates (root mean
    square over searches); bias, the mean of the third minus the first, and its standard error.
    """
    orders = judging.orders()
    # Of a search in two halves, the fewest steps are those of the better half
    points = (
        judging.searches()
        .drop(columns="goal")
        .merge(orders)
        .groupby([*POINT, "goal"], as_index=False)
    )
    first = ladders(points[["record", "k1"]].min())
    rows = []
    for key, several in ladders(orders).items():
        fewest = first[key]
        # Half the bias is a mean of ratios, too: as many of the fewest steps, but inverted
        differences = several + fewest[1::-1] * (len(several) // 2)
        effects = [ratio(curves) for curves in (fewest[:2], fewest, several, differences)]
        n = effects[0].n
        if n >= scaling.ENOUGH:
            name = curve_title(key) if "digits" in key[0] else "networks on images (races)"
            *variances, halved = [n * effect.error**2 for effect in effects]
            rows += n * [[name, *variances, 2 * effects[3].value, halved]]
    columns = (
        "network|sd, fewest steps|sd, fewest at several goals|sd, several trials and goals"
        "|bias|error"
    ).split("|")
    by = pd.DataFrame(rows, columns=columns).groupby("network")
    means = by.mean()
    means[columns[1:4]] **= 0.5
    means["error"] = 2 * (means.error / by.size()) ** 0.5
    means.insert(0, "searches", by.size())
    return means.round(2)


def coverage() -> pd.DataFrame:
    """The share of 90 % intervals from few of a network's searches on digits, drawn with
    replacement, that hold the ratio of all.  Fewer than ENOUGH have the scatter pooled over the
    networks drawn, each with a number of searches from SEARCHES.
    """
    random = np.random.default_rng(0)
    digits = {}
    for key, curves in ladders(judging.orders()).items():
        if "digits" in key[0]:
            logs = pd.concat(dict(enumerate(curve.logs for curve in curves)), axis=1)
            digits[key] = ratio(curves).value, logs.dropna()
    rows = []
    for last in LAST * DRAWS:
        effects = {}
        for key, (_, logs) in digits.items():
            drawn = logs.sample(
                random.choice(SEARCHES), replace=True, random_state=random, ignore_index=True
            )
            effects[key] = ratio(
                [
                    scaling.Curve(steps.clip(upper=last), steps > last, scaling.ONE_SPLIT)
                    for steps in map(drawn.get, drawn.columns.levels[0])
                ]
            )
        pooled = scaling.pooled(effects, lambda key: True)
        for key, (truth, _) in digits.items():
            effect = (effects if effects[key].n >= scaling.ENOUGH else pooled)[key]
            rows.append([effect.n, last, effect.low < truth < effect.high])
    return pd.DataFrame(rows, columns=["searches", "ln of the last step", "share"]).pivot_table(
        "share", "searches", "ln of the last step"
    )


def main() -> None:
    print(table().to_string(), coverage().round(2), sep="\n\n")


if __name__ == "__main__":
    main()
