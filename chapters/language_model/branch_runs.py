"""Branches of a run: those that are planned are trained, and their checks read."""

from __future__ import annotations

import pandas as pd

from chapters.language_model import branches
from lib.measuring.experiment import Collection
from lib.measuring.runner import Reporter
from lib.records.store import DATA


def _train(branch: branches.Branch, _: Reporter) -> pd.DataFrame:
    from chapters.language_model import (
        branching,  # brings PyTorch, which is slow to import, and most chapters only read
    )

    return branching.train(branch)


BRANCHES = Collection(
    "branches",
    "branch",
    DATA / "branches",
    branches.place,
    branches.planned,
    _train,
    lambda branch: branch.cell.arithmetic,
)
record, results, missing, run = BRANCHES.record, BRANCHES.results, BRANCHES.missing, BRANCHES.run
