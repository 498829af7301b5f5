"""The values of the sentences on the geometry of paths."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.paths import path_geometry
from chapters.paths import path_tables as tables
from lib import claims
from lib.claims import Claim
from lib.claims.names import title
from lib.studies import plans
from lib.wording import named

STEADY = 1.25  # times as far off as real gradients: random ones still agree as well


def findings(
    points: pd.DataFrame, paths: pd.DataFrame, told: pd.DataFrame, chosen, judged: Claim
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        points: of `experiments`.
        paths: of `path_geometry.by_path`.
        told: of `path_geometry.beside_steps`, of the networks on digits.
        chosen: the page's parameters.
        judged: the claim on paths.
    """
    digits = paths[paths.workload.isin(plans.DIGITS)]
    keys = [getattr(chosen, key) for key in tables.CURVE]
    own = paths[(paths[tables.CURVE] == keys).all(axis=1)]
    shares = tables.shares_of_chance(digits)
    least, most = int(shares.index.min()), int(shares.index.max())
    twins = (digits.twin_batch_cosine / digits.twin_expected).groupby(digits.batch_size).median()
    ends = digits[digits.batch_size == least]
    return {
        "curve": tables.titled(own).curve.iloc[0],
        "paths": len(paths),
        "networks": [title(name) for name in paths.workload.unique()],
        "methods": [named(name) for name in paths.algorithm.unique()],
        "level": f"{paths.sparsity.max():g}",
        "least": least,
        "most": most,
        "chance": tables.whole(shares.batch[least]),
        "chance_large": tables.whole(shares.batch[most]),
        "chance_full": tables.whole(shares.full[least]),
        "mostly_chance": bool(shares.batch[least] > 0.5),
        "twins_off": f"{twins.median():.2f}",
        "own_off": f"{(ends.batch_cosine / ends.expected).median():.2f}",
        **_walks(points),
        "positive": _positive(ends),
        **_spreads(paths, own, chosen, judged),
        **_scales(told, digits),
    }


def _walks(points: pd.DataFrame) -> dict[str, object]:
    """Random walks with the step lengths of SGD on digits."""
    inner = path_geometry.middle(points)
    plain = inner[inner.workload.isin(plans.DIGITS) & (inner.algorithm == "sgd")]
    root, theory = tables.walks(plain)
    return {"walk_root": f"{root:.2f}", "walk_theory": f"{theory:.2f}"}


def _positive(ends: pd.DataFrame) -> list[str]:
    """On each network, shares of gradients with a positive cosine: real and random ones."""
    columns = ["batch_cosine_positive", "random_positive"]
    by = ends.groupby("workload", sort=False)[columns].mean().itertuples()
    return [
        f"{tables.whole(real)} of batch gradients and {tables.whole(random)} of random ones on "
        f"{title(name)}"
        for name, real, random in by
    ]


def _spreads(paths: pd.DataFrame, own: pd.DataFrame, chosen, judged: Claim) -> dict[str, object]:
    """How steady the two quantities are along a path."""
    found = path_geometry.spreads(paths)
    mine = (found.workload == chosen.workload) & (found.algorithm == chosen.algorithm)
    effects = found[mine].set_index("quantity").effect
    by_size = own.groupby("batch_size").bound_spread.median()
    return {
        "spread_network": title(chosen.workload),
        "spread_method": named(chosen.algorithm),
        **{
            f"{key}_varies": float(np.exp(effects[name].value))
            for key, name in path_geometry.QUANTITIES.items()
        },
        "walk_bound": path_geometry.spread_of_walk(-0.5),
        "walk_secant": path_geometry.spread_of_walk(-1),
        "limit": int(judged.threshold),
        "met": len(judged.decided(claims.FOR)),
        "missed": len(judged.decided(claims.AGAINST)),
        "judged": len(judged.groups),
        "curve_least": int(by_size.index[0]),
        "curve_most": int(by_size.index[-1]),
        "bound_small": float(by_size.iloc[0]),
        "bound_large": float(by_size.iloc[-1]),
    }


def _scales(told: pd.DataFrame, digits: pd.DataFrame) -> dict[str, object]:
    """How well cosines predict the critical batch size."""
    off, product = (told.groupby("kind")[column].median() for column in ("off", "product"))
    lengths = digits.groupby([*tables.CURVE, "batch_size"]).steps.mean().groupby(tables.CURVE)
    fair = off["twin_batch_cosine"]
    return {
        "alike": bool(off["random"] <= STEADY * off["batch_cosine"]),
        "steps_vary": float((lengths.max() / lengths.min()).median()),
        "fair": float(fair),
        "fair_varies": float(product["twin_batch_cosine"]),
        "noise_better": bool(fair > off["noise_scale"]),
        "noise_off": float(off["noise_scale"]),
    }
