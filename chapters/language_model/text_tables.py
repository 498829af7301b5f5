"""The tables of the page on the language model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.language_model import studies, text_results
from lib.analysis import scaling
from lib.wording import brief, ranged, span
from lib.workloads.texts import CONTEXT


def fitted(rows: pd.DataFrame) -> pd.DataFrame:
    """The lines of one goal, of `text_results.fits`."""
    return pd.DataFrame(
        {
            "training method": rows.curve,
            "searches": rows.replicates,
            "c₁ (sequences)": rows.c1.map(brief),
            "c₂ (steps)": rows.c2.map(brief),
            "critical batch size (sequences)": rows.critical.map(brief),
            "90 %": list(map(span, zip(rows.critical_low, rows.critical_high))),
            "in tokens": (CONTEXT * rows.critical).map(brief),
        }
    )


def over_main(rows: pd.DataFrame) -> pd.DataFrame:
    """Steps over the main method's, of `text_results.over_main`: a row per curve."""
    ends = map(ranged, rows.ratio, rows.ratio_low, rows.ratio_high)
    told = ["≥ " * bound + told for bound, told in zip(rows.bound, ends)]
    rows = rows.assign(told=told)
    wide = rows.pivot(index="curve", columns="batch_size", values="told")
    wide = wide.fillna("—").rename(columns="B = {:,}".format)
    searches = rows.groupby("curve").n.max()
    wide.insert(0, "searches", searches)
    return wide.rename_axis(index="training method", columns=None).reset_index()


def widths(trials: pd.DataFrame) -> pd.DataFrame:
    """Steps and critical batch sizes of models of several widths; trials: of `of_widths`."""
    rows = []
    for width, curve in text_results.curves_of_widths(trials).items():
        critical = scaling.estimate(lambda own: text_results.two_point(*own), curve)
        value, *ends = critical.row().values()
        steps = np.exp(curve.means).round().astype(int)
        rows.append((width, *steps, brief(value), span(ends)))
    sizes = map("B = {}".format, studies.TEXT_ENDS)
    return pd.DataFrame(rows, columns=["width", *sizes, "critical batch size", "90 %"])
