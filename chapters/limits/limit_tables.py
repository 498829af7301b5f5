"""The tables of the page on limits."""

from __future__ import annotations

import pandas as pd

from chapters.limits import families, family_curves
from lib.analysis import scaling
from lib.claims import names
from lib.wording import percent, ranged

SHORT = {
    families.LADDER: "MNIST: width (FC)",
    families.MNIST_WIDTH: "MNIST: width (CNN)",
    families.ALGORITHM: "digits: training method, momentum from 0.9",
    families.FRACTION: "digits: amount of data",
    families.MNIST_FRACTION: "MNIST: amount of data",
    families.MNIST_MODEL_EASIER: "MNIST: kind, easier goal",
}


def short(family: str) -> str:
    """A family's name as one line has it."""
    return SHORT.get(family, family)


def networks(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` of every dense network, once per training method, with its name."""
    if not len(trials):
        columns = [*scaling.CURVE, "replicates", "critical", "name"]
        return pd.DataFrame(columns=columns)
    summary, curves = scaling.summaries(trials[trials.sparsity == 0])
    keys = summary[scaling.CURVE].itertuples(index=False, name=None)
    once = set(family_curves.once(curves))
    found = summary[[key in once for key in keys]]
    return found.assign(name=[_one_line(workload) for workload in found.workload])


def _one_line(workload: str) -> str:
    title = names.title(workload)
    for width in ("half", "double"):
        title = title.replace(f"Simple-CNN, {width} width,", f"{width.capitalize()}-width CNN")
    return title


def changes(effects: pd.DataFrame) -> pd.DataFrame:
    """What one change does to the critical batch size, a row per family.

    Args:
        effects: of `family_curves.effects`.
    """
    return pd.DataFrame(
        {
            "what changes": effects.family.map(short),
            "from": effects["first"],
            "to": effects["last"],
            "goal": effects.goal.map(percent),
            "critical batch size times": _column(effects, "ratio"),
            "searches": effects.n,
            "moves it": effects.clear.map({True: "clearly", False: "not decided"}),
        }
    )


def members(bends: pd.DataFrame) -> pd.DataFrame:
    """Every member's critical batch size, of `family_curves.bends`."""
    if not len(bends):
        return pd.DataFrame({"member": ["not measured yet"]})
    return pd.DataFrame(
        {
            "what changes": bends.family.map(short),
            "member": bends.member,
            "critical batch size": _column(bends, "critical"),
            "goal": bends.goal.map(percent),
            "batch sizes": bends.sizes,
            "searches": bends.replicates,
        }
    )


def _column(rows: pd.DataFrame, name: str) -> list[str]:
    ends = rows[[name, f"{name}_low", f"{name}_high"]]
    return [ranged(*row) for row in ends.itertuples(index=False)]
