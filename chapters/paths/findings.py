"""The values of the sentences on the geometry of paths."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from chapters.paths import path_geometry
from lib import claims
from lib.analysis import scaling
from lib.claims import Claim
from lib.claims.names import title
from lib.studies import plans
from lib.wording import between, named, percent

whole = functools.partial(percent, places=0)  # a share in whole percent


def findings(points: pd.DataFrame, paths: pd.DataFrame, judged: Claim) -> dict:
    """All values of the page's sentences.

    Args:
        points: of `experiments`.
        paths: of `path_geometry.by_path`.
        judged: the claim on paths.
    """
    digits = on_digits(paths)
    shares = path_geometry.shares_of_chance(digits)
    least, most = int(shares.index.min()), int(shares.index.max())
    small = digits[digits.batch_size == least]
    full = small.groupby(path_geometry.CURVE).cosine.mean()
    pruned = small.sparsity > 0
    on_dense, on_pruned = map(path_geometry.shares_of_chance, (small[~pruned], small[pruned]))
    return {
        "paths": len(paths),
        "networks": [title(name) for name in paths.workload.unique()],
        "methods": [named(name) for name in paths.algorithm.unique()],
        "level": f"{paths.sparsity.max():g}",
        "least": least,
        "most": most,
        "chance": whole(shares.batch[least]),
        "chance_large": whole(shares.batch[most]),
        "chance_full": whole(shares.full[least]),
        "chance_full_large": whole(shares.full[most]),
        "chance_dense": whole(on_dense.batch[least]),
        "chance_pruned": whole(on_pruned.batch[least]),
        "full_cosine": between(*full),
        "walk_root": f"{_walks(on_digits(points)):.2f}",
        "positive": _positive(small),
        "limit": int(judged.threshold),
        "met": len(judged.decided(claims.FOR)),
        "missed": len(judged.decided(claims.AGAINST)),
        "judged": len(judged.groups),
        "undrawn": len(judged.groups) - len(path_geometry.spreads(digits)),
    }


def on_digits(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows on digits, where every network has all batch sizes."""
    return frame[frame.workload.isin(plans.DIGITS)]


def titled(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with `curve`, the name of its row's network, method and sparsity."""
    pruned = frame.sparsity.map(lambda s: f", sparsity {s:g}" if s else "")
    return frame.assign(curve=scaling.curve_names(frame) + pruned)


def _walks(points: pd.DataFrame) -> float:
    """The cosine of random walks with the step lengths of SGD, over 1 / sqrt(steps left): median."""
    plain = path_geometry.middle(points[points.algorithm == "sgd"])
    return float((plain.walk * np.sqrt(plain.left)).median())


def _positive(ends: pd.DataFrame) -> list[str]:
    """On each network, shares of gradients with a positive cosine: real and random ones."""
    columns = ["batch_cosine_positive", "random_positive"]
    by = ends.groupby("workload", sort=False)[columns].mean().itertuples()
    return [
        f"{whole(real)} of batch gradients and {whole(random)} of random ones on {title(name)}"
        for name, real, random in by
    ]
