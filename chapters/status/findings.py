"""What the page on status says, as numbers and words, and its tables."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from chapters.status import prices
from lib import claims, wording
from lib.analysis import scaling
from lib.claims import front
from lib.methods import METHODS, spaces
from lib.probes import replays, tracks
from lib.records import store
from lib.records.store import DATA, record
from lib.studies import plans
from lib.workloads import catalogue, models, tasks

WAY = ["sparsity", "precision", "checks"]
SEARCHES = {  # columns of the file of all searches, and what they hold
    "workload": "data set and network; the last table of this page describes each",
    "algorithm": "training method",
    "sparsity": "share of weights removed before training",
    "pruning": "how the weights to remove were chosen",
    "batch_size": "examples in a training step",
    "goal": "validation error to reach, as a share; in nats where the workload says so",
    "split": "which draw of training and validation images; 0 unless searches drew their own",
    "replicate": "which of several searches: other hyperparameters, weights and order of examples",
    "trials": "runs of the search",
    "space": "range of the hyperparameters where it is not the workload's own",
    "steps": "steps to result: the fewest after which a trial met the goal; empty if none did",
    "last_step": "where the search stopped",
    "hits_seen": "trials that met the goal before the search stopped",
}
USUAL = {"precision": "bfloat16", "checks": "geometric"}


def findings(
    studies: pd.DataFrame,
    again: pd.DataFrame,
    each: pd.DataFrame,
    compared: pd.DataFrame,
    priced: pd.DataFrame,
    pool: tuple[float, float, float],
) -> dict:
    """All values of the page's sentences.

    Args:
        studies: of `on_record.status`, with title.
        again: of `replays.summary`.
        each: of `replays.every`.
        compared: of `ways`.
        priced, pool: of `prices.table` and `prices.together`.
    """
    total = front.scope()
    apart = again[again.factor > 1]
    elsewhere = apart[(apart.measured_on != apart.replayed_on) & (apart.study != "mnist")]
    unrun = studies[studies.done == 0]
    partly = studies[(studies.done > 0) & (studies.done < studies.planned)]
    waiting = sum(not claim.measured for claim in claims.judge().values())
    others = compared[~compared.usual]
    return {
        "studies": len(studies),
        "complete": int((studies.done == studies.planned).sum()),
        "hours": total["core_hours"],
        "searches": total["searches"],
        "trials": total["trials"],
        "devices": _listed(studies.device),
        "versions": _listed(studies.torch),
        "first": min(_listed(studies.date)),
        "last": max(_listed(studies.date)),
        **_data_sets(),
        "unrun": [f"{t}: {n:,} searches" for t, n in zip(unrun.title, unrun.planned)],
        "partly": len(partly),
        "lacking": int((partly.planned - partly.done).sum()),
        "some_wait": waiting > 0,
        "waiting": waiting,
        **_replayed(each),
        "rounded_since": "mnist" in set(apart.study),
        "between_processors": list(elsewhere.study),
        "batch_size": int(compared.batch_size.max()),
        "ways": len(others),
        "over_usual": wording.between(*others.over),
        "pairs_span": wording.between(*others.lowest, *others.highest),
        **_prices(priced, pool),
    }


def _replayed(each: pd.DataFrame) -> dict:
    """How many searches gave the same when measured again, by data set and by rounding."""
    stepless = each.recorded.isna() & each.again.isna()
    with_steps = each[~stepless]
    digits = with_steps.workload.str.startswith("digits")
    small, images = with_steps[digits], with_steps[~digits]
    later = each[each.measured_by != each.source]
    alike = later[later.same_rounding.eq(True)]
    unlike = images[images.same_rounding.eq(False)]
    return {
        "replayed": len(each),
        "replay_minutes": replays.Replay.longest / 60,
        "equal": int(each.equal.sum()),
        "stepless": int(stepless.sum()),
        "on_digits": len(small),
        "same_on_digits": int(small.equal_result.sum()),
        "on_images": len(images),
        "same_on_images": int(images.equal_result.sum()),
        "rounded_apart": len(unlike),
        "same_apart": int(unlike.equal_result.sum()),
        "rounded_alike": len(alike),
        "equal_alike": int(alike.equal.sum()),
    }


def _prices(priced: pd.DataFrame, pool: tuple[float, float, float]) -> dict:
    """What the papers' figures would cost together, and the most expensive of them."""
    most = priced.loc[priced.cores.idxmax()]
    end, busy, longest = pool
    return {
        "figures": len(priced),
        "price_days": float(priced.cores.sum()),
        "dearest": f"{most.workload} of {most.paper}",
        "dearest_days": float(most.cores),
        "gpu_factor": float((priced.cores * 48 / priced.gpu).iloc[0]),
        "fold": prices.FOLD,
        "pool_hours": end,
        "pool_busy": busy,
        "longest_hours": longest,
    }


def _listed(column: pd.Series) -> list[str]:
    """All values of a column whose rows list some."""
    return sorted({value for row in column for value in row.split(", ") if value})


