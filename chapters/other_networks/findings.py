"""What the page on other networks and messages says, as numbers and words."""

from __future__ import annotations

import pandas as pd

from chapters.other_networks import local_errors, locality, revealed, spikes
from lib.page import estimates


def values(
    without: pd.DataFrame,
    spiking: pd.DataFrame,
    times: pd.DataFrame,
    met: pd.DataFrame,
    leaked: pd.DataFrame,
) -> dict[str, object]:
    """Values in the page's sentences.

    Args:
        without: searches with every way to pass errors back.
        spiking, times: the records of spiking networks and of the times of their gradients.
        met: from `locality.at_goal`.
        leaked: from `revealed.measured`.
    """
    return estimates.plain(
        {
            **local_errors.values(without),
            **spikes.values(spiking, times),
            **locality.values(met),
            **revealed.values(leaked),
        }
    )
