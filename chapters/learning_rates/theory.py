"""What the noisy quadratic model says of rho from a spectrum alone, and what gradient flow says of
rates far below the best.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.learning_rates import searched
from chapters.learning_rates.experiments import FLOWS, SPECTRA
from lib.analysis import rates, scaling
from lib.analysis.noisy_quadratic import Model, steps
from lib.claims.judging import kept
from lib.records import results
from lib.studies.study import Study
from lib.workloads.catalogue import workload

DIMENSIONS, TRIED = 1000, 120  # eigenvalues, and learning rates
SIZES = 2.0 ** np.arange(0, 15)
GOALS = (0.1, 0.01)  # of the first loss
POWERS = {"1/i^1.5": 1.5, "1/i": 1.0, "1/√i": 0.5, "flat": 0.0}
FAR = 0.15, 0.3  # of the best rate, between which is far below


def bends(model: Model) -> dict[str, float]:
    """What the definitions of the page make of a model whose steps are known exactly, with the best
    of TRIED constant rates: critical (C), rho, exponent, rms (of the saturating rule's ln rate),
    falls (K* times the best rate at the smallest batch size over that at the largest).
    """
    edge = 2 / model.curvature.max()
    tried = np.geomspace(1e-5 * edge, 0.999 * edge, TRIED)
    needed = np.array([steps(model, SIZES, rate) for rate in tried])  # [rates, sizes]
    fewest = needed.min(0)
    well = needed <= rates.WINDOW * fewest
    best = pd.Series((np.log(tried)[:, None] * well).sum(0) / well.sum(0), SIZES)
    taken = pd.Series(np.log(fewest), SIZES)
    free = rates.fit("free exponent", SIZES, best.to_numpy())
    rest = best - rates.fit("saturating", SIZES, best.to_numpy()).log_rates(SIZES)
    critical = rates.bend(taken)
    return {
        "critical": float(np.exp(critical)),
        "rho": float(np.exp(rates.bend(-best) - critical)),
        "exponent": free.parameters[1],
        "rms": float(rest.std(ddof=0)),
        "falls": float(np.exp((best + taken).iloc[0] - (best + taken).iloc[-1])),
    }


def spectra() -> pd.DataFrame:
    """`bends`, a row per spectrum and goal (spectrum, workload, goal): power laws with noise equal to the
    curvature and a start of one, and those measured, likewise and with their own noise and start.
    """
    return pd.DataFrame(kept("rate-spectra", lambda: _spectra().to_dict("list")))


def _spectra() -> pd.DataFrame:
    i = np.arange(1, DIMENSIONS + 1)
    cases = [(name, "", i**-power, i**-power, 1.0) for name, power in POWERS.items()]
    measured = SPECTRA.results()
    for (name, step), own in measured.groupby(["workload", "steps"]) if len(measured) else ():
        h, noise, slope = own[own.curvature > 0][["curvature", "noise", "slope"]].to_numpy().T
        title = f"{workload(name).title.removesuffix(', easier goal')}, step {step:,}"
        cases.append((title, name, h, h, 1.0))
        cases.append((f"{title}, its own noise", name, h, noise, (slope / h) ** 2))
    rows = []
    for title, name, h, noise, square in cases:
        for goal in GOALS:
            model = Model(h, noise, goal * Model(h, noise, 1.0, square).start, square)
            rows.append({"spectrum": title, "workload": name, "goal": goal, **bends(model)})
    return pd.DataFrame(rows)


def far_below() -> pd.DataFrame:
    """Steps times rate of dense SGD's trials at rates of FAR of the best, over the time that
    gradient flow takes to the easiest goal: a row per network, search and batch size (workload,
    split, batch_size), over (of the median trial; NaN where it had not met the goal), trials.
    """
    return pd.DataFrame(kept("rate-flow", lambda: _far_below().to_dict("list")))


def _far_below() -> pd.DataFrame:
    flows, rows = FLOWS.results(), []
    cells = [c for c in searched.planned() if c.algorithm == "sgd" and not c.sparsity]
    trials = results.read(Study("", "", cells), without=scaling.WITHIN_BUDGETS)
    easiest = searched.at_goals(trials, searched.EASIEST) if len(trials) else trials
    laws = searched.laws(easiest, cells) if len(trials) else {}
    for name, own in flows.groupby("workload") if len(flows) else ():
        goal = max(workload(name).goals)
        times = own[own.goal == goal].groupby("split").time.median()
        law = laws.get((name, "sgd", "connection-sensitivity", 0.0))
        for (split, size), (drawn, taken, _) in law.trials.items() if law else ():
            low, high = law.rates.at[split, size] + np.log(FAR)
            far = (low < drawn) & (drawn < high)
            # What had not met the goal goes further
            travelled = np.exp(np.median(np.where(np.isnan(taken), np.inf, drawn + taken)[far]))
            over = travelled / times.get(split, np.nan)
            over = float(over) if np.isfinite(over) else np.nan
            rows.append((name, int(split), int(size), over, int(far.sum())))
    return pd.DataFrame(rows, columns=["workload", "split", "batch_size", "over", "trials"])
