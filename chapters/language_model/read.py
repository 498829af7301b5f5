"""What the page on the language model reads, from its parameters."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from chapters.language_model import experiments, text_results
from chapters.language_model.ngrams import NGRAMS, climb
from chapters.language_model.pruned_layers import LAYERS
from lib.atomic import whole
from lib.measuring import sweeps
from lib.records.store import SMOKE
from lib.workloads import catalogue, texts


@dataclass(frozen=True)
class Read:
    """Records of one text; followed and layers are empty for a reader's own.

    Attributes:
        work: the workload.
        trials: theirs, pruned networks' at their goals.
        rungs: n-gram models of the text, asked what networks are asked: n, nats.
        followed: the fastest trial's noise scales (`lib.probes.tracks`), by step.
        layers: what pruning leaves (`pruned_layers`).
    """

    work: catalogue.Workload
    trials: pd.DataFrame
    rungs: pd.DataFrame
    followed: pd.DataFrame
    layers: pd.DataFrame


def read(chosen) -> Read:
    """All records; a toy is of a text that is made up, so that no corpus is needed."""
    toy, beyond = chosen.budget == "smoke", chosen.budget != "cached"
    work = catalogue.workload(write_toy(SMOKE / "toy.txt") if toy else chosen.workload)
    sizes = [1, 2, 4, 8, 16] if toy else chosen.batch_sizes
    asked = (chosen.methods, chosen.searches, chosen.trials)
    trials = sweeps.results(text_results.grid(work.name, sizes, *asked, beyond), chosen.budget)
    rungs = climb(texts.read(work.name).ids, 4) if work.source else NGRAMS.results()
    beside = [kept.results() for kept in (experiments.FOLLOWED, LAYERS)]
    followed, layers = (rows[rows.workload == work.name] for rows in beside)
    return Read(
        work,
        text_results.at_their_goals(trials, work.name),
        rungs[rungs.asked == "windows"].drop_duplicates("n"),
        followed.sort_values("step"),
        layers,
    )


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
