"""What the papers' headline figures would cost at the papers' own scale."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from scipy.optimize import nnls

from lib import forms
from lib.records import results, selection
from lib.studies.search import Search
from lib.studies.study import Study
from lib.workloads.catalogue import workload

TIMED = "cifar-10-resnet-8"  # the network whose searches ran on a core and on an H100


@dataclass(frozen=True)
class Figure:
    """A headline figure of a paper, or a row of it, as searches of one of our networks: a row of
    figures.yaml.
    """

    paper: str
    shows: str
    workload: str
    methods: tuple[str, ...]
    sparsities: tuple[float, ...] = (0.0,)
    sizes: tuple[int, ...] = ()
    powers: tuple[int, ...] = ()
    goal: float | None = None
    limit: int | None = None
    length: int | None = None
    trials: int = 100
    recalled: str = ""

    @property
    def batch_sizes(self) -> list[int]:
        first, last = self.powers or (0, -1)
        return [*(2**k for k in range(first, last + 1)), *self.sizes]


TEXT = Path(__file__).with_name("figures.yaml").read_text(encoding="utf-8")
FIGURES = [Figure(**row) for row in yaml.safe_load(TEXT)]


def searched() -> pd.DataFrame:
    """The searches on record of the figures' networks, a row each.

    Columns: workload, algorithm, sparsity, batch_size, steps (to the hardest goal that was met),
    trial_steps, wall_s, cpu (whether one core measured it).
    """
    names = {figure.workload for figure in FIGURES}
    free = {*Search.__dataclass_fields__} - {"label_smoothing"}
    cells = [c for c in selection.curves(free=free).searches if c.workload in names]
    frame = results.of_searches(Study("prices", "", cells))
    heads = pd.DataFrame(list(frame.attrs["provenance"]))
    goals = sorted(frame.filter(like="steps@"), key=lambda name: float(name.partition("@")[2]))
    steps = frame[goals].bfill(axis=1).iloc[:, 0]
    return heads.assign(steps=steps, cpu=heads.device.str.startswith("cpu"))


def seconds_of_a_step(heads: pd.DataFrame) -> tuple[float, float]:
    """Seconds that one trial takes for a step: (a, b) of a + b * batch size.

    A least-squares fit, of relative errors, to what searches took; neither term is negative.
    """
    seconds = (heads.wall_s / heads.trial_steps).to_numpy()
    terms = np.stack([np.ones(len(heads)), heads.batch_size.to_numpy(float)], 1)
    (a, b), _ = nnls(terms / seconds[:, None], np.ones(len(heads)))
    return float(a), float(b)


def steps_to_result(heads: pd.DataFrame, sizes: np.ndarray) -> np.ndarray:
    """K* [n] at batch sizes [n], by c1/B + c2 fitted to all searches of a network and a method."""
    means = np.log(heads.groupby("batch_size").steps.median().dropna())
    fitted = forms.fit(means.index.to_numpy(float), means.to_numpy()[None])
    return np.exp(fitted.log_steps(sizes))[0]


def faster(heads: pd.DataFrame) -> float:
    """By what factor an H100 took less time than a core for steps of the same network and size."""
    timed = heads[heads.workload == TIMED]
    a, b = seconds_of_a_step(timed[timed.cpu])
    gpu = timed[~timed.cpu]
    ratios = (a + b * gpu.batch_size) * gpu.trial_steps / gpu.wall_s
    return float(np.exp(np.log(ratios).mean()))


def costs(figure: Figure, heads: pd.DataFrame) -> np.ndarray:
    """Core-seconds [n] of the figure's searches: all trials run until the first meets the goal, or
    to the limit.

    Steps are those to our hardest goal where the paper's is harder, so that this is a lower bound.
    """
    timed = heads[(heads.workload == figure.workload) & heads.cpu]
    a, b = seconds_of_a_step(timed)
    sizes = np.array(figure.batch_sizes, float)
    seconds = []
    for method in figure.methods:
        steps = np.full(len(sizes), figure.length or np.inf)
        if not figure.length:
            dense = timed[(timed.algorithm == method) & (timed.sparsity == 0)]
            steps = steps_to_result(dense if dense.batch_size.nunique() > 2 else timed, sizes)
        steps = np.minimum(steps, figure.limit or np.inf)
        seconds += [steps * figure.trials * (a + b * sizes)] * len(figure.sparsities)
    return np.concatenate(seconds)


def table(heads: pd.DataFrame) -> pd.DataFrame:
    """A row per figure: what it takes on two cores and on an H100; units are in the heads."""
    factor = faster(heads)
    rows = []
    for figure in FIGURES:
        seconds = costs(figure, heads)
        rows.append(
            {
                "paper": figure.paper,
                "figure": figure.shows,
                "network": workload(figure.workload).title,
                "days on two cores": seconds.sum() / 2 / 86_400,
                "hours on one H100": seconds.sum() / factor / 3600,
                "recalled": figure.recalled,
            }
        )
    return pd.DataFrame(rows)
