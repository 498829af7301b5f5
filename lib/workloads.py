"""The workloads of the book: a data set, a model, a goal error and what is tuned."""

from __future__ import annotations

from dataclasses import dataclass

from lib import own


@dataclass(frozen=True)
class Workload:
    """`goals` are validation errors, the hardest first: a cell trains until the first is met and notes the others.

    decay: whether the learning rate decays linearly.  max_steps: training steps after which a trial is given up.
    precision: of the arithmetic ("float32" or "bfloat16"; weights and updates are always float32).
    stack_below: batch size below which all trials of a cell are computed at once (faster for small work).
    source: digest of the reader's file that defines the workload, if one does (`lib.own`).
    """

    name: str
    title: str
    dataset: str
    model: str
    goals: tuple[float, ...]
    decay: bool = False
    max_steps: int = 40_000
    precision: str = "float32"
    stack_below: int = 0
    space: str = "lee2021"
    source: str = ""

    @property
    def goal(self) -> float:
        return self.goals[0]


WORKLOADS = {
    w.name: w
    for w in (
        Workload("digits-mlp", "MLP on digits", "digits", "mlp-64x2", (0.04, 0.05, 0.06, 0.08, 0.1),
                 max_steps=100_000, stack_below=512),
        Workload("digits-cnn", "Small CNN on digits", "digits", "digits-cnn", (0.04, 0.05, 0.06, 0.08, 0.1),
                 max_steps=100_000, stack_below=129),
        Workload("mnist-simple-cnn", "Simple-CNN on MNIST", "mnist", "simple-cnn",
                 (0.02, 0.025, 0.03, 0.04, 0.05), precision="bfloat16"),
        Workload("fashion-mnist-simple-cnn", "Simple-CNN on Fashion-MNIST", "fashion-mnist", "simple-cnn",
                 (0.12, 0.13, 0.14, 0.16, 0.18), precision="bfloat16"),
        Workload("cifar-10-resnet-8", "ResNet-8 on CIFAR-10", "cifar-10", "resnet-8",
                 (0.4, 0.425, 0.45, 0.475, 0.5), decay=True, max_steps=100_000, precision="bfloat16"),
    )
}  # fmt: skip


def workload(name: str) -> Workload:
    """Look a workload up, or read a reader's own.  Raises ValueError naming the allowed ones."""
    if own.is_own(name):
        chosen = own.settings(own.load(name))
        return Workload(name, chosen.pop("title") or name, name, name, **chosen, source=own.source(name))
    if name not in WORKLOADS:
        raise ValueError(f"workload: {name!r} is unknown; allowed: {', '.join(WORKLOADS)}, or file.py:function")
    return WORKLOADS[name]
