"""The book's studies: which cells it measures, and in what order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lib import require, require_whole
from lib.engine.vocabulary import METHODS
from lib.messages.settings import Messages
from lib.methods import LOCAL
from lib.methods import METHODS as KNOWN
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import FC_WIDTHS, FRACTIONS, MLP_SHAPES, RACE


def powers(low: int, high: int, every: int = 1) -> list[int]:
    """2**low ... 2**high, `every` so many powers.  Raises ValueError unless 0 <= low <= high <= 40 and 1 <= every <= 40."""
    require_whole("low", low, 0, 40)
    require_whole("high", high, low, 40)
    require_whole("every", every, 1, 40)
    return [2**k for k in range(low, high + 1, every)]


TO_BUDGETS = ("mnist-budget", "fashion-mnist-budget")  # studies of curves that were run to budgets, and to no goal
# What the chapters compare unless they are about one of these fields.
USUAL = {
    "stop": "goal", "checks": "geometric", "precision": None, "space": None, "pruning": "connection-sensitivity",
    "label_smoothing": 0.0, "messages": None, "max_steps": None, "staleness": 0, "delays": "fixed",
}  # fmt: skip
DENSE_AND_SPARSE = (0.0, 0.9)
LEVELS = (0.0, 0.5, 0.7, 0.9)
BETWEEN = (0.5, 0.7)
ALL_POWERS = powers(0, 10, 2) + powers(1, 9, 2)  # every fourth power before those between
DIGITS = ("digits-mlp", "digits-cnn")


def _digits() -> Iterable[Cell]:
    """The network that is cheap first; momentum first; replicates last."""
    for name in DIGITS:
        for algorithm in ("momentum", "sgd", "nesterov"):
            for batch_size in ALL_POWERS:
                for sparsity in LEVELS:
                    yield Cell(name, batch_size, algorithm, sparsity)
    for algorithm in ("momentum", "sgd", "nesterov"):
        for name in DIGITS:
            for batch_size in ALL_POWERS:
                for replicate in (1, 2):
                    for sparsity in LEVELS:
                        yield Cell(name, batch_size, algorithm, sparsity, replicate=replicate)


def _digits_sparsest() -> Iterable[Cell]:
    """A budget of its own, since little is left to train; momentum first, few batch sizes before all, replicates last."""
    sizes = [4, 64, 16, 256, *(b for b in ALL_POWERS if b not in (4, 64, 16, 256))]
    for replicate in range(3):
        for algorithm in ("momentum", "sgd", "nesterov"):
            for batch_size in sizes:
                for name in DIGITS:
                    yield Cell(name, batch_size, algorithm, 0.95, replicate=replicate, max_steps=20_000)


NEAR_FLOOR = 9  # the split on which pruned networks hardly get below the hardest goal, in up to 100,000 steps


def _digits_searches() -> Iterable[Cell]:
    """Searches 3 to 22, each on its own split and up to its first hit; momentum first, the split near the floor last."""
    return sorted(_searches(), key=lambda cell: cell.split == NEAR_FLOOR and cell.sparsity > 0)


def _searches() -> Iterable[Cell]:
    few = [64, 4, 512, 16, 256, 1, 1024, *(b for b in ALL_POWERS if b not in (64, 4, 512, 16, 256, 1, 1024))]
    for searches in (range(3, 13), range(13, 23)):
        for algorithm in ("momentum", "sgd", "nesterov"):
            for name in DIGITS:
                for batch_size in few:
                    for search in searches:
                        for sparsity in DENSE_AND_SPARSE:
                            yield Cell(name, batch_size, algorithm, sparsity, replicate=search, split=search, hits=1)


def _digits_nats() -> Iterable[Cell]:
    """Goals of cross-entropy: a few batch sizes of the dense network, three searches."""
    for replicate in range(3):
        for batch_size in (64, 16, 256):
            yield Cell("digits-mlp-nats", batch_size, trials=32, replicate=replicate)


def _digits_adam() -> Iterable[Cell]:
    """Dense networks; replicates last."""
    for replicate in range(3):
        for name in DIGITS:
            for batch_size in ALL_POWERS:
                yield Cell(name, batch_size, "adam", replicate=replicate)


def _digits_methods() -> Iterable[Cell]:
    """Every method of pruning at sparsity 0.9; what takes longest, random masks and the smallest batches, last.

    Cells of the poorer methods end at their second hit or after 20,000 steps: their later trials take many times longer.
    """
    sizes = [64, 16, 256, 4, *(b for b in reversed(ALL_POWERS) if b not in (64, 16, 256, 4))]
    for methods in ([m for m in METHODS if m != "random"], ["random"]):
        for name in DIGITS:
            for batch_size in sizes:
                for method in methods:
                    short = {} if method == "connection-sensitivity" else {"hits": 2, "max_steps": 20_000}
                    yield Cell(name, batch_size, sparsity=0.9, pruning=method, **short)


def _mnist_cell(batch_size: int, sparsity: float, **fields) -> Cell:
    """32 trials, up to the second hit, but for the four cells that were run first."""
    first = (batch_size, sparsity) in {(64, 0.0), (64, 0.9), (16, 0.0), (256, 0.0)} and not fields
    return Cell("mnist-simple-cnn", batch_size, sparsity=sparsity, trials=32, hits=5 if first else 2, **fields)


def _raced(name: str, batch_size: int, algorithm: str = "momentum", sparsity: float = 0.0, **fields) -> Cell:
    """A search of an image workload that is a race, up to its first hit: what was not measured before races were calibrated."""
    return Cell(name, batch_size, algorithm, sparsity, trials=32, hits=1, race=RACE, **fields)


def _mnist() -> Iterable[Cell]:
    """All sparsities of one batch size before the next; then races, the larger batches first, dense and 90 % sparse before all."""
    for batch_size in (64, 256, 16, 4, 32, 128):
        for sparsity in LEVELS:
            yield _mnist_cell(batch_size, sparsity)
    for sparsity in DENSE_AND_SPARSE:
        yield _mnist_cell(1024, sparsity)
    for batch_size in (4096, 2048, 512, 8):
        for sparsity in DENSE_AND_SPARSE:
            yield _raced("mnist-simple-cnn", batch_size, sparsity=sparsity)
    for batch_size in (1024, 4096, 2048, 512):
        for sparsity in BETWEEN:
            yield _raced("mnist-simple-cnn", batch_size, sparsity=sparsity)


def _mnist_algorithms() -> Iterable[Cell]:
    """SGD, then Nesterov: exact searches of four batch sizes, and races of the others, the larger batches first."""
    yield from _images("mnist-simple-cnn", (64, 16, 256, 4), ("sgd", "nesterov"))
    for algorithm in ("sgd", "nesterov"):
        for batch_size in (1024, 4096, 2048, 512, 128, 32, 8):
            for sparsity in DENSE_AND_SPARSE:
                yield _raced("mnist-simple-cnn", batch_size, algorithm, sparsity)


def _fashion_mnist() -> Iterable[Cell]:
    """Exact searches up to 256, with SGD and Nesterov of dense networks at three batch sizes; races of all others."""
    yield from _images("fashion-mnist-simple-cnn", (64, 16, 256, 4), ("momentum",))
    for algorithm in ("sgd", "nesterov"):
        for batch_size in (64, 16, 256):
            yield Cell("fashion-mnist-simple-cnn", batch_size, algorithm, trials=32, hits=2)
    for algorithm in ("momentum", "sgd", "nesterov"):
        for batch_size in (1024, 4096) if algorithm == "momentum" else (1024, 4096, 4):
            for sparsity in DENSE_AND_SPARSE:
                yield _raced("fashion-mnist-simple-cnn", batch_size, algorithm, sparsity)
    for algorithm in ("sgd", "nesterov"):
        for batch_size in (64, 256, 16):
            yield _raced("fashion-mnist-simple-cnn", batch_size, algorithm, 0.9)


def _mnist_methods() -> Iterable[Cell]:
    for batch_size in (64, 16, 256, 1024):
        yield _mnist_cell(batch_size, 0.9)
        for method in METHODS[1:]:
            yield _raced("mnist-simple-cnn", batch_size, sparsity=0.9, pruning=method)


def _images(name: str, sizes: Iterable[int], algorithms: Iterable[str], trials: int = 32) -> Iterable[Cell]:
    """Dense and 90 % sparse; all sparsities of one batch size before the next, one algorithm after the other."""
    for algorithm in algorithms:
        for batch_size in sizes:
            for sparsity in DENSE_AND_SPARSE:
                yield Cell(name, batch_size, algorithm, sparsity, trials=trials, hits=2)


def _cifar() -> Iterable[Cell]:
    """Momentum at 8 and 2,048, too; SGD and Nesterov of dense networks."""
    yield from _images("cifar-10-resnet-8", (128, 32, 512), ("momentum",), trials=16)
    for algorithm in ("sgd", "nesterov"):
        for batch_size in (128, 32, 512):
            yield Cell("cifar-10-resnet-8", batch_size, algorithm, trials=16, hits=2)
    for batch_size in (2048, 8):
        yield Cell("cifar-10-resnet-8", batch_size, trials=16, hits=2)


def _precision() -> Iterable[Cell]:
    """The same two cells in either precision, and with the check interval of Lee et al. (2021)."""
    for sparsity in DENSE_AND_SPARSE:
        yield _mnist_cell(64, sparsity)
        yield _mnist_cell(64, sparsity, precision="float32")
        yield _mnist_cell(64, sparsity, checks="every-100")


def _variants(names: Iterable[str], sizes: Iterable[int], algorithm: str, trials: int, hits: int) -> Iterable[Cell]:
    """Dense networks of several workloads: all workloads of one batch size before the next."""
    for batch_size in sizes:
        for name in names:
            yield Cell(name, batch_size, algorithm, trials=trials, hits=hits)


def _ladder() -> Iterable[Cell]:
    """The smallest network also at 4, where the others would take two hours together."""
    for batch_size in (64, 16, 256, 1024, 4, 4096):
        names = [f"mnist-fc-{s}" for s in FC_WIDTHS if batch_size > 4 or s == "128x3"]
        yield from _variants(names, [batch_size], "sgd", 32, 2)


def _whole(name: str, sizes: Iterable[int], trials: int, examples: int, smoothings=(0.0,)) -> Iterable[Cell]:
    """Every trial to its budget: 4,096 steps, or more where a small batch needs more for so many examples."""
    for batch_size in sizes:
        for smoothing in smoothings:
            yield Cell(name, batch_size, trials=trials, stop="budget", max_steps=max(4096, examples // batch_size),
                       label_smoothing=smoothing)  # fmt: skip


def _mnist_longer_budget() -> Iterable[Cell]:
    """Until a further doubling of a batch size's own steps would gain next to nothing; the largest, which costs most, last."""
    for batch_size, steps in ((16, 2**17), (64, 2**15), (256, 2**14), (1024, 2**14)):
        yield Cell("mnist-fc-128x3", batch_size, trials=16, stop="budget", max_steps=steps)


