"""The noisy quadratic model, whose steps are known exactly: its curves, the results of the book's
searches and analysis on it, and where its rates bend.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.theory.experiments import SPECTRA
from chapters.theory.noisy_quadratic import Model, best, power_law, steps
from lib import forms
from lib.analysis import rates, scaling
from lib.claims import Finding, Group
from lib.claims.judging import kept
from lib.methods import spaces
from lib.wording import brief, percent, span, with_interval
from lib.workloads.catalogue import workload

DIMENSIONS, TRIALS, SEARCHES = 1000, 100, 3
FINE = np.r_[np.geomspace(1e-5, 1.9, 240), np.linspace(1.9, 1.999, 12)]  # learning rates
COARSE = np.r_[np.geomspace(1e-4, 1.9, 44), 1.95, 1.99]
SIZES = 2.0 ** np.arange(0, 17)
KINDS = {
    "SGD": {},
    "momentum": {"momenta": (0.0, 0.5, 0.9, 0.99)},
    "averaged SGD": {"averages": (None, 0.9, 0.99)},
}
CONDITIONS, NOISES = (10, 100, DIMENSIONS), (0.25, 1.0, 4.0, 16.0)


def curve(
    model: Model, batch_sizes: np.ndarray, rates: np.ndarray, **grid: tuple
) -> pd.DataFrame:
    """`best` as rows: batch_size, steps, rate, momentum; sizes that do not reach the target are
    left out.
    """
    fewest, points = best(model, batch_sizes, rates, **grid)
    rows = pd.DataFrame(points, columns=["rate", "momentum", "average"]).drop(columns="average")
    rows = rows.assign(batch_size=batch_sizes, steps=fewest)
    return rows[np.isfinite(rows.steps)].reset_index(drop=True)


def exact_curves() -> pd.DataFrame:
    """Exact curves of every kind, condition and noise: `curve`, kind, dimensions, noise."""
    parts = []
    for d in CONDITIONS:
        units = 2.0 ** np.arange(-4, 21, 1 if d == DIMENSIONS else 2)
        for kind, grid in KINDS.items():
            rows = curve(power_law(d), units, COARSE, **grid)
            parts.append(rows.assign(kind=kind, dimensions=d))
    curves = pd.concat(parts)
    # Four times the noise needs a batch four times as large
    shown = pd.concat(
        [curves.assign(noise=f"{s:g}", batch_size=curves.batch_size * s) for s in NOISES]
    )
    return shown[shown.batch_size.between(1, SIZES[-1])]


def searched(model: Model, replicate: int) -> pd.DataFrame:
    """The result of a search over TRIALS learning rates per batch size with SGD, as a table like
    those of `lib.records.results.read`.

    Rates come from the sequence that all searches of this book use, doubled so that they reach the
    edge of stability.
    """
    tried = 2 * spaces.draw("lee2021", "sgd", TRIALS, replicate=replicate)["learning_rate"]
    steps_needed = np.array([steps(model, SIZES, rate) for rate in tried])  # [trials, sizes]
    met = np.where(np.isinf(steps_needed), np.nan, steps_needed).T
    about = {"workload": "quadratic", "algorithm": "sgd", "pruning": "none", "sparsity": 0.0}
    about |= {"trials": TRIALS, "replicate": replicate, "split": 0, "goal": model.target}
    columns = {
        "batch_size": np.repeat(SIZES.astype(int), TRIALS),
        "steps": met.ravel(),
        f"steps@{model.target:g}": met.ravel(),
        "last_step": np.repeat(np.nanmax(met, axis=1, initial=0), TRIALS),
    }
    table = pd.DataFrame(columns).assign(status="complete", **about)
    return table[table.last_step > 0]


def compared(model: Model) -> pd.DataFrame:
    """A table of a model's searches beside its exact curve, a row per quantity."""
    truth = curve(model, SIZES, FINE)
    line = forms.fit(truth.batch_size, np.log(truth.steps))
    # Where the exact curve's elasticity is one half; this needs no fit
    sizes = np.log(truth.batch_size)
    slope = np.gradient(np.log(truth.steps), sizes)
    critical = np.exp(np.interp(-0.5, slope, sizes))
    trials = pd.concat([searched(model, replicate) for replicate in range(SEARCHES)])
    (searches,) = scaling.curves(trials).values()
    points = scaling.across_replicates(scaling.steps_to_result(trials))
    ratios = points.steps / points.batch_size.map(truth.set_index("batch_size").steps)
    c1, c2 = (effect.row().values() for effect in scaling.estimate(_log_line, searches))
    rows = {  # exact value, value from the searches, and the ends of its interval
        "steps over the fewest possible, median": (1, ratios.median(), np.nan, np.nan),
        "c₁ (examples)": (line.c1[0], *c1),
        "c₂ (steps)": (line.c2[0], *c2),
        "critical batch size": (critical, *scaling.critical(searches).row().values()),
    }
    shown = []
    for name, (exact, value, low, high) in rows.items():
        form = "{:,.3f}" if exact == 1 else "{:,.0f}"
        row = {"quantity": name, "exact curve": form.format(exact)}
        row["from the searches"] = form.format(value)
        shown.append(row | {"90 %": "—" if np.isnan(low) else span((round(low), round(high)))})
    return pd.DataFrame(shown)


