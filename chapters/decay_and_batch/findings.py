"""What the page on rates and decay says, as numbers and words, with its figures and its tables."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.decay_and_batch import exponents, searches, timescales
from chapters.decay_and_batch.timescales import VALUES
from lib.analysis import replicates
from lib.claims.names import title
from lib.methods import method
from lib.page import charts, shared_figures, tips, told
from lib.wording import between, brief, percent, with_interval

SMALL, *_, LARGE = searches.BATCH_SIZES
RANGES = {  # as predicted before the records
    "adam_moves": ("Adam: timescale at the largest batch, over the smallest", 0.5, 2),
    "muon_moves": ("Muon: timescale at the largest batch, over the smallest", 0.5, 2),
    "adam_decay": ("Adam: power of the batch in the best decay", 0.3, 0.9),
    "muon_decay": ("Muon: power of the batch in the best decay", 0.3, 0.9),
    "adam_gain": ("Adam: least loss without decay, over that with it", 1.05, 1.5),
    "muon_gain": ("Muon: least loss without decay, over that with it", 1.05, 1.5),
}


def findings(good: pd.DataFrame, rates: pd.DataFrame, found: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        good: of `timescales.good`.
        rates: of `exponents.growths`.
        found: the trials of `searches.DECAYED`.
    """
    values, worth = {}, False
    for name in searches.SPACES:
        own = good[good.algorithm == name]
        moves = timescales.across(own, "timescale")
        gained = timescales.gain(own)
        values[f"{name}_moves"] = _ratio(moves)
        values[f"{name}_gain"] = _ratio(gained)
        worth = worth or bool(gained and gained.low > 0)
        for key, column in (("decay", "weight_decay"), ("rate", "learning_rate")):
            power = timescales.power(own, column)
            values[f"{name}_{key}"] = power.value if power else None
        values[f"{name}_shares"] = own.timescale.tolist()
    powers = {}
    for row in filter(exponents.known, rates.itertuples()):
        powers.setdefault(row.algorithm, []).append(exponents.powers(row)[0])
    ranked = sorted(powers, key=lambda name: np.mean(powers[name]))
    return {
        **values,
        "worth": worth,
        "low_end": percent(timescales.at_low_end(found, *_decays())),
        "every_least": min((min(own) for own in powers.values()), default=None),
        "every_most": max((max(own) for own in powers.values()), default=None),
        "methods": int(rates.algorithm.nunique()),
        "known": sum(map(len, powers.values())),
        "networks": int(rates.workload.nunique()),
        "edges": int(rates.edge.sum()),
        "curves": len(rates),
        "flattest": method(ranked[0]).title if ranked else None,
        "steepest": method(ranked[-1]).title if ranked else None,
        "muon_powers": powers.get("muon", []),
        "adam_powers": powers.get("adam", []),
        "searches": [f"{n} with {method(name).title}" for name, n in _searches(found).items()],
        "trials": int(found.trials.max()),
        "epochs": int(found.epochs.max()),
        "best": timescales.BEST,
        "small": SMALL,
        "large": LARGE,
        "times": LARGE // SMALL,
        "diverged": percent(found.loss.isna().mean()),
        "decays": between(*_decays()),
    }


def _searches(found: pd.DataFrame) -> dict[str, int]:
    """How many searches each method has."""
    return found.groupby("algorithm").replicate.nunique().to_dict()


def _decays() -> tuple[float, float]:
    low, high = searches.DECAYS.partition("=")[2].split("..")
    return float(low), float(high)


def _ratio(effect) -> float | None:
    return float(np.exp(effect.value)) if effect else None


def _interval(effect) -> str:
    """A power with its interval, which may lie below zero; a dash where there is none."""
    if effect is None:
        return "—"
    return f"{brief(effect.value)} ({brief(effect.low)} to {brief(effect.high)})"


def points(good: pd.DataFrame) -> pd.DataFrame:
    """What the figure of decay draws: algorithm, method, batch_size, measure (of VALUES), value,
    low, high, searches.
    """
    parts = []
    for name, own in good.groupby("algorithm"):
        by = replicates.by_size(own, *VALUES)
        for value, words in VALUES.items():
            ends = {value: "value", f"{value}_low": "low", f"{value}_high": "high"}
            some = by.rename(columns=ends)[["batch_size", "searches", "value", "low", "high"]]
            parts.append(some.assign(algorithm=name, method=method(name).title, measure=words))
    return pd.concat(parts, ignore_index=True)


