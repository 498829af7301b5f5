"""The workloads of the book: a data set, a model, a task with its goals, and what is tuned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from lib import own, require
from lib.workloads import datasets, own_file, own_text
from lib.workloads.tasks import TASKS, Task

if TYPE_CHECKING:
    from lib.workloads.kinds import Kind


@dataclass(frozen=True)
class Workload:
    """A data set, a model and what is asked for.  Raises ValueError for a task that is unknown.

    task: a name in `lib.workloads.tasks.TASKS`, or `own.TRAINING`.  goals: mean costs of the validation examples as
    the task has them (validation errors, say), the hardest first: a cell trains until the first is
    met and notes the others. decay: whether the learning rate decays linearly.  max_steps: training
    steps after which a trial is given up. precision: of the arithmetic ("float32" or "bfloat16";
    weights and updates are always float32). batched_below: batch size below which all trials of a
    cell are computed at once (faster for small work). source: digest of the reader's file that
    defines the workload, if one does (`lib.own`). examples: the first so many of the training set
    are all there is; None: the whole set.
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

    def __post_init__(self):
        require(self.task in (*TASKS, own.TRAINING), "task", self.task, TASKS)

    @property
    def goal(self) -> float:
        """The hardest goal."""
        return self.goals[0]

    @property
    def asks(self) -> Task | Kind:
        """What it asks for, and how pages spell it."""
        if self.task != own.TRAINING:
            return TASKS[self.task]
        from lib.workloads import kinds  # brings PyTorch, as a reader's own file does

        return kinds.of(own_file.load(self.name))

    @property
    def train_size(self) -> int:
        """Training examples."""
        return self.examples or datasets.train_size(self.dataset)

    def train(self, split: int = 0) -> datasets.Split:
        """The examples it trains on, in this draw of training and validation examples."""
        whole = datasets.load(self.dataset, split).train
        return (
            whole
            if self.examples is None
            else datasets.Split(whole.x[: self.examples], whole.y[: self.examples])
        )


def _digits(
    name: str,
    title: str,
    model: str,
    goals: tuple[float, ...] = (0.04, 0.05, 0.06, 0.08, 0.1),
    **more,
):
    return Workload(name, title, "digits", model, goals, max_steps=100_000, **more)


def _mnist(
    name: str,
    title: str,
    model: str,
    goals: tuple[float, ...] = (0.03, 0.035, 0.04, 0.05, 0.06),
    **more,
):
    return Workload(name, title, "mnist", model, goals, precision="bfloat16", **more)


