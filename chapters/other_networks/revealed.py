"""What messages reveal about the images, and what hiding it costs in steps."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import pandas as pd

from chapters.other_networks.leakage import LEAKAGE, leakage
from lib.analysis import replicates, scaling
from lib.claims.names import title
from lib.page import charts, tips
from lib.page.estimates import times
from lib.wording import percent

ESTIMATORS = {False: "usual", True: "unbiased"}
POINT = ["workload", "unbiased", "alpha", "batch_size"]
GOAL, HARDEST = 0.06, 0.04  # at which leakage is judged, and accuracy


def measured() -> pd.DataFrame:
    """A row per search and goal, with lost: the share of the pixels' variance not rebuilt."""
    rows = LEAKAGE.results()
    return rows.assign(lost=1 - rows.rebuilt) if len(rows) else rows


def with_penalty(rows: pd.DataFrame, goal: float) -> Iterator[tuple]:
    """Each POINT with a penalty, its searches, and the same network's without a penalty."""
    rows = rows[rows.goal == goal] if len(rows) else rows
    for key, searches in rows[rows.alpha > 0].groupby(POINT) if len(rows) else ():
        plain = (rows.alpha == 0) & (rows.workload == key[0]) & (rows.batch_size == key[3])
        yield key, searches, rows[plain]


def of_classes(split: int) -> float:
    """The share of digits' variance in this split that a decoder rebuilds from labels alone."""
    from torch.nn import functional  # slow to import; most chapters only read records

    from lib.workloads import datasets

    digits = datasets.load("digits", split)
    parts = digits.train, digits.validation
    return leakage(*((part.x, functional.one_hot(part.y).double()) for part in parts))[1]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Steps to the goal over those without a penalty, a column per batch size."""
    cells = {}
    for (work, unbiased, alpha, size), *pair in with_penalty(rows[rows.alpha != 1], GOAL):
        row = cells.setdefault((title(work), ESTIMATORS[unbiased], f"{alpha:g}"), {})
        row[f"batch {size}"] = times(replicates.over(*pair, "steps"))
    ratios = pd.DataFrame(cells).T.fillna("—")
    return ratios.rename_axis(["network", "estimator", "α"]).reset_index()


def values(rows: pd.DataFrame) -> dict[str, object]:
    """Values in the section's sentences; rows: from `measured`."""
    strongest = rows[(rows.workload == "digits-mlp") & (rows.alpha == 10) & (rows.goal == GOAL)]
    met = strongest.dropna(subset="steps").groupby(["unbiased", "batch_size"])
    usual, unbiased, large = map(met.get_group, ((False, 8), (True, 8), (True, 256)))
    return {
        "leaked_dcor": float(large.dcor.mean()),
        "leaked_rebuilt": percent(large.rebuilt.mean()),
        "leaked_classes": [100 * of_classes(n) for n in sorted(rows.replicate.unique())],
        "leaked_bias": times(replicates.over(usual, unbiased, "dcor")),
    }


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """Means of dcor and of rebuilt, the latter with its interval (low, high): a row per POINT where
    three searches or more met the goal.
    """
    means = []
    for key, met in rows[rows.goal == GOAL].dropna(subset="steps").groupby(POINT):
        if len(met) >= scaling.ENOUGH:
            rebuilt = scaling.mean_of(met.rebuilt).row(log=False).values()
            means.append((title(key[0]), *key[1:], met.dcor.mean(), *rebuilt, len(met)))
    columns = ["network", *POINT[1:], "dcor", "rebuilt", "low", "high", "searches"]
    return pd.DataFrame(means, columns=columns)


def chart(rows: pd.DataFrame, classes: list[float]) -> alt.LayerChart:
    """The share rebuilt against the remaining correlation; dashed: the mean of `classes`, the
    percentages that a decoder rebuilds from labels.
    """
    means = points(rows).replace({"unbiased": ESTIMATORS})
    means["penalty"] = means.alpha.map("α = {:g}".format)
    shades = dict(zip(("α = 0", "α = 1", "α = 3", "α = 10"), charts.CATEGORIES))
    legend = alt.Legend(columns=1, symbolFillColor="gray")
    shape = alt.Shape("network:N", title=None, legend=legend)
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("dcor:Q", title="remaining distance correlation", scale=scale)
    y = alt.Y("rebuilt:Q", title="share of the variance that a decoder rebuilds", scale=scale)
    base = alt.Chart(means).encode(x=x, color=charts.by_name("penalty", shades, 2))
    tooltip = {
        "penalty:N": "penalty",
        "unbiased:N": "estimator",
        "batch_size:Q|,": "batch size",
        "dcor:Q|.2f": "left",
        "rebuilt:Q|.2f": "rebuilt",
        "searches:Q": "searches",
    }
    bars, _, dots = charts.curve(base, y, scale, tips.listed(tooltip))
    labels = charts.across(sum(classes) / len(classes) / 100, y=scale)
    return charts.sized(alt.layer(labels, bars, dots.encode(shape=shape)), 340)
