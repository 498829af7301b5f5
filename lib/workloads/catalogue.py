"""The workloads of the book: a data set, a model, a task with its goals, and what is tuned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator

from lib import own, require
from lib.workloads import datasets, own_file, texts
from lib.workloads.datasets import Dataset, Split
from lib.workloads.tasks import TASKS, Task

if TYPE_CHECKING:
    from torch import nn

    from lib.workloads.own_network import Checked

TRAINING = "training"
LIGHT = 256  # numbers in an example, at most, for a toy that trains in seconds


@dataclass(frozen=True)
class Workload:
    """A data set, a model and a task: one of the book's; `OwnWorkload` and `TextWorkload` are a
    reader's.

    Attributes:
        task: a name in `lib.workloads.tasks.TASKS`, or "training" for a reader's own whose trials
            are trained one after another.
        goals: mean costs of the validation examples, as the task defines them (validation errors,
            say), the hardest first: a search trains until that is met and records all.
        decay: whether the learning rate decays linearly.
        max_steps: training steps after which a trial is given up.
        precision: of the arithmetic ("float32" or "bfloat16"; weights and updates are always
            float32).
        batched_below: batch size below which all trials of a search are computed at once (faster
            for small work).
        source: digest of the reader's file that defines the workload, if one does.
        examples: how many of the training set's first examples are used; None: the whole set.
    """

    name: str
    title: str
    dataset: str
    model: str
    goals: tuple[float, ...]
    decay: bool = False
    max_steps: int = 40_000
    precision: str = "float32"
    batched_below: int = 0
    space: str = "lee2021"
    source: str = ""
    examples: int | None = None
    task: str = "classification"

    # Whether the last check covers all examples, since goals may be out of reach
    whole_at_end: ClassVar[bool] = False
    # Whether its network's kernels may be recorded: it never inspects values in Python
    recorded: ClassVar[bool] = True
    # Whether searches time a step of one trial, since trials are trained one after another
    steps_timed: ClassVar[bool] = False
    # Digest of the tensors that a reader's file made in this process
    tensors: ClassVar[str] = ""
    # Results of the checks of a reader's file
    facts: ClassVar[Checked | None] = None

    @property
    def goal(self) -> float:
        """The hardest goal."""
        return self.goals[0]

    @property
    def asks(self) -> Task:
        """Its task, and how pages spell it."""
        return TASKS[self.task]

    @property
    def alone(self) -> bool:
        """Whether its trials can only be trained one after another (`lib.engine.trainings`)."""
        return self.task == TRAINING

    @property
    def folder(self) -> str:
        """The folder of its records, in data/."""
        return self.dataset

    @property
    def has_splits(self) -> bool:
        """Whether there are several draws of training and validation examples."""
        return self.dataset not in datasets.IMAGES_OF

    @property
    def light(self) -> bool:
        """Whether a toy version of it trains in seconds."""
        return self.dataset == "digits"

    @property
    def train_size(self) -> int:
        """Number of training examples."""
        return self.examples or datasets.train_size(self.dataset)

    def data(self, split: int = 0) -> Dataset:
        """Its examples, in this draw of training and validation examples."""
        data = datasets.load(self.dataset, split)
        train = Split(data.train.x[: self.examples], data.train.y[: self.examples])
        return replace(data, train=train)

    def train(self, split: int = 0) -> Split:
        """The examples it trains on, in this draw."""
        return self.data(split).train

    def network(self, seed: int = 0) -> nn.Module:
        """Its network, initialised from a seed."""
        from lib.workloads import models  # imports PyTorch; most chapters only read records

        return models.fresh(self.model, seed)

    def training(self, split: int = 0) -> own.Training:
        """The same, for trials that are trained one after another."""
        import torch

        from lib.workloads import kinds

        data = self.data(split)
        return own.Training(
            model=lambda: self.network(torch.initial_seed()),  # as set by the trial
            train=(data.train.x, data.train.y),
            validation=(data.validation.x, data.validation.y),
            goals=self.goals,
            metric=kinds.METRICS[self.task],
        )


class OwnWorkload(Workload):
    """A reader's own, a function in a Python file (`lib.own`), read again if it changes."""

    whole_at_end, recorded, steps_timed = True, False, True
    has_splits, folder = False, "own"
    facts = property(lambda self: own_file.load(self.name))
    tensors = property(lambda self: self.facts.data)
    light = property(lambda self: self.facts.numbers <= LIGHT)
    train_size = property(lambda self: self.facts.examples)

    @classmethod
    def read(cls, name: str) -> OwnWorkload:
        """The workload of this name, as its file is now."""
        from lib.workloads import kinds  # imports PyTorch, as the reader's file does anyway

        name = own_file.canonical(name)
        facts = own_file.load(name)
        training = facts.training
        return cls(
            name,
            training.title or name,
            dataset=name,
            model=name,
            goals=kinds.errors(training),
            max_steps=training.max_steps,
            precision=training.precision,
            source=facts.source,
            task=kinds.task(training) if facts.together else TRAINING,
        )

    @property
    def asks(self) -> Task:
        from lib.workloads import kinds

        return kinds.metric_of(self.training())

    def data(self, split: int = 0) -> Dataset:
        """Its tensors; the validation set stands in for a test set.  Raises OwnError if trials are
        trained one after another.
        """
        with own.named(self.name):
            fault = "one whose trials are trained one by one"
            allowed = (
                "an nn.Sequential of plain layers that classifies tensors; or run "
                f"papermill chapters/own_workload.ipynb out.ipynb -p workload {self.name}"
            )
            own.require(not self.alone, "workload", fault, allowed)
        train, validation = (
            Split(*part) for part in (self.training().train, self.training().validation)
        )
        return Dataset(self.name, train, validation, validation)

    def network(self, seed: int = 0) -> nn.Module:
        from lib.workloads import own_network

        return own_network.build(self.training(), seed)

    def training(self, split: int = 0) -> own.Training:
        return self.facts.training