def _digits_budget() -> Iterable[Cell]:
    for name in DIGITS:
        yield from _whole(name, ALL_POWERS, 100, 2**17)
    for name in DIGITS:
        yield from _whole(name, powers(2, 10, 2), 100, 2**17, (0.01, 0.1))


SENT = (0.001, 0.01)  # densities of messages
RIVALS = (  # compressor, error feedback: what Shi et al. (2019) compare, Rand-k also with what they left out
    ("top-k", True), ("gaussian-k", True), ("rand-k", False), ("rand-k", True), ("dgc-k", True),
)  # fmt: skip
EPOCH = 105  # steps of 512 examples in 54,000


def _message_cell(name: str, replicate: int = 0, **messages) -> Cell:
    """4 learning rates, every one for 2,048 steps of 16 workers with 32 examples each: twice d/k steps at density 0.001."""
    return Cell(name, 512, trials=4, stop="budget", max_steps=2048, space="shi2019", replicate=replicate,
                messages=Messages(**messages))  # fmt: skip


def _messages(*names: str) -> Iterable[Cell]:
    """All methods on every workload, then the next search."""
    for replicate in range(3):
        for name in names:
            yield _message_cell(name, replicate, compressor="dense", density=1.0, feedback=False)
            for density in SENT:
                for compressor, feedback in RIVALS:
                    yield _message_cell(name, replicate, compressor=compressor, density=density, feedback=feedback)