def chart(good: pd.DataFrame) -> alt.LayerChart:
    """The timescale of the best trials against batch size, a colour for each method; faint: single
    searches; a menu shows decay and rate instead.
    """
    if not len(good):
        return charts.nothing("Nothing is measured yet.")
    rows = points(good)
    single = good.melt(["algorithm", "batch_size", "replicate"], [*VALUES], "kind")
    single = single.assign(measure=single.kind.map(VALUES))
    reach = single.groupby("measure").value.agg(["min", "max"])
    rows["low"] = rows.low.clip(lower=rows.measure.map(reach["min"]) / 3)
    rows["high"] = rows.high.clip(upper=rows.measure.map(reach["max"]) * 3)
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


def growth_chart(rates: pd.DataFrame) -> alt.LayerChart:
    """Growth of the best rate per doubling of the batch, a row for each method and a colour for
    each network, beside no change, √2 and 2.
    """
    if not len(rates):
        return charts.nothing("Nothing is measured yet.")
    found = []
    for row in rates.sort_values(["algorithm", "workload"]).itertuples():
        growth = exponents.effect(row).row("ratio")
        sizes = f"{row.sizes} batch sizes"
        names = {"row": method(row.algorithm).title, "label": title(row.workload), "sizes": sizes}
        found.append({**names, **growth})
    rows = pd.DataFrame(found)
    shades = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.PURPLE)
    colours = dict(zip(sorted(rows.label.unique()), shades))
    words = "growth of the best rate per doubling of the batch"
    colour = charts.by_name("label", colours)
    return shared_figures.ratios(rows, words, colour, (1, 2**0.5, 2), beyond=1.2)


def rate_table(rates: pd.DataFrame) -> pd.DataFrame:
    """The power of the batch size with which the best rate grows, a row for each method and a
    column for each network.
    """
    rows = {}
    for row in rates.itertuples():
        value, low, high = map(brief, exponents.powers(row))
        bound = f"{value} ({low} or more)" if row.edge else f"{value} ({low} to {high})"
        rows.setdefault(method(row.algorithm).title, {})[title(row.workload)] = bound
    table = pd.DataFrame(rows).T.fillna("—")
    return table.rename_axis("method").reset_index()


def table(good: pd.DataFrame) -> pd.DataFrame:
    """What the best trials have at each batch size, a row for each method and size."""
    found = []
    for name, own in good.groupby("algorithm"):
        for row in replicates.by_size(own, *VALUES, "loss", "plain").to_dict("records"):
            cells = {
                words: with_interval(*(row[f"{value}{end}"] for end in ("", "_low", "_high")))
                for value, words in VALUES.items()
            }
            about = {"method": method(name).title, "batch size": int(row["batch_size"])}
            least = {"least loss": brief(row["loss"]), "without decay": brief(row["plain"])}
            found.append({**about, **cells, **least})
    return pd.DataFrame(found)


def moves(good: pd.DataFrame) -> pd.DataFrame:
    """How decay, rate and timescale move with the batch, and what decay is worth, by method."""
    found = []
    for name, own in good.groupby("algorithm"):
        ratios = {
            f"timescale at {LARGE} over {SMALL}": timescales.across(own, "timescale"),
            "least loss without decay over that with it": timescales.gain(own),
        }
        row = {
            "method": method(name).title,
            "power of the batch in decay": _interval(timescales.power(own, "weight_decay")),
            "in the rate": _interval(timescales.power(own, "learning_rate")),
        }
        row |= {
            words: with_interval(*one.row().values()) if one else "—"
            for words, one in ratios.items()
        }
        found.append(row | {"searches": own.replicate.nunique()})
    return pd.DataFrame(found)


def predictions(values: dict[str, object]) -> pd.DataFrame:
    """What was written down before the records, beside what came; values: of `findings`."""
    return told.predictions((*RANGES[name], values[name]) for name in RANGES)
