"""The exact curves of the noisy quadratic model, the results of searches, and the values of the
page's sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.noisy_quadratic import searches as searches_of
from lib.analysis import noisy_quadratic, scaling
from lib.analysis.noisy_quadratic import Model
from lib.probes import tracks
from lib.wording import percent, span

FINE = np.r_[np.geomspace(1e-5, 1.9, 240), np.linspace(1.9, 1.999, 12)]  # learning rates
COARSE = np.r_[np.geomspace(1e-4, 1.9, 44), 1.95, 1.99]
KINDS = {
    "SGD": {},
    "momentum": {"momenta": (0.0, 0.5, 0.9, 0.99)},
    "averaged SGD": {"averages": (None, 0.9, 0.99)},
}
NOISES = (0.25, 1.0, 4.0, 16.0)
SIZES = 2.0 ** np.arange(0, 17)


@dataclass(frozen=True)
class Compared:
    """Searches of a model beside its exact curve.

    Attributes:
        truth: the exact curve, with its fit c1/B + c2 in `fit`.
        measured: what the searches find, of `scaling.across_replicates`.
        quantities: a row per constant: name, title, exact, value, low, high, held.
    """

    truth: pd.DataFrame
    measured: pd.DataFrame
    quantities: pd.DataFrame


def compare(model: Model, trials: int, replicates: int) -> Compared:
    """Search the model with random learning rates, and compute its exact curve."""
    searches = [searches_of.searched(model, SIZES, trials, r) for r in range(replicates)]
    table = pd.concat(searches, ignore_index=True)
    truth = searches_of.curve(model, SIZES, FINE)
    exact_fit = scaling.fit(truth.batch_size, np.log(truth.steps))
    fit = np.exp(exact_fit.log_steps(truth.batch_size.to_numpy())[0])
    curves = scaling.curves(table)
    ends = scaling.regimes(truth)
    exact = {
        "perfect_end": ("perfect scaling ends", ends.perfect_end),
        "useful_end": ("floor begins", ends.useful_end),
        "c1": ("c₁ (examples)", exact_fit.c1[0]),
        "c2": ("c₂ (steps)", exact_fit.c2[0]),
        "critical": ("critical batch size: elasticity ½", critical_of(truth)),
    }
    measured = scaling.across_replicates(scaling.steps_to_result(table))
    found = _found(measured, *curves.values())
    rows = [(name, *about, *found[name]) for name, about in exact.items()]
    columns = ["name", "title", "exact", "value", "low", "high"]
    quantities = pd.DataFrame(rows, columns=columns)
    held = quantities.exact.between(quantities.low, quantities.high)
    return Compared(truth.assign(fit=fit), measured, quantities.assign(held=held))


def critical_of(truth: pd.DataFrame) -> float:
    """The batch size at which the exact curve's elasticity is one half; this needs no fit."""
    slope = np.gradient(np.log(truth.steps), np.log(truth.batch_size))
    return float(np.exp(np.interp(-0.5, slope, np.log(truth.batch_size))))


def _found(points: pd.DataFrame, curve: scaling.Curve) -> dict[str, tuple]:
    """Each constant that the searches find, with the ends of its interval."""
    c1, c2 = scaling.estimate(_log_line, curve)
    effects = {"c1": c1, "c2": c2, "critical": scaling.critical(curve)}
    found = {name: tuple(effect.row().values()) for name, effect in effects.items()}
    ends = scaling.regimes(points)
    _, perfect, useful = scaling.regime_ends(curve.sizes, scaling.draws(curve).to_numpy())
    found["perfect_end"] = ends.perfect_end, *scaling.span_of(perfect)
    found["useful_end"] = ends.useful_end, *scaling.span_of(useful)
    return found


