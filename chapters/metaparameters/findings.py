"""What the page on learning rates says, as numbers and words, and its tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from types import SimpleNamespace

import pandas as pd

from chapters.metaparameters import fixed_budgets, rate_rules
from lib import claims
from lib.analysis import scaling
from lib.analysis.ranges import SIZES, growth
from lib.claims import Claim, front, judging, names
from lib.page import boxes, told
from lib.records import results
from lib.studies import plans
from lib.wording import between, named, percent, with_interval
from lib.workloads import catalogue


def findings(data: SimpleNamespace, chosen, rises: Claim) -> dict:
    """All values of the page's sentences.

    data: what the page is written from: trials (of its searches), rates (of `best_rates`), slopes
    (of `growths`), halves (of `halves`), costs (of `rate_rules.costs`, by its method) and maps (of
    `fixed_budgets.maps`).  rises: the claim that the best rate rises.
    """
    work = catalogue.workload(chosen.workload)
    curve = names.curve_title((chosen.workload, chosen.algorithm))
    known = {group.name: group for group in rises.groups}.get(curve)
    seen = [catalogue.workload(name) for name in data.rates.workload.unique()]
    grown = data.slopes.groupby("method").growth.agg(list)
    adam = data.slopes[data.slopes.method == "Adam"]
    points = data.rates.searches[data.rates.workload == chosen.workload]
    # Where rules were retrained, and what a winner's luck is worth
    again = data.costs[data.costs.base.astype(bool) & (data.costs.rule == "no change")]
    return told.plain(
        {
            "network": work.title,
            "method": named(chosen.algorithm),
            "grows": known is not None and known.low > 1,
            "factor": known and known.effect,
            "factor_low": known and known.low,
            "factor_high": known and known.high,
            "points": between(*points),
            "start": int(rate_rules.start(data.trials).batch_size),
            "repeats": rate_rules.REPEATS,
            "networks": len(seen),
            "data": list(
                dict.fromkeys(w.title.rpartition(" on ")[2].split(",")[0] for w in seen)
            ),
            "trials": boxes.trials(data.rates),
            "largest": max((w.train_size for w in seen), default=work.train_size),
            "slopes": len(data.slopes),
            "single": int((data.slopes.n == 1).sum()),
            "sgd": between(*grown["SGD"]),
            "momentum": between(*grown["momentum"]),
            "adam_growth": between(*adam.growth),
            "adam_searches": between(*adam.n),
            "luck": again.set_index("workload").over.get(chosen.workload),
            "retrained_on": [catalogue.workload(name).title for name in again.workload],
            **_bend(data.halves, chosen),
            **_shares(data.maps, work),
        }
    )


def _bend(halves: pd.DataFrame, chosen) -> dict:
    """Where the growth of the best rate bends on the network asked for, and by how much it grows on
    either side; None where this is not known.
    """
    same = halves.algorithm == chosen.algorithm
    own = halves[same & (halves.workload == chosen.workload)]
    row = own.iloc[0].to_dict() if len(own) else {}
    return {
        "sides": len(halves),
        "bent": int((halves.below_low > halves.above_high).sum()),
        "several": rate_rules.SEVERAL,
        "bends": bool(row) and row["below_low"] > row["above_high"],
        "bend": row.get("at"),
        "below": row.get("below"),
        "below_low": row.get("below_low"),
        "below_high": row.get("below_high"),
        "above": row.get("above"),
        "above_low": row.get("above_low"),
        "above_high": row.get("above_high"),
    }


def _shares(maps: pd.DataFrame, work: catalogue.Workload) -> dict:
    """How the share of settings that work goes from the smallest to the largest batch size."""
    share = fixed_budgets.shares(maps)
    moved = fixed_budgets.moved(share)
    by = share.groupby("kind")[["share", "low", "high"]]
    ends = {
        f"{kind.removeprefix('fixed ')}_{end}": shown(row)
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


def best_rates(searched: pd.DataFrame, chosen) -> pd.DataFrame:
    """`rate_rules.best_rates` of these searches, with network and trials (of a search), and, where
    records are read, of all other dense networks searched with the method.
    """
    rates = _rates(searched)
    if chosen.budget == "cached":
        every = pd.DataFrame(claims.kept("best-rates", _every_rate))
        every = every[every.algorithm == chosen.algorithm]
        sizes = every.groupby("workload").batch_size.transform("size")
        every = every[(sizes > SIZES) & ~every.workload.isin(names.REPEATS)]
        mine = every.workload == chosen.workload
        rates = pd.concat([every[mine] if mine.any() else rates, every[~mine]])
    return rates.assign(network=[catalogue.workload(name).title for name in rates.workload])


def _every_rate() -> dict[str, list]:
    trials = judging.trials()
    return _rates(trials[trials.sparsity == 0]).to_dict("list")


def _rates(searched: pd.DataFrame) -> pd.DataFrame:
    curve = ["workload", "algorithm"]
    trials = searched.groupby(curve).trials.max()
    return rate_rules.best_rates(searched).join(trials, on=curve)


def halves() -> pd.DataFrame:
    """`rate_rules.halves` of all that is on record, each network's searches once."""
    found = claims.kept("rate-halves", lambda: _halves().to_dict("list"))
    return pd.DataFrame(found)


def _halves() -> pd.DataFrame:
    critical = front.critical()
    once = ~critical.workload.isin(names.REPEATS)
    return rate_rules.halves(judging.trials(), critical[once])


def on_either_side(halves: pd.DataFrame) -> pd.DataFrame:
    """The same as a table of the page, with networks and methods in words."""
    below = halves[["below", "below_low", "below_high"]]
    above = halves[["above", "above_low", "above_high"]]
    shown = {
        "network": halves.workload.map(names.title),
        "method": halves.algorithm.map(named),
        "up to": halves["at"],
        "growth up to it": list(itertools.starmap(with_interval, below.to_numpy())),
        "searches": halves.below_n,
        "growth beyond": list(itertools.starmap(with_interval, above.to_numpy())),
        "searches beyond": halves.above_n,
    }
    return pd.DataFrame(shown)


def growths(claim: Claim) -> pd.DataFrame:
    """The best rate's growth per doubling of the batch, a row per network and method: row (the
    network), method, growth, growth_low, growth_high, n (searches).

    claim: that the best rate rises; Adam and the language model come beside it.
    """
    read = [results.read(plans.study(name)) for name in ("digits-adam", "shakespeare")]
    beside = growth(pd.concat(read, ignore_index=True)).set_index(["workload", "algorithm"])
    groups = [*claim.groups, *names.rows(beside.effect.to_dict())]
    rows = [(g.name, g.effect, g.low, g.high, g.n) for g in groups]
    table = pd.DataFrame(rows, columns=["name", "growth", "growth_low", "growth_high", "n"])
    table[["row", "method"]] = table.name.str.rsplit(", ", n=1, expand=True)
    return table


def within_twice(costs: pd.DataFrame) -> pd.DataFrame:
    """The share of other batch sizes at which each rule of `rate_rules.costs` stays within twice
    the tuned steps, the best rule first.
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
