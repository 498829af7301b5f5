"""What the papers' headline figures would cost at the papers' own scale."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from lib import forms
from lib.records import on_record, results
from lib.studies.study import Study, powers
from lib.workloads.catalogue import workload

TIMED = "cifar-10-resnet-8"  # the network whose searches ran on a core and on an H100


@dataclass(frozen=True)
class Figure:
    """A headline figure of a paper, or a row of it, as searches of one of our networks.

    goal, limit: validation error, steps; limit None where the paper's is not at hand.
    length: steps of every run, where runs end there and not at a goal.
    recalled: what of it we recall, but could not read in a text or in released code.
    """

    paper: str
    shows: str
    workload: str
    methods: tuple[str, ...]
    sparsities: tuple[float, ...]
    sizes: Sequence[int]
    goal: float | None = None
    limit: int | None = None
    length: int | None = None
    trials: int = 100
    recalled: str = ""

    def points(self) -> Iterable[tuple[str, float, int]]:
        """Every search: method, sparsity, batch size."""
        return itertools.product(self.methods, self.sparsities, self.sizes)


LEE, SHALLUE, SHI = "Lee et al. (2021)", "Shallue et al. (2019)", "Shi et al. (2019)"
CNN, FASHION, RESNET = "mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8"
STEPS, RECALLED = "steps to result", "sparsities, batch sizes"
THREE = ("sgd", "momentum", "nesterov"), (0.0, 0.5, 0.7, 0.9), powers(1, 14)
ONE, TWO, DENSE = ("nesterov",), ("sgd", "momentum"), (0.0,)
RELEASED = (1, 2, 8, 32, 128, 512, 2048, 8192, 32_768, 55_000)
EVERY = (*powers(0, 15), 55_000)
BOTH, SPARSE = ("sgd", "nesterov"), ("dense", "top-k", "rand-k", "gaussian-k")
FIGURES = (
    Figure(LEE, STEPS, CNN, *THREE, 0.02, 40_000, recalled=RECALLED),
    Figure(LEE, STEPS, FASHION, *THREE, 0.12, 40_000, recalled=f"goal, {RECALLED}"),
    Figure(LEE, STEPS, RESNET, *THREE, 0.4, 100_000, recalled=RECALLED),
    Figure(SHALLUE, "Figure 1, Simple CNN", CNN, ONE, DENSE, RELEASED, 0.01),
    Figure(SHALLUE, "Figure 1, Simple CNN", FASHION, ONE, DENSE, RELEASED[1:], 0.1),
    Figure(SHALLUE, "Figures 1 and 4, ResNet-8", RESNET, BOTH, DENSE, powers(1, 13), 0.3),
    Figure(SHALLUE, "Figure 3, fully connected", "mnist-fc-1024x3", ("sgd",), DENSE, EVERY, 0.03),
    Figure(SHALLUE, "Figure 4, Simple CNN", CNN, TWO, DENSE, EVERY, 0.01),
    Figure(
        SHI,
        "accuracy along training, ResNet-20",
        "cifar-10-resnet-20",
        SPARSE,
        DENSE,
        (512,),
        length=11_760,
        trials=1,
    ),
)


def searched() -> pd.DataFrame:
    """The searches on record of the figures' networks, of whatever goal: a row each.

    Columns: workload, algorithm, sparsity, batch_size, steps (to the hardest goal that was met),
    goal, trial_steps, wall_s, cpu (whether one core measured it).
    """
    names = {figure.workload for figure in FIGURES}
    every = on_record.gathered(label_smoothing=0.0)
    read = results.read(Study("prices", "", (c for c in every.cells if c.workload in names)))
    heads = pd.DataFrame(list(read.attrs["provenance"]))
    return heads.assign(cpu=heads.device.str.startswith("cpu"))


def seconds_of_a_step(heads: pd.DataFrame) -> tuple[float, float]:
    """Seconds that one trial takes for a step: (a, b) of a + b * batch size.

    A least-squares fit, of relative errors, to what searches took; neither term is negative.
    """
    taken = (heads.wall_s / heads.trial_steps).to_numpy()
    terms = np.stack([np.ones(len(heads)), heads.batch_size.to_numpy(float)], 1)
    (a, b), _ = nnls(terms / taken[:, None], np.ones(len(heads)))
    return float(a), float(b)


def steps_to_result(heads: pd.DataFrame, sizes: np.ndarray) -> np.ndarray:
    """K* [n] at batch sizes [n], by c1/B + c2 fitted to all searches of a network and a method."""
    means = np.log(heads.groupby("batch_size").steps.median())
    measured = means.index.to_numpy(float)
    fitted = forms.fit(measured, means.to_numpy()[None])
    return np.exp(fitted.log_steps(sizes))[0]


def faster(heads: pd.DataFrame) -> float:
    """By what factor an H100 took less time than a core for steps of the same network and size."""
    timed = heads[heads.workload == TIMED]
    cpu = timed[timed.cpu]
    gpu = timed[~timed.cpu]
    a, b = seconds_of_a_step(cpu)
    ratios = (a + b * gpu.batch_size) * gpu.trial_steps / gpu.wall_s
    return float(np.exp(np.log(ratios).mean()))


def costs(figure: Figure, heads: pd.DataFrame) -> np.ndarray:
    """Core-seconds [n] of the figure's searches: all trials run until the first meets the goal, or
    to the limit.

    Steps are those to our hardest goal where the paper's is harder, so that this is a lower bound.
    """
    own = heads[(heads.workload == figure.workload) & heads.cpu]
    a, b = seconds_of_a_step(own)
    sizes = np.array(figure.sizes, float)
    found = []
    for method in figure.methods:
        steps = np.full(len(sizes), figure.length or np.inf)
        if not figure.length:
            like = own[(own.algorithm == method) & (own.sparsity == 0)]
            steps = steps_to_result(like if like.batch_size.nunique() > 2 else own, sizes)
        steps = np.minimum(steps, figure.limit or np.inf)
        found += [steps * figure.trials * (a + b * sizes)] * len(figure.sparsities)
    return np.concatenate(found)


def table(heads: pd.DataFrame) -> pd.DataFrame:
    """What a figure takes on two cores and on an H100, how many of its searches are on record, and
    what of it we recall: a row each, under the heads that readers see.
    """
    factor = faster(heads)
    known = heads[["workload", "algorithm", "sparsity", "batch_size"]]
    known = set(known.itertuples(index=False, name=None))
    rows = []
    for figure in FIGURES:
        cost = costs(figure, heads)
        done = sum((figure.workload, *point) in known for point in figure.points())
        rows.append(
            {
                "paper": figure.paper,
                "figure": figure.shows,
                "network": workload(figure.workload).title,
                "days on two cores": cost.sum() / 2 / 86_400,
                "hours on one H100": cost.sum() / factor / 3600,
                "on record": f"{done} of {len(cost)}",
                "recalled": figure.recalled,
            }
        )
    return pd.DataFrame(rows)
