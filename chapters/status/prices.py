"""What the papers' headline figures would cost at the papers' own scale."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from lib import forms
from lib.records import results, selection
from lib.studies.search import Search
from lib.studies.study import Study
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


LEE = {"sparsities": (0.0, 0.5, 0.7, 0.9), "methods": ("sgd", "momentum", "nesterov")}
LEE |= {
    "sizes": [2**k for k in range(1, 15)],
    "paper": "Lee et al. (2021)",
    "shows": "steps to result",
}
RECALLED = "sparsities, batch sizes"
SHALLUE = {"sparsities": (0.0,), "paper": "Shallue et al. (2019)"}
RELEASED = (1, 2, 8, 32, 128, 512, 2048, 8192, 32_768, 55_000)
EVERY = (*(2**k for k in range(16)), 55_000)
CNN, FASHION, RESNET = "mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8"
FIGURES = (
    Figure(workload=CNN, goal=0.02, limit=40_000, recalled=RECALLED, **LEE),
    Figure(workload=FASHION, goal=0.12, limit=40_000, recalled=f"goal, {RECALLED}", **LEE),
    Figure(workload=RESNET, goal=0.4, limit=100_000, recalled=RECALLED, **LEE),
    Figure(
        shows="Figure 1, Simple CNN",
        workload=CNN,
        methods=("nesterov",),
        sizes=RELEASED,
        goal=0.01,
        **SHALLUE,
    ),
    Figure(
        shows="Figure 1, Simple CNN",
        workload=FASHION,
        methods=("nesterov",),
        sizes=RELEASED[1:],
        goal=0.1,
        **SHALLUE,
    ),
    Figure(
        shows="Figures 1 and 4, ResNet-8",
        workload=RESNET,
        methods=("sgd", "nesterov"),
        sizes=[2**k for k in range(1, 14)],
        goal=0.3,
        **SHALLUE,
    ),
    Figure(
        shows="Figure 3, fully connected",
        workload="mnist-fc-1024x3",
        methods=("sgd",),
        sizes=EVERY,
        goal=0.03,
        **SHALLUE,
    ),
    Figure(
        shows="Figure 4, Simple CNN",
        workload=CNN,
        methods=("sgd", "momentum"),
        sizes=EVERY,
        goal=0.01,
        **SHALLUE,
    ),
    Figure(
        paper="Shi et al. (2019)",
        shows="accuracy along training, ResNet-20",
        workload="cifar-10-resnet-20",
        methods=("dense", "top-k", "rand-k", "gaussian-k"),
        sparsities=(0.0,),
        sizes=(512,),
        length=11_760,
        trials=1,
    ),
)


def searched() -> pd.DataFrame:
    """The searches on record of the figures' networks, a row each.

    Columns: workload, algorithm, sparsity, batch_size, steps (to the hardest goal that was met),
    trial_steps, wall_s, cpu (whether one core measured it).
    """
    names = {figure.workload for figure in FIGURES}
    others = {*Search.__dataclass_fields__} - {"label_smoothing"}
    every = selection.curves(free=others).searches
    read = results.of_searches(Study("prices", "", (c for c in every if c.workload in names)))
    heads = pd.DataFrame(list(read.attrs["provenance"]))
    hardest = sorted(read.filter(like="steps@"), key=lambda name: float(name.partition("@")[2]))
    steps = read[hardest].bfill(axis=1).iloc[:, 0]
    return heads.assign(steps=steps, cpu=heads.device.str.startswith("cpu"))


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
    means = np.log(heads.groupby("batch_size").steps.median().dropna())
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
    """A row per figure: what it takes on two cores and on an H100, and what is on record.

    Columns: paper, shows, workload, searches, cores (days on two cores), gpu (hours), done (points
    with a search on record), recalled.
    """
    factor = faster(heads)
    rows = []
    known = heads[["workload", "algorithm", "sparsity", "batch_size"]]
    known = set(known.itertuples(index=False, name=None))
    for figure in FIGURES:
        cost = costs(figure, heads)
        rows.append(
            {
                "paper": figure.paper,
                "shows": figure.shows,
                "workload": workload(figure.workload).title,
                "searches": len(cost),
                "cores": cost.sum() / 2 / 86_400,
                "gpu": cost.sum() / factor / 3600,
                "done": sum((figure.workload, *point) in known for point in figure.points()),
                "recalled": figure.recalled,
            }
        )
    return pd.DataFrame(rows)


def shown(priced: pd.DataFrame) -> pd.DataFrame:
    """The columns of `table` that readers see, with their units."""
    known = [f"{done} of {of}" for done, of in zip(priced.done, priced.searches)]
    heads = {
        "paper": "paper",
        "shows": "figure",
        "workload": "network",
        "cores": "days on two cores",
        "gpu": "hours on one H100",
        "known": "on record",
        "recalled": "recalled",
    }
    return priced.assign(known=known)[list(heads)].rename(columns=heads)