class TextWorkload(Workload):
    """The book's language model on a reader's text, read again if it changes."""

    whole_at_end = True
    has_splits, folder, light = False, "own", True

    @classmethod
    def read(cls, name: str) -> TextWorkload:
        """The workload of this name, as its file is now."""
        name = own_file.canonical(name)
        book, text = WORKLOADS["shakespeare"], texts.read(name)
        fields = vars(book) | {
            "name": name,
            "title": f"Decoder on {own_file.file_of(name).name}",
            "dataset": name,
            "model": f"{book.model}-{text.symbols}",
            "goals": texts.goals(name),
            "source": text.source,
        }
        return cls(**fields)

    @property
    def train_size(self) -> int:
        return texts.train_size(len(texts.read(self.name).ids))

    def data(self, split: int = 0) -> Dataset:
        return datasets.of_parts(self.name, texts.examples(texts.read(self.name).ids, split))


FRACTIONS = (8, 4, 2)  # an eighth, a quarter and a half of a training set
# Suffix of workloads that are the same but for an easier goal
EASIER = "-easier"
THEIR_SPLIT = "-lee2021"  # suffix of those on MNIST with the split of Lee et al. (2021)

# Data set, goals (the hardest first) and settings of a group of workloads; then for each of them
# its name, model, title and further settings
TABLE = """
digits 0.04 0.05 0.06 0.08 0.1 max_steps=100000 batched_below=2049
    digits-mlp            mlp-64x2           MLP on digits
    digits-cnn            digits-cnn         Small CNN on digits
digits 0.15 0.17 0.2 0.25 0.3 max_steps=100000 batched_below=2049 task=cross-entropy
    digits-mlp-nats       mlp-64x2           MLP on digits, cross-entropy
digits 0.04 0.05 0.06 0.08 0.1 max_steps=100000 batched_below=2049 space=wide-rates
    digits-mlp-tanh       mlp-64x2-tanh      tanh MLP on digits
digits 0.04 0.05 0.06 0.08 0.1 max_steps=100000 batched_below=512
    digits-mlp-16x2       mlp-16x2           MLP 16×2 on digits
    digits-mlp-256x2      mlp-256x2          MLP 256×2 on digits
    digits-mlp-64x1       mlp-64x1           MLP 64×1 on digits
    digits-mlp-64x4       mlp-64x4           MLP 64×4 on digits
digits 0.1 0.12 0.15 0.2 max_steps=100000 batched_below=512
    digits-mlp-168        mlp-64x2           MLP on 168 digits; examples=168
    digits-mlp-337        mlp-64x2           MLP on 337 digits; examples=337
    digits-mlp-675        mlp-64x2           MLP on 675 digits; examples=675
mnist 0.03 0.035 0.04 0.05 0.06 precision=bfloat16
    mnist-fc-1024         fc-1024            FC-1024 on MNIST
    mnist-fc-128x3        fc-128x3           FC-128×3 on MNIST; batched_below=129
    mnist-fc-256x3        fc-256x3           FC-256×3 on MNIST
    mnist-fc-512x3        fc-512x3           FC-512×3 on MNIST
    mnist-fc-1024x3       fc-1024x3          FC-1024×3 on MNIST
mnist 0.06 0.07 0.08 0.1 precision=bfloat16 batched_below=129
    mnist-fc-128x3-6750   fc-128x3           FC-128×3 on 6,750 of MNIST; examples=6750
    mnist-fc-128x3-13500  fc-128x3           FC-128×3 on 13,500 of MNIST; examples=13500
    mnist-fc-128x3-27000  fc-128x3           FC-128×3 on 27,000 of MNIST; examples=27000
    mnist-fc-128x3-54000  fc-128x3           FC-128×3 on all 54,000 of MNIST
mnist 0.04 0.05 0.06 precision=bfloat16 batched_below=129
    mnist-fc-128x3-easier fc-128x3           FC-128×3 on MNIST, easier goal
mnist 0.02 0.025 0.03 0.04 0.05 precision=bfloat16
    mnist-simple-cnn-half simple-cnn-half    Simple-CNN, half width, on MNIST
    mnist-simple-cnn-double simple-cnn-double Simple-CNN, double width, on MNIST
mnist 0.03 0.04 0.05 batched_below=1025 space=shi2019
    mnist-fnn-3           fnn-3              FNN-3 on MNIST
    mnist-lenet-5         lenet-5            LeNet-5 on MNIST
fashion-mnist 0.13 0.15 0.18 batched_below=1025 space=shi2019
    fashion-mnist-fnn-3   fnn-3              FNN-3 on Fashion-MNIST
    fashion-mnist-lenet-5 lenet-5            LeNet-5 on Fashion-MNIST
fashion-mnist 0.13 0.14 0.15 0.16 0.18 precision=bfloat16 batched_below=129
    fashion-mnist-fc-128x3 fc-128x3          FC-128×3 on Fashion-MNIST
fashion-mnist 0.14 0.15 0.16 0.18 precision=bfloat16 batched_below=129
    fashion-mnist-fc-128x3-easier fc-128x3   FC-128×3 on Fashion-MNIST, easier goal
mnist 0.02 0.025 0.03 0.04 0.05 precision=bfloat16
    mnist-simple-cnn      simple-cnn         Simple-CNN on MNIST
mnist 0.04 0.05 0.06 precision=bfloat16
    mnist-simple-cnn-easier simple-cnn       Simple-CNN on MNIST, easier goal
fashion-mnist 0.12 0.13 0.14 0.16 0.18 precision=bfloat16
    fashion-mnist-simple-cnn simple-cnn      Simple-CNN on Fashion-MNIST
cifar-10 0.3 0.35 0.4 space=shi2019
    cifar-10-resnet-20    resnet-20          ResNet-20 on CIFAR-10
cifar-10 0.4 0.425 0.45 0.475 0.5 decay=1 max_steps=100000 precision=bfloat16
    cifar-10-resnet-8     resnet-8           ResNet-8 on CIFAR-10
tiny-shakespeare 1.9 2 2.1 2.2 2.3 precision=bfloat16 batched_below=1025 task=cross-entropy
    shakespeare           decoder-64x2       Decoder on Tiny Shakespeare
    shakespeare-width-32  decoder-32x2       Decoder of width 32 on Tiny Shakespeare
    shakespeare-width-128 decoder-128x2      Decoder of width 128 on Tiny Shakespeare
tiny-shakespeare 2.3 precision=bfloat16 batched_below=1025 task=cross-entropy
    shakespeare-easier    decoder-64x2       Decoder on Tiny Shakespeare, easier goal
tiny-shakespeare 1.9 2 2.1 2.2 2.3 space=shi2019 task=cross-entropy
    shakespeare-lstm      lstm-128           LSTM on Tiny Shakespeare
mnist-lee2021 0.02 0.025 0.03 0.04 0.05 precision=bfloat16
    mnist-simple-cnn-lee2021 simple-cnn      Simple-CNN on MNIST, split of Lee et al.
mnist-lee2021 0.03 0.035 0.04 0.05 0.06 precision=bfloat16 batched_below=129
    mnist-fc-128x3-lee2021 fc-128x3          FC-128×3 on MNIST, split of Lee et al.
"""


