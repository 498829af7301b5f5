"""What this chapter measures besides searches."""

from __future__ import annotations

from dataclasses import replace

from lib.probes import tracks
from lib.probes.tracks import Track
from lib.studies import plans


def planned() -> list[Track]:
    """Twins of the dense networks on digits that were trained with momentum: the same trials in
    sparse networks, same hyperparameters, same initialisation before pruning, as many steps.
    """
    dense = [t for t in tracks.digits() if t.sparsity == 0 and t.algorithm == "momentum"]
    alike = [replace(track, steps=tracks.last_step(track)) for track in dense]
    return [replace(track, sparsity=s) for s in plans.LEVELS[1:] for track in alike]


TWINS = tracks.experiment("digits-twins", planned)
EXPERIMENTS = {"noise-along-digits-twins": TWINS}
