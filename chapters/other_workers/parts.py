"""What training parts of a network costs, compared with training the whole.

Tables of the records have a row per trial and goal, with costs until the goal was met: steps, adds
(multiply-adds) and sent (numbers).
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
from lib.wording import brief, joined, number, percent, with_interval

COSTS = {"steps": "training steps", "adds": "multiply-adds", "sent": "numbers sent"}
COLOURS = (charts.ORANGE, charts.PURPLE, charts.TEAL, charts.RED)
EXAMPLES = 1350  # in the training set
PARTS, PARALLEL = f"parts, {experiments.PUBLISHED} local steps", "data parallelism"
LARGE, SMALL, GROWN, ONE_RATE, _ = experiments.GROWTHS.values()
UNCUT, APART, RECOVERED = experiments.HALVES.values()


def _by_goal(trials: pd.DataFrame) -> pd.DataFrame:
    names = trials.filter(like="steps@").columns
    rows = trials.melt(trials.columns.difference(names), names, "goal", "steps")
    return rows.assign(goal=rows.goal.str.removeprefix("steps@").astype(float))


def subnetworks() -> pd.DataFrame:
    """Trials with arm (number of local steps, or PARALLEL), size (number of workers, each with the
    same number of examples per step), and the costs of one worker.
    """
    planned = [
        search for search in experiments.subnetworks() if search.workload == "digits-mlp"
    ]
    rows = _by_goal(EXPERIMENTS["subnetworks"].results(planned))
    arms = [f"parts, {n} local step{'s' * (n > 1)}" for n in rows.local_steps]
    examples = experiments.Subnetworks.batch_size
    return rows.assign(
        arm=np.where(rows.workers == 1, PARALLEL, arms),
        size=rows.workers * rows.batch_size // examples,
        adds=rows.steps * examples * multiply_adds(UNITS // rows.workers),
        sent=rows.sent * np.ceil(rows.steps / rows.local_steps),
    )


def growing() -> pd.DataFrame:
    """Trials with arm (how the network grew) and size (of a batch)."""
    rows, adds = _by_goal(EXPERIMENTS["growing"].results()), 0
    for n in range(3):  # stages; the last is open-ended
        most = rows.stage.where(n < rows.doublings, np.inf).where(n <= rows.doublings, 0)
        steps = (rows.steps - n * rows.stage).clip(0, most)
        width = rows["first"] * 2**n
        adds += rows.batch_size * steps * multiply_adds(width)
    rules = zip(rows["first"], rows.doublings, rows.scaled, rows.by_norm)
    arms = [experiments.GROWTHS[rule] for rule in rules]
    return rows.assign(arm=arms, size=rows.batch_size, adds=adds)


def halves() -> pd.DataFrame:
    """Trials with arm (in words) and size (of a batch).  Two devices with one half each exchange
    the left half's outputs and their derivatives, or its outputs once per training example.
    """
    rows = _by_goal(EXPERIMENTS["halves"].results())
    before = rows.arm.map({"whole": 0, "halves": np.inf}).fillna(2 * rows.stage)
    together = (rows.steps - before).clip(lower=0)  # steps of the whole network
    sent = UNITS * (EXAMPLES * (rows.arm != "whole") + 2 * rows.batch_size * together)
    return rows.assign(arm=rows.arm.map(experiments.HALVES), size=rows.batch_size, sent=sent)


def multiply_adds(width: pd.Series) -> pd.Series:
    """Per example: the forward pass, and derivatives by weights and activations except inputs."""
    return 2 * INPUTS * width + 3 * (width * width + width * CLASSES)


def beside_whole(trials: pd.DataFrame, uncut: str) -> pd.DataFrame:
    """A row per search of a part, goal and cost, beside the search of the whole network (arm
    `uncut`): arm, size, replicate, goal, what (of COSTS), value and value_whole (each the least of
    any trial, NaN if none met the goal), and ratio.
    """
    costs = [cost for cost in COSTS if cost in trials]
    least = trials.groupby(["goal", "arm", "size", "replicate"], sort=False)[costs].min()
    rows = least.melt(var_name="what", ignore_index=False).reset_index()
    keys = ["size", "replicate", "what", "goal"]
    is_whole = rows.arm == uncut
    rivals = rows[is_whole].drop(columns="arm")
    pairs = rows[~is_whole].merge(rivals, on=keys, suffixes=("", "_whole"), validate="m:1")
    return pairs.assign(ratio=pairs.value / pairs.value_whole)


def over_whole(trials: pd.DataFrame, uncut: str) -> pd.DataFrame:
    """Geometric means of `beside_whole`: goal, what, arm, size, effect, low, high (90 %; NaN unless
    all searches meet the goal), n (searches) and met (those of the part that meet it).
    """
    rows, keys = [], ["goal", "what", "arm", "size"]
    for key, searches in beside_whole(trials, uncut).groupby(keys, sort=False):
        mean = mean_ratio(searches.ratio)
        ends = mean.row().values() if mean else [np.nan] * 3
        rows.append((*key, *ends, len(searches), searches.value.count()))
    return pd.DataFrame(rows, columns=[*keys, "effect", "low", "high", "n", "met"])


def hardest(searches: pd.DataFrame) -> pd.DataFrame:
    """The rows of `beside_whole` at the hardest goal."""
    return searches[searches.goal == searches.goal.min()]


def mean_ratio(ratios: pd.Series) -> Effect | None:
    """The mean of ln ratio over searches; None if a search of either missed the goal."""
    return scaling.mean_of(np.log(ratios)) if len(ratios) and ratios.notna().all() else None


def chart(ratios: pd.DataFrame) -> alt.LayerChart:
    """Costs of parts over those of data parallelism, with a menu of costs and a slider for goals.

    ratios: from `over_whole` on `subnetworks`.
    """
    points = ratios.assign(what=ratios.what.map(COSTS))
    points["interval"] = list(map(with_interval, points.effect, points.low, points.high))
    scale, colours = charts.log(12), dict(zip(points.arm.unique(), COLOURS))
    axis = charts.fractions(values=[2.0**n for n in range(-6, 7)])
    y = alt.Y("effect:Q", title=None, scale=scale, axis=axis)
    sizes = "workers, each with its own examples"
    base = alt.Chart(points).encode(
        x=alt.X("size:O", title=sizes, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("arm:N", sort=list(colours)),
        color=charts.by_name("arm", colours, 1),
    )
    about = {"arm:N": "way", "size:O": "workers", "interval:N": "ratio (5–95 %)"}
    bars, _, dots = charts.curve(base, y, scale, tips.listed(about | {"n:Q": "searches"}))
    menu = charts.menu("what", list(COSTS.values()), COSTS["steps"], "compare")
    slider = charts.goal_slider(sorted(points.goal.unique()))
    missed = base.mark_text(text="missed", angle=270, align="left").encode(y=alt.value(290))
    missed = missed.transform_filter("!isValid(datum.effect)")
    marks = charts.controlled([bars, dots, missed], menu, slider)
    title = charts.beside(f"what_chosen + ', over those of {PARALLEL}'")
    drawn = alt.layer(charts.across(1, y=scale), marks, title)
    return charts.sized(drawn.add_params(charts.title(titles(ratios), menu, slider)), 300)


def titles(ratios: pd.DataFrame) -> dict[str, list[str]]:
    """The figure's titles on PARTS, by cost: a text per goal, the hardest first; ratios: as for
    `chart`.
    """
    rows = ratios[ratios.arm == PARTS].dropna(subset="effect")
    way, said = f"parts with {experiments.PUBLISHED} local steps", {}
    for (what, goal), part in rows.groupby(["what", "goal"]):
        cost = COSTS[what]
        ratios = map(brief, part.effect)
        workers = part["size"].map("({} workers)".format)
        times = joined(list(map(" ".join, zip(ratios, workers))))
        words = f"To {percent(goal)} error, {way} take {times} times the {cost}"
        said.setdefault(cost, []).append(words)
    return said


def table(grown: pd.DataFrame, cut: pd.DataFrame) -> pd.DataFrame:
    """Ratios at the hardest goal, a column per batch size; counts where not all searches meet it.

    Args:
        grown: from `over_whole` on `growing`.
        cut: from `over_whole` on `halves`.
    """
    grown = hardest(grown[grown.what == "adds"])
    rows = pd.concat([grown[grown.arm != ONE_RATE], hardest(cut[cut.arm == RECOVERED])])
    cells = [
        with_interval(row.effect, row.low, row.high)
        if row.met == row.n
        else f"{row.met} of {row.n} meet it"
        for row in rows.itertuples()
    ]
    rows = rows.assign(way=rows.arm, cost=rows.what.map(COSTS), cell=cells)
    wide = rows.pivot(index=["way", "cost"], columns="size", values="cell")
    return wide.rename(columns=lambda size: f"batch {number(size)}").fillna("—").reset_index()
