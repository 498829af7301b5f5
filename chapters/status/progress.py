"""How much of what is planned is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from lib.page import boxes
from lib.page.prose import Html
from lib.wording import number

BARS = Path(__file__).with_name("progress.html").read_text(encoding="utf-8")


def progress(studies: pd.DataFrame) -> Html:
    """A bar per study, the least complete first; those that are complete are folded.

    Args:
        studies: study, title, done, planned and hours.
    """
    share = studies.done / studies.planned
    studies = studies.assign(lacks=share < 1).iloc[np.argsort(share, kind="stable")]
    rows = list(studies.itertuples())
    return boxes.html(BARS, rows=rows, hours=lambda h: number(round(h, 2 if h < 1 else 1)))
