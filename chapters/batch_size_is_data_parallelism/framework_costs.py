"""What frameworks gain from two processes: time to the goal over that of one process, and what a
step sends and holds.

Time to the goal is K* times the seconds of a step.  K* is taken from one process for every
framework except sparse messages, which may need more steps.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.claims.names import title
from lib.page import charts, tips
from lib.records import results, selection
from lib.studies.study import Study
from lib.wording import brief, ranged

NAMES = {
    "one": "one process",
    "ddp": "data parallelism",
    "zero": "sharded states",
    "fsdp": "full sharding",
    "pipeline": "two stages",
    "sparse": "sparse messages",
}
KEYS = ["workload", "algorithm", "batch_size"]
NETWORK = "mnist-fc-1024x3"
COMPARED = ["network", "algorithm", "framework"]
HELD = ["parameters", "gradients", "states", "residuals"]


def searched(times: pd.DataFrame) -> pd.DataFrame:
    """The trials on record (`lib.records.results`) of dense networks with the methods that were
    timed.
    """
    pairs = set(zip(times.workload, times.algorithm))
    dense = (cell for cell in selection.curves().searches if not cell.sparsity)
    timed = (cell for cell in dense if (cell.workload, cell.algorithm) in pairs)
    return results.read(Study("timed", "", timed))


def gains(points: pd.DataFrame, times: pd.DataFrame) -> pd.Series:
    """How many times as fast as one process each framework reaches the goal, both at their best
    batch size; by COMPARED, without sparse messages.

    points: from `scaling.across_replicates`; times: from `experiments.measured`.
    """
    rows = times.merge(points[[*KEYS, "steps"]], on=KEYS)
    names = {"network": rows.workload.map(title), "framework": rows.system.map(NAMES)}
    rows = rows.assign(time=rows.steps * rows.wall, **names)
    best = rows[rows.system != "sparse"].groupby(COMPARED).time.min().unstack()
    return best.rdiv(best[NAMES["one"]], axis=0).drop(columns=NAMES["one"]).stack()


def by_the_clock(points: pd.DataFrame, *runs: pd.DataFrame) -> pd.DataFrame:
    """COMPARED, and the gain over one process in the first and second run; arguments as
    for `gains`, with the times of two runs.
    """
    columns = (gains(points, times) for times in runs)
    return pd.DataFrame(dict(zip(("first", "second"), columns))).reset_index()


def values(clock: pd.DataFrame) -> dict[str, str]:
    """Values in the section's sentences; clock: from `by_the_clock`."""
    ratios = clock.set_index(COMPARED).loc[title(NETWORK), "sgd", NAMES["ddp"]]
    return {name: f"{ratio:.2f}" for name, ratio in ratios.items()}


def table(times: pd.DataFrame) -> pd.DataFrame:
    """A row per framework: a step's computing time over that of one process, with quartiles, at
    the smallest and the largest batch; at the largest, also what it sends and holds, in multiples
    of the gradient; times: of one run.
    """
    rows = {name: {"framework": words} for name, words in NAMES.items()}
    times = times[(times.workload == NETWORK) & (times.algorithm == "adam")]
    ends = times.batch_size.min(), times.batch_size.max()
    for size in ends:
        systems = times[times.batch_size == size].set_index("system")
        ratios = systems[["seconds", "low", "high"]] / systems.seconds["one"]
        for name, ratio in ratios.iterrows():
            rows[name][f"B = {size:,}"] = "1" if name == "one" else ranged(*ratio)
    for _, row in times[times.batch_size == ends[1]].iterrows():
        gradient = 4 * row.weights
        rows[row.system]["sent"] = brief(row.sent / gradient)
        rows[row.system]["held"] = brief(row[HELD].sum() / gradient)
    return pd.DataFrame(rows.values())


def chart(clock: pd.DataFrame) -> alt.LayerChart:
    """How many times as fast as one process each framework is in two runs; clock: from
    `by_the_clock`.
    """
    scale = alt.Scale(type="log", domain=[0.15, 2])
    x = alt.X("first:Q", title="times as fast as one process, in wall-clock time", scale=scale)
    x = x.axis(values=[0.2, 0.5, 1, 2], format="~g")
    shades = dict(zip([*NAMES.values()][1:-1], charts.CATEGORIES))
    about = {"first:Q|.2f": "first run", "second:Q|.2f": "second run"}
    base = alt.Chart(clock).encode(
        y=alt.Y("network:N", title=None, axis=charts.broken()),
        yOffset=alt.YOffset("framework:N", sort=list(shades)),
        color=charts.by_name("framework", shades, columns=2),
        tooltip=tips.listed({"framework:N": "framework", **about}),
    )
    runs = base.mark_rule(strokeWidth=2).encode(x=x, x2="second:Q")
    first, second = base.mark_point(size=60, filled=True, opacity=1), base.mark_point(size=60)
    dots = first.encode(x=x), second.encode(x=alt.X("second:Q", scale=scale))
    return charts.sized(alt.layer(charts.across(1, x=scale), runs, *dots), 300)