def _read(table: str) -> Iterator[Workload]:
    """The workloads of `TABLE`."""
    for line in table.strip().splitlines():
        if not line.startswith(" "):
            dataset, *words = line.split()
            goals = tuple(float(word) for word in words if word[0].isdigit())
            shared = words[len(goals) :]
            continue
        name, model, about = line.split(None, 2)
        title, _, further = about.partition(";")
        pairs = dict(word.split("=") for word in (*shared, *further.split()))
        settings = {key: int(v) if v.isdecimal() else v for key, v in pairs.items()}
        settings["decay"] = "decay" in settings
        yield Workload(name, title, dataset, model, goals, **settings)


WORKLOADS = {work.name: work for work in _read(TABLE)}


def workload(name: str) -> Workload:
    """Look up a workload, or read a reader's own, in any spelling (`own_file.canonical`).

    Raises ValueError naming the allowed ones, and OwnError for faults in a reader's own.
    """
    if name in WORKLOADS:
        return WORKLOADS[name]
    allowed = f"one of {', '.join(WORKLOADS)}, or file.py:function, or the path of a .txt file"
    require(own.parts(name), "workload", name, allowed)
    return (OwnWorkload if own.is_own(name) else TextWorkload).read(name)


# Any spelling, converted to the book's
WorkloadName = Annotated[str, AfterValidator(lambda name: workload(name).name)]
