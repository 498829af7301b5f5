"""What the page on frameworks says, as numbers, and its table."""

from __future__ import annotations

import pandas as pd

from chapters.frameworks.framework_costs import NAMES, ONE, gains
from lib.claims.names import title
from lib.wording import between, brief

NETWORK = "mnist-fc-1024x3"
HELD = ["parameters", "gradients", "states", "residuals"]


def by_the_clock(
    points: pd.DataFrame, first: pd.DataFrame, second: pd.DataFrame
) -> pd.DataFrame:
    """network, framework, and the gain over one process in two runs; points, first and second as
    `gains` takes them.
    """
    runs = {"first": first, "second": second}
    gained = {name: gains(points, times, "wall") for name, times in runs.items()}
    return pd.DataFrame(gained).reset_index()


def findings(clock: pd.DataFrame) -> dict[str, str]:
    """All values of the page's sentences; clock: of `by_the_clock`."""
    gained = clock.set_index(["network", "framework"]).loc[title(NETWORK), NAMES["ddp"]]
    return {name: f"{gain:.2f}" for name, gain in gained.items()}


def of_steps(times: pd.DataFrame) -> pd.DataFrame:
    """A row per framework: a step's computing time over that of one process, with quartiles, at
    each batch size, and at the largest what it sends and holds, in gradients; times: of one run.
    """
    rows = {name: {"framework": words} for name, words in NAMES.items()}
    own = times[(times.workload == NETWORK) & (times.algorithm == "adam")]
    for size, some in own.groupby("batch_size"):
        base = some.seconds[some.system == ONE].item()
        for one in some.itertuples():
            low, high = one.low / base, one.high / base
            told = f"{brief(one.seconds / base)} ({between(low, high)})"
            rows[one.system][f"B = {size:,}"] = told if one.system != ONE else "1"
    for _, one in own[own.batch_size == own.batch_size.max()].iterrows():
        gradient = 4 * one.weights
        rows[one.system]["sent"] = brief(one.sent / gradient)
        rows[one.system]["held"] = brief(one[HELD].sum() / gradient)
    return pd.DataFrame(rows.values())
