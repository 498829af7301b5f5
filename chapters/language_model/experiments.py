"""What this chapter measures besides searches."""

from chapters.language_model import branches, ngrams, pruned_layers
from chapters.language_model.studies import STUDIES
from lib.measuring.experiment import Experiment
from lib.probes import tracks


def followed() -> list[tracks.Track]:
    """Noise along the fastest trial of searches in exact lock step, on a quarter of the training
    set.
    """
    (exact,) = (study for study in STUDIES if study.name == "shakespeare-exact")
    return tracks.of_cells(exact.cells, 1, points=12, examples=4000, smoothness=False)


EXPERIMENTS = {
    "noise-along-shakespeare": tracks.experiment("shakespeare", followed),
    "ngrams": Experiment(
        "Record how well n-gram models predict the texts, into data/ngrams/.",
        ngrams.NGRAMS,
        "texts",
        alone=True,
    ),
    "branches": Experiment(
        "Continue a run of the language model from several steps with batches of several sizes, into data/branches/.",
        branches.BRANCHES,
        "branches",
    ),
    "pruned-layers": Experiment(
        "Record which layers of the language model lose their weights when it is pruned, into data/layers/.",
        pruned_layers.LAYERS,
        "networks",
        alone=True,
    ),
}
