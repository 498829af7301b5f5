"""What the noisy quadratic model says, from a spectrum alone, of where rates bend."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.theory.experiments import SPECTRA
from lib.analysis import rates
from lib.analysis.noisy_quadratic import Model, steps
from lib.claims import Claim
from lib.claims.judging import kept
from lib.wording import between, brief, percent, with_interval
from lib.workloads.catalogue import workload

DIMENSIONS, TRIED = 1000, 120  # eigenvalues, and learning rates
SIZES = 2.0 ** np.arange(0, 15)
GOALS = (0.1, 0.01)  # of the first loss
POWERS = {"1/i^1.5": 1.5, "1/i": 1.0, "1/√i": 0.5, "flat": 0.0}


def bends(model: Model) -> dict[str, float]:
    """What the definitions of the page make of a model whose steps are known exactly, with the best
    of TRIED constant rates: critical (C), rho, exponent, rms (of the saturating rule's ln rate),
    falls (K* times the best rate at the smallest batch size over that at the largest).
    """
    edge = 2 / model.curvature.max()
    tried = np.geomspace(1e-5 * edge, 0.999 * edge, TRIED)
    taken = np.array([steps(model, SIZES, rate) for rate in tried])  # [rates, sizes]
    fewest = taken.min(0)
    well = taken <= rates.WINDOW * fewest
    logs = pd.Series((np.log(tried)[:, None] * well).sum(0) / well.sum(0), SIZES)
    log_steps = pd.Series(np.log(fewest), SIZES)
    product = logs + log_steps
    free = rates.fit("free exponent", SIZES, logs.to_numpy())
    off = logs - rates.fit("saturating", SIZES, logs.to_numpy()).log_rates(SIZES)
    critical = rates.bend(log_steps)
    return {
        "critical": float(np.exp(critical)),
        "rho": float(np.exp(rates.bend(-logs) - critical)),
        "exponent": free.parameters[1],
        "rms": float(off.std(ddof=0)),
        "falls": float(np.exp(product.iloc[0] - product.iloc[-1])),
    }


def spectra() -> pd.DataFrame:
    """`bends`, a row per spectrum and goal (spectrum, workload, goal): power laws with noise equal to
    the curvature and a start of one, and those measured, likewise and with their own noise and start.
    """
    return pd.DataFrame(kept("rate-spectra", lambda: _spectra().to_dict("list")))


def _spectra() -> pd.DataFrame:
    i = np.arange(1, DIMENSIONS + 1)
    cases = [(name, "", i**-power, i**-power, 1.0) for name, power in POWERS.items()]
    eigenvalues = SPECTRA.results()
    if len(eigenvalues):
        eigenvalues = eigenvalues[eigenvalues.curvature > 0].groupby(["workload", "steps"])
        for (name, step), rows in eigenvalues:
            h, noise, slope = rows[["curvature", "noise", "slope"]].to_numpy().T
            title = f"{workload(name).title.removesuffix(', easier goal')}, step {step:,}"
            cases.append((title, name, h, h, 1.0))
            cases.append((f"{title}, its own noise", name, h, noise, (slope / h) ** 2))
    rows = []
    for title, name, h, noise, square in cases:
        for goal in GOALS:
            model = Model(h, noise, goal * Model(h, noise, 1.0, square).start, square)
            rows.append({"spectrum": title, "workload": name, "goal": goal, **bends(model)})
    return pd.DataFrame(rows)


def table(spectra: pd.DataFrame, bends: Claim) -> pd.DataFrame:
    """rho in the model at every goal, a row per spectrum, beside that of the network's searches.

    Args:
        spectra: of `spectra`.
        bends: the claim that rho is one.
    """
    groups = {group.name.partition(", ")[0]: group for group in bends.measured}
    rows = []
    for spectrum, goals in spectra.groupby("spectrum", sort=False):
        group = groups.get(spectrum.partition(", ")[0])
        searches = with_interval(group.effect, group.low, group.high) if group else "—"
        ratios = {f"ρ, goal {percent(row.goal)}": brief(row.rho) for row in goals.itertuples()}
        ends = {"exponent": between(*goals.exponent), "K*η* falls": between(*goals.falls)}
        rows.append({"spectrum": spectrum, **ratios, **ends, "ρ of its searches": searches})
    return pd.DataFrame(rows)