def _log_line(own: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """ln of c1 and c2 [k, 2] of batch sizes and ln K* [k, m]."""
    line = scaling.fit(*own)
    return np.log(np.stack([line.c1, line.c2], 1).clip(1e-9))


def constants(quantities: pd.DataFrame) -> pd.DataFrame:
    """The table of constants: exact, found, and whether the interval contains the exact one."""
    return pd.DataFrame(
        {
            "quantity": quantities.title,
            "exact curve": quantities.exact.map("{:,.0f}".format),
            "from the search": quantities.value.map("{:,.0f}".format),
            "90 %": [span(ends) for ends in zip(quantities.low.round(), quantities.high.round())],
            "contains it": quantities.held.map({True: "yes", False: "no"}),
        }
    )


def exact_curves(dimensions: int, noise: float, target: float) -> pd.DataFrame:
    """Exact curves of every kind, for some conditions and noises beside those asked for."""
    parts = []
    for d in sorted({10, 100, dimensions}):
        world = noisy_quadratic.power_law(d, 1.0, target)
        units = 2.0 ** np.arange(-4, 21, 1 if d == dimensions else 2)
        for kind, grid in KINDS.items():
            curve = searches_of.curve(world, units, COARSE, **grid)
            parts.append(curve.assign(kind=kind, dimensions=d))
    curves = pd.concat(parts)
    scaled = [
        curves.assign(noise=f"{s:g}", batch_size=curves.batch_size * s)
        for s in sorted({*NOISES, noise})
    ]
    shown = pd.concat(scaled)
    return shown[shown.batch_size.between(1, 2.0**16)]


def findings(
    model: Model, compared: Compared, drawn: pd.DataFrame, trials: int, replicates: int
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        model: the model asked for.
        compared: of `compare`.
        drawn: of `exact_curves`, those of this model.
        trials: random learning rates per batch size.
        replicates: independent searches.
    """
    truth = compared.truth
    exact = truth.set_index("batch_size").steps
    excess = float((compared.measured.set_index("batch_size").steps / exact).median())
    critical = compared.quantities.set_index("name").loc["critical"]
    off = max(critical.value / critical.exact, critical.exact / critical.value)
    held = compared.quantities.held
    return {
        "close": bool(max(excess, off) < 1.25),
        "excess": percent(max(0, excess - 1)),
        "critical_off": percent(off - 1),
        "trials": trials,
        "several_searches": replicates > 1,
        "searches": replicates,
        "directions": len(model.curvature),
        "all_held": bool(held.all()),
        "held": int(held.sum()),
        "misfit": percent(np.abs(truth.fit / truth.steps - 1).max(), 0),
        **_beside_sgd(drawn),
        **_noise_scale(model, truth),
    }


def _beside_sgd(drawn: pd.DataFrame) -> dict[str, object]:
    """What momentum and averaging save, and how SGD's best rate grows."""
    steps = drawn.pivot_table(index="batch_size", columns="kind", values="steps").dropna()
    share = steps.div(steps["SGD"], axis=0)
    small, large = share.iloc[0], share.iloc[-1]
    saved = 1 - share["averaged SGD"]
    sgd = drawn[drawn.kind == "SGD"].sort_values("batch_size")
    return {
        "momentum_helps_large": bool(small["momentum"] > 1.1 * large["momentum"]),
        "momentum_small": percent(small["momentum"]),
        "momentum_large": percent(large["momentum"]),
        "averaging_small": percent(saved.iloc[0]),
        "averaging_large": percent(saved.iloc[-1]),
        "averaging_most": percent(saved.max()),
        "averaging_most_at": int(saved.idxmax()),
        "rate_small": float(sgd.rate.iloc[0]),
        "rate_large": float(sgd.rate.iloc[-1]),
    }


def _noise_scale(model: Model, truth: pd.DataFrame) -> dict[str, object]:
    """By what factor the gradient's noise misses the critical batch size, along smaller batches and
    at worst.
    """
    paths = [
        searches_of.path(model, row.batch_size, row.rate, row.steps) for row in truth.itertuples()
    ]
    followed = tracks.noise_scales(pd.concat(paths))
    critical = critical_of(truth)
    factors = np.exp(np.log(followed[["noise_scale", "apart"]] / critical).abs())
    small = factors[followed.batch_size < critical]
    below, worst = small.max() if len(small) else factors.min(), factors.max()
    return {
        "noise_off": float(below.noise_scale),
        "noise_apart_off": float(below.apart),
        "noise_worst": float(worst.noise_scale),
        "noise_apart_worst": float(worst.apart),
    }
