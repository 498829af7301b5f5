"""The values of the sentences on the language model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.language_model import branched, studies, text_results
from chapters.language_model.read import Read
from chapters.language_model.text_tables import ranged
from lib.analysis import followed_paths, rate_rules, scaling
from lib.page import boxes
from lib.wording import between, brief, named, percent
from lib.workloads.tasks import TASKS

SHARES = {
    "linear rule": "as $B$",
    "square-root rule": r"as $\sqrt{B}$",
    "no change": "not at all",
}


def findings(data: Read, curves: text_results.Curves, run: branched.Run) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        data: the records.
        curves: of `text_results.read_curves`.
        run: of `branched.run_of`.
    """
    written = TASKS[data.work.task].written
    return {
        "title": data.work.title,
        "trials": boxes.trials(data.trials),
        "method": named(curves.main.algorithm.iloc[0]),
        "goal": written(curves.goal),
        "easy": written(curves.easy),
        "pruned_later": curves.easy > curves.goal,
        "largest": int(curves.main.batch_size.max()),
        **_first(curves),
        "searches": int(curves.points.replicates.max()),
        **_rungs(data),
        **_moved(data.trials),
        **_over(curves),
        **_layers(data.layers),
        **_rates(curves.main),
        **_noise(data.followed, curves.first),
        **_branches(data, run),
    }


def _first(curves: text_results.Curves) -> dict[str, object]:
    """The main curve: how well it is known, and its critical batch size."""
    first, points = curves.first, curves.points
    own = points[(points.curve == curves.name) & (points.goal == curves.goal)]
    off = 100 * ((own.high / own.low) ** 0.5 - 1)
    known = first is not None
    return {
        "known": known,
        "inside": known and bool(first.identified),
        "above": known and bool(first.critical > own.batch_size.max()),
        "critical": first.critical if known else None,
        "line_c1": first.c1 if known else None,
        "line_c2": first.c2 if known else None,
        "critical_low": first.critical_low if known else None,
        "critical_high": first.critical_high if known else None,
        "off_least": f"{off.min():.0f}",
        "off_most": f"{off.max():.0f}",
        "main_searches": int(own.replicates.max()),
        **_tokens(own),
    }


def _tokens(own: pd.DataFrame) -> dict[str, object]:
    """How much more tokens the largest batch of the main curve takes than the smallest."""
    ends = own.sort_values("batch_size").iloc[[0, -1]]
    used = (ends.batch_size * ends.steps).to_numpy()
    sizes = ends.batch_size.astype(int)
    return {
        "tokens_compared": bool(sizes.iloc[0] < sizes.iloc[1]),
        "tokens_from": int(sizes.iloc[0]),
        "tokens_to": int(sizes.iloc[1]),
        "tokens_grow": float(used[1] / used[0]),
    }


def _rungs(data: Read) -> dict[str, object]:
    """Between which n-gram models the goals lie."""
    goals = scaling.goals(data.trials)
    known = bool(len(data.rungs))
    return {
        "rungs_known": known,
        "hardest": min(goals),
        "easiest": max(goals),
        "hardest_rung": _rung(min(goals), data.rungs) if known else None,
        "easiest_rung": _rung(max(goals), data.rungs) if known else None,
    }


def _rung(nats: float, rungs: pd.DataFrame) -> str:
    worse, better = text_results.between(nats, rungs)
    if not worse:
        return "above the 1-gram model"
    if better < 0:
        return f"below the {worse}-gram model"
    return f"between the {worse}-gram and the {better}-gram model"


def _moved(trials: pd.DataFrame) -> dict[str, object]:
    """How the critical batch size moves from the easiest goal to the hardest."""
    main, goals = text_results.main_of(trials), scaling.goals(trials)
    ends = [scaling.curves(scaling.at_goal(main, goal)) for goal in (min(goals), max(goals))]
    known = all(ends) and len(goals) > 1
    moved = scaling.critical_ratio(*(next(iter(own.values())) for own in ends)) if known else None
    row = moved.row("moved") if moved else dict.fromkeys(("moved", "moved_low", "moved_high"))
    return {"goals_compared": moved is not None, **row}


