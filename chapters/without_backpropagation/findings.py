"""What the page says, as numbers and words, with its table and a figure."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.without_backpropagation import without_backpropagation as without
from lib.analysis import method_results, scaling
from lib.page import boxes, charts, tips, told
from lib.wording import between, percent, with_interval
from lib.workloads import catalogue

NAMES = {  # of ways to pass errors back, as pages call them
    "feedback-alignment": "feedback alignment",
    **{arm: f"alignment, {beta}" for arm, beta in without.ARMS.items()},
}
COLOURS = {
    "backpropagation": charts.ORANGE,
    **dict(zip(NAMES.values(), (charts.PURPLE, charts.TEAL, charts.GREEN))),
}
OVER = {
    "critical": "critical batch size over backpropagation’s",
    "small": "steps over backpropagation’s, two smallest batches",
    "large": "steps, two largest batches",
}


def points(trials: pd.DataFrame) -> pd.DataFrame:
    """The points of every curve, each with its name."""
    found = scaling.across_replicates(scaling.steps_to_result(trials))
    return found.assign(errors_by=found.algorithm.map(NAMES).fillna("backpropagation"))


def findings(trials: pd.DataFrame, ended: pd.DataFrame, readouts: pd.DataFrame) -> dict:
    """All values of the page's sentences; trials: searches of every way to pass errors back, at
    their goal; ended: those that ran to their budget; readouts: of `experiments.READOUTS`.
    """
    curves, drawn = scaling.curves(trials), points(trials)
    over = method_results.over(curves).set_index(["algorithm", "what"]).ratio
    theirs, last = without.ARMS  # the authors' own beta first
    everywhere = method_results.at_end(0)
    means = [method_results.between(curves, name, without.BASE, everywhere) for name in NAMES]
    slower = without.convergence(readouts)
    slower = slower[slower.kind == without.KINDS[False]].set_index("features").slower
    return told.plain(
        {
            "network": catalogue.workload(trials.workload.iloc[0]).title,
            "goal": percent(trials.goal.iloc[0]),
            "small": over.get((theirs, "small")),
            "large": over.get((theirs, "large")),
            "small_one": over.get((last, "small")),
            "large_one": over.get((last, "large")),
            "more": between(*(np.exp(mean.value) for found in means for mean in found.values())),
            "searches": drawn.replicates.max(),
            "trials": boxes.trials(drawn),
            "ended_size": ended.batch_size.max(),
            "ended_steps": ended.max_steps.max(),
            "least": slower.index.min(),
            "most": slower.index.max(),
            "few": np.exp(slower.iloc[0].value),
            "many": np.exp(slower.iloc[-1].value),
            "runs": readouts.replicates.max(),
        }
    )


def beside_backpropagation(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per other way to pass errors back, with 90 % intervals."""
    over = method_results.over(scaling.curves(trials))
    over["words"] = list(map(with_interval, over.ratio, over.ratio_low, over.ratio_high))
    cells = over.pivot(index="algorithm", columns="what", values="words")
    rows = cells.reindex(index=NAMES, columns=OVER).rename(index=NAMES, columns=OVER)
    return rows.rename_axis(index="errors by", columns=None).reset_index()


LEAST, MOST_VISITS = 0.01, 8  # of the excess, and of visits to each weight, that are drawn


def falling(rows: pd.DataFrame) -> alt.LayerChart:
    """The excess error of readouts against visits per weight, a line per number of features, one
    kind of features at a time; dashed: exp(-visits).  rows: of `without.falls`.
    """
    kinds = list(rows.kind.unique())
    menu = charts.menu("kind", kinds, kinds[0], "features")
    shown = rows[(rows.excess >= LEAST) & (rows.visits <= MOST_VISITS)]
    shown = shown.assign(name=shown.features.map("{:,}".format))
    counts = [f"{n:,}" for n in sorted(shown.features.unique())]
    scale = alt.Scale(domain=counts, range=list(charts.CATEGORIES[: len(counts)]))
    colour = alt.Color("name:N", scale=scale, title="features", legend=alt.Legend(columns=3))
    x = alt.X("visits:Q", title="visits per weight (steps over features)")
    x = x.scale(domain=[0, MOST_VISITS], nice=False)
    title = "error above its floor (share of that at the start)"
    y = alt.Y("excess:Q", title=title, axis=alt.Axis(format="~p"))
    y = y.scale(type="log", domain=[LEAST, 1], nice=False, clamp=True)
    about = {"name:N": "features", "visits:Q|.2f": "visits per weight"}
    tooltip = tips.listed(about | {"excess:Q|.1%": "error above its floor"})
    base = alt.Chart(shown).encode(x=x, y=y, color=colour)
    points = base.mark_point(size=90, opacity=0).encode(tooltip=tooltip)
    drawn = charts.controlled([base.mark_line(strokeWidth=2.2), points], menu)
    visits = np.linspace(0, -np.log(LEAST), 40)
    guide = alt.Chart(pd.DataFrame({"visits": visits, "excess": np.exp(-visits)}))
    guide = guide.mark_line(color=charts.GUIDE, strokeDash=[4, 4], strokeWidth=1.6)
    return charts.sized(alt.layer(drawn, guide.encode(x=x, y=y)), 320)
