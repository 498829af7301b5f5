"""What the page on three regimes says, as numbers and words, and what its figures draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from chapters.three_regimes import one_network
from lib.analysis import ranges, scaling
from lib.claims import NO, UNCLEAR, YES, Claim
from lib.wording import brief, named, percent, with_interval
from lib.workloads.catalogue import workload

FLATTENS = (
    "Below {critical:.2g} examples, a doubled batch saves {before} of the steps on average; "
    "beyond, {after}"
)


def asked_for(every: pd.DataFrame, chosen: Any) -> pd.DataFrame:
    """The trials of what a page's parameters ask for; of so many searches a point, if they say."""
    own = (every.workload == chosen.workload) & (every.algorithm == chosen.algorithm)
    sizes = every.batch_size.isin(chosen.batch_sizes)
    found = every[own & sizes & every.sparsity.isin(chosen.sparsities)]
    if not chosen.replicates:
        return found
    of = [*scaling.CURVE, "batch_size", *scaling.SEARCH]
    first = found[of].drop_duplicates().sort_values(["split", "replicate"])
    first = first.groupby(of[:5]).head(chosen.replicates)
    return found[pd.MultiIndex.from_frame(found[of]).isin(pd.MultiIndex.from_frame(first))]


def densest(asked: pd.DataFrame) -> pd.DataFrame:
    """The trials at the least sparsity among these."""
    return asked[asked.sparsity == asked.sparsity.min()]


def findings(
    every: pd.DataFrame, lines: pd.DataFrame, judged: Mapping[str, Claim], chosen: Any
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        every: all trials at their goals, momentum over its whole range where that is measured.
        lines: of `one_network.lines_by_goal`, of the `densest` curve asked for.
        judged: all claims.
        chosen: the page's parameters.
    """
    curve = chosen.workload, chosen.algorithm
    ranged = any(key[:2] == curve for key in ranges.whole_curves(every))
    goals, methods = judged["S2"].measured, judged["S7"]
    return {
        "workload": workload(chosen.workload).title,
        "method": named(chosen.algorithm) + " over its whole range" * ranged,
        "tolerance": percent(scaling.TOLERANCE),
        "book": chosen.budget != "smoke",  # all that is on record is drawn beside
        "surely_lower": sum(group.high < 1 for group in goals),
        "moved": len(goals),
        "raised": len(methods.decided(YES)),
        "compared": len(methods.decided(YES, NO, UNCLEAR)),
        **_asked(asked_for(every, chosen), lines),
    }


def titles(asked: pd.DataFrame, lines: pd.DataFrame) -> list[str]:
    """What the first figure shows at every goal, the hardest first; lines: as for `findings`."""
    told = []
    for goal in scaling.goals(asked):
        at_goal = _asked(scaling.at_goal(asked, goal), lines)
        told.append(
            FLATTENS.format(**at_goal) if at_goal["flattens"] else "Steps against batch size"
        )
    return told


def _asked(asked: pd.DataFrame, lines: pd.DataFrame) -> dict[str, object]:
    """What doubling the batch saves on the network asked for, on either side of the critical batch
    size of its densest curve.
    """
    dense = densest(scaling.across_replicates(scaling.steps_to_result(asked)))
    goal = asked.goal.iloc[0]
    critical = lines[lines.goal == goal].critical.astype(float).min()
    before, after = one_network.saved_per_doubling(dense.batch_size, dense.steps, critical)
    return {
        "goal": percent(goal),
        "flattens": bool(before > after > 0),
        "guided": bool((lines.goal == goal).any()),
        "critical": critical,
        "before": percent(before) if before > after else None,
        "after": percent(after) if before > after else None,
        "densest": f"{dense.sparsity.min():g}",
    }


def of_ranges(published: pd.DataFrame, every: pd.DataFrame) -> pd.DataFrame:
    """Critical batch sizes with momentum from 0.9 on and over its whole range, a row per curve.

    Args:
        published, every: all trials at their goals, without and with the whole range.
    """
    whole = sorted(ranges.whole_curves(every))
    rows = one_network.before_and_after(published, every, whole)
    ends = zip(rows.ratio, rows.ratio_low, rows.ratio_high)
    return pd.DataFrame(
        {
            "network": rows.workload.map(lambda name: workload(name).title),
            "method": rows.algorithm.map(named),
            "sparsity": rows.sparsity.map("{:g}".format),
            "from 0.9 on": rows.critical_published.map(brief),
            "whole range": rows.critical_whole.map(brief),
            "whole over published": [with_interval(*row) for row in ends],
        }
    )
