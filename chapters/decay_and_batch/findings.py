"""What the page on rates and decay says, as numbers and words, with its figures and its tables."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.decay_and_batch import experiments, rates
from chapters.decay_and_batch.rates import VALUES
from lib.analysis import replicates
from lib.claims.names import title
from lib.page import charts, shared_figures, tips, told
from lib.wording import brief, named, percent

SMALL, *_, LARGE = experiments.BATCH_SIZES
RANGES = {  # as predicted before the records, for either method
    "moves": ("timescale at the largest batch, over the smallest", 0.5, 2),
    "decay": ("power of the batch in the best decay", 0.3, 0.9),
    "gain": ("least loss without decay, over that with it", 1.05, 1.5),
}


def findings(good: pd.DataFrame, growths: pd.DataFrame, found: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences.

    good, growths: of `rates`.  found: the trials of `experiments.DECAYED`.
    """
    values, gains, highs = {}, [], []
    powers = growths.effect.map(rates.power)
    for name in experiments.SPACES:
        own = good[good.algorithm == name]
        effects = rates.effects(own)
        gains.append(effects["gain"])
        ratios = {f"{name}_{key}": effects[key] for key in ("moves", "gain")}
        values |= told.ratios(ratios, ratios)
        values |= _decay(name, own, effects["decay"])
        highs.append(values[f"{name}_decay_high"])
        values[f"{name}_shares"] = own.timescale.tolist()
        values[f"{name}_powers"] = powers[growths.algorithm == name].dropna().tolist()
    counts = found.groupby("algorithm").replicate.nunique()
    return {
        **values,
        # Than in proportion to the batch
        "slower": all(high is not None and high < 1 for high in highs),
        "worth": any(one.low > 0 for one in gains if one),
        "known_powers": powers.dropna().tolist(),
        "methods": int(growths.algorithm.nunique()),
        "networks": int(growths.workload.nunique()),
        "edges": sum(one.above for one in growths.effect),
        "curves": len(growths),
        "searches": [f"{n} with {named(name)}" for name, n in counts.items()],
        "trials": int(found.trials.max()),
        "epochs": int(found.epochs.max()),
        "best": rates.BEST,
        "small": SMALL,
        "large": LARGE,
        "times": LARGE // SMALL,
        "diverged": percent(found.loss.isna().mean()),
        "decays": [*experiments.DECAYS],
    }


def _decay(name: str, own: pd.DataFrame, effect: object) -> dict[str, object]:
    """As which power of the batch one method's best decay grows, with the ends of its interval, and
    the mean timescale at every batch size.
    """
    names = [f"{name}_decay{end}" for end in ("", "_low", "_high")]
    powers = told.interval(effect, log=False) or [None] * 3
    means = np.log(own.timescale).groupby(own.batch_size).mean()
    return {**dict(zip(names, powers)), f"{name}_means": np.exp(means).tolist()}


def points(single: pd.DataFrame) -> pd.DataFrame:
    """The means of single searches by algorithm and measure, as of `replicates.by_size`."""
    parts, ends = [], {"value_low": "low", "value_high": "high"}
    for (name, measure), own in single.groupby(["algorithm", "measure"]):
        names = {"algorithm": name, "method": named(name), "measure": measure}
        parts.append(replicates.by_size(own, "value").rename(columns=ends).assign(**names))
    return pd.concat(parts, ignore_index=True)


def chart(good: pd.DataFrame) -> alt.LayerChart:
    """The timescale of the best trials against batch size, a colour for each method; faint: single
    searches; a menu shows decay and rate instead.
    """
    single = good.melt(["algorithm", "batch_size", "replicate"], [*VALUES], "kind")
    single["measure"] = single.kind.map(VALUES)
    rows, by_measure = points(single), single.groupby("measure").value
    rows["low"] = rows.low.clip(lower=rows.measure.map(by_measure.min()) / 3)
    rows["high"] = rows.high.clip(upper=rows.measure.map(by_measure.max()) * 3)
    scale = charts.log(14, base=10)
    y = alt.Y("value:Q", title="of the best trials", scale=scale, axis=alt.Axis(format="~g"))
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        color=charts.by_algorithm(list(rows.algorithm.unique())),
    )
    tooltip = [tips.tip("method:N", "training method"), tips.BATCH_SIZE]
    tooltip += [tips.tip("value:Q", "value", ".2g"), tips.tip("searches:Q", "searches")]
    faint = base.properties(data=single).mark_point(size=40, opacity=0.45).encode(y=y)
    what = charts.menu("measure", [*VALUES.values()], VALUES["timescale"], "show")
    layers = [faint, *charts.curve(base, y, scale, tooltip)]
    return charts.sized(charts.controlled(layers, what), 330)


def growth_chart(growths: pd.DataFrame) -> alt.LayerChart:
    """Growth of the best rate per doubling of the batch, a row for each method and a colour for
    each network, beside no change, √2 and 2.
    """
    found = []
    for row in growths.sort_values(["algorithm", "workload"]).itertuples():
        names = {
            "row": named(row.algorithm),
            "label": title(row.workload),
            "sizes": f"{row.sizes} batch sizes",
        }
        found.append(names | row.effect.row("ratio"))
    networks = sorted({row["label"] for row in found})
    shades = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.PURPLE)
    colour = charts.by_name("label", dict(zip(networks, shades)))
    words = "growth of the best rate per doubling of the batch"
    rows = pd.DataFrame(found)
    return shared_figures.ratios(rows, words, colour, (1, 2**0.5, 2), beyond=1.2)


def moves(good: pd.DataFrame) -> pd.DataFrame:
    """How decay, rate and timescale move with the batch, and what decay is worth, by method."""
    rows = []
    for name, own in good.groupby("algorithm"):
        effects = rates.effects(own)
        rows.append(
            {
                "method": named(name),
                "power of the batch in decay": _interval(effects["decay"]),
                "in the rate": _interval(effects["rate"]),
                f"timescale at {LARGE} over {SMALL}": told.times(effects["moves"]),
                "least loss without decay over that with it": told.times(effects["gain"]),
                "searches": own.replicate.nunique(),
            }
        )
    return pd.DataFrame(rows)


def _interval(effect: object) -> str:
    """A power with its interval, which may lie below zero; a dash where there is none."""
    return f"{brief(effect.value)} ({brief(effect.low)} to {brief(effect.high)})" if effect else "—"


def predictions(good: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, beside what came; good: of `rates`."""
    effects = {name: rates.effects(good[good.algorithm == name]) for name in experiments.SPACES}
    return told.predictions(
        (f"{named(name)}: {words}", low, high, told.interval(effects[name][key], key != "decay"))
        for key, (words, low, high) in RANGES.items()
        for name in experiments.SPACES
    )
