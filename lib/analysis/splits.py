"""Images that a network has not seen: how hard a draw of validation images is, as networks tell
that have seen none of its images (`lib.probes.unseen`), and the error at the goal on test images.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib import require
from lib.analysis.scaling import SEARCH
from lib.wording import percent
from lib.workloads import datasets
from lib.workloads.catalogue import workload

DRAWS = 10_000


def shares(rows: pd.DataFrame, name: str) -> np.ndarray:
    """The share of networks that got each image of the training set wrong [N], from the rows of one
    workload.

    rows: of `lib.probes.unseen`, with columns workload, image, wrong and networks.
    Raises ValueError if the workload has none.
    """
    own = rows[rows.workload == name] if len(rows) else rows
    require(len(own) > 0, "workload", name, "one whose folds are on record")
    found = np.zeros(datasets.whole_size(workload(name).dataset))
    found[own.image] = own.wrong / own.networks
    return found


def drawn(share: np.ndarray) -> np.ndarray:
    """The errors that random draws of a tenth of the images would show [DRAWS]; share [N]: as of
    `shares`.

    How many images of each share a draw holds is multivariate hypergeometric, so that no images
    need be drawn.
    """
    levels, counts = np.unique(share, return_counts=True)
    size = len(share) // 10
    random = np.random.default_rng(0)
    held = random.multivariate_hypergeometric(counts, size, DRAWS, method="marginals")
    return held @ levels / size


def percentile(error: float, among: np.ndarray) -> float:
    """Draws `among` [draws] with a lower error, in percent; those that tie are counted half."""
    return 100 * np.mean([among < error - 1e-12, among <= error + 1e-12])


# --- the error on unseen images: dense winners beside pruned ones of the same searches ------------


def unseen_pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Test errors of one workload, a row per search: dense, pruned, means over the batch sizes that
    both met; none without either.

    rows: of `lib.probes.unseen`.
    """
    tests = rows.set_index(["sparsity", "batch_size", *SEARCH]).test.unstack("sparsity")
    if tests.shape[1] != 2:
        return tests[:0]
    both = tests.set_axis(["dense", "pruned"], axis=1).dropna()
    return both.groupby([*SEARCH]).mean()


def unseen(rows: pd.DataFrame, workload: str) -> dict[str, str]:
    """Of one workload: goal, unseen_dense and unseen_pruned, in percent; a dash each where nothing
    is measured.
    """
    own = rows[rows.workload == workload] if len(rows) else rows
    each = unseen_pairs(own) if len(own) else own
    shares = [own.goal.iloc[0], *each.mean()] if len(each) else []
    texts = [percent(round(share, 3)) for share in shares] or ["—"] * 3
    return dict(zip(("unseen_goal", "unseen_dense", "unseen_pruned"), texts))
