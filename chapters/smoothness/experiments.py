"""What this chapter measures besides searches."""

from __future__ import annotations

from dataclasses import replace

from lib.probes import tracks
from lib.probes.tracks import Track
from lib.studies import plans


def planned() -> list[Track]:
    """Trials followed in one network alone, in the other: the same hyperparameters, the same
    initialisation before pruning, as many steps.
    """
    return _of_digits() + _of_images()


def _of_digits() -> list[Track]:
    """Of the dense networks that were trained with momentum, at every sparsity."""
    dense = [t for t in tracks.digits() if t.sparsity == 0 and t.algorithm == "momentum"]
    return [_twin(track, sparsity) for sparsity in plans.LEVELS[1:] for track in dense]


def _of_images() -> list[Track]:
    """Of Simple-CNN's winners on splits of their own, dense and pruned, the other where it did not
    win too; those on all images would take an hour each.
    """
    mnist = tracks.TRACKS["mnist"].planned()
    followed = [track for track in mnist if track.smoothness and track.examples]
    densest, sparsest = plans.DENSE_AND_SPARSE
    others = {track: sparsest if track.sparsity == densest else densest for track in followed}
    return [
        _twin(track, other)
        for track, other in others.items()
        if replace(track, sparsity=other) not in followed
    ]


def _twin(track: Track, sparsity: float) -> Track:
    return replace(track, sparsity=sparsity, steps=tracks.last_step(track))


TWINS = tracks.experiment("twins", planned)
EXPERIMENTS = {"noise-along-twins": TWINS}
