"""What spiking costs in steps and in time, and how sparse it is, beside rectifiers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.spiking import experiments
from chapters.spiking.experiments import BATCH_SIZES, FEW, JUDGED, LONGER, MORE, PRUNED, TIME
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.page import charts, told
from lib.wording import percent, with_interval

NETWORKS = {0: "rectifiers"} | {time: f"spikes, {time} time steps" for time in (TIME, LONGER)}
COLOURS = dict(zip(NETWORKS.values(), (charts.BLUE, charts.ORANGE, charts.PURPLE), strict=True))
WORDS = {0: ("rectifiers: steps", "on", "never on"), TIME: ("spikes: steps", "firing", "silent")}
SMALL, *_, LARGE = BATCH_SIZES
RANGES = {  # as predicted before the records
    "steps_over": ("steps of spikes over rectifiers", 0.5, 2),
    "small_over": (f"the same, batch size {SMALL}", 1, np.inf),
    "large_over": (f"the same, batch size {LARGE:,}", 0, 1),
    "rate_over": ("firing over rectifiers on", 0, 0.5),
    "silent_over": ("silent units, over rectifiers never on", 1, np.inf),
    "longer_steps": (f"steps, {LONGER} over {TIME} time steps", 1 / 1.5, 1.5),
    "pruned_over": ("what pruning costs spikes, over rectifiers", 1, np.inf),
    "cnn_steps": ("CNN, to 8 % error: steps of spikes over rectifiers", 0.5, 2),
    "cnn_rate": ("CNN, to 8 % error: firing over rectifiers on", 0, 0.8),
    "longer_more": (f"steps, {LONGER} over {TIME} time steps, batch size {MORE[0]}", 1 / 1.5, 1.5),
}


def met(
    rows: pd.DataFrame,
    time: int,
    sparsity: float = 0.0,
    model: str = "mlp",
    goal: float | None = None,
) -> pd.DataFrame:
    """Of the records: searches of these networks that met the goal, by default the one that they
    are compared at.
    """
    chosen = (rows.time == time) & (rows.sparsity == sparsity) & (rows.model == model)
    return rows[chosen & (rows.goal == (goal or JUDGED[model]))].dropna(subset="steps")


def over(rows: pd.DataFrame, value: str, *pair, sizes: tuple = BATCH_SIZES) -> Effect | None:
    """ln of a column's ratio, the mean over these batch sizes, of two networks as `met` takes them;
    without these, of spikes over rectifiers.
    """
    pair = (met(rows, *network) for network in pair or ((TIME,), (0,)))
    return replicates.compared(*(replicates.means(own, value, sizes, log=True) for own in pair))


def mean(rows: pd.DataFrame, time: int, value: str) -> float | None:
    """The mean of a column over dense searches and all batch sizes; None of none."""
    found = replicates.means(met(rows, time), value, BATCH_SIZES)
    return float(found.mean()) if len(found) else None


def slower(times: pd.DataFrame, size: int) -> float | None:
    """Seconds of a gradient of spikes over those of rectifiers; None if no time is known."""
    if times.empty:
        return None
    seconds = times[times.batch_size == size].set_index("time").seconds
    return float(seconds[TIME] / seconds[0])


def effects(rows: pd.DataFrame) -> dict[str, Effect | None]:
    """ln of every ratio of the page; rows: the records."""
    longer, cnn = ((LONGER,), (TIME,)), ((TIME, 0.0, "cnn"), (0, 0.0, "cnn"))
    harder, sizes = [(*one, JUDGED["mlp"]) for one in cnn], experiments.CNN_SIZES
    level, size = PRUNED["sparsity"], (PRUNED["batch_size"],)
    return {
        "steps_over": over(rows, "steps"),
        "small_over": over(rows, "steps", sizes=(SMALL,)),
        "large_over": over(rows, "steps", sizes=(LARGE,)),
        "rate_over": over(rows, "rate"),
        "longer_steps": over(rows, "steps", *longer, sizes=FEW),
        "longer_more": over(rows, "steps", *longer, sizes=MORE),
        "longer_over": over(rows, "steps", (LONGER,), (0,), sizes=(*FEW, *MORE)),
        "longer_large": over(rows, "steps", (LONGER,), (0,), sizes=FEW[-1:]),
        "plain_pruned": over(rows, "steps", (0, level), (0,), sizes=size),
        "spiking_pruned": over(rows, "steps", (TIME, level), (TIME,), sizes=size),
        "cnn_steps": over(rows, "steps", *cnn, sizes=sizes),
        "cnn_rate": over(rows, "rate", *cnn, sizes=sizes),
        "cnn_harder": over(rows, "steps", *harder, sizes=sizes),
        "cnn_harder_large": over(rows, "steps", *harder, sizes=sizes[-1:]),
    }


def findings(rows: pd.DataFrame, times: pd.DataFrame) -> dict:
    """All values of the page's sentences; rows, times: the records."""
    known = effects(rows)
    in_numbers = "rate_over", "plain_pruned", "spiking_pruned", "cnn_steps", "cnn_rate"
    values = told.ratios({name: known[name] for name in in_numbers}, ("rate_over", "cnn_steps"))
    ratio, plain, spiking = (values[n] for n in ("rate_over", "plain_pruned", "spiking_pruned"))
    silent, never_on = (mean(rows, time, "silent") for time in (TIME, 0))
    pruned = rows[(rows.sparsity > 0) & (rows.goal == JUDGED["mlp"])]
    done = pruned.groupby("time").steps.count().to_dict()
    unmet = pruned[(pruned.time == TIME) & pruned.steps.isna()]  # told before their first step
    harder = rows[(rows.model == "cnn") & (rows.goal == JUDGED["mlp"])]
    return {
        **values,
        "steps_told": told.times(known["steps_over"]),
        "small_told": told.times(known["small_over"]),
        "large_told": told.times(known["large_over"]),
        "large_open": bool((large := known["large_over"]) and large.low < 0 < large.high),
        "longer_told": told.times(known["longer_steps"]),
        "longer_over": told.times(known["longer_over"]),
        "longer_large": told.times(known["longer_large"]),
        "longer_searches": known["longer_steps"].n if known["longer_steps"] else 0,
        "slow_small": slower(times, SMALL),
        "slow_large": slower(times, LARGE),
        "goal": percent(JUDGED["mlp"]),
        "time": TIME,
        "longer": LONGER,
        "searches": known["rate_over"].n if known["rate_over"] else None,
        "planned": len(experiments.REPLICATES),
        "trials": experiments.Search(TIME, SMALL).trials,
        "small": SMALL,
        "large": LARGE,
        "rate": mean(rows, TIME, "rate"),
        "on": mean(rows, 0, "rate"),
        "summed": ratio and TIME * ratio,
        "silent_over": silent and never_on and silent / never_on,
        "pruned_searches": pruned.replicate.nunique(),
        "plain_met": done.get(0, 0),
        "spiking_met": done.get(TIME, 0),
        "pruned_over": plain and spiking and spiking / plain,
        "unmet_rate": (100 * unmet.rate).tolist(),
        "unmet_silent": (100 * unmet.silent).tolist(),
        "cnn_searches": known["cnn_steps"].n if known["cnn_steps"] else 0,
        "cnn_trials": experiments.CNN["trials"],
        "cnn_all": bool(harder.steps.notna().all()),
        "cnn_harder": told.times(known["cnn_harder"]),
        "cnn_harder_large": told.times(known["cnn_harder_large"]),
    }


def predictions(values: dict[str, object], rows: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, beside what came; values: of `findings`."""
    came = values | {name: told.interval(effect) for name, effect in effects(rows).items()}
    return told.predictions((*RANGES[name], came[name]) for name in RANGES)


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """Steps, their interval and searches of every dense network, one below the other."""
    own = pd.concat([met(rows, time) for time in NETWORKS])
    found = replicates.by_size(own, "steps", by=("time",))
    found = found.rename(columns={"steps_low": "low", "steps_high": "high"})
    return found.assign(network=found.time.map(NETWORKS))


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Steps and activity of rectifiers and of spikes, a row per batch size."""
    own, found = pd.concat([met(rows, time) for time in WORDS]), {}
    shares = own.groupby(["time", "batch_size"])[["rate", "silent"]].mean().reset_index()
    for one in replicates.by_size(own, "steps", by=("time",)).merge(shares).itertuples():
        row = found.setdefault(one.batch_size, {"batch size": one.batch_size})
        steps, on, never = WORDS[one.time]
        row[steps] = with_interval(one.steps, one.steps_low, one.steps_high)
        row[on] = percent(one.rate)
        row[never] = percent(one.silent)
    return pd.DataFrame(found.values()).fillna("—")
