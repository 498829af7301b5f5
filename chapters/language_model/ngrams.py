"""How well n-gram models predict a text that language models are trained on: what goals in nats
stand for.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from lib.fields import Count, spec
from lib.measuring.experiment import Collection
from lib.studies.cells import NUMBER
from lib.workloads import datasets, ngrams, texts


@spec
class Rungs:
    """N-gram models up to an order, counted on the training part of a text in one split.

    Raises ValueError for a data set that is no text, an order that is not from 1 to 8, and a split
    that is none.
    """

    dataset: Literal[*texts.NAMES]
    order: Count(8) = 5
    split: NUMBER = 0

    def definition(self) -> dict:
        return {"contents": texts.SHA256[self.dataset]}

    def measure(self) -> pd.DataFrame:
        return climb(datasets.characters(self.dataset), self.order, self.split)


def climb(
    ids: np.ndarray, order: int, split: int = 0, asked: int | None = None
) -> pd.DataFrame:
    """How well n-grams up to `order` do on a text, int64 [characters]: n, asked ("windows" or
    "all"), nats, error and characters.

    "windows" are the answers that networks are asked for, `asked` windows, with no context from
    before a window; "all" are those of the whole validation part but its first character.
    """
    training, (first, last), _ = texts.parts(len(ids), split)
    tables = ngrams.count([ids[slice(*span)] for span in training], order, int(ids.max()) + 1)
    starts = texts.spread_starts((first, last), asked or texts.asked_of(len(ids)))
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


# Those of the searches
PLANNED = tuple(Rungs("tiny-shakespeare", split=split) for split in range(3))
NGRAMS = Collection(
    "ngrams",
    "texts",
    "{0.dataset}".format,
    lambda: PLANNED,
    "Record how well n-gram models predict the texts, into data/ngrams/.",
    precision=None,
    alone=True,
)
