"""What the page on status says, as numbers and words, and its tables."""

from __future__ import annotations

import pandas as pd

from lib import wording
from lib.analysis import scaling
from lib.claims import front
from lib.methods import METHODS, spaces
from lib.probes import replays
from lib.workloads import catalogue, models, tasks

WAY = ["sparsity", "precision", "checks"]
USUAL = {"precision": "bfloat16", "checks": "geometric"}


def findings(studies: pd.DataFrame) -> dict:
    """All values of the page's sentences; studies: of `lib.records.results.status`, with title."""
    total, again = front.scope(), replays.every()
    moved = again.measured_on.str.startswith("AMD") & again.replayed_on.str.startswith("Intel")
    moved = again[moved & again.workload.str.startswith("digits")].equal_result
    return {
        **{name: total[name] for name in ("searches", "trials", "core_hours")},
        "studies": len(studies),
        "complete": int((studies.done == studies.planned).sum()),
        "devices": _listed(studies.device),
        "first": min(_listed(studies.date)),
        "last": max(_listed(studies.date)),
        **front.measured_again(),
        "moved": len(moved),
        "moved_same": int(moved.sum()),
    }


def _listed(column: pd.Series) -> list[str]:
    """All values of a column whose rows list some."""
    return sorted({value for row in column for value in row.split(", ") if value})


def ways(trials: pd.DataFrame) -> pd.DataFrame:
    """Steps to result by arithmetic and by schedule of the checks: WAY, batch_size, steps; over,
    lowest, highest (steps over those of the same trial in the usual way, at every goal that both
    met: median, 5 and 95 % of these pairs) and pairs (their number).
    """
    goals = [column for column in trials if column.startswith("steps@")]
    met = trials.melt([*WAY, "trial"], goals, "at", "first").dropna(subset="first")
    usual = met[(met[list(USUAL)] == list(USUAL.values())).all(axis=1)]
    pairs = met.merge(
        usual.drop(columns=list(USUAL)), on=["sparsity", "trial", "at"], suffixes=("", "_used")
    )
    ratios = pairs.assign(over=pairs["first"] / pairs.first_used).groupby(WAY).over
    lowest, highest = zip(*ratios.agg(scaling.span_of))
    table = ratios.agg(over="median", pairs="size").assign(lowest=lowest, highest=highest)
    return scaling.steps_to_result(trials).merge(table.reset_index(), on=WAY)


# --- tables ---------------------------------------------------------------------------------------


def of_ways(compared: pd.DataFrame) -> pd.DataFrame:
    """Each way beside the usual one, trial by trial; compared: from `ways`."""
    of_pairs = list(map(wording.span, zip(compared.lowest, compared.highest)))
    sparsity = compared.sparsity.map("sparsity {:g}".format)
    table = compared.assign(of_pairs=of_pairs, sparsity=sparsity)
    words = {"geometric": "geometrically", "every-100": "every 100 steps"}
    heads = {
        "sparsity": "Simple-CNN",
        "precision": "arithmetic",
        "checks": "checks",
        "steps": "steps to result",
        "over": "trial by trial",
        "of_pairs": "of pairs, 5–95 %",
        "pairs": "pairs",
    }
    return table[[*heads]].replace({"checks": words}).rename(columns=heads)


def of_replays(again: pd.DataFrame) -> pd.DataFrame:
    """A row per study in which a repeated search came out differently, and one row for all others;
    again: from `lib.probes.replays.summary`.
    """
    differs = again.equal_result < again.searches
    study = again.study.where(differs, f"{len(again) - differs.sum()} other studies")
    columns = {
        "replayed": ("searches", "sum"),
        "same table": ("equal", "sum"),
        "same steps to result": ("equal_result", "sum"),
        "largest factor": ("factor", "max"),
    }
    rows = again.assign(last=~differs, study=study).groupby(["last", "study"])
    return rows.agg(**columns).reset_index().drop(columns="last")


def of_spaces() -> pd.DataFrame:
    """Ranges from which hyperparameters are drawn: the published ones, and methods' deviations."""
    published = spaces.LEE2021
    differing = {
        method.title: {k: axis for k, axis in method.space.items() if axis != published.get(k)}
        for method in METHODS.values()
    }
    rows = [
        (space, name.replace("_", " "), axis.low, axis.high, axis.scale)
        for space, axes in (spaces.SPACES | differing).items()
        for name, axis in axes.items()
    ]
    return pd.DataFrame(rows, columns=["space", "hyperparameter", "low", "high", "scale"])


def of_workloads() -> pd.DataFrame:
    rows = [
        {
            "workload": work.name,
            "data set": work.dataset,
            "model": work.model,
            "parameters": models.parameter_count(work.network()),
            "goals": ", ".join(map(tasks.TASKS[work.task].written, work.goals)),
            "step budget": work.max_steps,
            "precision": work.precision,
        }
        for work in catalogue.WORKLOADS.values()
    ]
    return pd.DataFrame(rows)
