"""The book's studies, from data/studies.yaml, and which of them belong together."""

from __future__ import annotations

from lib import ROOT, require
from lib.studies.study import Studies, Study

DIGITS = ("digits-mlp", "digits-cnn")
LEVELS = (0.0, 0.5, 0.7, 0.9)  # sparsities
DENSE_AND_SPARSE = (0.0, 0.9)


STUDIES = Studies(ROOT / "data" / "studies.yaml")


def study(name: str) -> Study:
    """Look up a study.  Raises ValueError naming the allowed ones."""
    require(name in STUDIES, "study", name, STUDIES)
    return STUDIES[name]


TO_BUDGETS = ("mnist-budget", "fashion-mnist-budget")  # curves run to a budget, not to a goal
# Studies of separate questions: the same networks on the same images again, not further curves of
# the book.  With a dozen methods:
WHICH = (
    "digits-which",
    "digits-which-more",
    "digits-which-sparse",
    "mnist-fc-which",
    "mnist-fc-which-more",
    "mnist-which",
    "digits-kfac",
)
LOW_MOMENTUM = ("digits-low-momentum", "fc-low-momentum", "mnist-low-momentum")
