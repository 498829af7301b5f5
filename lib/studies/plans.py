"""The book's studies: which cells it measures, and in what order."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace

from lib import ROOT, require
from lib.studies.cells import Cell
from lib.studies.study import (
    ALL_POWERS,
    DENSE_AND_SPARSE,
    DIGITS,
    EXACT,
    WATCHED,
    Study,
    grid,
    powers,
    raced,
    races,
    to_budget,
)
from lib.workloads.catalogue import EASIER

# --- what studies share ---------------------------------------------------------------------------

LEVELS = (0.0, 0.5, 0.7, 0.9)
BETWEEN = (0.5, 0.7)
FC, FASHION_FC = f"mnist-fc-128x3{EASIER}", f"fashion-mnist-fc-128x3{EASIER}"
CNN, FASHION_CNN, RESNET = "mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8"
PUBLISHED = ("momentum", "sgd", "nesterov")  # what Lee et al. and Shallue et al. train with
# Splits on which pruned networks take several times the steps to the hardest goal, or hardly get
# there
HARD_SPLITS = (9, 13)


def _hard_last(cells: Iterable[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda cell: cell.split in HARD_SPLITS and cell.sparsity > 0)


# --- digits ---------------------------------------------------------------------------------------


def _digits() -> Iterable[Cell]:
    """The network that is cheap first; momentum first; replicates last."""
    sizes, levels = ALL_POWERS, LEVELS
    yield from grid(workload=DIGITS, algorithm=PUBLISHED, batch_size=sizes, sparsity=levels)
    yield from grid(
        algorithm=PUBLISHED,
        workload=DIGITS,
        batch_size=sizes,
        replicate=(1, 2),
        sparsity=levels,
    )


def _digits_searches() -> Iterable[Cell]:
    """Searches 3 to 22, each on its own split and up to its first hit; momentum first, hard splits
    last.

    Then 23 to 32 of the curves that are cheapest, and ten more of the first of these, whose range
    is the widest.
    """

    def searches(algorithm: object, name: object, numbers: range) -> Iterable[Cell]:
        return grid(
            algorithm=algorithm,
            workload=name,
            batch_size=(64, 4, 512, 16, 256, 1, 1024, 2, 8, 32, 128),
            search=numbers,
            sparsity=DENSE_AND_SPARSE,
            hits=1,
        )

    decades = (range(3, 13), range(13, 23))
    yield from _hard_last(c for some in decades for c in searches(PUBLISHED, DIGITS, some))
    yield from searches("momentum", "digits-mlp", range(23, 33))
    yield from searches("sgd", DIGITS, range(23, 33))
    yield from searches("momentum", "digits-mlp", range(33, 43))


def _digits_low_momentum() -> Iterable[Cell]:
    """Momentum below the published range, on the splits and in the data orders of `digits-searches`
    and `digits-between`: ten searches of every curve before the next ten.
    """
    for searches, levels in ((range(3, 13), LEVELS), (range(13, 23), DENSE_AND_SPARSE)):
        for algorithm, sparsities in (("momentum", levels), ("nesterov", DENSE_AND_SPARSE)):
            yield from grid(
                algorithm=algorithm,
                workload=DIGITS,
                search=searches,
                sparsity=sparsities,
                batch_size=ALL_POWERS,
                hits=1,
                space="low-momentum",
            )


# --- images ---------------------------------------------------------------------------------------
# Left out are the searches that would take a core more than an hour: at their hardest goals, pruned
# networks above 1,024 examples and dense ones on Fashion-MNIST above 2,048; there, too, Nesterov
# with pruned networks at 4, where momentum misses the goal in all steps allowed.
# `mnist-searches` goes on to 4,096 at an easier goal.

FIRST_RUN = ((64, 0.0), (64, 0.9), (16, 0.0), (256, 0.0))  # up to their fifth hit


def _cnn(batch_size: object, sparsity: object) -> Iterable[Cell]:
    for cell in grid(workload=CNN, batch_size=batch_size, sparsity=sparsity, **EXACT):
        first = (cell.batch_size, cell.sparsity) in FIRST_RUN
        yield replace(cell, hits=5) if first else cell


def _mnist() -> Iterable[Cell]:
    """All sparsities of one batch size before the next; then races, the larger batches first, dense
    and 90 % sparse before all.
    """
    yield from _cnn((64, 256, 16, 4, 32, 128), LEVELS)
    yield from _cnn(1024, DENSE_AND_SPARSE)
    yield from races(workload=CNN, batch_size=(2048, 4096))
    yield from races(workload=CNN, batch_size=(512, 8), sparsity=DENSE_AND_SPARSE)
    yield from races(workload=CNN, batch_size=(1024, 512), sparsity=BETWEEN)


def _by_method(name: str, methods: Iterable[str], *asked: tuple) -> Iterable[Cell]:
    """Races of each method; asked: batch sizes and sparsities."""
    for method in methods:
        for sizes, levels in asked:
            yield from races(workload=name, algorithm=method, batch_size=sizes, sparsity=levels)


def _mnist_algorithms() -> Iterable[Cell]:
    """Exact searches of four batch sizes, and races of the others, the larger batches first."""
    both, levels = ("sgd", "nesterov"), DENSE_AND_SPARSE
    sizes = (64, 16, 256, 4)
    yield from grid(workload=CNN, algorithm=both, batch_size=sizes, sparsity=levels, **EXACT)
    yield from _by_method(CNN, both, ((2048, 4096), 0.0), ((1024, 512, 128, 32, 8), levels))


def _fashion_mnist() -> Iterable[Cell]:
    """Exact searches up to 256, with SGD and Nesterov of dense networks at three batch sizes; races
    of all others.
    """
    name, levels, both = FASHION_CNN, DENSE_AND_SPARSE, ("sgd", "nesterov")
    yield from grid(workload=name, batch_size=(64, 16, 256, 4), sparsity=levels, **EXACT)
    yield from grid(workload=name, algorithm=both, batch_size=(64, 16, 256), **EXACT)
    for method, at_four in (("momentum", ()), ("sgd", levels), ("nesterov", 0.0)):
        yield from _by_method(name, (method,), (2048, 0.0), (1024, levels), (4, at_four))
    yield from races(workload=name, algorithm=both, batch_size=(64, 256, 16), sparsity=0.9)


def _cifar() -> Iterable[Cell]:
    """Momentum, at 8 and 2,048, too; SGD and Nesterov of dense networks: exact up to the first hit,
    and what races would change.
    """
    shared = {"workload": RESNET, "trials": 16}
    yield from grid(batch_size=(128, 32, 512), sparsity=DENSE_AND_SPARSE, hits=2, **shared)
    shared |= {"hits": 1, "race": WATCHED, "rungs": "losses"}
    yield from grid(batch_size=(512, 128, 32), algorithm=("nesterov", "sgd"), **shared)
    yield from grid(batch_size=(2048, 8), **shared)


def _cifar_on_a_gpu() -> Iterable[Cell]:
    """Races that take a core hours each: 90 % sparse at the ends, then dense and sparse on another
    split.
    """
    yield from races(workload=RESNET, batch_size=(2048, 8), sparsity=0.9, trials=16)
    yield from races(
        workload=RESNET,
        batch_size=(2048, 512, 128, 32),
        sparsity=DENSE_AND_SPARSE,
        search=1,
        trials=16,
    )


def _fc_searches() -> Iterable[Cell]:
    """FC-128×3 with a goal that dense and 90 % sparse networks meet, in powers of four; momentum
    first.

    Races, but for the first search on MNIST.
    """
    for cell in grid(
        search=range(1, 6),
        algorithm=("momentum", "sgd"),
        sparsity=DENSE_AND_SPARSE,
        batch_size=(64, 1024, 16, 256, 4096, 4),
        workload=(FC, FASHION_FC),
        trials=32,
        hits=1,
    ):
        yield cell if (cell.split, cell.workload) == (1, FC) else raced(cell)


def _fc_low_momentum() -> Iterable[Cell]:
    """Momentum below the published range, on the splits, in the data orders and by the races of
    `fc-searches`.
    """
    for cell in _fc_searches():
        if cell.algorithm == "momentum":
            yield replace(cell, space="low-momentum")


def _cnn_own_splits(sizes: tuple[int, ...], space: str | None = None) -> Iterable[Cell]:
    """Simple-CNN on MNIST down to the hardest goal, four searches on splits of their own; twice the
    usual limit of steps at 4.
    """
    for cell in races(
        search=range(1, 5), batch_size=sizes, sparsity=DENSE_AND_SPARSE, workload=CNN, space=space
    ):
        yield replace(cell, max_steps=80_000) if cell.batch_size == 4 else cell


def _mnist_searches() -> Iterable[Cell]:
    """Simple-CNN with a goal that dense and 90 % sparse networks meet on every split, in powers of
    four; momentum first.

    At 2 % error, that of `mnist`, sparse networks take up to ten times the steps, and splits decide
    whether they get there.
    """
    for sizes in ((64, 256, 16, 1024, 4), 4096):
        yield from races(
            search=range(1, 4),
            algorithm=("momentum", "sgd"),
            sparsity=DENSE_AND_SPARSE,
            batch_size=sizes,
            workload=CNN + EASIER,
        )


def _mnist_floor() -> Iterable[Cell]:
    """Simple-CNN on MNIST at the largest batches, where steps stop falling, over both halves of
    momentum's range and to the fifth hit; on the splits of `mnist-own-splits`.
    """
    for cell in races(
        workload=CNN, batch_size=(4096, 2048), space=(None, "low-momentum"), search=range(1, 5)
    ):
        yield replace(cell, hits=5)


def _eighth() -> Iterable[Cell]:
    """An eighth of MNIST at the sizes that `mnist-fractions-searches` lacks, to the fifth hit."""
    for size, searches in ((1024, (3, 4, 5)), (4096, (2, 3, 4, 5))):
        for cell in races(
            workload="mnist-fc-128x3-6750", algorithm="sgd", batch_size=size, search=searches
        ):
            yield replace(cell, hits=5)


# --- all ------------------------------------------------------------------------------------------

PLANNED = (
    Study("digits", "Digits: every batch size, sparsity and algorithm", _digits()),
    Study(
        "digits-searches",
        "Digits: twenty searches to forty, each on a split of its own",
        _digits_searches(),
    ),
    # On the splits, and in the data orders, of dense and 90 % sparse searches
    Study(
        "digits-between",
        "Digits: half and 70 % of the weights removed, searches on splits of their own",
        grid(
            search=range(3, 13),
            algorithm=PUBLISHED,
            sparsity=BETWEEN,
            batch_size=ALL_POWERS,
            workload=DIGITS,
            hits=1,
        ),
    ),
    Study(
        "digits-low-momentum",
        "Digits: momentum below the published range",
        _hard_last(_digits_low_momentum()),
        apart=True,
    ),
    Study(
        "digits-budget",
        "Digits: every trial to its budget",
        (
            *to_budget(2**17, workload=DIGITS, batch_size=ALL_POWERS),
            *to_budget(
                2**17, workload=DIGITS, batch_size=powers(2, 10, 2), label_smoothing=(0.01, 0.1)
            ),
        ),
    ),
    Study(
        "digits-nats",
        "Digits: goals of cross-entropy",
        grid(replicate=range(3), workload="digits-mlp-nats", batch_size=(64, 16, 256), trials=32),
    ),
    Study(
        "fc-searches",
        "MNIST and Fashion-MNIST: FC-128×3, searches on splits of their own",
        _fc_searches(),
    ),
    Study(
        "fc-low-momentum",
        "MNIST and Fashion-MNIST: FC-128×3, momentum below the published range",
        _fc_low_momentum(),
        apart=True,
    ),
    Study("mnist", "MNIST: Simple-CNN with momentum", _mnist()),
    *(
        Study(
            f"{data}-budget",
            f"{title}: every trial to its budget",
            to_budget(
                2**18, workload=f"{data}-fc-128x3", batch_size=(64, 16, 256, 4, 1024), trials=32
            ),
        )
        for data, title in (("mnist", "MNIST"), ("fashion-mnist", "Fashion-MNIST"))
    ),
    Study("mnist-algorithms", "MNIST: SGD and Nesterov", _mnist_algorithms()),
    Study(
        "mnist-searches", "MNIST: Simple-CNN, searches on splits of their own", _mnist_searches()
    ),
    Study(
        "mnist-own-splits",
        "MNIST: Simple-CNN at the hardest goal, searches on splits of their own",
        _cnn_own_splits((64, 1024, 256, 16, 4)),
    ),
    Study(
        "mnist-low-momentum",
        "MNIST: Simple-CNN, momentum below the published range",
        _cnn_own_splits((64, 1024, 256, 16, 4), "low-momentum"),
        apart=True,
    ),
    # Apart until the rules that read them have been changed
    Study("mnist-floor", "MNIST: Simple-CNN where steps stop falling", _mnist_floor(), apart=True),
    Study("mnist-eighth", "MNIST: an eighth of the data, larger batches", _eighth(), apart=True),
    Study("fashion-mnist", "Fashion-MNIST: Simple-CNN", _fashion_mnist()),
    Study("cifar-10", "CIFAR-10: ResNet-8", _cifar()),
    Study("cifar-10-gpu", "CIFAR-10: ResNet-8, for a graphics processor", _cifar_on_a_gpu()),
)
# As lists have them; studies that are not named come last.
ORDER = """
digits digits-searches digits-between digits-low-momentum digits-sparsest digits-methods
digits-budget digits-smoothing digits-nats digits-adam digits-shapes digits-fractions
digits-shapes-searches digits-fractions-searches fc-searches fc-low-momentum
mnist-fractions-searches mnist mnist-ladder mnist-fractions mnist-widths mnist-budget
fashion-mnist-budget mnist-longer-budget messages message-variants messages-lenet-5 messages-rates
messages-resnet-20 both-sparsities both-sparsities-mnist mnist-algorithms mnist-methods
mnist-precision mnist-searches mnist-own-splits mnist-low-momentum races mnist-split mnist-split-fc
fashion-mnist cifar-10 cifar-10-gpu digits-which digits-which-more digits-kfac
digits-which-sparse
digits-soap digits-local digits-local-budget mnist-fc-which mnist-fc-which-more mnist-which
staleness staleness-depth shakespeare-exact shakespeare shakespeare-methods shakespeare-sparse
shakespeare-sgd
shakespeare-widths
""".split()


def _gathered() -> dict[str, Study]:
    """All studies by name: these, and those of every chapter that has a file studies.py."""
    found = list(PLANNED)
    for file in sorted(ROOT.glob("chapters/*/studies.py")):
        found += importlib.import_module(f"chapters.{file.parent.name}.studies").STUDIES
    places = {name: place for place, name in enumerate(ORDER)}
    found.sort(key=lambda study: places.get(study.name, len(places)))
    return {study.name: study for study in found}


STUDIES = _gathered()

# --- which studies belong together ----------------------------------------------------------------

TO_BUDGETS = ("mnist-budget", "fashion-mnist-budget")  # of curves that were run to no goal
# What the chapters compare unless they are about one of these fields.
USUAL = {
    "stop": "goal",
    "checks": "geometric",
    "precision": None,
    "space": None,
    "pruning": "connection-sensitivity",
    "label_smoothing": 0.0,
    "messages": None,
    "max_steps": None,
    "staleness": 0,
    "delays": "fixed",
}
# Studies of a question of their own: the same networks on the same images once more are no further
# curves of the book. By a dozen methods.
WHICH = (
    "digits-which",
    "digits-which-more",
    "digits-which-sparse",
    "mnist-fc-which",
    "mnist-fc-which-more",
    "mnist-which",
    "digits-kfac",
)
LOW_MOMENTUM = ("digits-low-momentum", "fc-low-momentum", "mnist-low-momentum")


def study(name: str) -> Study:
    """Look a study up.  Raises ValueError naming the allowed ones."""
    require(name in STUDIES, "study", name, STUDIES)
    return STUDIES[name]
