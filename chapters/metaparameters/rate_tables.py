"""The tables of the page on learning rates."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from chapters.metaparameters import rate_rules
from lib import claims
from lib.analysis import scaling
from lib.analysis.rate_rules import SIZES, growth
from lib.claims import Claim, judging, names
from lib.records import results
from lib.studies import plans
from lib.wording import percent
from lib.workloads import catalogue


def best_rates(searched: pd.DataFrame, chosen) -> pd.DataFrame:
    """`rate_rules.best_rates` of the searches asked for, with network, and, where records are read,
    of every other dense network searched with the method.
    """
    rates = rate_rules.best_rates(searched)
    if chosen.budget == "cached":
        every = pd.DataFrame(claims.kept("best-rates", _every_rate))
        every = every[every.algorithm == chosen.algorithm]
        sizes = every.groupby("workload").batch_size.transform("size")
        every = every[(sizes > SIZES) & ~every.workload.isin(names.REPEATS)]
        mine = every.workload == chosen.workload
        rates = pd.concat([every[mine] if mine.any() else rates, every[~mine]])
    return rates.assign(network=[catalogue.workload(name).title for name in rates.workload])


def _every_rate() -> dict[str, list]:
    trials = judging.published()
    return rate_rules.best_rates(trials[trials.sparsity == 0]).to_dict("list")


def growths(claim: Claim) -> pd.DataFrame:
    """The best rate's growth per doubling of the batch, a row per network and method: row (the
    network), method, growth, growth_low, growth_high, n (searches).

    Args:
        claim: that the best rate rises; Adam and the language model come beside it.
    """
    read = [results.read(plans.study(name)) for name in ("digits-adam", "shakespeare")]
    beside = growth(pd.concat(read, ignore_index=True))
    rows = [(g.name, g.effect, g.low, g.high, g.n) for g in claim.groups]
    for row in beside.itertuples():
        name = names.curve_title((row.workload, row.algorithm))
        rows.append((name, row.growth, row.growth_low, row.growth_high, row.searches))
    table = pd.DataFrame(rows, columns=["name", "growth", "growth_low", "growth_high", "n"])
    table[["row", "method"]] = table.name.str.rsplit(", ", n=1, expand=True)
    return table


def within_twice(costs: pd.DataFrame) -> pd.DataFrame:
    """The share of other batch sizes at which each rule stays within twice the tuned steps, the
    best rule first.

    costs: of `rate_rules.costs`.
    """
    near = costs[~costs.base.astype(bool)].groupby("rule", sort=False).beyond
    counts = near.agg(met=lambda times: (times <= 2).sum(), tried="size")
    counts = counts.sort_values("met", ascending=False, kind="stable")
    shares = [shown(scaling.share(int(row.met), int(row.tried))) for row in counts.itertuples()]
    return pd.DataFrame({"rule": counts.index, "within twice the tuned steps": shares})


def shown(share: Iterable[float]) -> str:
    """A share with the ends of its interval, in percent."""
    value, low, high = (percent(part, 0) for part in share)
    return f"{value} ({low} to {high})"
