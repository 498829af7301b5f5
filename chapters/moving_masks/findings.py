"""Steps with masks that move beside a mask that stays, and what the page says of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from chapters.moving_masks import searches
from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect
from lib.wording import between, brief, percent, with_interval

WORK = searches.WORK
NAMES = {
    "static": "stays",
    "steps": f"rewired every {searches.STEPS} steps",
    "examples": f"rewired every {searches.EXAMPLES} examples",
    "thinned": "thinned out",
}
ENDS = {"small": min(searches.SIZES), "large": max(searches.SIZES)}
SIZE = 1.25  # within which two numbers of steps are alike
MOVING = ("steps", "examples", "thinned")


def measured() -> pd.DataFrame:
    """A row per search and goal on record; masked: which of NAMES, twice where that is the same."""
    found = searches.MASKED.results()
    if not len(found):
        return found
    rows = list(zip(found["mask"], found.every, found["drop"]))
    parts = []
    for mask in searches.MASKS:
        wanted = {size: searches.search(mask, size, 1) for size in searches.SIZES}
        own = [(one.mask, one.every, one.drop) for one in map(wanted.get, found.batch_size)]
        parts.append(found[[a == b for a, b in zip(rows, own)]].assign(masked=mask))
    both = pd.concat(parts, ignore_index=True)
    both.attrs = found.attrs
    return both


def curves(found: pd.DataFrame, goal: float = searches.GOALS[0]) -> dict[str, Curve]:
    """K* against batch size, by mask; found: of `measured`."""
    if not len(found):
        return {}
    own = found[found.goal == goal]
    last = [searches.LONGEST * searches.HORIZON[size] for size in own.batch_size]
    about = {"workload": WORK, "pruning": "connection-sensitivity", "sparsity": 0.9}
    rows = own.assign(**about, algorithm="sgd", split=own.replicate, last_step=last)
    return {mask: scaling.curve_of(some) for mask, some in rows.groupby("masked")}


def effects(known: dict[str, Curve], of: Callable[[Curve, Curve], Effect | None]) -> dict:
    """`of` every mask that moves and the one that stays; None where one of both is lacking."""
    still = known.get("static")
    both = {mask: known.get(mask) for mask in MOVING}
    return {mask: of(own, still) if own and still else None for mask, own in both.items()}


def ratios(known: dict[str, Curve]) -> pd.DataFrame:
    """What the figure draws: mask, batch_size, steps over those of the mask that stays, low, high
    and searches.
    """
    parts = [pd.DataFrame(columns=["batch_size", "ratio", "low", "high", "searches", "mask"])]
    names = {"ratio_low": "low", "ratio_high": "high", "n": "searches"}
    for mask, own in effects(known, scaling.steps_ratio).items():
        if own is not None:
            rows = own.drop(columns="effect").rename(columns=names)
            parts.append(rows.assign(mask=NAMES[mask]))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def table(known: dict[str, Curve]) -> pd.DataFrame:
    """Steps by batch size with intervals, a row per mask, and two ratios to the mask that stays."""
    columns = {
        "mean of steps": scaling.mean_steps_ratio,
        "critical batch size": scaling.critical_ratio,
    }
    over = {f"× {name}": effects(known, of) for name, of in columns.items()}
    rows = []
    for mask in [mask for mask in searches.MASKS if mask in known]:
        points = known[mask].points().set_index("batch_size")
        steps = {f"{size:,}": brief(points.steps[size]) for size in points.index}
        told = {name: told_of(own.get(mask)) or "—" for name, own in over.items()}
        rows.append({"mask": NAMES[mask], **steps, **told})
    return pd.DataFrame(rows).fillna("—")


def told_of(effect: Effect | None) -> str | None:
    """A ratio with its interval."""
    return with_interval(*effect.row().values()) if effect else None


def findings(found: pd.DataFrame, goal: float) -> dict[str, object]:
    """All values of the page's sentences; found: of `measured`."""
    known = curves(found, goal)
    steps, bends = (effects(known, of) for of in (scaling.mean_steps_ratio, scaling.critical_ratio))
    means = {mask: float(np.exp(own.value)) for mask, own in steps.items() if own}
    at = timing(known)
    thin = found[(found.masked == "thinned") & (found.goal == goal)].density
    both = ("steps", "examples")
    return {
        **{f"steps_{mask}": told_of(own) for mask, own in steps.items()},
        **{f"critical_{mask}": told_of(own) for mask, own in bends.items()},
        **{f"timing_{end}": told_of(at.get(size)) for end, size in ENDS.items()},
        **ENDS,
        "rewired": between(*(means[mask] for mask in both)) if means.keys() >= {*both} else None,
        "thinned": means.get("thinned"),
        "thin_least": percent(thin.min()),
        "thin_most": percent(thin.max()),
        "little": all(1 / SIZE <= ratio <= SIZE for ratio in means.values()),
        "held": held(means, bends, at),
        "goal": percent(goal),
        "density": percent(searches.DENSITY),
        "first": percent(searches.FIRST),
        "last": percent(searches.LAST),
        "drop": percent(searches.DROP),
        "searches": int(found.replicate.nunique()),
        "trials": int(found.trials.max()),
    }


def timing(known: dict[str, Curve]) -> dict[int, Effect]:
    """Steps of a mask rewired every so many steps over those of one rewired every so many examples,
    by batch size.
    """
    if not {"steps", "examples"} <= known.keys():
        return {}
    rows = scaling.steps_ratio(known["steps"], known["examples"])
    return dict(zip(rows.batch_size, rows.effect))


def held(means: dict, bends: dict, at: dict) -> int:
    """How many of the page's four predictions the estimates bear out."""
    close = {mask: 1 / SIZE <= ratio <= SIZE for mask, ratio in means.items()}
    ends = [abs(own.value) < np.log(1.5) for size, own in at.items() if size in ENDS.values()]
    least = [own.value <= np.log(1.5) for own in bends.values() if own]
    rewired = [means.get(mask, np.inf) >= 1 / SIZE for mask in ("steps", "examples")]
    return sum([close.get("thinned", False), all(rewired), all(ends), all(least)])
