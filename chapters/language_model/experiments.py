"""What this chapter measures besides searches: how well n-grams meet goals in nats, what pruning
leaves of each layer, and the noise along a trial.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from lib.fields import Count, spec
from lib.measuring.experiment import Collection, WithSearch
from lib.probes import tracks
from lib.records import store
from lib.studies import plans
from lib.studies.search import NUMBER, Search
from lib.workloads import datasets, ngrams, texts
from lib.workloads.catalogue import WorkloadName


@spec
class Rungs:
    """N-gram models up to an order, counted on the training part of one split of a text."""

    dataset: Literal[*texts.NAMES]
    order: Count(8) = 5
    split: NUMBER = 0

    def definition(self) -> dict:
        return {"contents": texts.SHA256[self.dataset]}

    def measure(self) -> pd.DataFrame:
        return climb(datasets.characters(self.dataset), self.order, self.split)


def climb(ids: np.ndarray, order: int, split: int = 0) -> pd.DataFrame:
    """How well n-grams up to `order` predict a text, int64 [characters]: n, asked ("windows" or
    "all"), nats, error and characters.

    "windows": the characters that networks have to predict, without context from before a window;
    "all": the whole validation part except its first character.
    """
    training, (first, last), _ = texts.parts(len(ids), split)
    tables = ngrams.count([ids[slice(*span)] for span in training], order, int(ids.max()) + 1)
    starts = texts.spread_starts((first, last), texts.windows_of(len(ids)))
    questions = {
        "windows": [ids[start : start + texts.CONTEXT + 1] for start in starts],
        "all": [ids[first:last]],
    }
    rows = [
        (n, name, *ngrams.scores(tables[:n], sequences))
        for n in range(1, order + 1)
        for name, sequences in questions.items()
    ]
    return pd.DataFrame(rows, columns=["n", "asked", "nats", "error", "characters"])


@spec
class Pruned(WithSearch):
    """The first `trials` networks of a workload's searches, pruned before training."""

    workload: WorkloadName
    sparsity: float
    pruning: str = "connection-sensitivity"
    trials: int = 3

    @property
    def cell(self) -> Search:
        fields = {"sparsity": self.sparsity, "pruning": self.pruning, "trials": self.trials}
        return Search(self.workload, 1, **fields)

    def measure(self) -> pd.DataFrame:
        """A row per trial and parameter tensor: trial, name, and kept and all weights (counts)."""
        # Imports PyTorch, which is slow; most chapters only read records
        from lib.engine import pruning
        from lib.measuring import one_search

        module, rows = self.cell.work.network(), []
        for trial, mask in enumerate(one_search.start(self.cell).mask):
            rows += [(trial, *left) for left in pruning.layer_densities(mask, module)]
        return pd.DataFrame(rows, columns=["trial", "name", "kept", "all"])


def followed() -> list:
    """Tracks of exact searches, with gradients on a quarter of the training set."""
    cells = plans.study("shakespeare-exact").searches
    return tracks.of_cells(cells, 1, points=12, examples=4000, smoothness=False)


NGRAMS = Collection(
    "ngrams",
    "texts",
    "{0.dataset}".format,
    lambda: [Rungs("tiny-shakespeare", split=split) for split in range(3)],  # of the searches
    "Record how well n-gram models predict the texts, into data/ngrams/.",
    precision=None,
    alone=True,
)
LAYERS = Collection(
    "layers",
    "networks",
    lambda what: f"{store.home(what.workload)}/{what.pruning}-{what.sparsity:g}",
    lambda: (Pruned("shakespeare", 0.9),),
    "Record which layers of the language model lose their weights when it is pruned, into data/layers/.",
    alone=True,
)
FOLLOWED = tracks.experiment("shakespeare", followed)
EXPERIMENTS = {
    "noise-along-shakespeare": FOLLOWED,
    "ngrams": NGRAMS,
    "pruned-layers": LAYERS,
}
