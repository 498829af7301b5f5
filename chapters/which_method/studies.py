"""What this chapter's searches are: the same networks trained by a dozen methods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lib.methods import METHODS
from lib.studies.cells import Cell
from lib.studies.study import ALL_POWERS, DIGITS, Study, grid, powers, raced, races
from lib.workloads.catalogue import EASIER


def _known(*names: str) -> tuple[str, ...]:
    """Those that have a file in `lib/methods`."""
    return tuple(name for name in names if name in METHODS)


# What the chapter on training methods compares, the most wanted first; SGD, by which it divides,
# before all.
FAST = ("sgd", "momentum", "adam", "muon", "kfac", "lars", "lamb", "nesterov")
EVERYWHERE = _known(*FAST, "momentum-ema", "clars", "lars-warmup", "adam-half-life", "adam-fixed")
COMPARED = (*EVERYWHERE, "kfac-unclipped", "soap", "soap-10")  # these three on digits alone
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
    """Races, but for the first search by SGD and momentum, as `fc-searches` has it."""
    for cell in _which(f"mnist-fc-128x3{EASIER}", sizes, methods, searches, trials=32):
        exact = cell.split == 1 and cell.algorithm in ("sgd", "momentum")
        yield cell if exact else raced(cell)


def _mnist_which() -> Iterable[Cell]:
    """One search of each: those that are exact in `mnist` and `mnist-algorithms`, and races."""
    methods = _known("sgd", "momentum", "nesterov", "adam", "muon", "lars", "kfac")
    sizes = (64, 256, 16, 1024)
    for race in races(workload="mnist-simple-cnn", batch_size=sizes, algorithm=methods):
        momentum, small = race.algorithm == "momentum", race.batch_size < 1024
        exact = momentum or (small and race.algorithm in ("sgd", "nesterov"))
        hits = 5 if momentum and small else 2
        yield replace(race, race=None, rungs="goals", hits=hits) if exact else race


STUDIES = (
    Study(
        "digits-which",
        "Digits: training methods",
        _which(DIGITS, ALL_POWERS, EVERYWHERE, range(3, 8)),
        apart=True,
    ),
    Study(
        "digits-which-more",
        "Digits: training methods, more searches of a few",
        _digits_which_more(),
        apart=True,
    ),
    Study(
        "digits-kfac",
        "Digits: K-FAC without its clip",
        _which(DIGITS, ALL_POWERS, "kfac-unclipped", range(3, 8)),
        apart=True,
    ),
    Study(
        "digits-which-sparse",
        "Digits: training methods on pruned networks",
        _which(DIGITS, ALL_POWERS, _known(*FAST[:5]), range(3, 8), sparsity=0.9),
        apart=True,
    ),
    Study(
        "mnist-fc-which",
        "MNIST: training methods, FC-128×3",
        _on_fc(powers(2, 12, 2), EVERYWHERE, range(1, 4)),
        apart=True,
    ),
    # Of the methods that claims compare, where a search takes less than five minutes
    Study(
        "mnist-fc-which-more",
        "MNIST: training methods, FC-128×3, more searches",
        _on_fc(powers(4, 12, 2), _known(*FAST, "clars", "lars-warmup"), range(4, 9)),
        apart=True,
    ),
    Study("mnist-which", "MNIST: training methods, Simple-CNN", _mnist_which(), apart=True),
    # With the draws, orders and splits of the first searches by methods that it is compared with
    Study(
        "digits-soap",
        "Digits: SOAP",
        grid(
            search=range(3, 11),
            batch_size=powers(2, 10, 2),
            workload="digits-mlp",
            algorithm=("soap", "soap-10"),
            hits=1,
        ),
        apart=True,
    ),
)
