"""The tables of the page on the geometry of paths."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from chapters.paths import path_geometry
from lib.analysis import scaling
from lib.claims import names
from lib.wording import brief, named, percent

CURVE = path_geometry.CURVE
COSINES = {
    "batch_size": "batch size",
    "steps": "steps",
    "cosine": "full gradient",
    "full_random": "due to chance",
    "batch_cosine": "batch gradient",
    "random": "due to chance ",
    "twin_batch_cosine": "to the other end",
    "twin_expected": "predicted from noise",
}
SIGNS = {
    "batch_cosine": "batch gradient",
    "random": "random gradients",
    "twin_batch_cosine": "to the other end",
    "cosine": "full gradient",
}
TOLD = {
    "batch_cosine": "path’s own end",
    "random": "random gradients",
    "twin_batch_cosine": "end of another order",
    "noise_scale": "gradient noise scale",
    "critical": "steps to result",
}
QUANTITIES = {"secant": "restricted secant μ", "bound": "error bound L"}


whole = functools.partial(percent, places=0)  # a share in whole percent


def titled(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with `curve`, the name of its row's network, method and sparsity."""
    pruned = frame.sparsity.map(lambda s: f", sparsity {s:g}" if s else "")
    return frame.assign(curve=scaling.curve_names(frame) + pruned)


def of(frame: pd.DataFrame, curve: str) -> pd.DataFrame:
    """The rows of one curve, by its title."""
    return frame[titled(frame).curve == curve]


def cosines(paths: pd.DataFrame) -> pd.DataFrame:
    """Mean cosines of one curve's paths at every batch size."""
    means = paths.groupby("batch_size").mean(numeric_only=True).reset_index()
    shown = means.assign(steps=means.steps.map("{:.0f}".format))
    for name in list(COSINES)[2:]:
        shown[name] = shown[name].map("{:.2f}".format)
    return shown[[*COSINES]].rename(columns=COSINES)


def signs(paths: pd.DataFrame) -> pd.DataFrame:
    """Shares of steps with a positive cosine, a row per network and method, at the batch size where
    the batch's gradient has the fewest.
    """
    columns = [f"{name}_positive" for name in SIGNS]
    by = paths.groupby([*CURVE[:2], "batch_size"], sort=False)[columns].mean().reset_index()
    least = by.groupby(CURVE[:2], sort=False).batch_cosine_positive.idxmin()
    worst = by.loc[least]
    return pd.DataFrame(
        {
            "network and method": scaling.curve_names(worst),
            "batch size": worst.batch_size.map("{:,}".format),
            **{title: worst[f"{name}_positive"].map(whole) for name, title in SIGNS.items()},
        }
    )


def along(points: pd.DataFrame, paths: pd.DataFrame) -> pd.DataFrame:
    """`path_geometry.along` of curves of three batch sizes or more, with curve and kind."""
    several = paths.groupby(CURVE).batch_size.transform("nunique") >= path_geometry.LEAST
    curves = paths[several][CURVE].drop_duplicates()
    steady = titled(path_geometry.along(points.merge(curves)))
    return steady.assign(kind=steady.quantity.map(QUANTITIES))


def scales(told: pd.DataFrame) -> pd.DataFrame:
    """Rows of `path_figures.scales`, from `path_geometry.beside_steps`."""
    titles = told.workload.map(names.title)
    levels = told.sparsity.map(lambda s: f", sparsity {s:g}" if s else ", dense")
    return told.assign(
        kind=told.kind.map(TOLD), method=told.algorithm.map(named), row=titles + levels
    ).rename(columns={"low": "scale_low", "high": "scale_high"})


def medians(told: pd.DataFrame) -> pd.DataFrame:
    """How far each scale is off the critical batch size, and how K cos² varies, by method."""
    by = told[told.kind != "critical"].groupby(["kind", "algorithm"])[["off", "product"]].median()
    wide = by.unstack().map(lambda value: brief(float(value))).reindex(list(TOLD)[:-1])
    words = {"off": "off by a factor of", "product": "K cos² varies"}
    wide.columns = [f"{words[column]}, {named(method)}" for column, method in wide.columns]
    return wide.rename(index=TOLD).rename_axis("estimate from").reset_index()


def shares_of_chance(paths: pd.DataFrame) -> pd.DataFrame:
    """By batch size, the share of a cosine that chance makes: full gradient, batch's gradient."""
    columns = ["cosine", "full_random", "batch_cosine", "random"]
    means = paths.groupby("batch_size")[columns].mean()
    return pd.DataFrame(
        {"full": means.full_random / means.cosine, "batch": means.random / means.batch_cosine}
    )


def walks(points: pd.DataFrame) -> tuple[float, float]:
    """The cosine of random walks over 1 / sqrt(steps left), and over what step lengths predict:
    medians.
    """
    root = points.walk * np.sqrt(points.left)
    return float(root.median()), float((points.walk / points.walk_theory).median())
