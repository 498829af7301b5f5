"""What this chapter measures besides searches: what goals in nats stand for, what pruning leaves of
each layer, the noise along a trial, and runs that branch.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from chapters.language_model.branches import BRANCHES
from lib.fields import Count, spec
from lib.measuring.experiment import Collection, WithCell
from lib.probes import tracks
from lib.records import store
from lib.studies import plans
from lib.studies.cells import NUMBER, Cell
from lib.workloads import datasets, ngrams, texts
from lib.workloads.catalogue import WorkloadName


@spec
class Rungs:
    """N-gram models up to an order, counted on the training part of a text in one split."""

    dataset: Literal[*texts.NAMES]
    order: Count(8) = 5
    split: NUMBER = 0

    def definition(self) -> dict:
        return {"contents": texts.SHA256[self.dataset]}

    def measure(self) -> pd.DataFrame:
        return climb(datasets.characters(self.dataset), self.order, self.split)


def climb(ids: np.ndarray, order: int, split: int = 0) -> pd.DataFrame:
    """How well n-grams up to `order` do on a text, int64 [characters]: n, asked ("windows" or
    "all"), nats, error and characters.

    "windows" are the answers that networks are asked for, with no context from before a window;
    "all" are those of the whole validation part but its first character.
    """
    training, (first, last), _ = texts.parts(len(ids), split)
    tables = ngrams.count([ids[slice(*span)] for span in training], order, int(ids.max()) + 1)
    starts = texts.spread_starts((first, last), texts.asked_of(len(ids)))
    sequences = {
        "windows": [ids[at : at + texts.CONTEXT + 1] for at in starts],
        "all": [ids[first:last]],
    }
    rows = [
        (n, what, *ngrams.scores(tables[:n], given))
        for n in range(1, order + 1)
        for what, given in sequences.items()
    ]
    return pd.DataFrame(rows, columns=["n", "asked", "nats", "error", "characters"])


@spec
class Pruned(WithCell):
    """The first `trials` networks of a workload's searches, pruned before training."""

    workload: WorkloadName
    sparsity: float
    pruning: str = "connection-sensitivity"
    trials: int = 3

    @property
    def cell(self) -> Cell:
        fields = {"sparsity": self.sparsity, "pruning": self.pruning, "trials": self.trials}
        return Cell(self.workload, 1, **fields)

    def measure(self) -> pd.DataFrame:
        """trial, name of the parameter tensor, kept and all (counts), a row each."""
        # Brings PyTorch, which is slow to import, and most chapters only read
        from lib.engine import pruning
        from lib.measuring import one_cell
        from lib.workloads import models

        masks, module = one_cell.start(self.cell).mask, models.build(self.cell.work.model)
        rows = [
            (trial, *left)
            for trial, mask in enumerate(masks)
            for left in pruning.layer_densities(mask, module)
        ]
        return pd.DataFrame(rows, columns=["trial", "name", "kept", "all"])


NGRAMS = Collection(
    "ngrams",
    "texts",
    "{0.dataset}".format,
    # Those of the searches
    lambda: tuple(Rungs("tiny-shakespeare", split=split) for split in range(3)),
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
FOLLOWED = tracks.experiment(
    "shakespeare",
    # In exact lock step, on a quarter of the training set
    lambda: tracks.of_cells(
        plans.study("shakespeare-exact").cells, 1, points=12, examples=4000, smoothness=False
    ),
)
EXPERIMENTS = {
    "noise-along-shakespeare": FOLLOWED,
    "ngrams": NGRAMS,
    "branches": BRANCHES,
    "pruned-layers": LAYERS,
}
