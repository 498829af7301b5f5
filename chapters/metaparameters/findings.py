"""What the page on learning rates says, as numbers and words."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd

from chapters.metaparameters import fixed_budgets
from chapters.metaparameters import rate_tables as tables
from lib.claims import Claim, names
from lib.methods import spaces
from lib.page import boxes, told
from lib.wording import between, named, percent
from lib.workloads import catalogue


def findings(data: SimpleNamespace, chosen, rises: Claim) -> dict:
    """All values of the page's sentences.

    Args:
        data: what the page is written from: trials (of the page's searches), rates (of
            `rate_tables.best_rates`), slopes (of `rate_tables.growths`), start (the batch size
            where the rules start), costs (of `rate_rules.costs`, by the page's method), adam (the
            same with Adam), left (how many settings for Adam are not retrained yet), maps (of
            `fixed_budgets.maps`, of the page's network and of others) and edges (of
            `rate_tables.at_edges`).
        chosen: the page's parameters.
        rises: the claim that the best rate rises.
    """
    work = catalogue.workload(chosen.workload)
    curve = names.curve_title((chosen.workload, chosen.algorithm))
    groups = {g.name: g for g in rises.groups if chosen.sparsity == 0}
    known = groups.get(curve)
    seen = [catalogue.workload(name) for name in data.rates.workload.unique()]
    space = spaces.SPACES[work.space]
    crowded = data.edges.groupby(tables.CURVE).marked.any()
    return told.plain(
        {
            "network": work.title,
            "method": named(chosen.algorithm),
            "grows": known is not None and known.low > 1,
            "factor": known and known.effect,
            "factor_low": known and known.low,
            "factor_high": known and known.high,
            "factor_16": known and known.effect**4,
            "searches": known.n if known else 0,
            "start": data.start,
            "repeats": chosen.repeats,
            "networks": len(seen),
            "data": list(dict.fromkeys(w.title.rpartition(" on ")[2].split(",")[0] for w in seen)),
            "trials": boxes.trials(data.trials),
            "largest": max((w.train_size for w in seen), default=work.train_size),
            "rate_low": f"{space['learning_rate'].low:g}",
            "rate_high": f"{space['learning_rate'].high:g}",
            "momentum_low": f"{space['momentum'].low:g}",
            "momentum_high": f"{space['momentum'].high:g}",
            "curves": len(crowded),
            "crowded": crowded.sum(),
            **_growths(data.slopes),
            **_rules(data.costs, chosen.workload),
            **_adam(data.adam, data.left),
            **_shares(data.maps, work),
        }
    )


def _growths(slopes: pd.DataFrame) -> dict:
    """The least and the largest growth with a method, over networks."""
    wanted = {"sgd": ["SGD"], "momentum": ["momentum"], "momenta": ["momentum", "Nesterov"]}
    wanted["adam_growth"] = ["Adam"]
    effects = {k: slopes.effect[slopes.method.isin(methods)] for k, methods in wanted.items()}
    single = int((slopes.n == 1).sum())
    return {k: between(*v) for k, v in effects.items()} | {"slopes": len(slopes), "single": single}


def _rules(costs: pd.DataFrame, workload: str) -> dict:
    """What following a rule costs, and what a winner's luck is worth."""
    own = costs[(costs.workload == workload) & costs.base.astype(bool)]
    luck = own.over[own.rule == "no change"].max()
    apart = bool(np.isfinite(luck))  # else retraining cannot be told apart
    near = tables.within_twice(costs) if apart else {}
    return {
        "luck": luck if apart else None,
        "retrained_on": list(costs.network.unique()),
        "linear": _shown(near["linear rule"]) if apart else None,
        "root": _shown(near["square-root rule"]) if apart else None,
    }


def _adam(costs: pd.DataFrame, left: int) -> dict:
    """Which rules for Adam's hyperparameters stay near the tuned steps most and least often."""
    shares = tables.within_twice(costs)
    if not shares:
        names = "adam_on adam_best adam_most adam_close adam_others adam_worst adam_fewest"
        return {**dict.fromkeys(names.split()), "left": left}
    best, *others = shares
    return {
        "adam_on": list(costs.network.unique()),
        "adam_best": best,
        "adam_most": _shown(shares[best]),
        "adam_close": sum(shares[rule][2] >= shares[best][1] for rule in others),
        "adam_others": len(others),
        "adam_worst": others[-1],
        "adam_fewest": _shown(shares[others[-1]]),
        "left": left,
    }


def _shown(share: tuple[float, float, float]) -> str:
    value, low, high = (percent(part, 0) for part in share)
    return f"{value} ({low} to {high})"


def _shares(maps: pd.DataFrame, work: catalogue.Workload) -> dict:
    """How the share of settings that work goes from the smallest to the largest batch size."""
    share = tables.shares(maps)
    drawn = list(share.network.unique())
    first = work.title if work.title in drawn or not drawn else drawn[0]
    own = share[share.network == first].sort_values("batch_size")
    steps, epochs = (own[own.kind == kind] for kind in (fixed_budgets.STEPS, fixed_budgets.EPOCHS))
    known = all(len(rows) > 1 and rows.share.max() > 0 for rows in (steps, epochs))
    limits, larger = fixed_budgets.limits(work.name), fixed_budgets.limits("mnist-fc-128x3")
    told = {
        "map_network": first,
        "map_steps": limits["steps"],
        "map_epochs": limits["examples"] / work.train_size,
        "larger_steps": larger["steps"],
        "larger_examples": larger["examples"],
        "shares_known": known,
        "steps_from": None,
        "steps_to": None,
        "crossed": known and _rises(steps) and _rises(epochs[::-1]),
    }
    if known:
        told |= {
            "steps_from": percent(steps.share.iloc[0], 0),
            "steps_to": percent(steps.share.iloc[-1], 0),
            "epochs_from": percent(epochs.share.iloc[0], 0),
            "epochs_to": percent(epochs.share.iloc[-1], 0),
            "best_size": epochs.batch_size[epochs.share.idxmax()],
        }
    return told


def _rises(rows: pd.DataFrame) -> bool:
    """Whether the last share lies above the first, intervals apart."""
    return bool(rows.low.iloc[-1] > rows.high.iloc[0])
