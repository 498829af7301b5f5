"""What the page on limits says, as numbers and words, and the tables of all networks."""

from __future__ import annotations

import pandas as pd

from chapters.limits import families
from lib.analysis import scaling
from lib.claims import front, judging
from lib.claims.names import title
from lib.wording import percent, ranged


def findings(networks: pd.DataFrame, effects: pd.DataFrame) -> dict:
    """All values of the page's sentences, of `networks` and `families.effects`."""
    sure = networks[(networks.algorithm == "sgd") & (networks.replicates >= scaling.ENOUGH)]
    kind = effects.set_index("family").loc[families.MNIST_MODEL_EASIER]
    return {
        "least": sure.critical.min(),
        "most": sure.critical.max(),
        "most_over_least": sure.critical.max() / sure.critical.min(),
        "kind": ranged(*kind[["ratio", "ratio_low", "ratio_high"]]),
    }


def changes(effects: pd.DataFrame) -> pd.DataFrame:
    """`families.effects` as the page shows them, the largest increase first."""
    rows = effects.sort_values("ratio", ascending=False)
    ratios = rows[["ratio", "ratio_low", "ratio_high"]].itertuples(index=False)
    return pd.DataFrame(
        {
            "what changes": rows.family,
            "from": rows["first"],
            "to": rows["last"],
            "goal": rows.goal.map(percent),
            "critical batch size times": [ranged(*ratio) for ratio in ratios],
            "searches": rows.n,
        }
    )


def networks() -> pd.DataFrame:
    """`front.critical` of every dense network, once per training method, with its name."""
    every, once = front.critical().set_index(scaling.CURVE), families.once(judging.curves())
    found = every.loc[[*once]].reset_index()
    return found.drop(columns="range").assign(name=found.workload.map(title))
