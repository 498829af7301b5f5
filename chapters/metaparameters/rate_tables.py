"""The tables of the page on learning rates."""

from __future__ import annotations

import pandas as pd

from chapters.metaparameters import fixed_budgets, rate_rules
from lib import claims
from lib.analysis import method_results, ranges, scaling
from lib.analysis.rate_rules import SIZES, growth
from lib.analysis.scaling import CURVE
from lib.claims import Claim, judging, names
from lib.records import results
from lib.studies import plans
from lib.workloads import catalogue


def titled(table: pd.DataFrame) -> pd.DataFrame:
    """The table with every workload's title in `network`."""
    return table.assign(network=[catalogue.workload(name).title for name in table.workload])


def best_rates(searched: pd.DataFrame, chosen) -> pd.DataFrame:
    """`rate_rules.best_rates` of the searches asked for and, where records of dense networks are
    read, of every other network searched with the method.
    """
    parts = [rate_rules.best_rates(searched)]
    if chosen.budget == "cached" and chosen.sparsity == 0:
        every = pd.DataFrame(claims.kept("best-rates", _every_rate))
        every = every[every.algorithm == chosen.algorithm]
        sizes = every.groupby("workload").batch_size.transform("size")
        every = every[(sizes > SIZES) & ~every.workload.isin(names.REPEATS)]
        mine = every.workload == chosen.workload
        parts = [every[mine] if mine.any() else parts[0], every[~mine]]
    return titled(pd.concat(parts))


def _every_rate() -> dict[str, list]:
    trials = judging.published()
    return rate_rules.best_rates(trials[trials.sparsity == 0]).to_dict("list")


def growths(claim: Claim) -> pd.DataFrame:
    """The best rate's growth per doubling of the batch, a row per network and method: network,
    method, effect, low, high, n (searches).

    Args:
        claim: that the best rate rises; Adam and the language model come beside it.
    """
    read = [results.read(plans.study(name)) for name in ("digits-adam", "shakespeare")]
    beside = growth(pd.concat(read, ignore_index=True))
    columns = ["name", "effect", "low", "high", "n"]
    judged = pd.DataFrame([(g.name, g.effect, g.low, g.high, g.n) for g in claim.groups])
    keys = zip(beside.workload, beside.algorithm)
    beside["name"] = list(map(names.curve_title, keys))
    own = beside[["name", "growth", "growth_low", "growth_high", "searches"]]
    parts = [part.set_axis(columns, axis=1) for part in (judged, own)]
    table = pd.concat(parts, ignore_index=True)
    table[["network", "method"]] = table.name.str.rsplit(", ", n=1, expand=True)
    return table


def within_twice(costs: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    """The share of other batch sizes at which each rule stays within twice the tuned steps, and its
    interval, the best rule first.

    costs: of `rate_rules.costs`.
    """
    away = costs[~costs.base.astype(bool)]
    by = away.groupby("rule", sort=False).beyond
    found = {rule: scaling.share(int((own <= 2).sum()), len(own)) for rule, own in by}
    return dict(sorted(found.items(), key=lambda of: -of[1][0]))


def shares(maps: pd.DataFrame) -> pd.DataFrame:
    """`fixed_budgets.shares` of these maps, with `network`."""
    return titled(fixed_budgets.shares(maps))


def at_edges() -> pd.DataFrame:
    """Where winners lie in their search's intervals, of all curves that pages compare, and of
    further methods; each search once.
    """
    every = pd.DataFrame(claims.kept("edges", _edges))
    return every[(every.winners >= ranges.FEWEST) & ~every.workload.isin(names.REPEATS)]


def _edges() -> dict[str, list]:
    sources = (judging.trials(), method_results.compared())
    found = pd.concat([ranges.at_edges(trials) for trials in sources], ignore_index=True)
    return found.drop_duplicates([*CURVE, "hyperparameter"]).to_dict("list")