def _message_variants() -> Iterable[Cell]:
    """One thing changed at a time."""
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


def _messages_rates() -> Iterable[Cell]:
    """Rand-k without feedback moves each weight rarely: rates above those at which its searches did best."""
    for replicate in range(3):
        for name in ("mnist-fnn-3", "fashion-mnist-fnn-3"):
            cell = _message_cell(name, replicate, compressor="rand-k", density=min(SENT), feedback=False)
            yield replace(cell, space="higher-rates")


def _both_sparsities(name: str, sizes: Iterable[int], trials: int) -> Iterable[Cell]:
    """Pruned and dense networks that exchange dense and sparse messages."""
    for batch_size in sizes:
        for sparsity in DENSE_AND_SPARSE:
            for density in (1.0, 0.01, 0.001):
                messages = Messages(compressor="top-k", density=density)
                yield Cell(name, batch_size, sparsity=sparsity, trials=trials, hits=2, messages=messages)


def _both_sparsities_mnist() -> Iterable[Cell]:
    """Learning rates only; the pruned network does not meet the hardest goal, so that its cells end at 16,384 steps."""
    for cell in _both_sparsities("mnist-fc-128x3", (64,), 8):
        yield replace(cell, space="shi2019", max_steps=2**14 if cell.sparsity else None)


