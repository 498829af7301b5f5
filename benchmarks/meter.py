"""What the noise meter costs: seconds of a training step with it over those without.

    python -m benchmarks.meter          # all three
    python -m benchmarks.meter MLP      # one

Three networks of over a million weights, on one thread; a step has two or four micro-batches.  Steps
with and without alternate, so that what else the machine does falls on both.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import benchmarks
from lib.workers.noise_meter import NoiseMeter

CLASSES = 10


def mlp() -> nn.Module:
    layers = nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()
    return nn.Sequential(*layers, nn.Linear(1024, CLASSES))


def cnn() -> nn.Module:
    layers = []
    for inside, outside in ((3, 64), (64, 128), (128, 256)):
        layers += nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    head = nn.Linear(4096, 256), nn.ReLU(), nn.Linear(256, CLASSES)
    return nn.Sequential(*layers, nn.Flatten(), *head)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(256, 160)
        block = nn.TransformerEncoderLayer(160, 4, 640, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, 4, enable_nested_tensor=False)
        self.head = nn.Linear(160, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.embedding(x)).mean(1))


def tokens() -> Tensor:
    return torch.randint(0, 256, (32, 32))


JOBS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "MLP": (mlp, lambda: torch.randn(64, 784)),
    "CNN": (cnn, lambda: torch.randn(32, 3, 32, 32)),
    "Transformer": (Transformer, tokens),
}


def trained(
    make: Callable, x: Sequence[Tensor], y: Sequence[Tensor], metered: bool
) -> Callable:
    """A function that takes a step of micro-batches."""
    model = make()
    meter = NoiseMeter(model) if metered else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        for rows, labels in zip(x, y):
            (cross_entropy(model(rows), labels) / len(x)).backward()
            if meter:
                meter.micro_batch(len(rows))
        if meter:
            meter.step()
        optimizer.step()

    return step


def ratio(name: str, parts: int, rounds: int = 40) -> dict:
    """Of the shortest steps, and the median of neighbours' ratios."""
    make, draw = JOBS[name]
    x = draw()
    y = torch.randint(0, CLASSES, (len(x),)).chunk(parts)
    steps = [trained(make, x.chunk(parts), y, metered) for metered in (False, True)]
    seconds = np.empty((rounds, 2))
    for k in range(rounds):
        for arm, step in enumerate(steps):
            begun = time.thread_time()
            step()
            seconds[k, arm] = time.thread_time() - begun
    plain, metered = seconds[2:].T  # after those that warm up
    row = {"network": name, "weights": sum(p.numel() for p in make().parameters())}
    row |= {"micro-batches": parts, "plain_ms": 1e3 * plain.min(), "ms": 1e3 * metered.min()}
    return row | {
        "of_shortest": row["ms"] / row["plain_ms"],
        "median": np.median(metered / plain),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    names = benchmarks.chosen(__doc__, JOBS)
    table = pd.DataFrame([ratio(name, parts) for name in names for parts in (2, 4)])
    print(table.round(2).to_string(index=False))
