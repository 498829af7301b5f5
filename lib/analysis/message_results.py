"""Compressors side by side: from records of runs with sparse messages to errors, what was sent, and gaps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from lib.analysis import fixed_budgets, scaling
from lib.messages import settings
from lib.workloads.catalogue import workload

CELL = ["workload", "batch_size", "goal", "sparsity", "density"]
KEYS = ["workload", "network", "compressor", "method", "density", "replicate", "budget"]
NAMES = {
    ("dense", False): "dense",
    ("top-k", True): "Top-k",
    ("gaussian-k", True): "Gaussian-k",
    ("dgc-k", True): "DGC-k",
    ("rand-k", True): "Rand-k with feedback",
    ("rand-k", False): "Rand-k",
}


def best(trials: pd.DataFrame, also: Iterable[str] = ()) -> pd.DataFrame:
    """The trial with the lowest validation error per method, density, seed and budget of steps (`fixed_budgets.chosen`).

    also: further columns of `trials` whose values are kept apart.  method: of NAMES.  network: the workload's title.
    megabytes: that a worker had sent.  over: entries sent per step over those asked for.  edge: whether its learning rate
    is the lowest or the highest that the search tried; highest: whether it is the highest.
    """
    rows, by = fixed_budgets.within(trials), [*KEYS, *also]
    if not len(rows):
        return pd.DataFrame(columns=[*by, "test", "noise", "learning_rate", "megabytes", "over", "edge", "highest"])
    rows["method"] = [NAMES.get((c, bool(f)), c) for c, f in zip(rows.compressor, rows.feedback, strict=True)]
    rows["network"] = [workload(w).title for w in rows.workload]
    found = fixed_budgets.chosen(rows, by)
    asked = _asked(found)
    pairs = settings.VALUE_BYTES + settings.INDEX_BYTES
    size = np.where(found.method == "dense", settings.VALUE_BYTES, pairs)
    search = ["workload", "replicate"]
    tried = trials.groupby(search).learning_rate.agg(["min", "max"]).loc[pd.MultiIndex.from_frame(found[search])]
    lowest, highest = found.learning_rate.to_numpy() <= tried["min"], found.learning_rate.to_numpy() >= tried["max"]
    return found.assign(
        megabytes=found.sent * size / 1e6,
        over=found.sent / found.checked / asked,
        edge=(lowest | highest).to_numpy(),
        highest=highest.to_numpy(),
    )


def _asked(rows: pd.DataFrame) -> list[int]:
    """k of every row, from its workload and density."""
    from lib.workloads import models  # brings PyTorch, which is slow to import

    sizes = {w: models.parameter_count(models.build(workload(w).model)) for w in rows.workload.unique()}
    return [settings.target(p, sizes[w]) for w, p in zip(rows.workload, rows.density, strict=True)]


def between_budgets(trials: pd.DataFrame) -> pd.DataFrame:
    """What runs with error feedback send from one budget of steps to the next, a row per trial and budget (`fixed_budgets.within`).

    over: entries per step and worker over those asked for.  method, network: as in `best`.  Runs that ended early are left out.
    """
    rows = fixed_budgets.within(trials)
    rows = rows[rows.feedback.astype(bool) & (rows.status != "infeasible")].sort_values("budget") if len(rows) else rows
    if not len(rows):
        return pd.DataFrame(columns=["network", "method", "density", "replicate", "trial", "learning_rate", "budget", "over"])
    run = rows.groupby(["workload", "compressor", "density", "replicate", "trial"])
    sent, steps = (run[c].diff().fillna(rows[c]) for c in ("sent", "checked"))
    return rows.assign(
        method=[NAMES.get((c, True), c) for c in rows.compressor],
        network=[workload(w).title for w in rows.workload],
        over=sent / steps / _asked(rows),
    )


def gaps(found: pd.DataFrame, method: str, rival: str = "dense") -> pd.DataFrame:
    """Test error of a method over its rival's at the largest budget, in points, per workload, density and seed.

    gap, and noise: its standard error from the number of test examples, too wide: both methods see the same ones, and what
    that pairs is ignored.
    """
    ends = found[found.budget == found.groupby("workload").budget.transform("max")]
    key = ["workload", "replicate"] + (["density"] if rival != "dense" else [])
    columns = [*key, "test", "noise"]
    own, other = ends[ends.method == method], ends.loc[ends.method == rival, columns]
    both = own.merge(other, on=key, suffixes=("", "_rival"))
    noise = 100 * np.hypot(both.noise.astype(float), both.noise_rival.astype(float))
    return both.assign(gap=100 * (both.test - both.test_rival).astype(float), noise=noise)


def long_enough(gap: pd.DataFrame) -> pd.DataFrame:
    """Of `gaps`, those after 1 / density steps or more: in fewer, an average entry has not been sent once."""
    return gap[gap.budget * gap.density >= 1]


def matched_gaps(found: pd.DataFrame, method: str, rival: str) -> pd.DataFrame:
    """As `gaps`, but after either has sent as much as the one that sends less does in the whole run.

    Between budgets the error is interpolated in the logarithm of what was sent.  more: whether it is the rival that
    sends less.
    """
    rows = []
    for key, own in found.groupby(["workload", "replicate", "density"]):
        sides = [own[own.method == m].sort_values("megabytes") for m in (method, rival)]
        if min(map(len, sides)) == 0:
            continue
        whole = [side.loc[side.budget.idxmax(), "megabytes"] for side in sides]
        sent = min(whole)
        (error, noise), (other, other_noise) = (
            [np.interp(np.log(sent), np.log(side.megabytes), side[c].astype(float)) for c in ("test", "noise")]
            for side in sides
        )
        rows.append([*key, sent, 100 * (error - other), 100 * np.hypot(noise, other_noise), whole[0] > sent])
    return pd.DataFrame(rows, columns=["workload", "replicate", "density", "megabytes", "gap", "noise", "more"])


def means(gap: pd.DataFrame, like: pd.DataFrame | None = None) -> pd.DataFrame:
    """Of `gaps`, a row per workload and density: gap (mean over seeds), error (its standard error), worst, seeds.

    error: the larger of what the number of test examples implies and what the spread over these seeds does.  All seeds are
    scored on the same examples, so that more of them do not lessen the former.  A single seed borrows the spread that other
    workloads' seeds have at its density, in the root mean square; like: gaps to borrow it from, if not these.
    """
    spread = (gap if like is None else like).groupby(["workload", "density"]).gap.var().groupby("density").mean() ** 0.5
    rows = []
    for (name, density), own in gap.groupby(["workload", "density"], sort=False):
        of_seeds = own.gap.sem() if len(own) > 1 else np.nan_to_num(spread.get(density, 0.0))
        rows.append([name, density, own.gap.mean(), max(own.noise.mean(), of_seeds), own.gap.max(), len(own)])
    return pd.DataFrame(rows, columns=["workload", "density", "gap", "error", "worst", "seeds"])


def joint_curves(trials: pd.DataFrame, least: float = 0.0) -> pd.DataFrame:
    """Steps to result per point (`scaling.across_replicates`) with the density of the messages.

    Of every workload and batch size at one goal: the hardest, but no error below `least`, of those that the most of its
    cells met.
    """
    parts = [(d, own) for (_, d), own in trials.groupby(["workload", "density"])] if len(trials) else []
    met = [scaling.all_goals(own).assign(density=d) for d, own in parts if scaling.goals(own)]
    if not met:
        return pd.DataFrame(columns=["workload", "batch_size", "sparsity", "density", "goal", "steps"])
    curves = pd.concat(met, ignore_index=True)
    curves = curves[curves.goal >= least]
    at = ["workload", "batch_size"]
    curves["met"] = curves.groupby([*at, "goal"]).steps.transform("count")
    curves = curves[curves.met == curves.groupby(at).met.transform("max")]
    return curves[curves.goal == curves.groupby(at).goal.transform("min")].drop(columns="met").reset_index(drop=True)


def joint_costs(curves: pd.DataFrame) -> pd.DataFrame:
    """Steps to result of sparse models with sparse messages over those of the dense model with dense ones, a row a cell.

    curves: of `joint_curves`.  model, messages: the cost of either alone.  both; product: of the two; total: 1 and the
    extra cost of either; over: both over product; beyond: both over total.  Only cells whose three partners met the goal.
    Steps may be arrays, of draws: then so are all these.
    """
    known, rows = dict(curves.set_index(CELL).steps), []
    for (*place, sparsity, density), both in known.items():
        partners = [known.get((*place, *p)) for p in ((0.0, 1.0), (sparsity, 1.0), (0.0, density))]
        if sparsity == 0 or density == 1 or any(p is None for p in partners):
            continue
        one, model, messages = partners
        model, messages, both = model / one, messages / one, both / one
        product, total = model * messages, model + messages - 1
        rows.append([*place, sparsity, density, model, messages, both, product, total, both / product, both / total])
    names = ["model", "messages", "both", "product", "total", "over", "beyond"]
    return pd.DataFrame(rows, columns=[*CELL, *names])


def redrawn_costs(trials: pd.DataFrame, curves: pd.DataFrame, draws: int = 1000) -> pd.DataFrame:
    """`joint_costs` of searches drawn as a `scaling.Curve` is: its rows for every `draw`."""
    again = []
    for w, b, goal, sparsity, density in curves[CELL].itertuples(index=False):
        own = trials[(trials.workload == w) & (trials.sparsity == sparsity) & (trials.density == density)]
        again.append(scaling.curve_of(own[own.batch_size == b], goal, draws).draws[b].to_numpy())
    joint = joint_costs(curves.assign(steps=pd.Series(again, curves.index, dtype=object)))
    every = joint.explode([c for c in joint if c not in CELL], ignore_index=True)
    return every.assign(draw=every.groupby(CELL, dropna=False).cumcount()).infer_objects()


def joint_medians(costs: pd.DataFrame, redrawn: pd.DataFrame) -> pd.DataFrame:
    """Of `joint_costs`, a row per workload (the index): pairs, and the medians over them of over and beyond, with their ends.

    redrawn: of `redrawn_costs`; NAME_low and NAME_high are the 5 and 95 % ends of its draws' medians.
    """
    rows = {}
    for name, own in costs.groupby("workload", sort=False):
        again = redrawn[redrawn.workload == name].groupby("draw")[["over", "beyond"]].median()
        rows[name] = {"pairs": len(own)}
        for c in again:
            low, high = scaling.span_of(again[c])
            rows[name] |= {c: own[c].median(), f"{c}_low": low, f"{c}_high": high}
    columns = ["pairs", *(f"{c}{end}" for c in ("over", "beyond") for end in ("", "_low", "_high"))]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)
