"""The values of the sentences on the language model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.language_model import branched, studies, text_results
from chapters.language_model.read import Read
from lib.analysis import followed_paths, rate_rules, scaling
from lib.page import boxes, told
from lib.wording import between, brief, named, percent, ranged
from lib.workloads.tasks import TASKS

LINE = ["critical", "critical_low", "critical_high", "c1", "c2"]
SHARES = {
    "linear rule": "as $B$",
    "square-root rule": r"as $\sqrt{B}$",
    "no change": "not at all",
}


def findings(data: Read, curves: text_results.Curves, run: branched.Run) -> dict:
    """All values of the page's sentences; what is not on record has none.

    Args:
        data: the records.
        curves: of `text_results.read_curves`.
        run: of `branched.run_of`.
    """
    written = TASKS[data.work.task].written
    goals = scaling.goals(data.trials)
    return told.plain(
        {
            "title": data.work.title,
            "trials": boxes.trials(data.trials),
            "method": named(curves.main.algorithm.iloc[0]),
            "goal": written(curves.goal),
            "easy": written(curves.easy),
            "pruned_later": curves.easy > curves.goal,
            "hardest": goals[0],
            "easiest": goals[-1],
            "largest": curves.main.batch_size.max(),
            **_first(curves),
            "searches": curves.points.replicates.max(),
            **_rungs(data.rungs, goals),
            **_moved(curves.main, goals),
            **_over(curves),
            "width_small": studies.TEXT_ENDS[0],
            "width_large": studies.TEXT_ENDS[1],
            **_layers(data.layers),
            **_rates(curves.main),
            **_noise(data.followed, curves.first),
            **_branches(data, run),
        }
    )


def _first(curves: text_results.Curves) -> dict:
    """The main curve: how well it is known, its critical batch size, and how much more tokens its
    largest batch takes than its smallest.
    """
    first, points = curves.first, curves.points
    own = points[(points.curve == curves.name) & (points.goal == curves.goal)]
    off = 100 * ((own.high / own.low) ** 0.5 - 1)
    small, large = own.batch_size.agg(["min", "max"])
    steps = own.set_index("batch_size").steps
    known = first is not None
    return {
        "known": known,
        "inside": known and first.identified,
        "above": known and first.critical > large,
        **(first[LINE] if known else dict.fromkeys(LINE)),
        "off_least": f"{off.min():.0f}",
        "off_most": f"{off.max():.0f}",
        "main_searches": own.replicates.max(),
        "tokens_compared": small < large,
        "tokens_from": small,
        "tokens_to": large,
        "tokens_grow": large * steps[large] / (small * steps[small]),
    }


def _rungs(rungs: pd.DataFrame, goals: list[float]) -> dict:
    """Between which n-gram models the goals lie."""
    if not len(rungs):
        return {}
    ends = ("hardest_rung", goals[0]), ("easiest_rung", goals[-1])
    return {name: _rung(rungs.n, rungs.nats > goal) for name, goal in ends}


def _rung(n: pd.Series, worse: pd.Series) -> str:
    """Beside which n-gram models a goal lies."""
    if not worse.any():
        return "above the 1-gram model"
    if worse.all():
        return f"below the {n.max()}-gram model"
    return f"between the {n[worse].max()}-gram and the {n[~worse].min()}-gram model"


def _moved(main: pd.DataFrame, goals: list[float]) -> dict:
    """How the critical batch size moves from the easiest goal to the hardest."""
    ends = [scaling.curves(scaling.at_goal(main, goal)) for goal in (goals[0], goals[-1])]
    known = all(ends) and len(goals) > 1
    moved = scaling.critical_ratio(*(next(iter(own.values())) for own in ends)) if known else None
    return _row("moved", moved)


def _row(name: str, effect: scaling.Effect | None) -> dict:
    """A ratio and its ends; None of none."""
    return effect.row(name) if effect else dict.fromkeys((name, f"{name}_low", f"{name}_high"))


def _over(curves: text_results.Curves) -> dict:
    """Steps of other methods, and of the pruned network, over the main curve's."""
    by_name = curves.fits[curves.fits.goal == curves.easy].set_index("curve").critical
    pruned, own = (by_name.get(name) for name in (curves.sparse.curve.min(), curves.name))
    dense = curves.here[curves.here.sparsity == 0]
    return {
        "methods_compared": bool(len(curves.dense)),
        "pruned": bool(len(curves.sparse)),
        "critical_by_method": [
            f"{ranged(r.critical, r.critical_low, r.critical_high)} with {r.curve}"
            for r in dense.itertuples()
        ],
        "bends": pruned / own if pruned and own else None,
    }


def _layers(layers: pd.DataFrame) -> dict:
    """What pruning leaves of the fullest and the emptiest kind of layer."""
    if not len(layers):
        return {}
    left = text_results.left_of_layers(layers)
    most, least = left.iloc[0], left.iloc[-1]
    return {
        "sparsity": f"{layers.sparsity.iloc[0]:g}",
        "fullest": most.kind,
        "fullest_left": percent(most.left),
        "emptiest": least.kind,
        "emptiest_left": percent(least.left),
        "attention_gone": least.kind == "queries and keys" and least.left < 0.02,
    }


def _rates(main: pd.DataFrame) -> dict:
    """The power of the batch size by which the best learning rate moves, and what rules say."""
    power = text_results.rate_power(text_results.best_rates(main))
    if np.isnan(power.value):
        return {"power_known": False}
    rule = text_results.nearest_rule(power.value)
    held = [name for name, own in rate_rules.POWERS.items() if power.low <= own <= power.high]
    return {
        "power_known": True,
        **power.row("power", log=False),
        "no_rule": not held,
        "one_rule": len(held) == 1,
        "rule": "that of no change" if rule == "no change" else f"the {rule}",
        "rule_says": SHARES[rule],
    }


def _noise(followed: pd.DataFrame, first: pd.Series | None) -> dict:
    """The noise scale along the fastest trial, beside the critical batch size."""
    if not len(followed):
        return {}
    path = followed.sort_values("step")
    mean = followed_paths.noise_scales(followed).noise_scale.iloc[0]
    return {
        "followed_method": named(path.algorithm.iloc[0]),
        "followed_size": path.batch_size.iloc[0],
        "noise_begin": path.noise_scale.iloc[0],
        "noise_end": path.noise_scale.iloc[-1],
        "noise": mean,
        "noise_over_critical": mean / first.critical if first is not None else None,
    }


def _branches(data: Read, run: branched.Run) -> dict:
    """Critical batch sizes along one run, beside its noise scale."""
    if not run.ways:
        return {}
    points = run.points
    sure = points[points.decided]
    over = sure.critical.to_numpy() / branched.noise_at(data.followed, sure["at"])
    grown = branched.growth(points.iloc[0], points.iloc[1])
    return {
        "run_method": named(data.checks.algorithm.iloc[0]),
        "run_size": run.base,
        "branch_least": run.sizes[0],
        "branch_most": run.sizes[-1],
        "rule_of_run": branched.RULE,
        "rate_kept": branched.KEPT in run.ways,
        "along": [
            f"{brief(r.critical) if r.decided else 'undecided'} at step {r.at:,}"
            for r in points.itertuples()
        ],
        "run_decided": bool(len(sure)),
        "run_over_noise": between(*over),
        **_row("run_change", grown),
    }