def _own_splits(names: Iterable[str], sizes: Iterable[int], searches: Iterable[int], **fields) -> Iterable[Cell]:
    """Searches on splits of their own, each up to its first hit: all workloads of one batch size, then the next search."""
    for search in searches:
        for batch_size in sizes:
            for name in names:
                yield Cell(name, batch_size, replicate=search, split=search, hits=1, **fields)


def _fc_searches() -> Iterable[Cell]:
    """FC-128×3 with a goal that dense and 90 % sparse networks meet, in powers of four; momentum first.

    Races, but for the first search on MNIST.
    """
    for search in range(1, 6):
        for algorithm in ("momentum", "sgd"):
            for sparsity in DENSE_AND_SPARSE:
                for batch_size in (64, 1024, 16, 256, 4096, 4):
                    for name in ("mnist-fc-128x3-easier", "fashion-mnist-fc-128x3-easier"):
                        race = None if search == 1 and name.startswith("mnist") else RACE
                        yield from _own_splits([name], [batch_size], [search], algorithm=algorithm, trials=32,
                                               sparsity=sparsity, race=race)  # fmt: skip


def _mnist_split_fc() -> Iterable[Cell]:
    """A cheap network on the split of Lee et al. (2021) and on ours, the same trials on both; one search after the other."""
    for replicate in range(3):
        for batch_size in (256, 64, 1024):
            for name in ("mnist-fc-128x3", "mnist-fc-128x3-lee2021"):
                yield Cell(name, batch_size, trials=32, replicate=replicate, hits=1)


