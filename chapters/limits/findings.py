"""What the page on limits says, as numbers and words, and its tables."""

from __future__ import annotations

import pandas as pd

from chapters.limits import families, family_curves
from chapters.limits.families import short
from lib.analysis import scaling
from lib.claims import FOR, Claim
from lib.claims.names import title
from lib.page import boxes
from lib.wording import percent, ranged

TOLD = {
    "mnist": families.MNIST_MODEL,
    "easier": families.MNIST_MODEL_EASIER,
    "digits": families.MODEL,
    "depth": families.DEPTH,
    "width": families.WIDTH,
    "ladder": families.LADDER,
    "digits_data": families.FRACTION,
    "mnist_data": families.MNIST_FRACTION,
}


def findings(
    trials: pd.DataFrame,
    networks: pd.DataFrame,
    effects: pd.DataFrame,
    order: list[str],
    kinds: Claim,
    whole: bool,
) -> dict:
    """All values of the page's sentences.

    Args:
        trials: of `family_curves.results`.
        networks: the summary of every dense network, once per training method.
        effects: of `family_curves.effects`.
        order: families in the order of the last figure's menu.
        kinds: the claim on kinds of network.
        whole: whether all families are shown, from the records.
    """
    sure = networks[(networks.algorithm == "sgd") & (networks.replicates >= scaling.ENOUGH)]
    decided = [g for g in kinds.decided(FOR) if g.name.startswith("MNIST")]
    apart = [group.effect for group in decided if group.n >= scaling.ENOUGH]
    by_family = effects.set_index("family")
    return {
        "several": whole and len(sure) > 1,
        "least": sure.critical.min(),
        "most": sure.critical.max(),
        "most_over_least": sure.critical.max() / sure.critical.min(),
        "some_beyond": bool(len(networks)) and not networks.identified.astype(bool).all(),
        "kind_matters": bool(apart),
        "kind": max(apart, default=None),
        "curves": len(networks),
        "single": int((networks.replicates == 1).sum()),
        "trials": boxes.trials(trials),
        "whole": whole,
        "clear": int(effects.clear.sum()),
        "clear_single": int((effects.clear & (effects.n == 1)).sum()),
        "changes": len(effects),
        "some_clear": bool(effects.clear.any()),
        "first": short(order[0]) if order else None,
        **{name: _told(by_family, family) for name, family in TOLD.items()},
    }


def _told(effects: pd.DataFrame, family: str) -> str:
    """A family's ratio with its interval."""
    if family not in effects.index:
        return "not measured"
    own = effects.loc[family]
    return ranged(own.ratio, own.ratio_low, own.ratio_high)


# --- tables ---------------------------------------------------------------------------------------


def networks(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` of every dense network, once per training method, with its name."""
    if not len(trials):
        columns = [*scaling.CURVE, "replicates", "critical", "name"]
        return pd.DataFrame(columns=columns)
    summary, curves = scaling.summaries(trials[trials.sparsity == 0])
    keys = summary[scaling.CURVE].itertuples(index=False, name=None)
    once = set(family_curves.once(curves))
    found = summary[[key in once for key in keys]]
    return found.assign(name=[_one_line(workload) for workload in found.workload])


def _one_line(workload: str) -> str:
    name = title(workload)
    for width in ("half", "double"):
        name = name.replace(f"Simple-CNN, {width} width,", f"{width.capitalize()}-width CNN")
    return name


def changes(effects: pd.DataFrame) -> pd.DataFrame:
    """What one change does to the critical batch size, a row per family.

    Args:
        effects: of `family_curves.effects`.
    """
    return pd.DataFrame(
        {
            "what changes": effects.family.map(short),
            "from": effects["first"],
            "to": effects["last"],
            "goal": effects.goal.map(percent),
            "critical batch size times": _column(effects, "ratio"),
            "searches": effects.n,
            "interval excludes 1": effects.clear.map({True: "yes", False: "no"}),
        }
    )


def members(bends: pd.DataFrame) -> pd.DataFrame:
    """Every member's critical batch size, of `family_curves.bends`."""
    if not len(bends):
        return pd.DataFrame({"member": ["not measured yet"]})
    return pd.DataFrame(
        {
            "what changes": bends.family.map(short),
            "member": bends.member,
            "critical batch size": _column(bends, "critical"),
            "goal": bends.goal.map(percent),
            "batch sizes": bends.sizes,
            "searches": bends.replicates,
        }
    )


def _column(rows: pd.DataFrame, name: str) -> list[str]:
    ends = rows[[name, f"{name}_low", f"{name}_high"]]
    return [ranged(*row) for row in ends.itertuples(index=False)]
