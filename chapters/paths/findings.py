"""The values of the sentences on the geometry of paths, and the"""

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
from lib.wording import brief, named, percent

STEADY = 1.25  # times as far off as real gradients: random ones still agree as well


def findings(
    points: pd.DataFrame, paths: pd.DataFrame, told: pd.DataFrame, chosen, judged: Claim
) -> dict:
    """All values of the page's sentences.

    Args:
        points: of `experiments`.
        paths: of `path_geometry.by_path`.
        told: of `path_geometry.beside_steps`, of the networks on digits.
        chosen: the page's parameters.
        judged: the claim on paths.
    """
    digits = paths[paths.workload.isin(plans.DIGITS)]
    keys = [getattr(chosen, key) for key in CURVE]
    own = paths[(paths[CURVE] == keys).all(axis=1)]
    shares = shares_of_chance(digits)
    least = int(shares.index.min())
    most = int(shares.index.max())
    twins = (digits.twin_batch_cosine / digits.twin_expected).groupby(digits.batch_size).median()
    ends = digits[digits.batch_size == least]
    return {
        "curve": titled(own).curve.iloc[0],
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
        "mostly_chance": bool(shares.batch[least] > 0.5),
        "twins_off": f"{twins.median():.2f}",
        "own_off": f"{(ends.batch_cosine / ends.expected).median():.2f}",
        **_walks(points),
        "positive": _positive(ends),
        **_spreads(paths, own, chosen, judged),
        **_scales(told, digits),
    }


def _walks(points: pd.DataFrame) -> dict:
    """Random walks with the step lengths of SGD on digits."""
    inner = path_geometry.middle(points)
    plain = inner[inner.workload.isin(plans.DIGITS) & (inner.algorithm == "sgd")]
    root, theory = walks(plain)
    return {"walk_root": f"{root:.2f}", "walk_theory": f"{theory:.2f}"}


def _positive(ends: pd.DataFrame) -> list[str]:
    """On each network, shares of gradients with a positive cosine: real and random ones."""
    columns = ["batch_cosine_positive", "random_positive"]
    by = ends.groupby("workload", sort=False)[columns].mean().itertuples()
    return [
        f"{whole(real)} of batch gradients and {whole(random)} of random ones on {title(name)}"
        for name, real, random in by
    ]


def _spreads(paths: pd.DataFrame, own: pd.DataFrame, chosen, judged: Claim) -> dict:
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


def _scales(told: pd.DataFrame, digits: pd.DataFrame) -> dict:
    """How well cosines predict the critical batch size."""
    off, product = (told.groupby("kind")[column].median() for column in ("off", "product"))
    lengths = digits.groupby([*CURVE, "batch_size"]).steps.mean().groupby(CURVE)
    fair = off["twin_batch_cosine"]
    return {
        "alike": bool(off["random"] <= STEADY * off["batch_cosine"]),
        "random_off": float(off["random"]),
        "real_off": float(off["batch_cosine"]),
        "steps_vary": float((lengths.max() / lengths.min()).median()),
        "fair": float(fair),
        "fair_varies": float(product["twin_batch_cosine"]),
        "noise_better": bool(fair > off["noise_scale"]),
        "noise_off": float(off["noise_scale"]),
    }


# --- tables ---------------------------------------------------------------------------------------


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
    titles = told.workload.map(title)
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
