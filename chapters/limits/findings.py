"""What the page on limits says, as numbers and words, and the table of all networks."""

from __future__ import annotations

import pandas as pd

from chapters.limits import families
from lib.analysis import scaling
from lib.claims.names import title
from lib.page import boxes
from lib.wording import number, ranged

TOLD = {
    "kind": families.MNIST_MODEL_EASIER,
    "digits": families.MODEL,
    "depth": families.DEPTH,
    "width": families.WIDTH,
    "digits_data": families.FRACTION,
    "mnist_data": families.MNIST_FRACTION,
}


def findings(
    trials: pd.DataFrame, networks: pd.DataFrame, effects: pd.DataFrame, asked: float
) -> dict:
    """All values of the page's sentences, of `families.results`, `networks` and
    `families.effects`; asked: by which factor claims ask a change to move a critical batch size.
    """
    sure = networks[(networks.algorithm == "sgd") & (networks.replicates >= scaling.ENOUGH)]
    ratios = effects.set_index("family")[["ratio", "ratio_low", "ratio_high"]]
    return {
        "least": sure.critical.min(),
        "most": sure.critical.max(),
        "most_over_least": sure.critical.max() / sure.critical.min(),
        "curves": len(networks),
        "single": int((networks.replicates == 1).sum()),
        "trials": boxes.trials(trials[trials.family.isin(effects.family[effects.n == 1])]),
        "asked": number(asked),
        "clear": int(effects.clear.sum()),
        "clear_single": int((effects.clear & (effects.n == 1)).sum()),
        "changes": len(effects),
        **{name: ranged(*ratios.loc[family]) for name, family in TOLD.items()},
    }


def networks(published: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` of every dense network, once per training method, with its name.

    published: of `lib.claims.judging.published`.
    """
    summary, curves = scaling.summaries(published[published.sparsity == 0])
    found = summary.set_index(scaling.CURVE).loc[[*families.once(curves)]].reset_index()
    return found.assign(name=found.workload.map(title))
