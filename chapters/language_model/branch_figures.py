"""The figures of a run that branches: how the loss falls at every batch size, and how many tokens
each takes to the next goal.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.language_model import branched
from lib.analysis.scaling import mean_of
from lib.page import charts, tips
from lib.wording import span
from lib.workloads.texts import CONTEXT

FEW = 3  # orders of the examples whose losses are drawn
SHADES = (charts.BLUE, charts.TEAL, charts.ORANGE, charts.RED, charts.PURPLE)


def point(at: int, goal: float) -> str:
    """A branch point in words."""
    return f"from step {at:,} to {goal:g} nats"


def tokens_to_goal(run: branched.Run) -> pd.DataFrame:
    """Tokens to the next goal: branch (in words), way, batch_size, tokens, low, high (90 %),
    interval, orders; batch sizes that missed the goal in some order are left out.

    Args:
        run: that branches.
    """
    rows = []
    for way, branches in run.arms.items():
        for (at, goal, size), own in branches.groupby(["at", "goal", "size"]):
            if own.took.notna().all():
                tokens, low, high = mean_of(np.log(CONTEXT * own.took)).row().values()
                about = {"branch": point(at, goal), "way": way, "batch_size": size}
                ends = {"tokens": tokens, "low": low, "high": high, "orders": len(own)}
                rows.append(about | ends | {"interval": span((round(low), round(high)))})
    return pd.DataFrame(rows)


def tokens_by_size(run: branched.Run) -> alt.LayerChart:
    """Tokens to the next goal against batch size, a line per branch point and way to set the rate.

    Args:
        run: that branches.
    """
    rows = tokens_to_goal(run)
    scale = charts.log(8)
    names = dict(zip(rows.branch.unique(), SHADES))
    dash = alt.Scale(domain=[branched.RULE, branched.KEPT], range=[[1, 0], [4, 4]])
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size, "batch size (sequences)"),
        color=charts.by_name("branch", names),
    )
    tooltip = tips.listed(
        {
            "branch:N": "branch",
            "way:N": "learning rate",
            "batch_size:Q|,": "batch size",
            "tokens:Q|,.0f": "tokens to the goal",
            "interval:N": "5–95 %",
            "orders:Q": "orders of the examples",
        }
    )
    y = alt.Y("tokens:Q", title="tokens to the next goal", scale=scale, axis=alt.Axis(format="~s"))
    # Below the plot: beside the names of branches a phone has no room for it
    legend = alt.Legend(title=None, columns=1, orient="bottom")
    lines = base.mark_line(strokeWidth=2).encode(
        y=y, strokeDash=alt.StrokeDash("way:N", scale=dash, legend=legend)
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        y=alt.Y("low:Q", scale=scale), y2="high:Q", detail="way:N"
    )
    dots = base.mark_point(filled=True, size=64, opacity=1).encode(y=y, tooltip=tooltip)
    return charts.sized(alt.layer(bars, lines, dots), 320)


def losses(checks: pd.DataFrame) -> alt.LayerChart:
    """The validation loss against the tokens since a run branched, a line per batch size and order;
    a menu of branch points.

    Args:
        checks: of branches, of which those by the rule for the rate are drawn.
    """
    rule = checks[(checks.power == checks.power.max()) & (checks.order < FEW)]
    drawn = rule.assign(
        branch=list(map(point, rule["at"], rule.goal)),
        tokens=CONTEXT * rule.seen,
        label=rule["size"].map("batch size {:,}".format),
    )[["branch", "label", "order", "tokens", "cost"]]
    names = dict(zip([f"batch size {size:,}" for size in sorted(rule["size"].unique())], SHADES))
    tooltip = tips.listed(
        {
            "label:N": "branch",
            "tokens:Q|,.0f": "tokens since the branch",
            "cost:Q|.3f": "validation loss, nats",
        }
    )
    lines = alt.Chart(drawn).mark_line(strokeWidth=1.5, point=alt.OverlayMarkDef(size=14))
    lines = lines.encode(
        x=alt.X("tokens:Q", title="tokens since the branch", axis=alt.Axis(format="~s")),
        y=alt.Y("cost:Q", title="validation loss (nats)", scale=alt.Scale(zero=False)),
        color=charts.by_name("label", names, 2),
        detail="order:N",
        tooltip=tooltip,
    )
    places = list(dict.fromkeys(drawn.branch))
    menu = charts.menu("branch", places, places[0], "branch")
    return charts.sized(charts.controlled([lines], menu), 300)