def _mnist_split_cnn() -> Iterable[Cell]:
    """Dense networks first, since they are cheap; the counterparts on our split are of other studies."""
    for sparsity in DENSE_AND_SPARSE:
        for algorithm in ("momentum", "sgd"):
            for batch_size in (64, 256, 16, 1024):
                yield Cell("mnist-simple-cnn-lee2021", batch_size, algorithm, sparsity, trials=32, hits=1, race=RACE)


def _mnist_searches() -> Iterable[Cell]:
    """A second and a third search, each on a split of its own; dense networks first, since they are cheap."""
    for sparsity in DENSE_AND_SPARSE:
        for search in (1, 2):
            for algorithm in ("momentum", "sgd"):
                yield from _own_splits(("mnist-simple-cnn",), (64, 256, 16, 1024), [search], algorithm=algorithm,
                                       sparsity=sparsity, trials=32, race=RACE)  # fmt: skip


# What the chapter on training methods compares, the most wanted first; SGD, by which it divides, before all.
COMPARED = tuple(
    name
    for name in ("sgd", "momentum", "adam", "muon", "kfac", "lars", "lamb", "nesterov", "momentum-ema", "clars", "lars-warmup",
                 "adam-half-life", "adam-fixed")
    if name in KNOWN
)  # fmt: skip
COMPARED_SPARSE = tuple(name for name in ("sgd", "momentum", "adam", "muon", "kfac") if name in KNOWN)
COMPARED_LARGE = tuple(name for name in ("sgd", "momentum", "nesterov", "adam", "muon", "lars", "kfac") if name in KNOWN)
WITHOUT_BACKPROPAGATION = ("sgd", *LOCAL)  # with backpropagation, by which the chapter divides, before all
FOURS = (64, 16, 256, 4, 1024, 1)  # powers of four, the middle first


def _which(
    names: Iterable[str], sizes: Iterable[int], methods: Iterable[str], searches: Iterable[int], **fields
) -> Iterable[Cell]:
    """All methods at a batch size, then the next one, then the next search; sizes between the powers of four last."""
    for group in (FOURS, [b for b in sizes if b not in FOURS]):
        for search in searches:
            for batch_size in (b for b in group if b in sizes):
                for name in names:
                    for method in methods:
                        yield Cell(name, batch_size, method, replicate=search, split=search, hits=1, **fields)


def _fc_which() -> Iterable[Cell]:
    """Races, but for those of the first search that another study has as exact ones."""
    exact = set(_fc_searches())
    for cell in _which(("mnist-fc-128x3-easier",), powers(2, 12, 2), COMPARED, range(1, 4), trials=32, race=RACE):
        whole = replace(cell, race=None)
        yield whole if whole in exact else cell


def _mnist_which() -> Iterable[Cell]:
    """One search of each: those that are exact elsewhere, and races."""
    exact = {(cell.algorithm, cell.batch_size): cell for cell in (*_mnist(), *_mnist_algorithms()) if cell.sparsity == 0}
    for batch_size in (64, 256, 16, 1024):
        for method in COMPARED_LARGE:
            yield exact.get((method, batch_size)) or _raced("mnist-simple-cnn", batch_size, method)


def _local_budget() -> Iterable[Cell]:
    """What each way to pass errors back ends at, on five splits."""
    for search in range(3, 8):
        for method in WITHOUT_BACKPROPAGATION:
            yield Cell("digits-mlp-tanh", 64, method, trials=16, replicate=search, split=search, stop="budget", max_steps=2048)


LATE = (1, 3, 7, 15, 31)  # steps by which gradients are late, as with 2, 4, ... 32 workers that take turns
LATE_SIZES = (64, 16, 256, 4)
TOO_LATE = 20_000  # steps after which a search is given up
LATE_SEARCHES = range(3, 6)  # on splits of which the other searches are, too
MORE_LATE_SEARCHES = range(6, 9)  # of what the methods are compared by


