"""The tables of the page on the language model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.language_model import branched, studies, text_results
from lib.wording import between, brief, percent, ranged, span
from lib.workloads.texts import CONTEXT


def _by_size(rows: pd.DataFrame, told: list[str], searches: pd.Series) -> pd.DataFrame:
    """A row per curve with a text for every batch size, and its searches."""
    wide = rows.assign(told=told).pivot(index="curve", columns="batch_size", values="told")
    wide = wide.fillna("—").rename(columns=_size)
    wide.insert(0, "searches", searches)
    return wide.rename_axis(index="training method", columns=None).reset_index()


def _size(batch_size: int) -> str:
    return f"B = {batch_size:,}"


def rungs(rows: pd.DataFrame) -> pd.DataFrame:
    """How well n-gram models do."""
    return pd.DataFrame(
        {
            "n": rows.n,
            "nats": rows.nats.map("{:.2f}".format),
            "bits a character": (rows.nats / np.log(2)).map("{:.2f}".format),
            "next characters wrong": rows.error.map(percent),
        }
    )


def steps(points: pd.DataFrame) -> pd.DataFrame:
    """Steps to one goal, of `text_results.curves`."""
    searches = points.groupby("curve").replicates.max()
    return _by_size(points, points.steps.map("{:,.0f}".format).tolist(), searches)


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
            "off by": (rows.residual - 1).map(percent),
        }
    )


def over_main(rows: pd.DataFrame) -> pd.DataFrame:
    """Steps over the main method's, of `text_results.over_main`."""
    ends = map(ranged, rows.ratio, rows.ratio_low, rows.ratio_high)
    told = ["≥ " * bound + told for bound, told in zip(rows.bound, ends)]
    return _by_size(rows, told, rows.groupby("curve").n.max())


def layers(left: pd.DataFrame) -> pd.DataFrame:
    """What pruning leaves, of `text_results.left_of_layers`."""
    return pd.DataFrame(
        {
            "layer": left.kind,
            "weights": left["all"],
            "left": left.left.map(percent),
            "of all that is left": left.share.map(percent),
        }
    )


def widths(rows: pd.DataFrame) -> pd.DataFrame:
    """Models of several widths, of `text_results.widths`."""
    return pd.DataFrame(
        {
            "width": rows.width,
            **{f"B = {size}": rows[size].round().astype(int) for size in studies.TEXT_ENDS},
            "critical batch size": rows.critical.map(brief),
            "90 %": list(map(span, zip(rows.low, rows.high))),
        }
    )


def rates(best: pd.DataFrame, method: str) -> pd.DataFrame:
    """The range of best learning rates at every batch size, of `text_results.best_rates`."""
    ends = best.groupby("batch_size").rate.agg(["min", "max"])
    return pd.DataFrame(
        {
            "batch size (sequences)": ends.index,
            "tokens": CONTEXT * ends.index,
            f"best learning rate, {method}": [between(*pair) for pair in ends.to_numpy()],
        }
    )


def branches(noise: pd.DataFrame, run: branched.Run) -> pd.DataFrame:
    """Sequences to the next goal by batch size, a row per point and way to set the rate.

    Args:
        noise: noise scales of the run that branches.
        run: its branches.
    """
    rows = []
    for at in run.points["at"]:
        for way, found in run.ways.items():
            point = found[found["at"] == at].iloc[0]
            took = run.took(way, at).reindex(run.sizes)
            critical = ranged(point.critical, point.low, point.high)
            rows.append(
                {
                    "branches at step": f"{at:,}",
                    "next goal (nats)": f"{point.goal:g}",
                    "learning rate": way,
                    **took.rename(_size).map(brief),
                    "critical batch size": critical if point.decided else "undecided",
                    "noise scale": brief(float(branched.noise_at(noise, at))),
                }
            )
    return pd.DataFrame(rows)


def met_goals(trials: pd.DataFrame) -> pd.DataFrame:
    """How many trials met each goal, of `text_results.met_goals`."""
    met = text_results.met_goals(trials).rename(columns=_size)
    met.insert(0, "bits", [f"{goal / np.log(2):.2f}" for goal in met.index])
    return met.rename(index="{:g}".format).rename_axis("goal (nats)").reset_index()
