"""What this chapter measures besides searches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from lib.probes import tracks
from lib.probes.tracks import Track
from lib.records.store import DATA
from lib.studies import plans


def twins(dense: list[Track], sparsities: Iterable[float], data: Path = DATA) -> list[Track]:
    """The same trials in sparse networks: same hyperparameters, same initialisation before pruning,
    as many steps.
    """
    alike = [dataclasses.replace(track, steps=tracks.last_step(track, data)) for track in dense]
    return [dataclasses.replace(track, sparsity=s) for s in sparsities for track in alike]


def planned() -> list[Track]:
    """Twins of the dense networks on digits that were trained with momentum."""
    dense = [t for t in tracks.digits() if t.sparsity == 0 and t.algorithm == "momentum"]
    return twins(dense, plans.LEVELS[1:])


TWINS = tracks.experiment("digits-twins", planned)
EXPERIMENTS = {"noise-along-digits-twins": TWINS}