def _late(name: str, algorithm: str, search: int, sizes: Iterable[int], staleness: int, delays: str = "fixed") -> Iterable[Cell]:
    """Dense networks whose gradients are late: a search of 32 trials at every one of these batch sizes."""
    for size in sizes:
        yield Cell(name, size, algorithm, trials=32, replicate=search, split=search, hits=1, max_steps=TOO_LATE,
                   staleness=staleness, delays=delays)  # fmt: skip


def _staleness() -> Iterable[Cell]:
    """SGD first; without delay at every size that several workers' batches have together.  The largest costs most if late."""
    for search in LATE_SEARCHES:
        yield from _late("digits-mlp", "sgd", search, powers(2, 10), 0)
        for s in LATE:
            yield from _late("digits-mlp", "sgd", search, (*LATE_SIZES, *((1024,) if s < 15 else ())), s)
        for s in (7, 31):
            yield from _late("digits-mlp", "sgd", search, LATE_SIZES, s, "uniform")
    for algorithm in ("momentum", "adam"):
        for search in LATE_SEARCHES:
            yield from _late("digits-mlp", algorithm, search, powers(2, 9), 0)
            for s in (1, 7, 31):
                yield from _late("digits-mlp", algorithm, search, LATE_SIZES, s)
    for search in MORE_LATE_SEARCHES:
        for algorithm in ("sgd", "adam", "momentum"):
            for s in (0, 7):
                yield from _late("digits-mlp", algorithm, search, LATE_SIZES, s)


def _staleness_depth() -> Iterable[Cell]:
    """Networks of other depth, without delay and late."""
    for search in LATE_SEARCHES:
        for s in (0, 7):
            for name in ("digits-mlp-64x1", "digits-mlp-64x4"):
                yield from _late(name, "sgd", search, LATE_SIZES, s)


SHAKESPEARE_BUDGETS = {16: 10_000, 64: 5_000, 4: 20_000, 256: 2_500, 1: 40_000}  # steps by batch size, the middle first
TEXT_RACE = 3.0  # a wide one, since no record tells what races do on texts
TEXT_WIDTHS = {"shakespeare-width-32": 32, "shakespeare": 64, "shakespeare-width-128": 128}
TEXT_ENDS = (16, 256)


def _shakespeare(
    replicates: Iterable[int], methods: Iterable[str], sizes: Iterable[int] = tuple(SHAKESPEARE_BUDGETS),
    workload: str = "shakespeare", **fields,
) -> Iterable[Cell]:  # fmt: skip
    """All methods at a batch size, then the next one, then the next search; each search on a split of its own.

    Larger batches take fewer steps, which cost more: trials are given up the sooner.  All are races.
    """
    for replicate in replicates:
        for batch_size in sizes:
            for name in methods:
                yield Cell(workload, batch_size, name, trials=16, hits=1, replicate=replicate, split=replicate,
                           max_steps=SHAKESPEARE_BUDGETS[batch_size], race=TEXT_RACE, **fields)  # fmt: skip


def _shakespeare_widths() -> Iterable[Cell]:
    """Two batch sizes, either side of the critical one, tell it of every width; the book's own has searches at both."""
    return (c for name in TEXT_WIDTHS if name != "shakespeare" for c in _shakespeare(range(1), ("adam",), TEXT_ENDS, name))


def _shakespeare_exact() -> Iterable[Cell]:
    """Exact lock step where it costs least: whether races would have told the same."""
    for batch_size in (16, 64):
        yield Cell("shakespeare", batch_size, "adam", trials=16, hits=2, max_steps=SHAKESPEARE_BUDGETS[batch_size])


