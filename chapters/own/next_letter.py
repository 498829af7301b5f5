"""An example of a workload of one's own: guess the next letter of English text from the eight before it.

Copy this file, put in your network and tensors, and give papermill its path: see the chapter "Your own workload".
"""

import torch
from sklearn import datasets
from torch import nn

from lib.own import Own

LETTERS = " abcdefghijklmnopqrstuvwxyz"
BEFORE = 8


def text() -> str:
    """The descriptions of scikit-learn's small data sets, in lower case and with single spaces for all but letters."""
    loaders = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")
    raw = " ".join(getattr(datasets, f"load_{name}")().DESCR for name in loaders).lower()
    return " ".join("".join(c if c in LETTERS else " " for c in raw).split())


def next_letter() -> Own:
    """Windows of the text: the first nine tenths to train on, the rest to validate."""
    codes = torch.tensor([LETTERS.index(c) for c in text()])
    windows = codes.unfold(0, BEFORE + 1, 1)
    x, y = nn.functional.one_hot(windows[:, :-1], len(LETTERS)).float(), windows[:, -1]
    split = len(y) * 9 // 10
    return Own(
        model=lambda: nn.Sequential(nn.Flatten(), nn.Linear(BEFORE * 27, 128), nn.ReLU(), nn.Linear(128, 27)),
        train=(x[:split], y[:split]),
        validation=(x[split:], y[split:]),
        goals=(0.68, 0.7, 0.72, 0.75),
        title="Next letter of English text",
        max_steps=5_000,
    )
