"""The book's studies: which cells it measures, and in what order."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace

from lib import ROOT, require
from lib.engine.vocabulary import METHODS as PRUNINGS
from lib.methods import LOCAL, METHODS
from lib.studies.cells import Cell
from lib.studies.races import WATCHED, raced, races
from lib.studies.study import ALL_POWERS, DENSE_AND_SPARSE, DIGITS, Study, grid, powers
from lib.workloads.catalogue import EASIER, FC_WIDTHS, FRACTIONS, MLP_SHAPES

# --- what studies share ---------------------------------------------------------------------------

LEVELS = (0.0, 0.5, 0.7, 0.9)
BETWEEN = (0.5, 0.7)
SHAPES = [f"digits-mlp-{shape}" for shape in MLP_SHAPES]
DIGITS_FRACTIONS = [f"digits-mlp-{1350 // n}" for n in FRACTIONS]
FC, FASHION_FC = f"mnist-fc-128x3{EASIER}", f"fashion-mnist-fc-128x3{EASIER}"
CNN, FASHION_CNN, RESNET = "mnist-simple-cnn", "fashion-mnist-simple-cnn", "cifar-10-resnet-8"
PUBLISHED = ("momentum", "sgd", "nesterov")  # what Lee et al. and Shallue et al. train with
EXACT = {"trials": 32, "hits": 2}  # an image network's search that is no race
# Splits on which pruned networks take several times the steps to the hardest goal, or hardly get
# there
HARD_SPLITS = (9, 13)


def _after(*first: int) -> list[int]:
    """All batch sizes on digits, these before the others."""
    return [*first, *(size for size in ALL_POWERS if size not in first)]


def _hard_last(cells: Iterable[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda cell: cell.split in HARD_SPLITS and cell.sparsity > 0)


def _to_budget(examples: int, **fields) -> Iterable[Cell]:
    """Every trial to its budget: 4,096 steps, or more where a small batch needs more for so many
    examples.
    """
    for cell in grid(stop="budget", **fields):
        yield replace(cell, max_steps=max(4096, examples // cell.batch_size))


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
            batch_size=_after(64, 4, 512, 16, 256, 1, 1024),
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


def _digits_prunings() -> Iterable[Cell]:
    """Every method of pruning at sparsity 0.9; what takes longest, random masks and the smallest
    batches, last.

    Cells of the poorer methods end at their second hit or after 20,000 steps: their later trials
    take many times longer.
    """
    sizes = [64, 16, 256, 4]
    sizes += [size for size in reversed(ALL_POWERS) if size not in sizes]
    for methods in ([m for m in PRUNINGS if m != "random"], ["random"]):
        for cell in grid(workload=DIGITS, batch_size=sizes, pruning=methods, sparsity=0.9):
            good = cell.pruning == "connection-sensitivity"
            yield cell if good else replace(cell, hits=2, max_steps=20_000)


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


def _mnist_algorithms() -> Iterable[Cell]:
    """Exact searches of four batch sizes, and races of the others, the larger batches first."""
    both, levels = ("sgd", "nesterov"), DENSE_AND_SPARSE
    sizes = (64, 16, 256, 4)
    yield from grid(
        workload=CNN,
        algorithm=both,
        batch_size=sizes,
        sparsity=levels,
        **EXACT,
    )
    for method in both:
        yield from races(
            workload=CNN,
            algorithm=method,
            batch_size=(2048, 4096),
        )
        rest = (1024, 512, 128, 32, 8)
        yield from races(
            workload=CNN,
            algorithm=method,
            batch_size=rest,
            sparsity=levels,
        )


def _fashion_mnist() -> Iterable[Cell]:
    """Exact searches up to 256, with SGD and Nesterov of dense networks at three batch sizes; races
    of all others.
    """
    name, levels, both = FASHION_CNN, DENSE_AND_SPARSE, ("sgd", "nesterov")
    yield from grid(
        workload=name,
        batch_size=(64, 16, 256, 4),
        sparsity=levels,
        **EXACT,
    )
    yield from grid(
        workload=name,
        algorithm=both,
        batch_size=(64, 16, 256),
        **EXACT,
    )
    for method in PUBLISHED:
        yield from races(
            workload=name,
            algorithm=method,
            batch_size=2048,
        )
        yield from races(
            workload=name,
            algorithm=method,
            batch_size=1024,
            sparsity=levels,
        )
        at_four = {"momentum": (), "sgd": levels, "nesterov": (0.0,)}[method]
        yield from races(
            workload=name,
            algorithm=method,
            batch_size=4,
            sparsity=at_four,
        )
    yield from races(
        workload=name,
        algorithm=both,
        batch_size=(64, 256, 16),
        sparsity=0.9,
    )


def _mnist_prunings() -> Iterable[Cell]:
    """Methods of pruning on an image network; a poor one is given up after some times the steps of
    connection sensitivity.

    Left out: GraSP at temperature 200; at temperature one but at 64, where nobody meets the goal in
    the steps allowed, which takes a core most of an hour to find; and random pruning at 1,024,
    where the last trial of a race fell short in 8,000 steps, and a wider race would take as long.
    """
    for batch_size, most in {64: 20_000, 16: 20_000, 256: 8000, 1024: 4000}.items():
        yield from _cnn(batch_size, 0.9)
        left_out = {PRUNINGS[0], "grasp-200", "grasp" * (batch_size != 64)}
        left_out.add("random" * (batch_size == 1024))
        yield from races(
            workload=CNN,
            batch_size=batch_size,
            sparsity=0.9,
            pruning=[method for method in PRUNINGS if method not in left_out],
            max_steps=most,
        )


def _mnist_precision() -> Iterable[Cell]:
    """The same two cells in either precision, and with the check interval of Lee et al. (2021)."""
    for sparsity in DENSE_AND_SPARSE:
        yield from _cnn(64, sparsity)
        shared = {"workload": CNN, "batch_size": 64, "sparsity": sparsity, **EXACT}
        yield Cell(precision="float32", **shared)
        yield Cell(checks="every-100", **shared)


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


def _mnist_ladder() -> Iterable[Cell]:
    """The smallest network also at 4, where the others would take two hours together."""
    names = [f"mnist-fc-{width}" for width in FC_WIDTHS]
    sizes = (64, 16, 256, 1024, 4, 4096)
    for cell in grid(batch_size=sizes, workload=names, algorithm="sgd", **EXACT):
        if cell.batch_size > 4 or cell.workload == "mnist-fc-128x3":
            yield cell


def _mnist_longer_budget() -> Iterable[Cell]:
    """Until a further doubling of a batch size's own steps would gain next to nothing; the largest,
    which costs most, last.
    """
    for batch_size, steps in ((16, 2**17), (64, 2**15), (256, 2**14), (1024, 2**14)):
        yield Cell("mnist-fc-128x3", batch_size, trials=16, stop="budget", max_steps=steps)


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


# --- training methods -----------------------------------------------------------------------------


def _known(*names: str) -> tuple[str, ...]:
    """Those that have a file in `lib/methods`."""
    return tuple(name for name in names if name in METHODS)


# What the chapter on training methods compares, the most wanted first; SGD, by which it divides,
# before all.
FAST = ("sgd", "momentum", "adam", "muon", "kfac", "lars", "lamb", "nesterov")
EVERYWHERE = _known(*FAST, "momentum-ema", "clars", "lars-warmup", "adam-half-life", "adam-fixed")
COMPARED = (*EVERYWHERE, "kfac-unclipped")  # the last on digits alone
# With backpropagation, by which the chapter divides, before all
WITHOUT_BACKPROPAGATION = ("sgd", *LOCAL)
CLOSE = ("sgd", "lra", "lra-1")  # whose errors are a point or less apart
FOURS = (64, 16, 256, 4, 1024, 1)  # powers of four, the middle first


def _which(
    names: object, sizes: Iterable[int], methods: object, searches: range, **fields
) -> Iterable[Cell]:
    """All methods at a batch size, then the next one, then the next search; sizes between the
    powers of four last.
    """
    for group in ([b for b in FOURS if b in sizes], [b for b in sizes if b not in FOURS]):
        axes = {"batch_size": group, "workload": names, "algorithm": methods}
        yield from grid(search=searches, **axes, hits=1, **fields)


def _digits_which_more() -> Iterable[Cell]:
    """More searches where claims turn on them: 35 of Adam and Muon; 15 of rates layer by layer, at
    batches of 16 and more, and on the fully connected network, whose ratio of Nesterov to LARS is
    near a claim's threshold, 40 more of these two.
    """
    large, layers = [b for b in ALL_POWERS if b >= 16], ("lars-warmup", "clars", "lars")
    yield from _which(DIGITS, ALL_POWERS, ("adam", "muon"), range(8, 43))
    yield from _which(DIGITS, large, layers, range(8, 23))
    yield from _which("digits-mlp", large, ("nesterov", "lars"), range(23, 63))


def _on_fc(sizes: Iterable[int], methods: Iterable[str], searches: range) -> Iterable[Cell]:
    """Races; SGD and momentum as `fc-searches` has them."""
    shared = {replace(cell, race=None, rungs="goals"): cell for cell in _fc_searches()}
    for cell in _which(FC, sizes, methods, searches, trials=32):
        yield shared.get(cell) or raced(cell)


def _mnist_which() -> Iterable[Cell]:
    """One search of each: those that are exact elsewhere, and races."""
    dense = (cell for cell in (*_mnist(), *_mnist_algorithms()) if cell.sparsity == 0)
    measured = {(cell.algorithm, cell.batch_size): cell for cell in dense}
    methods = _known("sgd", "momentum", "nesterov", "adam", "muon", "lars", "kfac")
    for race in races(workload=CNN, batch_size=(64, 256, 16, 1024), algorithm=methods):
        yield measured.get((race.algorithm, race.batch_size), race)


def _local_budget() -> Iterable[Cell]:
    """What each way to pass errors back ends at, on five splits, and on many more for those that
    come close.
    """
    for searches, methods in ((range(3, 8), WITHOUT_BACKPROPAGATION), (range(8, 103), CLOSE)):
        yield from grid(
            workload="digits-mlp-tanh",
            batch_size=64,
            search=searches,
            algorithm=methods,
            trials=16,
            stop="budget",
            max_steps=2048,
        )


# --- a text ---------------------------------------------------------------------------------------

# Steps by batch size, the middle first
SHAKESPEARE_BUDGETS = {16: 10_000, 64: 5_000, 4: 20_000, 256: 2_500, 1: 40_000}
TEXT_RACE = 3.0  # a wide one, since no record tells what races do on texts
TEXT_WIDTHS = {"shakespeare-width-32": 32, "shakespeare": 64, "shakespeare-width-128": 128}
TEXT_ENDS = (16, 256)  # batch sizes, one either side of the critical one


def _on_text(
    searches: range,
    algorithm: object,
    batch_size: tuple[int, ...] = tuple(SHAKESPEARE_BUDGETS),
    workload: str = "shakespeare",
    **fields,
) -> Iterable[Cell]:
    """All methods at a batch size, then the next one, then the next search; each search on a split
    of its own.

    Larger batches take fewer steps, which cost more: trials are given up the sooner.  All are
    races, unless `fields` have it otherwise.
    """
    fields = {"trials": 16, "hits": 1, "race": TEXT_RACE} | fields
    for cell in grid(
        search=searches, batch_size=batch_size, algorithm=algorithm, workload=workload, **fields
    ):
        yield replace(cell, max_steps=SHAKESPEARE_BUDGETS[cell.batch_size])


def _text_sparse() -> Iterable[Cell]:
    """The first of them showed that the dense network's hardest goal is out of reach: the others
    wait for an easier one.
    """
    first, *others = _on_text(range(2), "adam", (64, 16, 256), sparsity=0.9)
    return first, *(replace(cell, workload=cell.workload + EASIER) for cell in others)


def _text_widths() -> Iterable[Cell]:
    """Two batch sizes tell the critical one of every width; the book's own has searches at both."""
    for name in TEXT_WIDTHS:
        if name != "shakespeare":
            yield from _on_text(range(1), "adam", TEXT_ENDS, name)


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
    ),
    # A budget of its own, since little is left to train; few batch sizes before all
    Study(
        "digits-sparsest",
        "Digits with 95 % of the weights removed",
        grid(
            replicate=range(3),
            algorithm=PUBLISHED,
            batch_size=_after(4, 64, 16, 256),
            workload=DIGITS,
            sparsity=0.95,
            max_steps=20_000,
        ),
    ),
    Study("digits-methods", "Digits: six methods of pruning", _digits_prunings()),
    Study(
        "digits-budget",
        "Digits: every trial to its budget",
        (
            *_to_budget(2**17, workload=DIGITS, batch_size=ALL_POWERS),
            *_to_budget(
                2**17, workload=DIGITS, batch_size=powers(2, 10, 2), label_smoothing=(0.01, 0.1)
            ),
        ),
    ),
    # With and without label smoothing; of the cheaper network twice as many, and first
    Study(
        "digits-smoothing",
        "Digits: label smoothing, every trial to its budget, searches on splits of their own",
        (
            cell
            for name, searches in zip(DIGITS, (10, 5))
            for cell in _to_budget(
                2**17,
                workload=name,
                search=range(1, 1 + searches),
                batch_size=powers(2, 10, 2),
                label_smoothing=(0.0, 0.01, 0.1),
                trials=20,
            )
        ),
    ),
    Study(
        "digits-nats",
        "Digits: goals of cross-entropy",
        grid(replicate=range(3), workload="digits-mlp-nats", batch_size=(64, 16, 256), trials=32),
    ),
    Study(
        "digits-adam",
        "Digits: Adam",
        grid(replicate=range(3), workload=DIGITS, batch_size=ALL_POWERS, algorithm="adam"),
    ),
    Study("digits-shapes", "Digits: width and depth", grid(batch_size=ALL_POWERS, workload=SHAPES)),
    Study(
        "digits-fractions",
        "Digits: fractions of the data",
        grid(batch_size=powers(0, 7), workload=DIGITS_FRACTIONS),
    ),
    Study(
        "digits-shapes-searches",
        "Digits: width and depth, searches on splits of their own",
        grid(search=range(3, 13), batch_size=ALL_POWERS, workload=SHAPES, hits=1),
    ),
    Study(
        "digits-fractions-searches",
        "Digits: fractions of the data, searches on splits of their own",
        grid(search=range(3, 13), batch_size=powers(0, 7), workload=DIGITS_FRACTIONS, hits=1),
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
    ),
    # With the same goals
    Study(
        "mnist-fractions-searches",
        "MNIST: an eighth of the data and all, searches on splits of their own",
        races(
            search=range(1, 6),
            batch_size=(64, 16, 256, 1024, 4, 4096),
            workload=("mnist-fc-128x3-6750", "mnist-fc-128x3-54000"),
            algorithm="sgd",
        ),
    ),
    Study("mnist", "MNIST: Simple-CNN with momentum", _mnist()),
    Study("mnist-ladder", "MNIST: fully connected networks with SGD", _mnist_ladder()),
    Study(
        "mnist-fractions",
        "MNIST: fractions of the data",
        grid(
            batch_size=(64, 16, 256, 4, 1024, 4096),
            workload=[f"mnist-fc-128x3-{54_000 // n}" for n in FRACTIONS],
            algorithm="sgd",
            **EXACT,
        ),
    ),
    Study(
        "mnist-widths",
        "MNIST: Simple-CNN of half and double width",
        grid(batch_size=(64, 16, 256, 4), workload=(f"{CNN}-half", f"{CNN}-double"), **EXACT),
    ),
    *(
        Study(
            f"{data}-budget",
            f"{title}: every trial to its budget",
            _to_budget(
                2**18, workload=f"{data}-fc-128x3", batch_size=(64, 16, 256, 4, 1024), trials=32
            ),
        )
        for data, title in (("mnist", "MNIST"), ("fashion-mnist", "Fashion-MNIST"))
    ),
    Study(
        "mnist-longer-budget",
        "MNIST: every trial to a longer budget",
        _mnist_longer_budget(),
    ),
    Study("mnist-algorithms", "MNIST: SGD and Nesterov", _mnist_algorithms()),
    Study("mnist-methods", "MNIST: five methods of pruning", _mnist_prunings()),
    Study("mnist-precision", "MNIST: precision and check interval", _mnist_precision()),
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
        _cnn_own_splits((64, 1024, 256, 16), "low-momentum"),
    ),
    Study("fashion-mnist", "Fashion-MNIST: Simple-CNN", _fashion_mnist()),
    Study("cifar-10", "CIFAR-10: ResNet-8", _cifar()),
    Study("cifar-10-gpu", "CIFAR-10: ResNet-8, for a graphics processor", _cifar_on_a_gpu()),
    Study(
        "digits-which",
        "Digits: training methods",
        _which(DIGITS, ALL_POWERS, EVERYWHERE, range(3, 8)),
    ),
    Study(
        "digits-which-more",
        "Digits: training methods, more searches of a few",
        _digits_which_more(),
    ),
    Study(
        "digits-kfac",
        "Digits: K-FAC without its clip",
        _which(DIGITS, ALL_POWERS, "kfac-unclipped", range(3, 8)),
    ),
    Study(
        "digits-which-sparse",
        "Digits: training methods on pruned networks",
        _which(DIGITS, ALL_POWERS, _known(*FAST[:5]), range(3, 8), sparsity=0.9),
    ),
    Study(
        "digits-local",
        "Digits: without backpropagation",
        _which("digits-mlp-tanh", powers(0, 10, 2), WITHOUT_BACKPROPAGATION, range(3, 8)),
    ),
    Study(
        "digits-local-budget",
        "Digits: without backpropagation, every trial to its budget",
        _local_budget(),
    ),
    Study(
        "mnist-fc-which",
        "MNIST: training methods, FC-128×3",
        _on_fc(powers(2, 12, 2), EVERYWHERE, range(1, 4)),
    ),
    # Of the methods that claims compare, where a search takes less than five minutes
    Study(
        "mnist-fc-which-more",
        "MNIST: training methods, FC-128×3, more searches",
        _on_fc(powers(4, 12, 2), _known(*FAST, "clars", "lars-warmup"), range(4, 9)),
    ),
    Study("mnist-which", "MNIST: training methods, Simple-CNN", _mnist_which()),
    # Where exact lock step costs least: whether races would have told the same
    Study(
        "shakespeare-exact",
        "Tiny Shakespeare: Adam in exact lock step",
        _on_text(range(1), "adam", (16, 64), hits=2, race=None),
    ),
    Study("shakespeare", "Tiny Shakespeare: Adam", _on_text(range(3), "adam")),
    Study(
        "shakespeare-methods",
        "Tiny Shakespeare: momentum and Muon",
        _on_text(range(2), ("muon", "momentum")),
    ),
    Study("shakespeare-sparse", "Tiny Shakespeare: 90 % of the weights removed", _text_sparse()),
    Study("shakespeare-sgd", "Tiny Shakespeare: SGD", _on_text(range(1), "sgd")),
    Study("shakespeare-widths", "Tiny Shakespeare: half and double the width", _text_widths()),
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
# A task and goals of their own.
TEXT = tuple(name for name in STUDIES if name.startswith("shakespeare"))
LOCALLY = ("digits-local", "digits-local-budget")  # an activation and methods of their own
ROTATED = ("digits-soap",)  # of a section of its own
LATE_STUDIES = ("staleness", "staleness-depth")  # other training, on the same networks
LOW_MOMENTUM = ("digits-low-momentum", "fc-low-momentum", "mnist-low-momentum")
APART = (
    "races",
    *LOW_MOMENTUM,
    "mnist-own-splits",
    "mnist-split",
    "mnist-split-fc",
    "mnist-longer-budget",
    "messages-rates",
    *WHICH,
    *TEXT,
    *LOCALLY,
    *ROTATED,
    *LATE_STUDIES,
)


def prunings() -> Study:
    """All searches by which methods of pruning are compared, each network's on the same trials."""
    cells = (cell for name in ("digits-methods", "mnist-methods") for cell in study(name).cells)
    return Study("prunings", "Methods of pruning", cells)


def study(name: str) -> Study:
    """Look a study up.  Raises ValueError naming the allowed ones."""
    require(name in STUDIES, "study", name, STUDIES)
    return STUDIES[name]
