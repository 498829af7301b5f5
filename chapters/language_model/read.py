"""What the page on the language model reads, from its parameters."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from chapters.language_model import experiments, text_results
from chapters.language_model.branches import BRANCHES
from chapters.language_model.ngrams import NGRAMS, climb
from chapters.language_model.pruned_layers import LAYERS
from lib.atomic import whole
from lib.measuring import sweeps
from lib.records.store import SMOKE
from lib.workloads import catalogue, own_text


@dataclass(frozen=True)
class Read:
    """Records of one text; all but the searches are empty for a reader's own.

    Attributes:
        work: the workload.
        trials: theirs, pruned networks' at their goals.
        rungs: n-gram models of the text: n, nats, error.
        followed: the fastest trial's noise scales (`lib.probes.tracks`).
        layers: what pruning leaves (`pruned_layers`).
        sized: searches of models of other widths.
        checks: of branches (`branches`).
    """

    work: catalogue.Workload
    trials: pd.DataFrame
    rungs: pd.DataFrame
    followed: pd.DataFrame
    layers: pd.DataFrame
    sized: pd.DataFrame
    checks: pd.DataFrame


def read(chosen) -> Read:
    """All records; a toy is of a text that is made up, so that no corpus is needed."""
    toy, beyond = chosen.budget == "smoke", chosen.budget != "cached"
    work = catalogue.workload(write_toy(SMOKE / "toy.txt") if toy else chosen.workload)
    sizes = [1, 2, 4, 8, 16] if toy else chosen.batch_sizes
    asked = (chosen.methods, chosen.searches, chosen.trials)
    grid = text_results.grid(work.name, sizes, *asked, beyond)
    trials = text_results.at_their_goals(sweeps.results(grid, chosen.budget))
    nothing = pd.DataFrame()
    if work.source:
        rungs = climb(own_text.read(work.name).ids, 4)
        return Read(work, trials, _windows(rungs), *[nothing] * 4)
    return Read(
        work,
        trials,
        _windows(NGRAMS.results()),
        _of(work, experiments.FOLLOWED.results()),
        _of(work, LAYERS.results()),
        sweeps.results(text_results.of_widths()),
        _of(work, BRANCHES.results()),
    )


def _windows(rungs: pd.DataFrame) -> pd.DataFrame:
    """The rungs of the sequences that models are asked for, one of each order."""
    return rungs[rungs.asked == "windows"].drop_duplicates("n")


def _of(work: catalogue.Workload, rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows.workload == work.name]


WORDS = {
    "the": ("cat", "dog", "old man", "child", "grey bird"),
    "saw": ("saw", "heard", "followed", "liked"),
    "a": ("a house", "a river", "the moon", "a long road", "nobody"),
}


def write_toy(file: Path) -> str:
    """Write a text that is made up of a few words, the same every time; returns its name, with
    goals.

    Raises OSError if it cannot be written.
    """
    draw = random.Random(0)
    lines = (
        " ".join(("the", *(draw.choice(words) for words in WORDS.values()))) + ".\n"
        for _ in range(900)
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole(file) as stream:
        stream.write("".join(lines).encode())
    return f"{file}:2.3,2.5,2.7"
