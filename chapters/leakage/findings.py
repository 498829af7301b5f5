"""What messages tell of the images, and what hiding it costs in steps."""

from __future__ import annotations

import pandas as pd

from chapters.leakage import experiments
from lib.analysis import replicates, scaling
from lib.claims.names import title
from lib.page.told import times
from lib.wording import percent

ESTIMATORS = {False: "usual estimator", True: "unbiased estimator"}
POINT = ["workload", "unbiased", "alpha", "batch_size"]
GOAL, HARDEST = 0.06, 0.04  # at which leakage is judged, and accuracy
MLP, STRONGEST, SMALL, LARGE = "digits-mlp", 10.0, 8, 256


def measured() -> pd.DataFrame:
    """A row per search and goal, with lost: the share of the pixels' variance not rebuilt."""
    found = experiments.LEAKAGE.results()
    return found.assign(lost=1 - found.rebuilt) if len(found) else found


def with_penalty(found: pd.DataFrame, goal: float):
    """Each network, estimator, alpha and batch size, its searches, and those without a penalty."""
    own = found[found.goal == goal] if len(found) else found
    for key, some in own[own.alpha > 0].groupby(POINT) if len(own) else ():
        plain = (own.alpha == 0) & (own.workload == key[0]) & (own.batch_size == key[3])
        yield key, some, own[plain]


def of_classes(split: int) -> float:
    """What a decoder rebuilds of digits in this split if labels are sent, not activations."""
    from torch.nn import functional  # slow to import, and most chapters only read

    from lib.workloads import datasets

    digits = datasets.load("digits", split)
    parts = digits.train, digits.validation
    return experiments.leakage(*((p.x, functional.one_hot(p.y).double()) for p in parts))[1]


def points(found: pd.DataFrame) -> pd.DataFrame:
    """Means of dcor and rebuilt, with the ends of the latter, low and high, a row per POINT of
    which three searches or more met the goal.
    """
    rows = []
    for key, own in found[found.goal == GOAL].dropna(subset="steps").groupby(POINT):
        if len(own) >= scaling.ENOUGH:
            rebuilt = scaling.mean_of(own.rebuilt).row(log=False).values()
            rows.append((title(key[0]), *key[1:], own.dcor.mean(), *rebuilt, len(own)))
    measures = ["dcor", "rebuilt", "low", "high", "searches"]
    return pd.DataFrame(rows, columns=["network", *POINT[1:], *measures])


def costs(found: pd.DataFrame) -> pd.DataFrame:
    """Steps to the goal over those without a penalty, told, a column per batch size."""
    rows = {}
    for (work, unbiased, alpha, size), *both in with_penalty(found, GOAL):
        row = rows.setdefault((title(work), ESTIMATORS[unbiased], f"{alpha:g}"), {})
        row[f"batch {size}"] = times(replicates.over(*both, "steps"))
    table = pd.DataFrame(rows).T.fillna("—")
    return table.rename_axis(["network", "penalty by the", "α"]).reset_index()


def findings(found: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences; found: of `measured`."""
    strongest = found[
        (found.workload == MLP) & (found.alpha == STRONGEST) & (found.goal == GOAL)
    ]
    met = strongest.dropna(subset="steps").groupby(["unbiased", "batch_size"])
    usual, unbiased = (met.get_group((estimator, SMALL)) for estimator in ESTIMATORS)
    large = met.get_group((True, LARGE))
    return {
        "dcor": float(large.dcor.mean()),
        "rebuilt": percent(large.rebuilt.mean()),
        "classes": [100 * of_classes(split) for split in sorted(found.replicate.unique())],
        "bias": times(replicates.over(usual, unbiased, "dcor")),
    }