FC_WIDTHS = ("1024", "128x3", "256x3", "512x3", "1024x3")
MLP_SHAPES = ("16x2", "256x2", "64x1", "64x4")
# how the names of workloads end that wait for an easier goal, and are the same otherwise
EASIER = "-easier"
FRACTIONS = (8, 4, 2)  # an eighth, a quarter and a half of a training set
WORKLOADS = {
    w.name: w
    for w in (
        _digits("digits-mlp", "MLP on digits", "mlp-64x2", batched_below=2049),
        _digits("digits-cnn", "Small CNN on digits", "digits-cnn", batched_below=2049),
        _digits(
            "digits-mlp-nats",
            "MLP on digits, cross-entropy",
            "mlp-64x2",
            (0.15, 0.17, 0.2, 0.25, 0.3),
            batched_below=2049,
            task="cross-entropy",
        ),
        _digits(
            "digits-mlp-tanh",
            "tanh MLP on digits",
            "mlp-64x2-tanh",
            batched_below=2049,
            space="wide-rates",
        ),
        *(
            _digits(
                f"digits-mlp-{s}",
                f"MLP {s.replace('x', '×')} on digits",
                f"mlp-{s}",
                batched_below=512,
            )
            for s in MLP_SHAPES
        ),
        *(
            _digits(
                f"digits-mlp-{1350 // n}",
                f"MLP on {1350 // n} digits",
                "mlp-64x2",
                (0.1, 0.12, 0.15, 0.2),
                batched_below=512,
                examples=1350 // n,
            )
            for n in FRACTIONS
        ),
        *(
            _mnist(
                f"mnist-fc-{s}",
                f"FC-{s.replace('x', '×')} on MNIST",
                f"fc-{s}",
                batched_below=129 * (s == "128x3"),
            )
            for s in FC_WIDTHS
        ),
        *(
            _mnist(
                f"mnist-fc-128x3-{54_000 // n}",
                f"FC-128×3 on {54_000 // n:,} of MNIST",
                "fc-128x3",
                (0.06, 0.07, 0.08, 0.1),
                batched_below=129,
                examples=54_000 // n,
            )
            for n in FRACTIONS
        ),
        _mnist(
            "mnist-fc-128x3-54000",
            "FC-128×3 on all 54,000 of MNIST",
            "fc-128x3",
            (0.06, 0.07, 0.08, 0.1),
            batched_below=129,
        ),
        _mnist(
            f"mnist-fc-128x3{EASIER}",
            "FC-128×3 on MNIST, easier goal",
            "fc-128x3",
            (0.04, 0.05, 0.06),
            batched_below=129,
        ),
        *(
            _mnist(
                f"mnist-simple-cnn-{s}",
                f"Simple-CNN, {s} width, on MNIST",
                f"simple-cnn-{s}",
                (0.02, 0.025, 0.03, 0.04, 0.05),
            )
            for s in ("half", "double")
        ),
        *(
            Workload(
                f"{data}-{model}",
                f"{title} on {known}",
                data,
                model,
                goals,
                space="shi2019",
                batched_below=1025,
            )
            for data, known, goals in (
                ("mnist", "MNIST", (0.03, 0.04, 0.05)),
                ("fashion-mnist", "Fashion-MNIST", (0.13, 0.15, 0.18)),
            )
            for model, title in (("fnn-3", "FNN-3"), ("lenet-5", "LeNet-5"))
        ),
        Workload(
            "fashion-mnist-fc-128x3",
            "FC-128×3 on Fashion-MNIST",
            "fashion-mnist",
            "fc-128x3",
            (0.13, 0.14, 0.15, 0.16, 0.18),
            precision="bfloat16",
            batched_below=129,
        ),
        Workload(
            f"fashion-mnist-fc-128x3{EASIER}",
            "FC-128×3 on Fashion-MNIST, easier goal",
            "fashion-mnist",
            "fc-128x3",
            (0.14, 0.15, 0.16, 0.18),
            precision="bfloat16",
            batched_below=129,
        ),
        Workload(
            "mnist-simple-cnn",
            "Simple-CNN on MNIST",
            "mnist",
            "simple-cnn",
            (0.02, 0.025, 0.03, 0.04, 0.05),
            precision="bfloat16",
        ),
        _mnist(
            f"mnist-simple-cnn{EASIER}",
            "Simple-CNN on MNIST, easier goal",
            "simple-cnn",
            (0.04, 0.05, 0.06),
        ),
        Workload(
            "fashion-mnist-simple-cnn",
            "Simple-CNN on Fashion-MNIST",
            "fashion-mnist",
            "simple-cnn",
            (0.12, 0.13, 0.14, 0.16, 0.18),
            precision="bfloat16",
        ),
        Workload(
            "cifar-10-resnet-20",
            "ResNet-20 on CIFAR-10",
            "cifar-10",
            "resnet-20",
            (0.3, 0.35, 0.4),
            space="shi2019",
        ),
        Workload(
            "cifar-10-resnet-8",
            "ResNet-8 on CIFAR-10",
            "cifar-10",
            "resnet-8",
            (0.4, 0.425, 0.45, 0.475, 0.5),
            decay=True,
            max_steps=100_000,
            precision="bfloat16",
        ),
        *(
            Workload(
                f"shakespeare{name}",
                f"Decoder{of} on Tiny Shakespeare",
                "tiny-shakespeare",
                f"decoder-{width}x2",
                (1.9, 2.0, 2.1, 2.2, 2.3),
                precision="bfloat16",
                task="cross-entropy",
                batched_below=1025,
            )
            for name, of, width in (
                ("", "", 64),
                ("-width-32", " of width 32", 32),
                ("-width-128", " of width 128", 128),
            )
        ),
        Workload(
            f"shakespeare{EASIER}",
            "Decoder on Tiny Shakespeare, easier goal",
            "tiny-shakespeare",
            "decoder-64x2",
            (2.3,),
            precision="bfloat16",
            task="cross-entropy",
            batched_below=1025,
        ),
        Workload(
            "shakespeare-lstm",
            "LSTM on Tiny Shakespeare",
            "tiny-shakespeare",
            "lstm-128",
            (1.9, 2.0, 2.1, 2.2, 2.3),
            task="cross-entropy",
            space="shi2019",
        ),
    )
}


def _on_their_split(work: Workload) -> Workload:
    """A workload on MNIST with the split of Lee et al. (2021) instead of ours."""
    title = f"{work.title}, split of Lee et al."
    return replace(work, name=f"{work.name}{THEIR_SPLIT}", title=title, dataset=datasets.LEE2021)


THEIR_SPLIT = "-lee2021"  # how the names of workloads on it end
WORKLOADS |= {
    w.name: w
    for w in (_on_their_split(WORKLOADS[ours]) for ours in ("mnist-simple-cnn", "mnist-fc-128x3"))
}


def _of_text(name: str) -> Workload:
    """The book's language model on a text of the reader's."""
    book, text = WORKLOADS["shakespeare"], own_text.read(name)
    title = f"Decoder on {own_file.file_of(name).name}"
    return replace(
        book,
        name=name,
        title=title,
        dataset=name,
        model=f"{book.model}-{text.symbols}",
        goals=own_text.goals(name),
        source=text.source,
    )


def workload(name: str) -> Workload:
    """Look a workload up, or read a reader's own, by whatever spelling (`own_file.canonical`,
    `own_text.canonical`).

    Raises ValueError naming the allowed ones, and OwnError for what is wrong with a reader's own.
    """
    if own.is_own(name):
        name = own_file.canonical(name)
        chosen = own_file.settings(own_file.load(name))
        return Workload(
            name, chosen.pop("title") or name, name, name, **chosen, source=own_file.source(name)
        )
    if own.is_text(name):
        return _of_text(own_text.canonical(name))
    if name not in WORKLOADS:
        allowed = f"{', '.join(WORKLOADS)}, or file.py:function, or the path of a .txt file"
        raise ValueError(f"workload: {name!r} is unknown; allowed: {allowed}")
    return WORKLOADS[name]


# As the book spells it
WorkloadName = Annotated[
    str, AfterValidator(lambda name: workload(name).name), "the name of a workload"
]
