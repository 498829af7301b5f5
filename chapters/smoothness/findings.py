"""The values of the sentences on smoothness and paths, the table, and the data of the figures."""

from __future__ import annotations

import pandas as pd

from chapters.smoothness import experiments, followed_paths, path_geometry
from chapters.smoothness.followed_paths import MEASURES
from lib.analysis import scaling
from lib.claims import Claim
from lib.claims.names import is_lee2021
from lib.page.shared_figures import arranged
from lib.probes import tracks
from lib.probes.tracks import PATH
from lib.wording import brief, named, percent
from lib.workloads.catalogue import workload


def panels(paths: pd.DataFrame) -> pd.DataFrame:
    """Data of the figure: dense and sparsest paths from `followed_paths.followed`, at one batch
    size per network, with panel, in the order of the panels, the papers' networks first.
    """
    size = paths.groupby("workload").batch_size.median().astype(int)
    drawn = paths[paths.batch_size == paths.workload.map(size)]
    drawn = drawn[drawn.sparsity.isin([0.0, drawn.sparsity.max()])]
    networks = sorted(size.index, key=lambda name: (not is_lee2021(name), name))
    names = {
        (name, method): f"{workload(name).title}, {named(method)}"
        for name in networks
        for method in ("sgd", "momentum")
    }
    return arranged(drawn, names)


def twins(paths: pd.DataFrame) -> pd.DataFrame:
    """Sparse paths over dense paths of the same trial: same hyperparameters and initialisation."""
    again = pd.concat([experiments.TWINS.results(), tracks.TRACKS["mnist"].results()])
    again = again.dropna(subset="lipschitz")
    points = pd.concat([paths, again]).drop_duplicates([*PATH, "step"])
    trial = [column for column in PATH if column != "sparsity"]
    return followed_paths.over_dense(again, points, trial)


def findings(paths: pd.DataFrame, claim: Claim) -> dict:
    """The values of the sentences on smoothness.

    Args:
        paths: from `followed_paths.followed`.
        claim: L7.
    """
    ratios = followed_paths.over_dense(paths, paths, ["workload", "algorithm", "batch_size"])
    most = ratios.groupby(["workload", "algorithm"]).sparsity.transform("max")
    theirs = ratios.workload.map(is_lee2021).astype(bool)
    digits = ratios[(ratios.sparsity == most) & ~theirs]
    effects = [group.effect for group in claim.measured if not group.theirs]
    return {
        "digits_smoother": int((digits.lipschitz <= 1).sum()),
        "digits_paths": len(digits),
        "ratio_least": min(effects, default=None),
        "ratio_most": max(effects, default=None),
    }


def directions(paths: pd.DataFrame) -> dict:
    """The values of the sentences on where gradients point; paths: from `path_geometry.by_path`."""
    point = [*path_geometry.CURVE, "batch_size"]
    means = paths.groupby(point)[["random", "batch_cosine"]].mean()
    chance = means.random / means.batch_cosine
    return {"chance": f"{percent(chance.min(), 0)} to {percent(chance.max(), 0)}"}


def titled(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with `curve`, the name of its row's network, method and sparsity."""
    pruned = frame.sparsity.map(lambda s: f", sparsity {s:g}" if s else "")
    return frame.assign(curve=scaling.curve_names(frame) + pruned)


def of_twins(pairs: pd.DataFrame) -> pd.DataFrame:
    """The page's table, from `twins`: pairs, rougher ones among them, medians of the measures."""
    titles = [workload(name).title for name in pairs.workload]
    rows = pairs.assign(network=titles, rougher=pairs.lipschitz > 1)
    groups = rows.groupby(["network", "sparsity"])
    counts = groups.rougher.agg(["size", "sum"]).set_axis(["pairs", "rougher in"], axis=1)
    medians = groups[[*MEASURES]].median().map(brief).rename(columns=MEASURES)
    return counts.join(medians).rename_axis(["sparse over dense", "sparsity"]).reset_index()
