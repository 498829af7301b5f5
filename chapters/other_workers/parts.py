"""What it takes to train parts of a network, over training the whole.

Tables of what is on record have a row per trial and goal, with costs until the goal was met: steps,
adds (multiply-adds) and sent (numbers).
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.other_workers import parts_experiments as experiments
from chapters.other_workers.parts_experiments import EXPERIMENTS
from chapters.other_workers.sizes import CLASSES, INPUTS, UNITS
from lib.analysis import scaling
from lib.analysis.scaling import Effect
from lib.page import charts, tips
from lib.wording import number, with_interval

COSTS = {"steps": "training steps", "adds": "multiply-adds", "sent": "numbers sent"}
COLOURS = (charts.ORANGE, charts.PURPLE, charts.TEAL, charts.RED)
EXAMPLES = 1350  # of the training set
PARTS, PARALLEL = f"parts, {experiments.PUBLISHED} local steps", "data parallelism"
LARGE, SMALL, GROWN, *_ = experiments.GROWTHS.values()
UNCUT, APART, RECOVERED = experiments.HALVES.values()


def _by_goal(trials: pd.DataFrame) -> pd.DataFrame:
    names = trials.filter(like="steps@").columns
    found = trials.melt(trials.columns.difference(names), names, "goal", "steps")
    found["goal"] = found.goal.str.removeprefix("steps@").astype(float)
    found.attrs = trials.attrs
    return found


def subnetworks() -> pd.DataFrame:
    """Trials with arm: how many local steps, or PARALLEL, and size: among how many workers, each
    with as many examples a step; and the costs of one worker.
    """
    planned = [one for one in experiments.subnetworks() if one.workload == "digits-mlp"]
    found = _by_goal(EXPERIMENTS["subnetworks"].results(planned))
    arms = [f"parts, {n} local step{'s' * (n > 1)}" for n in found.local_steps]
    examples = experiments.Subnetworks.batch_size
    return found.assign(
        arm=np.where(found.workers == 1, PARALLEL, arms),
        size=found.workers * found.batch_size // examples,
        adds=found.steps * examples * multiply_adds(UNITS // found.workers),
        sent=found.sent * np.ceil(found.steps / found.local_steps),
    )


def growing() -> pd.DataFrame:
    """Trials with arm: how the network grew, and size: of a batch."""
    found = _by_goal(EXPERIMENTS["growing"].results())
    adds = 0
    for n in range(3):  # stages, of which the last has no end
        most = found.stage.where(n < found.doublings, np.inf).where(n <= found.doublings, 0)
        spent = (found.steps - n * found.stage).clip(0, most)
        adds += found.batch_size * spent * multiply_adds(found["first"] * 2**n)
    rules = zip(found["first"], found.doublings, found.scaled, found.by_norm)
    arms = [experiments.GROWTHS[rule] for rule in rules]
    return found.assign(arm=arms, size=found.batch_size, adds=adds)


def halves() -> pd.DataFrame:
    """Trials with arm, in words, and size: of a batch.  Two devices, with a half each, exchange the
    left one's outputs and their derivatives, or outputs once for every training example.
    """
    found = _by_goal(EXPERIMENTS["halves"].results())
    before = found.arm.map({"whole": 0, "halves": np.inf}).fillna(2 * found.stage)
    together = (found.steps - before).clip(lower=0)  # steps of the whole network
    sent = UNITS * (EXAMPLES * (found.arm != "whole") + 2 * found.batch_size * together)
    return found.assign(arm=found.arm.map(experiments.HALVES), size=found.batch_size, sent=sent)


def multiply_adds(width: pd.Series) -> pd.Series:
    """Per example: forward, and backward by weights and activations, but not by the inputs."""
    return 2 * INPUTS * width + 3 * (width * width + width * CLASSES)


def beside(trials: pd.DataFrame, whole: str) -> pd.DataFrame:
    """A row per search of a part, goal and cost, beside the search of the whole network, an arm of
    the trials: arm, size, replicate, goal, what (of COSTS), value and value_whole (each the least
    of any trial, NaN where none met the goal), and ratio.
    """
    costs = [what for what in COSTS if what in trials]
    least = trials.groupby(["goal", "arm", "size", "replicate"], sort=False)[costs].min()
    long = least.melt(var_name="what", ignore_index=False).reset_index()
    own = long.arm == whole
    on = ["size", "replicate", "what", "goal"]
    rivals = long[own].drop(columns="arm")
    found = long[~own].merge(rivals, on=on, suffixes=("", "_whole"), validate="m:1")
    return found.assign(ratio=found.value / found.value_whole)


def over_whole(trials: pd.DataFrame, whole: str) -> pd.DataFrame:
    """`ratios` of `beside`."""
    return ratios(beside(trials, whole))


def hardest(searches: pd.DataFrame) -> pd.DataFrame:
    """The rows of `beside` at the hardest goal."""
    return searches[searches.goal == searches.goal.min()]


def mean_ratio(ratios: pd.Series) -> Effect | None:
    """ln of the geometric mean over searches; None if a search of either missed the goal."""
    return scaling.mean_of(np.log(ratios)) if len(ratios) and ratios.notna().all() else None


def ratios(searches: pd.DataFrame) -> pd.DataFrame:
    """Geometric means of `beside`: goal, what, arm, size, effect, low, high (90 %; NaN unless all
    searches meet the goal), n (searches) and met (those of the part that meet it).
    """
    by = ["goal", "what", "arm", "size"]
    rows = []
    for keys, own in searches.groupby(by, sort=False):
        found = mean_ratio(own.ratio)
        ends = found.row().values() if found else [np.nan] * 3
        rows.append((*keys, *ends, len(own), own.value.count()))
    return pd.DataFrame(rows, columns=[*by, "effect", "low", "high", "n", "met"])


def chart(parts: pd.DataFrame) -> alt.LayerChart:
    """What parts take over data parallelism; a menu of costs, a slider over goals.

    parts: of `over_whole`, of `subnetworks`.
    """
    shown = parts.dropna(subset="effect")
    shown = shown.assign(what=shown.what.map(COSTS))
    shown["interval"] = list(map(with_interval, shown.effect, shown.low, shown.high))
    scale = charts.log(12)
    axis = charts.fractions(values=[2.0**n for n in range(-6, 7)])
    y = alt.Y("effect:Q", title=None, scale=scale, axis=axis)
    colours = dict(zip(shown.arm.unique(), COLOURS))
    sizes = "workers, each with its own examples"
    base = alt.Chart(shown).encode(
        x=alt.X("size:O", title=sizes, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("arm:N", sort=list(colours)),
        color=charts.by_name("arm", colours),
    )
    about = {"arm:N": "way", "size:O": "workers", "interval:N": "ratio (5–95 %)"}
    bars, _, dots = charts.curve(base, y, scale, tips.listed(about | {"n:Q": "searches"}), 80)
    menu = charts.menu("what", list(COSTS.values()), COSTS["steps"], "compare")
    drawn = charts.controlled(
        [bars, dots], menu, charts.goal_slider(sorted(shown.goal.unique()))
    )
    title = charts.beside(f"what_chosen + ', over those of {PARALLEL}'")
    return charts.sized(alt.layer(charts.across(1, y=scale), drawn, title), 300)


def table(grown: pd.DataFrame, cut: pd.DataFrame) -> pd.DataFrame:
    """Ratios at the hardest goal, a column per batch size, where all searches meet it.

    Args:
        grown: of `over_whole`, of `growing`.
        cut: the same, of `halves`.
    """
    shown = pd.concat([hardest(grown).query("what == 'adds'"), hardest(cut)])
    ends = zip(shown.effect, shown.low, shown.high)
    missed = "{} of {} meet it".format
    told = [
        with_interval(*row) if met == n else missed(met, n)
        for row, met, n in zip(ends, shown.met, shown.n)
    ]
    shown = shown.assign(way=shown.arm, cost=shown.what.map(COSTS), told=told)
    wide = shown.pivot(index=["way", "cost"], columns="size", values="told")
    return wide.rename(columns=lambda size: f"batch {number(size)}").fillna("—").reset_index()
