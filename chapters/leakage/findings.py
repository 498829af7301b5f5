"""What messages tell of the images, against steps and batch size, and what the page says of it."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from chapters.leakage import experiments
from lib.analysis import replicates, scaling
from lib.claims.names import title
from lib.page.told import times
from lib.wording import percent

ESTIMATORS = {False: "usual estimator", True: "unbiased estimator"}
POINT = ["workload", "unbiased", "alpha", "batch_size"]
GOAL, HARDEST = 0.06, 0.04  # at which leakage is judged, and accuracy
MEASURES = {"dcor": "distance correlation", "rebuilt": "variance rebuilt by a decoder"}
MLP = "digits-mlp"
PREDICTED = 3.0  # the penalty whose steps were predicted


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


def of_classes(split: int) -> tuple[float, float]:
    """`leakage` of digits in this split if labels are sent in place of activations."""
    from torch.nn import functional  # slow to import, and most chapters only read

    from lib.workloads import datasets

    digits = datasets.load("digits", split)
    parts = digits.train, digits.validation
    return experiments.leakage(*((part.x, functional.one_hot(part.y).double()) for part in parts))


def points(found: pd.DataFrame, goal: float) -> pd.DataFrame:
    """What the figure draws, a row per measure: value (mean of searches that meet the goal, three at
    least), low, high, searches.
    """
    rows = {}
    for (work, unbiased, alpha, size), *both in with_penalty(found, goal):
        for (value, own), what in itertools.product(zip((alpha, 0.0), both), MEASURES):
            met = own[what].dropna()
            if len(met) >= scaling.ENOUGH:
                ends = scaling.mean_of(met).row(log=False).values()
                key = (title(work), ESTIMATORS[unbiased], f"α = {value:g}", size, MEASURES[what])
                rows[key] = (*key, *ends, len(met))
    columns = "network estimator penalty batch_size measure value low high searches"
    return pd.DataFrame(rows.values(), columns=columns.split())


def costs(found: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Steps to the goal over those without a penalty, told, a column per batch size."""
    rows = {}
    for (work, unbiased, alpha, size), *both in with_penalty(found, goal):
        row = rows.setdefault((title(work), ESTIMATORS[unbiased], f"{alpha:g}"), {})
        row[f"batch {size}"] = times(replicates.over(*both, "steps"))
    table = pd.DataFrame(rows).T.fillna("—")
    return table.rename_axis(["network", "penalty by the", "α"]).reset_index()


def findings(found: pd.DataFrame, goal: float) -> dict[str, object]:
    """All values of the page's sentences; found: of `measured`."""
    own = {key: both for key, *both in with_penalty(found, goal)}
    sizes, alphas = experiments.PLANNED[MLP]
    ends, top, values = {"small": sizes[0], "large": sizes[-1]}, max(alphas), {}
    for name, size in ends.items():
        usual, unbiased = (own[MLP, kind, top, size][0].dropna() for kind in (False, True))
        for kind, some in (("usual", usual), ("unbiased", unbiased)):
            values[f"told_{kind}_{name}"] = float(some.dcor.mean())
            values[f"rebuilt_{kind}_{name}"] = percent(some.rebuilt.mean())
        for what, *pair in (("dcor", usual, unbiased), ("lost", unbiased, usual)):
            effect = replicates.over(*pair, what)
            values[f"{what}_{name}"] = times(effect) if effect else None
            if (what, name) == ("lost", "small"):  # predicted: over twice
                values["refuted"] = bool(effect and effect.high < np.log(2))
                values["lost_open"] = bool(effect and effect.low <= 0 <= effect.high)
                values["few"] = effect.n if effect and effect.n < experiments.REPLICATES else None
            if (what, name) == ("lost", "large"):  # predicted: within a factor of 1.25
                most = effect and max(-effect.low, effect.high)
                values["held"] = bool(effect and most < np.log(1.25))
    parts = {"mlp": (MLP, top), "cnn": ("digits-cnn", max(experiments.PLANNED["digits-cnn"][1]))}
    for name, (work, alpha) in parts.items():
        pairs = [both for key, both in own.items() if (key[0], key[2]) == (work, alpha)]
        steps = filter(None, (replicates.over(*both, "steps") for both in pairs))
        values[f"steps_{name}"] = [float(np.exp(effect.value)) for effect in steps]
        for place, when in enumerate(("hidden", "plain")):
            values[f"{when}_{name}"] = [float(100 * both[place].rebuilt.mean()) for both in pairs]
        values[f"told_{name}"] = [float(both[1].dcor.mean()) for both in pairs]
    small = [both for key, both in own.items() if key[1:] == (False, PREDICTED, sizes[0])]
    predicted = list(filter(None, (replicates.over(*both, "steps") for both in small)))
    classes = np.array([of_classes(split) for split in sorted(found.replicate.unique())])
    values |= dict.fromkeys(("both_met", "steps_usual", "steps_unbiased"))
    for alpha in sorted(set(alphas) - {0.0}):  # the largest with which all searches met the goal
        pairs = [own.get((MLP, kind, alpha, sizes[0])) for kind in ESTIMATORS]
        both = [pair and replicates.over(*pair, "steps") for pair in pairs]
        if all(both):
            values |= dict(zip(("steps_usual", "steps_unbiased"), map(times, both)))
            values["both_met"] = f"{alpha:g}"
    return {
        **values,
        **ends,
        "top": f"{top:g}",
        "top_cnn": f"{parts['cnn'][1]:g}",
        "third": [float(np.exp(effect.value)) for effect in predicted],
        "third_wrong": any(effect.high < np.log(2) for effect in predicted),
        "predicted": f"{PREDICTED:g}",
        "class_told": classes[:, 0].tolist(),
        "class_rebuilt": (100 * classes[:, 1]).tolist(),
        "goal": percent(goal),
        "searches": int(found.replicate.nunique()),
        "trials": int(found.trials.max()),
        "most": int(found.max_steps.max()),
        "missed": int(found[found.goal == goal].steps.isna().sum()),
    }
