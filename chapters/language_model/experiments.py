"""What this chapter measures besides searches."""

from chapters.language_model import branches, ngrams, pruned_layers
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
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
