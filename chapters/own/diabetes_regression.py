"""Regression by AdamW with a warm-up, a cosine and clipped gradients: `-p algorithm chapters/own/diabetes_regression.py:adamw`."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn

from lib.methods.intervals import Interval
from lib.methods.optimisers import Optimiser, Schedule
from lib.own import Training


def adamw() -> Optimiser:
    return Optimiser(
        "AdamW",
        tuned={"lr": Interval(1e-4, 1e-1), "weight_decay": Interval(1e-3, 1.0)},
        fixed={"betas": (0.9, 0.99)},
        schedule=Schedule(warm_up=0.05, shape="cosine"),
        clip=1.0,
    )


def diabetes_regression() -> Training:
    """A year's progress of the disease, in its standard deviations."""
    x, y = (torch.tensor(part).float() for part in load_diabetes(return_X_y=True))
    x, y = x / x.std(0), (y - y.mean()) / y.std()
    return Training(
        model=lambda: nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1)),
        train=(x[:300], y[:300]),
        validation=(x[300:], y[300:]),
        loss="regression",
        goals=(0.5, 0.55, 0.6, 0.7),
        title="Progress of diabetes",
        max_steps=2_000,
    )
