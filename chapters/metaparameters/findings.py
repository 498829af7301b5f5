"""What the page on learning rates says, as numbers and words."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from chapters.metaparameters import fixed_budgets, rate_rules
from chapters.metaparameters import rate_tables as tables
from lib.claims import Claim, names
from lib.page import boxes, told
from lib.wording import between, named
from lib.workloads import catalogue


def findings(data: SimpleNamespace, chosen, rises: Claim) -> dict:
    """All values of the page's sentences.

    Args:
        data: what the page is written from: trials (of the page's searches), rates (of
            `rate_tables.best_rates`), slopes (of `rate_tables.growths`), costs (of
            `rate_rules.costs`, by the page's method) and maps (of `fixed_budgets.maps`).
        chosen: the page's parameters.
        rises: the claim that the best rate rises.
    """
    work = catalogue.workload(chosen.workload)
    curve = names.curve_title((chosen.workload, chosen.algorithm))
    known = {group.name: group for group in rises.groups}.get(curve)
    seen = [catalogue.workload(name) for name in data.rates.workload.unique()]
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
            "start": int(rate_rules.start(data.trials).batch_size),
            "repeats": rate_rules.REPEATS,
            "networks": len(seen),
            "data": list(dict.fromkeys(w.title.rpartition(" on ")[2].split(",")[0] for w in seen)),
            "trials": boxes.trials(data.trials),
            "largest": max((w.train_size for w in seen), default=work.train_size),
            **_growths(data.slopes),
            **_rules(data.costs, chosen.workload),
            **_shares(data.maps, work),
        }
    )


def _growths(slopes: pd.DataFrame) -> dict:
    """The least and the largest growth with a method, over networks."""
    wanted = {"sgd": "SGD", "momentum": "momentum", "adam_growth": "Adam"}
    effects = {key: between(*slopes.growth[slopes.method == name]) for key, name in wanted.items()}
    return effects | {"slopes": len(slopes), "single": int((slopes.n == 1).sum())}


def _rules(costs: pd.DataFrame, workload: str) -> dict:
    """Where rules were retrained, and what a winner's luck is worth."""
    again = costs[costs.base.astype(bool) & (costs.rule == "no change")]
    luck = again.set_index("workload").over.get(workload)
    on = [catalogue.workload(name).title for name in again.workload]
    return {"luck": luck, "retrained_on": on}


def _shares(maps: pd.DataFrame, work: catalogue.Workload) -> dict:
    """How the share of settings that work goes from the smallest to the largest batch size."""
    share = fixed_budgets.shares(maps).sort_values("batch_size")
    moved = fixed_budgets.moved(share)
    by = share.groupby("kind")[["share", "low", "high"]]
    ends = {
        f"{kind.removeprefix('fixed ')}_{end}": tables.shown(row)
        for end, rows in {"from": by.first(), "to": by.last()}.items()
        for kind, row in rows.iterrows()
    }
    limits, larger = fixed_budgets.limits(work.name), fixed_budgets.limits("mnist-fc-128x3")
    return {
        "map_steps": limits["steps"],
        "map_epochs": limits["examples"] / work.train_size,
        "larger_steps": larger["steps"],
        "larger_examples": larger["examples"],
        "shares_known": moved is not None,
        "crossed": moved is not None and moved[1] > 0,
        **ends,
    }
