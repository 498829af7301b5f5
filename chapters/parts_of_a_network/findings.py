"""What the page on parts of a network says, as numbers and words."""

from __future__ import annotations

import pandas as pd

from chapters.parts_of_a_network import growing, halves, network_parts, searches, subnetworks
from lib.page import told
from lib.wording import between, percent, with_interval


def findings(trials: list[pd.DataFrame], *ratios: pd.DataFrame) -> dict:
    """All values of the page's sentences, at the hardest goal; trials and ratios (of
    `network_parts.ratios`): of subnetworks, growing networks and halves.
    """
    parts, grown, cut = map(_hardest, ratios)
    own = parts.loc[subnetworks.ARM]
    apart = cut.loc[halves.ARMS["halves"], "steps"]
    recovered = cut.loc[halves.ARMS["recovered"]].effect
    adds = grown.effect.xs("adds", level="what")
    ends = own[["effect", "low", "high"]]
    return told.plain(
        {
            "goal": percent(ratios[0].goal.min()),
            "local": subnetworks.PUBLISHED,
            "searches": sum(len(table.attrs["provenance"]) for table in trials),
            "trials": searches.TRIALS,
            **{f"two_{what}": with_interval(*ends.loc[what, 2]) for what in network_parts.COSTS},
            "four_steps": with_interval(*ends.loc["steps", 4]),
            "eight_met": own.met["steps", 8],
            "eight_all": own.n["steps", 8],
            "grown": between(*adds[growing.GROWN]),
            "small": between(*adds[growing.SMALL]),
            "missed": apart.n.sum() - apart.met.sum(),
            "halved": apart.n.sum(),
            "recovery_sent": between(*recovered["sent"]),
            "recovery": between(*recovered["steps"]),
        }
    )


def _hardest(ratios: pd.DataFrame) -> pd.DataFrame:
    """Those at the hardest goal, by arm, what and size."""
    return network_parts.hardest(ratios).set_index(["arm", "what", "size"]).sort_index()
