"""How the best weight decay, learning rate and timescale follow the batch size."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.disputed import arms, rates
from chapters.disputed.decay_experiments import BATCH_SIZES, SPACES
from lib.analysis import replicates
from lib.claims.names import title
from lib.page import charts, tips, told
from lib.wording import named

SMALL, *_, LARGE = BATCH_SIZES
RANGES = {  # of `rates.effects`, as predicted of either method; None: no prediction
    "moves": (f"timescale at batches of {LARGE}, over {SMALL}", 0.5, 2),
    "decay": ("power of the batch in the best decay", 0.3, 0.9),
    "rate": ("power of the batch in the best rate", None, None),
    "gain": ("least loss without decay, over that with it", 1.05, 1.5),
}
POWERS = ("decay", "rate")


def values(good: pd.DataFrame) -> dict[str, object]:
    """What the section's sentences name; good: of `rates`."""
    effects = {name: rates.effects(good[good.algorithm == name]) for name in SPACES}
    power = told.interval(effects["adam"]["decay"], log=False)
    return {
        **{f"{name}_moves": told.times(effects[name]["moves"]) for name in SPACES},
        **dict(zip(("adam_power", "adam_power_low", "adam_power_high"), power)),
    }


def table(good: pd.DataFrame) -> pd.DataFrame:
    """What rates and decays of the best trials say, beside what was predicted; good: of `rates`."""
    effects = {name: rates.effects(good[good.algorithm == name]) for name in SPACES}
    return arms.table(
        (
            f"{named(name)}: {what}",
            low,
            high,
            told.interval(effects[name][key], key not in POWERS),
        )
        for key, (what, low, high) in RANGES.items()
        for name in SPACES
    )


def growths() -> pd.DataFrame:
    """Growth of the best rate per doubling of the batch, a row per method, a column per network."""
    found = rates.growths()
    cells = found.effect.map(told.times)
    names = {"method": found.algorithm.map(named), "network": found.workload.map(title)}
    by_both = found.assign(cell=cells, **names).pivot(
        index="method", columns="network", values="cell"
    )
    return by_both.fillna("—").reset_index()


def chart(good: pd.DataFrame) -> alt.LayerChart:
    """The timescale of the best trials against batch size, a colour for each method; faint: single
    searches; good: of `rates`.
    """
    rows = replicates.by_size(good, "timescale", by=("algorithm",))
    low, high = good.timescale.min() / 3, good.timescale.max() * 3
    rows["low"] = rows.timescale_low.clip(lower=low)
    rows["high"] = rows.timescale_high.clip(upper=high)
    rows["method"] = rows.algorithm.map(named)
    scale = charts.log(14, base=10)
    axis = alt.Axis(format="~g")
    y = alt.Y("timescale:Q", title="timescale (share of the training)", scale=scale, axis=axis)
    colour = charts.by_algorithm(list(rows.algorithm.unique()))
    base = alt.Chart(rows).encode(x=charts.batch_axis(rows.batch_size), color=colour)
    tooltip = [tips.tip("method:N", "training method"), tips.BATCH_SIZE]
    tooltip += [tips.tip("timescale:Q", "timescale", ".2g"), tips.tip("searches:Q", "searches")]
    single = good[["algorithm", "batch_size", "timescale"]]
    faint = base.properties(data=single).mark_point(size=40, opacity=0.45).encode(y=y)
    return charts.sized(alt.layer(faint, *charts.curve(base, y, scale, tooltip)), 330)