def _over(curves: text_results.Curves) -> dict[str, object]:
    """Steps of other methods, and of the pruned network, over the main curve's."""
    by_name = curves.fits[curves.fits.goal == curves.easy].set_index("curve").critical
    bends = [by_name.get(name) for name in (*curves.sparse.curve.unique()[:1], curves.name)]
    both = len(bends) == 2 and None not in bends
    critical = [
        f"{ranged(r.critical, r.critical_low, r.critical_high)} with {r.curve}"
        for r in curves.here[curves.here.sparsity == 0].itertuples()
    ]
    return {
        "methods_compared": bool(len(curves.dense)),
        "pruned": bool(len(curves.sparse)),
        "critical_by_method": critical,
        "bends_compared": both,
        "bends": bends[0] / bends[1] if both else None,
        "width_small": studies.TEXT_ENDS[0],
        "width_large": studies.TEXT_ENDS[1],
    }


def _layers(layers: pd.DataFrame) -> dict[str, object]:
    """What pruning leaves of the fullest and the emptiest kind of layer."""
    names = ("sparsity", "fullest", "fullest_left", "emptiest", "emptiest_left")
    if not len(layers):
        return {"layers_known": False, "attention_gone": False, **dict.fromkeys(names)}
    left = text_results.left_of_layers(layers)
    most, least = left.iloc[0], left.iloc[-1]
    told = (most.kind, percent(most.left), least.kind, percent(least.left))
    return {
        "layers_known": True,
        "attention_gone": bool(least.kind == "queries and keys" and least.left < 0.02),
        **dict(zip(names, (f"{layers.sparsity.iloc[0]:g}", *told), strict=True)),
    }


def _rates(main: pd.DataFrame) -> dict[str, object]:
    """The power of the batch size by which the best learning rate moves, and what rules say."""
    power, low, high = text_results.rate_power(text_results.best_rates(main))
    known = not np.isnan(power)
    rule = text_results.nearest_rule(power) if known else None
    held = [name for name, own in rate_rules.POWERS.items() if low <= own <= high]
    return {
        "power_known": known,
        "power": power,
        "power_low": low,
        "power_high": high,
        "no_rule": not held,
        "one_rule": len(held) == 1,
        "rule": "that of no change" if rule == "no change" else f"the {rule}",
        "rule_says": SHARES.get(rule),
    }


def _noise(followed: pd.DataFrame, first: pd.Series | None) -> dict[str, object]:
    """The noise scale along the fastest trial, beside the critical batch size."""
    names = ("followed_method", "followed_size", "noise_begin", "noise_end", "noise")
    if not len(followed):
        told = dict.fromkeys((*names, "noise_over_critical"))
        return {"followed": False, "noise_compared": False, **told}
    noise = followed.sort_values("step").noise_scale
    mean = followed_paths.noise_scales(followed).noise_scale.iloc[0]
    method, size = named(followed.algorithm.iloc[0]), int(followed.batch_size.iloc[0])
    values = (method, size, noise.iloc[0], noise.iloc[-1], mean)
    return {
        "followed": True,
        "noise_compared": first is not None,
        "noise_over_critical": mean / first.critical if first is not None else None,
        **dict(zip(names, values, strict=True)),
    }


def _branches(data: Read, run: branched.Run) -> dict[str, object]:
    """Critical batch sizes along one run, beside its noise scale."""
    names = ("run_method", "run_size", "branch_least", "branch_most")
    decided = {"run_decided": False, "run_over_noise": None}
    change = dict.fromkeys(("run_change", "run_change_low", "run_change_high"))
    usual = {"rule_of_run": branched.RULE, "rate_kept": branched.KEPT in run.ways}
    usual |= {"run_moved": False, "along": []}
    if not run.ways:
        none = dict.fromkeys(names)
        return {"branched": False, **usual, **none, **decided, **change}
    points = run.points
    sure = points[points.decided]
    over = sure.critical.to_numpy() / branched.noise_at(data.followed, sure["at"])
    grown = branched.growth(points.iloc[0], points.iloc[1])
    method = named(data.checks.algorithm.iloc[0])
    values = (method, run.base, run.sizes[0], run.sizes[-1])
    return {
        "branched": True,
        **usual,
        **dict(zip(names, values, strict=True)),
        "along": [
            f"{brief(r.critical) if r.decided else 'undecided'} at step {r.at:,}"
            for r in points.itertuples()
        ],
        "run_decided": bool(len(sure)),
        "run_over_noise": between(*over),
        **change,
        "run_moved": grown is not None,
        **(grown.row("run_change") if grown else {}),
    }
