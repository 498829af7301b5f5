"""Cells of the studies on sparse messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lib.messages.settings import Messages
from lib.studies.cells import Cell
from lib.studies.grids import DENSE_AND_SPARSE

SENT = (0.001, 0.01)  # densities of messages
# compressor, error feedback: what Shi et al. (2019) compare, Rand-k also with what they left out
RIVALS = (
    ("top-k", True),
    ("gaussian-k", True),
    ("rand-k", False),
    ("rand-k", True),
    ("dgc-k", True),
)
# workload, how many rates above Rand-k's usual ones; more where four came too near T4b's threshold
# to tell
HIGHER = (
    ("mnist-fnn-3", 4),
    ("fashion-mnist-fnn-3", 4),
    ("mnist-lenet-5", 4),
    ("fashion-mnist-lenet-5", 4),
    ("fashion-mnist-lenet-5", 16),
)
EPOCH = 105  # steps of 512 examples in 54,000


def _message_cell(name: str, replicate: int = 0, **messages) -> Cell:
    """4 learning rates, every one for 2,048 steps of 16 workers with 32 examples each: twice d/k
    steps at density 0.001.
    """
    return Cell(
        name,
        512,
        trials=4,
        stop="budget",
        max_steps=2048,
        space="shi2019",
        replicate=replicate,
        messages=Messages(**messages),
    )


def rivals(*names: str) -> Iterable[Cell]:
    """All methods on every workload, then the next search."""
    for replicate in range(3):
        for name in names:
            yield _message_cell(name, replicate, compressor="dense", density=1.0, feedback=False)
            for density in SENT:
                for compressor, feedback in RIVALS:
                    yield _message_cell(
                        name, replicate, compressor=compressor, density=density, feedback=feedback
                    )


def resnet() -> Iterable[Cell]:
    """One search at the lower density, a quarter of the others' steps, few checks, and in bfloat16.

    On a core a step of its four trials takes seconds, and a check as long as five steps.
    """
    for sent in (
        {"compressor": "dense", "density": 1.0, "feedback": False},
        {"compressor": "top-k", "density": min(SENT)},
        {"compressor": "gaussian-k", "density": min(SENT)},
    ):
        yield replace(
            _message_cell("cifar-10-resnet-20", **sent),
            max_steps=512,
            checks="every-100",
            precision="bfloat16",
        )


def variants() -> Iterable[Cell]:
    """One thing changed at a time; two more seeds of what decides whether Gaussian-k, warmed up,
    trains as well as Top-k.
    """
    for changed in (
        {"compressor": "top-k", "warm_up": EPOCH},
        {"compressor": "gaussian-k", "warm_up": EPOCH},
        {"compressor": "gaussian-k", "aggregation": "published"},
        {"compressor": "gaussian-k-band"},
        {"compressor": "gaussian-k-paper"},
        {"compressor": "redsync"},
        {"compressor": "top-k", "by_layer": True},
        {"compressor": "top-k", "feedback": False},
    ):
        for density in SENT:
            yield _message_cell("mnist-fnn-3", density=density, **changed)
    for replicate in (1, 2):
        for compressor in ("gaussian-k", "top-k"):
            yield _message_cell(
                "mnist-fnn-3", replicate, compressor=compressor, density=min(SENT), warm_up=EPOCH
            )


def rates() -> Iterable[Cell]:
    """Rand-k without feedback moves each weight rarely: rates above those at which its searches did
    best.
    """
    for replicate in range(3):
        for name, trials in HIGHER:
            cell = _message_cell(
                name, replicate, compressor="rand-k", density=min(SENT), feedback=False
            )
            yield replace(cell, space="higher-rates", trials=trials)


def both_sparsities(name: str, sizes: Iterable[int], trials: int) -> Iterable[Cell]:
    """Pruned and dense networks that exchange dense and sparse messages."""
    for batch_size in sizes:
        for sparsity in DENSE_AND_SPARSE:
            for density in (1.0, 0.01, 0.001):
                messages = Messages(compressor="top-k", density=density)
                yield Cell(
                    name, batch_size, sparsity=sparsity, trials=trials, hits=2, messages=messages
                )


def both_sparsities_mnist() -> Iterable[Cell]:
    """Learning rates only; the pruned network does not meet the hardest goal, so that its cells end
    at 16,384 steps.
    """
    for cell in both_sparsities("mnist-fc-128x3", (64,), 8):
        yield replace(cell, space="shi2019", max_steps=2**14 if cell.sparsity else None)
