"""How well n-gram models predict a text that language models are trained on: what goals in nats stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib import require, require_whole
from lib.measuring import runner
from lib.records import store
from lib.records.places import DATA
from lib.workloads import datasets, ngrams, texts

FOLDER = DATA / "ngrams"


@dataclass(frozen=True)
class Rungs:
    """N-gram models up to an order, counted on the training part of a text in one split.

    Raises ValueError for a data set that is no text, an order that is not from 1 to 8, and a split that is none.
    """

    dataset: str
    order: int = 5
    split: int = 0

    def __post_init__(self):
        require(self.dataset in texts.NAMES, "dataset", self.dataset, f"one of {', '.join(texts.NAMES)}")
        require_whole("order", self.order, 1, 8)
        require_whole("split", self.split, 0, 9999)

    def definition(self) -> dict:
        return {"contents": texts.SHA256[self.dataset]}


def table(rows: list[tuple]) -> pd.DataFrame:
    """The rows of `lib.workloads.ngrams.climb`: n, asked, nats, error and characters."""
    return pd.DataFrame(rows, columns=["n", "asked", "nats", "error", "characters"])


def record(what: Rungs, folder: Path = FOLDER) -> Path:
    """Where the record lies."""
    return folder / f"{what.dataset}-{store.digest(what)}.csv"


def measure(what: Rungs, reports: str | None = None, folder: Path = FOLDER) -> Path:
    """Count and ask, and write the record; returns the file."""

    def take() -> pd.DataFrame:
        return table(ngrams.climb(datasets.characters(what.dataset), what.order, what.split))

    return runner.write(record(what, folder), what, take)


PLANNED = tuple(Rungs("tiny-shakespeare", split=split) for split in range(3))  # those of the searches


def results(planned: Iterable[Rungs] = PLANNED, folder: Path = FOLDER) -> pd.DataFrame:
    """The rows of all that have a record, with their fields; see `lib.records.store.gather`."""
    return store.gather(planned, record, folder)


def missing(planned: Iterable[Rungs], folder: Path = FOLDER) -> list[Rungs]:
    """Those that have no record."""
    return store.missing(planned, record, folder)


def run(planned: Iterable[Rungs], folder: Path = FOLDER) -> None:
    """Measure those that have no record, under a bar."""
    runner.run(missing(planned, folder), measure, "n-grams", "text", folder=folder)
