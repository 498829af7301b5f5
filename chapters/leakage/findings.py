"""What messages tell of the images, against steps and batch size, and what the page says of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.leakage import leakage
from lib.analysis import scaling
from lib.analysis.scaling import Effect
from lib.claims.names import title
from lib.wording import between, percent, with_interval

ESTIMATORS = {False: "usual estimator", True: "unbiased estimator"}
POINT = ["workload", "unbiased", "alpha", "batch_size"]
GOAL, HARDEST = 0.06, 0.04  # at which leakage is judged, and accuracy
MLP = "digits-mlp"


def measured() -> pd.DataFrame:
    """A row per search and goal on record, with lost: the share of the pixels' variance that the
    decoder does not rebuild.
    """
    found = leakage.LEAKAGE.results()
    return found.assign(lost=1 - found.rebuilt) if len(found) else found


def over(one: pd.DataFrame, other: pd.DataFrame, what: str) -> Effect | None:
    """ln of the geometric mean of `what` in searches over that in others of the same replicates;
    None unless all have one.
    """
    both = [own.set_index("replicate")[what] for own in (one, other)]
    logs = np.log(both[0] / both[1])
    return scaling.mean_of(logs) if len(logs) and logs.notna().all() else None


def with_penalty(found: pd.DataFrame, goal: float):
    """Of each network, estimator, alpha and batch size: these, the searches, and those without a
    penalty.
    """
    own = found[found.goal == goal] if len(found) else found
    for key, some in own[own.alpha > 0].groupby(POINT) if len(own) else ():
        plain = (own.alpha == 0) & (own.workload == key[0]) & (own.batch_size == key[3])
        yield key, some, own[plain]


def points(found: pd.DataFrame, goal: float) -> pd.DataFrame:
    """What the figure draws: network, estimator, penalty, batch_size, rebuilt (mean), low, high,
    steps (geometric mean), searches; without the points of which a search misses the goal.
    """
    rows = {}
    for (work, unbiased, alpha, size), *both in with_penalty(found, goal):
        for value, own in zip((alpha, 0.0), both):
            if own.steps.notna().all():
                ends = scaling.mean_of(own.rebuilt).row(log=False).values()
                steps = float(np.exp(np.log(own.steps).mean()))
                key = (title(work), ESTIMATORS[unbiased], f"α = {value:g}", size)
                rows[key] = (*key, *ends, steps, len(own))
    names = ["network", "estimator", "penalty", "batch_size", "rebuilt", "low", "high"]
    return pd.DataFrame(rows.values(), columns=[*names, "steps", "searches"])


def costs(found: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Steps to the goal over those without a penalty, told, a column per batch size."""
    rows = {}
    for (work, unbiased, alpha, size), *both in with_penalty(found, goal):
        row = rows.setdefault((title(work), ESTIMATORS[unbiased], f"{alpha:g}"), {})
        effect = over(*both, "steps")
        row[f"batch {size}"] = with_interval(*effect.row().values()) if effect else "—"
    table = pd.DataFrame(rows).T.fillna("—")
    return table.rename_axis(["network", "penalty by", "α"]).reset_index()


def findings(found: pd.DataFrame, goal: float) -> dict[str, object]:
    """All values of the page's sentences, of the MLP unless they say so; found: of `measured`."""
    own = {key: both for key, *both in with_penalty(found, goal)}
    small, *_, large = leakage.PLANNED[MLP][0]
    top, values = max(leakage.PLANNED[MLP][1]), {}
    for name, size in (("small", small), ("large", large)):
        pair = [own[MLP, unbiased, top, size] for unbiased in (True, False)]
        effect = over(pair[0][0], pair[1][0], "lost")
        ends = np.exp([effect.value, effect.low, effect.high]) if effect else [None] * 3
        values |= dict(zip((name, f"{name}_low", f"{name}_high"), ends))
        values[f"usual_{name}"] = percent(pair[1][0].rebuilt.mean())
        values[f"unbiased_{name}"] = percent(pair[0][0].rebuilt.mean())
        cost = over(*pair[0], "steps")
        values[f"steps_{name}"] = float(np.exp(cost.value)) if cost else None
    plain = [both[1].rebuilt.mean() for key, both in own.items() if key[0] == MLP]
    return {
        **{key: float(v) if isinstance(v, float) else v for key, v in values.items()},
        "plain": between(*(100 * share for share in plain)),
        "sizes": [small, large],
        "top": top,
        "goal": percent(goal),
        "searches": int(found.replicate.nunique()),
        "trials": int(found.trials.max()),
        "missed": int(found[found.goal == goal].steps.isna().sum()),
    }
