"""A convolutional network with batch normalisation, on digits shifted at random on every access."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Dataset

from lib.own import Training


class Shifted(Dataset):
    """Images [N, 8, 8], each moved by up to a pixel along both axes."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        along = torch.randint(-1, 2, (2,)).tolist()
        return self.images[i].roll(along, (0, 1))[None], self.labels[i]


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10)
    )


def augmented_digits() -> Training:
    digits = load_digits()
    x, y = torch.tensor(digits.images / 16).float(), torch.tensor(digits.target)
    return Training(
        model=network,
        train=Shifted(x[:1400], y[:1400]),
        validation=(x[1400:, None], y[1400:]),
        goals=(0.08, 0.1, 0.15, 0.2),
        title="Shifted digits with batch normalisation",
        max_steps=3_000,
    )