def _data_sets() -> dict[str, int]:
    """Searches on record on the smallest and the hardest data set."""
    cells = dict.fromkeys(cell for study in plans.STUDIES.values() for cell in study.cells)
    known = (cell for cell in cells if store.exists(record(cell, DATA)))
    counts = Counter(cell.work.dataset.removesuffix("-lee2021") for cell in known)
    return {"digits": counts["digits"], "cifar": counts["cifar-10"]}


def ways(trials: pd.DataFrame) -> pd.DataFrame:
    """Steps to result by arithmetic and times of the checks: WAY, batch_size, steps, low and high
    (5 and 95 % of half as many trials), usual; over, lowest, highest (steps over those of the same
    trial searched in the usual way: median, 5 and 95 % of pairs) and pairs, their number.
    """
    found = scaling.steps_to_result(trials)
    half = {}
    for way, steps in trials.groupby(WAY).steps:
        half[way] = scaling.best_of_k(steps.to_numpy(), len(steps) // 2)
    lows, _, highs = zip(*[half[tuple(way)] for way in found[WAY].to_numpy()])
    found = found.assign(low=lows, high=highs, usual=_usual(found))
    return found.merge(_over_usual(trials), on=WAY)


def _usual(rows: pd.DataFrame) -> pd.Series:
    """Which rows are of the usual way."""
    return (rows[list(USUAL)] == list(USUAL.values())).all(axis=1)


def _over_usual(trials: pd.DataFrame) -> pd.DataFrame:
    """What `ways` says of pairs, by WAY, over all goals that both of a pair met."""
    goals = [column for column in trials if column.startswith("steps@")]
    met = trials.melt([*WAY, "trial"], goals, "at", "first").dropna(subset="first")
    used = met[_usual(met)].drop(columns=list(USUAL))
    pairs = met.merge(used, on=["sparsity", "trial", "at"], suffixes=("", "_used"))
    over = pairs.assign(over=pairs["first"] / pairs.first_used).groupby(WAY).over
    lowest, highest = zip(*over.agg(scaling.span_of))
    table = over.agg(over="median", pairs="size")
    return table.assign(lowest=lowest, highest=highest).reset_index()


# --- tables ---------------------------------------------------------------------------------------


def of_ways(compared: pd.DataFrame) -> pd.DataFrame:
    """Each way beside the usual one, trial by trial; compared: of `ways`."""
    spans = [wording.span(ends) for ends in zip(compared.low, compared.high)]
    beside = [wording.span(ends) for ends in zip(compared.lowest, compared.highest)]
    table = compared.assign(interval=spans, beside=beside)
    table = table[[*WAY, "steps", "interval", "over", "beside", "pairs"]]
    words = {"geometric": "geometrically", "every-100": "every 100 steps"}
    heads = {
        "precision": "arithmetic",
        "steps": "steps to result",
        "interval": "of half as many trials, 5–95 %",
        "over": "trial by trial",
        "beside": "of pairs, 5–95 %",
    }
    return table.replace({"checks": words}).rename(columns=heads)


def of_replays(again: pd.DataFrame) -> pd.DataFrame:
    heads = {
        "searches": "replayed",
        "equal": "same table",
        "equal_result": "same steps to result",
        "factor": "largest factor",
        "measured_on": "measured on",
        "replayed_on": "again on",
    }
    return again[["study", *heads]].rename(columns=heads)


def of_paths() -> pd.DataFrame:
    """Trials that were followed a second time."""
    rows = []
    for name, own in tracks.TRACKS.items():
        found = own.results()
        heads = found.attrs["provenance"]
        planned = found.attrs["planned"]
        hours = sum(head["wall_s"] for head in heads) / 3600
        told = front.data_set(name), len(heads), planned, len(found), hours
        rows.append(told)
    columns = ["paths on", "followed", "planned", "points", "core-hours"]
    return pd.DataFrame(rows, columns=columns)


def of_spaces() -> pd.DataFrame:
    """What hyperparameters are drawn from: the published spaces, and where methods differ."""
    usual = spaces.LEE2021
    more = {
        method.title: {k: axis for k, axis in method.space.items() if axis != usual.get(k)}
        for method in METHODS.values()
    }
    rows = [
        (space, name.replace("_", " "), axis.low, axis.high, axis.scale)
        for space, axes in (spaces.SPACES | more).items()
        for name, axis in axes.items()
    ]
    return pd.DataFrame(rows, columns=["space", "hyperparameter", "low", "high", "scale"])


def of_workloads() -> pd.DataFrame:
    rows = [
        (
            w.name,
            w.dataset,
            w.model,
            models.parameter_count(models.build(w.model)),
            ", ".join(map(tasks.TASKS[w.task].written, w.goals)),
            w.max_steps,
            w.precision,
        )
        for w in catalogue.WORKLOADS.values()
    ]
    heads = ["data set", "model", "parameters", "goals", "step budget", "precision"]
    return pd.DataFrame(rows, columns=["workload", *heads])