def _log_line(points: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """ln of c1 and c2 [k, 2], from batch sizes [m] and ln K* [k, m]."""
    line = forms.fit(*points)
    return np.log(np.stack([line.c1, line.c2], 1).clip(1e-9))


# --- where rates bend -----------------------------------------------------------------------------

TRIED = 120  # learning rates
BEND_SIZES = SIZES[:15]
GOALS = (0.1, 0.01)  # of the first loss
POWERS = {"1/i^1.5": 1.5, "1/i": 1.0, "1/√i": 0.5, "flat": 0.0}


def bends(model: Model) -> dict[str, float]:
    """critical (C) and rho, by the page's definitions, of a model whose steps are known exactly,
    with the best of TRIED constant rates.
    """
    edge = 2 / model.curvature.max()
    tried = np.geomspace(1e-5 * edge, 0.999 * edge, TRIED)
    taken = np.array([steps(model, BEND_SIZES, rate) for rate in tried])  # [rates, sizes]
    fewest = taken.min(0)
    well = taken <= rates.WINDOW * fewest
    logs = pd.Series((np.log(tried)[:, None] * well).sum(0) / well.sum(0), BEND_SIZES)
    critical = rates.bend(pd.Series(np.log(fewest), BEND_SIZES))
    rho = float(np.exp(rates.bend(-logs) - critical))
    return {"critical": float(np.exp(critical)), "rho": rho}


def spectra() -> pd.DataFrame:
    """`bends`, a row per spectrum and goal: power laws, with noise equal to the curvature and
    w_i^2 = 1 at the start, and measured spectra, with measured noise and start.
    """
    return pd.DataFrame(kept("rate-spectra", lambda: _spectra().to_dict("list")))


def _spectra() -> pd.DataFrame:
    i = np.arange(1, DIMENSIONS + 1)
    cases = [(name, i**-power, i**-power, 1.0) for name, power in POWERS.items()]
    eigenvalues = SPECTRA.results()
    if len(eigenvalues):
        eigenvalues = eigenvalues[eigenvalues.curvature > 0].groupby(["workload", "steps"])
        for (name, step), rows in eigenvalues:
            h, noise, slope = rows[["curvature", "noise", "slope"]].to_numpy().T
            title = f"{workload(name).title.removesuffix(', easier goal')}, step {step:,}"
            cases.append((title, h, noise, (slope / h) ** 2))
    rows = []
    for title, h, noise, square in cases:
        for goal in GOALS:
            model = Model(h, noise, goal * Model(h, noise, 1.0, square).start, square)
            rows.append({"spectrum": title, "goal": goal, **bends(model)})
    return pd.DataFrame(rows)


def _group(spectrum: str, bends: Finding) -> Group | None:
    """The finding's group for the network of a measured spectrum."""
    names = {group.name.partition(", ")[0]: group for group in bends.measured}
    return names.get(spectrum.partition(", ")[0])


def agreement(spectra: pd.DataFrame, bends: Finding) -> dict:
    """How many values of rho in the model of a measured spectrum lie in the 90 % interval of the
    network's searches (inside), of how many (of).
    """
    pairs = [(rho, _group(name, bends)) for name, rho in zip(spectra.spectrum, spectra.rho)]
    inside = [group.low <= rho <= group.high for rho, group in pairs if group]
    return {"inside": sum(inside), "of": len(inside)}


def spectra_table(spectra: pd.DataFrame, bends: Finding) -> pd.DataFrame:
    """rho in the model at every goal, a row per spectrum, beside rho from the network's searches.

    Args:
        spectra: from `spectra`.
        bends: the finding on rho.
    """
    rows = []
    for spectrum, goals in spectra.groupby("spectrum", sort=False):
        group = _group(spectrum, bends)
        searches = with_interval(group.effect, group.low, group.high) if group else "—"
        ratios = {f"ρ, goal {percent(row.goal)}": brief(row.rho) for row in goals.itertuples()}
        rows.append({"spectrum": spectrum, **ratios, "ρ of its searches": searches})
    return pd.DataFrame(rows)
