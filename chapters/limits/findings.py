"""What the page on limits says, as numbers and words."""

from __future__ import annotations

import pandas as pd

from chapters.limits import families
from chapters.limits.limit_tables import short
from lib.analysis import scaling
from lib.claims import FOR, Claim
from lib.page import boxes
from lib.wording import ranged

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
) -> dict[str, object]:
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
