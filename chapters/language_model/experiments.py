"""What this chapter measures besides searches."""

from chapters.language_model import branches, ngrams, pruned_layers
from chapters.language_model.studies import STUDIES
from lib.probes import tracks


def followed() -> list[tracks.Track]:
    """Noise along the fastest trial of searches in exact lock step, on a quarter of the training
    set.
    """
    (exact,) = (study for study in STUDIES if study.name == "shakespeare-exact")
    return tracks.of_cells(exact.cells, 1, points=12, examples=4000, smoothness=False)


FOLLOWED = tracks.experiment("shakespeare", followed)
EXPERIMENTS = {
    "noise-along-shakespeare": FOLLOWED,
    "ngrams": ngrams.NGRAMS,
    "branches": branches.BRANCHES,
    "pruned-layers": pruned_layers.LAYERS,
}