MNIST_SIZES = (64, 16, 256, 4, 1024)
# Studies of a question of their own: the same networks on the same images once more are no further curves of the book.
WHICH = ("digits-which", "digits-which-sparse", "mnist-fc-which", "mnist-which")  # the same networks by a dozen methods
# A task and goals of their own.
TEXT = ("shakespeare-exact", "shakespeare", "shakespeare-methods", "shakespeare-sparse", "shakespeare-sgd", "shakespeare-widths")
LOCALLY = ("digits-local", "digits-local-budget")  # an activation and methods of their own
LATE_STUDIES = ("staleness", "staleness-depth")  # late gradients: other training, on the same networks
APART = ("mnist-split", "mnist-split-fc", "mnist-longer-budget", "messages-rates", *WHICH, *TEXT, *LOCALLY, *LATE_STUDIES)
STUDIES = {
    s.name: s
    for s in (
        Study("digits", "Digits: every batch size, sparsity and algorithm", tuple(_digits())),
        Study("digits-searches", "Digits: twenty searches, each on a split of its own", tuple(_digits_searches())),
        Study("digits-sparsest", "Digits with 95 % of the weights removed", tuple(_digits_sparsest())),
        Study("digits-methods", "Digits: five methods of pruning", tuple(_digits_methods())),
        Study("digits-budget", "Digits: every trial to its budget", tuple(_digits_budget())),
        Study("digits-nats", "Digits: goals of cross-entropy", tuple(_digits_nats())),
        Study("digits-adam", "Digits: Adam", tuple(_digits_adam())),
        Study("digits-shapes", "Digits: width and depth",
              tuple(_variants([f"digits-mlp-{s}" for s in MLP_SHAPES], ALL_POWERS, "momentum", 100, 5))),
        Study("digits-fractions", "Digits: fractions of the data",
              tuple(_variants([f"digits-mlp-{1350 // n}" for n in FRACTIONS], powers(0, 7), "momentum", 100, 5))),
        Study("digits-shapes-searches", "Digits: width and depth, searches on splits of their own",
              tuple(_own_splits([f"digits-mlp-{s}" for s in MLP_SHAPES], ALL_POWERS, range(3, 13)))),
        Study("digits-fractions-searches", "Digits: fractions of the data, searches on splits of their own",
              tuple(_own_splits([f"digits-mlp-{1350 // n}" for n in FRACTIONS], powers(0, 7), range(3, 13)))),
        Study("fc-searches", "MNIST and Fashion-MNIST: FC-128×3, searches on splits of their own", tuple(_fc_searches())),
        Study("mnist-fractions-searches", "MNIST: an eighth of the data and all, searches on splits of their own",
              tuple(_own_splits(("mnist-fc-128x3-6750", "mnist-fc-128x3-easier"), (64, 16, 256, 1024, 4, 4096), range(1, 6),
                                algorithm="sgd", trials=32, race=RACE))),
        Study("mnist", "MNIST: Simple-CNN with momentum", tuple(_mnist())),
        Study("mnist-ladder", "MNIST: fully connected networks with SGD",
              tuple(_ladder())),
        Study("mnist-fractions", "MNIST: fractions of the data",
              tuple(_variants([f"mnist-fc-128x3-{54_000 // n}" for n in FRACTIONS], (64, 16, 256, 4, 1024, 4096), "sgd",
                              32, 2))),
        Study("mnist-widths", "MNIST: Simple-CNN of half and double width",
              tuple(_variants([f"mnist-simple-cnn-{s}" for s in ("half", "double")], (64, 16, 256, 4), "momentum", 32,
                              2))),
        Study("mnist-budget", "MNIST: every trial to its budget",
              tuple(_whole("mnist-fc-128x3", MNIST_SIZES, 32, 2**18))),
        Study("fashion-mnist-budget", "Fashion-MNIST: every trial to its budget",
              tuple(_whole("fashion-mnist-fc-128x3", MNIST_SIZES, 32, 2**18))),
        Study("mnist-longer-budget", "MNIST: every trial to a longer budget", tuple(_mnist_longer_budget())),
        Study("messages", "Sparse messages: five methods, two data sets", tuple(_messages("mnist-fnn-3", "fashion-mnist-fnn-3"))),
        Study("message-variants", "Sparse messages: one thing changed at a time", tuple(_message_variants())),
        Study("messages-lenet-5", "Sparse messages: LeNet-5", tuple(_messages("mnist-lenet-5", "fashion-mnist-lenet-5"))),
        Study("messages-rates", "Sparse messages: Rand-k at higher learning rates", tuple(_messages_rates())),
        Study("messages-resnet-20", "Sparse messages: ResNet-20 on CIFAR-10", tuple(_messages("cifar-10-resnet-20"))),
        Study("both-sparsities", "Digits: pruned networks with sparse messages",
              tuple(_both_sparsities("digits-mlp", (64, 16, 256), 100))),
        Study("both-sparsities-mnist", "MNIST: pruned networks with sparse messages",
              tuple(_both_sparsities_mnist())),
        Study("mnist-algorithms", "MNIST: SGD and Nesterov",
              tuple(_mnist_algorithms())),
        Study("mnist-methods", "MNIST: five methods of pruning", tuple(_mnist_methods())),
        Study("mnist-precision", "MNIST: precision and check interval", tuple(_precision())),
        Study("mnist-searches", "MNIST: Simple-CNN, searches on splits of their own", tuple(_mnist_searches())),
        Study("mnist-split", "MNIST: Simple-CNN on the split of Lee et al.", tuple(_mnist_split_cnn())),
        Study("mnist-split-fc", "MNIST: a cheap network on the split of Lee et al. and on ours", tuple(_mnist_split_fc())),
        Study("fashion-mnist", "Fashion-MNIST: Simple-CNN",
              tuple(_fashion_mnist())),
        Study("cifar-10", "CIFAR-10: ResNet-8",
              tuple(_cifar())),
        Study("digits-which", "Digits: training methods", tuple(_which(DIGITS, ALL_POWERS, COMPARED, range(3, 8)))),
        Study("digits-which-sparse", "Digits: training methods on pruned networks",
              tuple(_which(DIGITS, ALL_POWERS, COMPARED_SPARSE, range(3, 8), sparsity=0.9))),
        Study(LOCALLY[0], "Digits: without backpropagation",
              tuple(_which(("digits-mlp-tanh",), powers(0, 10, 2), WITHOUT_BACKPROPAGATION, range(3, 8)))),
        Study(LOCALLY[1], "Digits: without backpropagation, every trial to its budget", tuple(_local_budget())),
        Study("mnist-fc-which", "MNIST: training methods, FC-128×3",
              tuple(_fc_which())),
        Study("mnist-which", "MNIST: training methods, Simple-CNN", tuple(_mnist_which())),
        Study("staleness", "Digits: late gradients", tuple(_staleness())),
        Study("staleness-depth", "Digits: late gradients in networks of other depth", tuple(_staleness_depth())),
        Study("shakespeare-exact", "Tiny Shakespeare: Adam in exact lock step", tuple(_shakespeare_exact())),
        Study("shakespeare", "Tiny Shakespeare: Adam", tuple(_shakespeare(range(3), ("adam",)))),
        Study("shakespeare-methods", "Tiny Shakespeare: momentum and Muon", tuple(_shakespeare(range(2), ("muon", "momentum")))),
        Study("shakespeare-sparse", "Tiny Shakespeare: 90 % of the weights removed",
              tuple(_shakespeare(range(2), ("adam",), (64, 16, 256), sparsity=0.9))),
        Study("shakespeare-sgd", "Tiny Shakespeare: SGD", tuple(_shakespeare(range(2), ("sgd",)))),
        Study("shakespeare-widths", "Tiny Shakespeare: half and double the width", tuple(_shakespeare_widths())),
    )
}  # fmt: skip


def study(name: str) -> Study:
    """Look a study up.  Raises ValueError naming the allowed ones."""
    require(name in STUDIES, "study", name, "one of " + ", ".join(STUDIES))
    return STUDIES[name]
