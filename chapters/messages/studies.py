"""What this chapter's searches are: training with sparse messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lib.messages import Messages
from lib.studies.cells import Cell
from lib.studies.study import DENSE_AND_SPARSE, Study, grid

SENT = (0.001, 0.01)  # densities of messages
# What Shi et al. (2019) compare, Rand-k also with what they left out: compressor, error feedback
RIVALS = (
    ("top-k", True),
    ("gaussian-k", True),
    ("rand-k", False),
    ("rand-k", True),
    ("dgc-k", True),
)
# Workload, how many rates above Rand-k's usual ones; more where four came too near T4b's threshold
# to decide
HIGHER = (
    ("mnist-fnn-3", 4),
    ("fashion-mnist-fnn-3", 4),
    ("mnist-lenet-5", 4),
    ("fashion-mnist-lenet-5", 4),
    ("fashion-mnist-lenet-5", 16),
)
EPOCH = 105  # steps of 512 examples in 54,000
# 4 learning rates, every one for 2,048 steps of 16 workers with 32 examples each: twice d/k steps
# at density 0.001
SHARED = {
    "batch_size": 512,
    "trials": 4,
    "stop": "budget",
    "max_steps": 2048,
    "space": "shi2019",
}
DENSE = Messages(compressor="dense", density=1.0, feedback=False)


def _rivals(*names: str) -> Iterable[Cell]:
    """All methods on every workload, then the next search."""
    sparse = [
        Messages(compressor=compressor, density=density, feedback=feedback)
        for density in SENT
        for compressor, feedback in RIVALS
    ]
    return grid(replicate=range(3), workload=names, messages=[DENSE, *sparse], **SHARED)


def _messages_resnet() -> Iterable[Cell]:
    """One search at the lower density, a quarter of the others' steps, few checks, and in bfloat16.

    On a core a step of its four trials takes seconds, and a check as long as five steps.
    """
    sparse = [Messages(compressor=one, density=min(SENT)) for one in ("top-k", "gaussian-k")]
    few = SHARED | {"max_steps": 512, "checks": "every-100", "precision": "bfloat16"}
    return grid(workload="cifar-10-resnet-20", messages=[DENSE, *sparse], **few)


def _longer() -> Iterable[Cell]:
    """Four times as long: does what Top-k loses come back, and does Gaussian-k without warm-up?"""
    sent = [
        DENSE,
        *(Messages(compressor=one, density=min(SENT)) for one in ("top-k", "gaussian-k")),
    ]
    long = SHARED | {"max_steps": 4 * SHARED["max_steps"]}
    names = ("mnist-fnn-3", "mnist-lenet-5")
    return grid(workload=names, messages=sent, replicate=range(3), **long)


def _message_variants() -> Iterable[Cell]:
    """One thing changed at a time; two more seeds of what decides whether Gaussian-k, warmed up,
    trains as well as Top-k.
    """
    changes = (
        {"compressor": "top-k", "warm_up": EPOCH},
        {"compressor": "gaussian-k", "warm_up": EPOCH},
        {"compressor": "gaussian-k", "aggregation": "published"},
        {"compressor": "gaussian-k-band"},
        {"compressor": "gaussian-k-paper"},
        {"compressor": "redsync"},
        {"compressor": "top-k", "by_layer": True},
        {"compressor": "top-k", "feedback": False},
    )
    changed = [Messages(density=density, **change) for change in changes for density in SENT]
    yield from grid(workload="mnist-fnn-3", messages=changed, **SHARED)
    warmed_up = [
        Messages(compressor=compressor, density=min(SENT), warm_up=EPOCH)
        for compressor in ("gaussian-k", "top-k")
    ]
    yield from grid(workload="mnist-fnn-3", replicate=(1, 2), messages=warmed_up, **SHARED)


def _message_rates() -> Iterable[Cell]:
    """Rand-k without feedback moves each weight rarely: rates above those at which its searches did
    best.
    """
    sent = Messages(compressor="rand-k", density=min(SENT), feedback=False)
    for replicate in range(3):
        for name, trials in HIGHER:
            rates = SHARED | {"space": "higher-rates", "trials": trials}
            yield Cell(name, replicate=replicate, messages=sent, **rates)


def _both_sparsities(**fields) -> Iterable[Cell]:
    """Pruned and dense networks that exchange dense and sparse messages."""
    sent = [Messages(compressor="top-k", density=density) for density in (1.0, 0.01, 0.001)]
    return grid(**fields, sparsity=DENSE_AND_SPARSE, messages=sent, hits=2)


def _both_sparsities_mnist() -> Iterable[Cell]:
    """Learning rates only; the pruned network does not meet the hardest goal, so that its cells end
    at 16,384 steps.
    """
    rates = {"batch_size": 64, "trials": 8, "space": "shi2019"}
    for cell in _both_sparsities(workload="mnist-fc-128x3", **rates):
        yield replace(cell, max_steps=2**14) if cell.sparsity else cell


STUDIES = (
    Study(
        "messages",
        "Sparse messages: five methods, two data sets",
        _rivals("mnist-fnn-3", "fashion-mnist-fnn-3"),
    ),
    Study("message-variants", "Sparse messages: one thing changed at a time", _message_variants()),
    Study(
        "messages-lenet-5",
        "Sparse messages: LeNet-5",
        _rivals("mnist-lenet-5", "fashion-mnist-lenet-5"),
    ),
    Study(
        "messages-rates",
        "Sparse messages: Rand-k at higher learning rates",
        _message_rates(),
        apart=True,
    ),
    Study("messages-longer", "Sparse messages: four times as long", _longer(), apart=True),
    Study(
        "messages-higher-rate",
        "Sparse messages: dense ones at a rate above those that did best at an edge",
        grid(
            workload="mnist-fnn-3",
            messages=DENSE,
            replicate=range(3),
            **SHARED | {"max_steps": 8192, "trials": 1, "space": "learning_rate=0.3,momentum=0.9"},
        ),
        apart=True,
    ),
    Study("messages-resnet-20", "Sparse messages: ResNet-20 on CIFAR-10", _messages_resnet()),
    Study(
        "both-sparsities",
        "Digits: pruned networks with sparse messages",
        _both_sparsities(workload="digits-mlp", batch_size=(64, 16, 256)),
    ),
    Study(
        "both-sparsities-mnist",
        "MNIST: pruned networks with sparse messages",
        _both_sparsities_mnist(),
    ),
)
