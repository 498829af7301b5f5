"""What the page on volunteers says, as numbers and words."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd

from chapters.volunteers import volunteers
from chapters.volunteers.volunteers import SETTINGS, START
from lib.analysis import hardware, ranges, scaling
from lib.claims import judging
from lib.claims.judging import kept
from lib.records import on_record
from lib.studies import plans
from lib.wording import percent, ranged
from lib.workloads.catalogue import workload

UNSURE = 10  # times its lower end, the upper end of a badly measured point's interval


def rounds(team: volunteers.Team, points: pd.DataFrame) -> pd.DataFrame:
    """`volunteers.of_settings` of a team at the batch sizes of these points, simulated once."""
    asked = team, sorted(map(int, points.batch_size.unique()))
    name = f"rounds-{hashlib.sha256(repr(asked).encode()).hexdigest()[:12]}"
    return pd.DataFrame(kept(name, lambda: volunteers.of_settings(*asked).to_dict("list")))


def measured(workload: str, *methods: str) -> pd.DataFrame:
    """All dense trials at their goals, a reader's own workload among them.

    methods: as of `hardware.exact`.
    """
    readers = hardware.readers(workload, *methods)
    own = on_record.gathered(readers, sparsity=0.0, **plans.USUAL)
    return scaling.at_goals(ranges.whole(judging.to_goals(own), judging.low()))


def fitted(trials: pd.DataFrame) -> pd.DataFrame:
    """The points of `volunteers.fitted`."""
    curves = scaling.across_replicates(scaling.steps_to_result(trials))
    return volunteers.fitted(curves.assign(curve=scaling.curve_names(curves)))


def findings(
    chosen: Any, points: pd.DataFrame, rounds: pd.DataFrame, compared: pd.DataFrame
) -> dict:
    """All values of the page's sentences.

    chosen: the page's parameters; points: of `fitted`; rounds: of that function; compared: of
    `volunteers.compared`, all curves and settings.
    """
    own = (points.workload == chosen.workload) & (points.algorithm == chosen.algorithm)
    curve, c1, c2 = points.loc[own, ["curve", "c1", "c2"]].iloc[0]
    critical = float(c1 / c2)
    here = compared[compared.curve == curve]
    here = here[(here[[*START]] == [*START.values()]).all(axis=1)]
    near, lost = here[["picked", "lost"]].iloc[0] if len(here) else (None, None)
    return {
        "curve": curve,
        "critical": critical,
        "peers": chosen.peers,
        "latency": START["latency"],
        "speed": START["speed"],
        "best": float(volunteers.best_batch(critical, START["latency"], START["speed"])),
        "off_root": percent(volunteers.most_lost(2**0.5)),
        "inside": len(here) > 0,
        "fastest": lost == 0,
        "near": near and int(near),
        "slower": near and percent(lost),
        **_of_all(points, rounds, compared),
    }


def _worst(points: pd.DataFrame, compared: pd.DataFrame) -> dict:
    """The largest loss, with how well the steps at the batch picked are known."""
    worst = compared.loc[compared.lost.idxmax()]
    at = points[(points.curve == worst.curve) & (points.batch_size == worst.picked)].iloc[0]
    return {
        "worst": percent(worst.lost),
        "worst_curve": worst.curve,
        "worst_steps": ranged(at.steps, at.low, at.high),
        "unsure": bool(at.high > UNSURE * at.low),
    }


def _of_all(points: pd.DataFrame, rounds: pd.DataFrame, compared: pd.DataFrame) -> dict:
    """What the formula's batch loses over all curves and settings."""
    smooth = points.assign(steps=points.c1 / points.batch_size + points.c2)
    line = volunteers.compared(smooth, rounds).lost.quantile(0.9)
    most = compared.lost.quantile(0.9)
    leaving = compared.groupby("departures").lost.quantile(0.9)
    logs = np.log1p(compared.lost).groupby(compared.curve).mean()
    mean, low, high = scaling.mean_of(logs).row("time").values()
    settings = rounds.drop_duplicates([*SETTINGS])
    every = points.curve.nunique() * len(settings)
    return {
        "networks": len({workload(name).model for name in points.workload}),
        "all": every,
        "left_out": every - len(compared),
        **_worst(points, compared),
        "curves": int(compared.curve.nunique()),
        "lost": percent(most),
        "leaving": percent(leaving.max()),
        "time": f"{mean:.2f}",
        "time_range": f"{low:.2f} to {high:.2f}",
        "exact": percent((compared.picked == compared.found).mean()),
        "line_lost": percent(line),
        "scatter": bool(line < most / 2),
    }
