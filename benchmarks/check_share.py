"""What share of a cell's time measuring validation errors takes, and how many answers it asks for.

    python -m benchmarks.check_share             # MNIST needs BOOK_DATASETS or a network; minutes
    python -m benchmarks.check_share digits      # seconds

Time is the process's own, so that other work on the machine matters little; a cell ends at its first hit, or after so many
steps that its checks lie as far apart as in most of a search.
"""

from __future__ import annotations

import time
from dataclasses import replace

from torch import Tensor

import benchmarks
from lib.engine import lockstep
from lib.engine.batched import BatchedExecutor
from lib.engine.sequential import SequentialExecutor
from lib.engine.validation import Validation
from lib.measuring import machine, one_search
from lib.studies.search import Search
from lib.studies.study import BY_GOALS

RULES = ({}, BY_GOALS)
CELLS = {
    "digits": [
        Search(name, b, hits=1)
        for name in ("digits-mlp", "digits-cnn")
        for b in (4, 16, 64, 256)
    ],
    "fc": [
        Search("mnist-fc-128x3", b, "sgd", trials=16, hits=1, max_steps=400, **rule)
        for b in (64, 256)
        for rule in RULES
    ],
    "simple_cnn": [
        Search("mnist-simple-cnn", b, trials=4, hits=1, max_steps=steps, **rule)
        for b, steps in ((64, 150), (256, 60))
        for rule in RULES
    ],
}


class Timed:
    """Replaces a method of a class while it is entered, and adds up the process's seconds in it and what it is asked."""

    def __init__(self, owner: type | object, name: str):
        self.owner, self.name, self.original = owner, name, getattr(owner, name)
        self.seconds, self.answers = 0.0, 0

    def __enter__(self):
        def timed(*arguments, **options):
            began = time.process_time()
            try:
                return self.original(*arguments, **options)
            finally:
                self.seconds += time.process_time() - began
                if self.name == "logits":
                    self.answers += _answers(*arguments)

        setattr(self.owner, self.name, timed)
        return self

    def __exit__(self, *_):
        setattr(self.owner, self.name, self.original)


def _answers(_, w: Tensor, x: Tensor) -> int:
    return len(w) * len(x)


def share(cell: Search) -> str:
    """In a line: the checks' share of the cell's time, that of the networks' answers in it, answers per training example."""
    machine.use_one_core()
    one_search.train_search(replace(cell, max_steps=2))  # load the data, warm up
    kind = (
        BatchedExecutor
        if isinstance(one_search.executor(cell), BatchedExecutor)
        else SequentialExecutor
    )
    with (
        Timed(lockstep, "_check") as checks,
        Timed(Validation, "costs") as costs,
        Timed(kind, "logits") as logits,
    ):
        began = time.process_time()
        outcome = one_search.train_search(cell)
        total = time.process_time() - began
    trained = outcome.trial_steps * cell.batch_size
    parts = [part.seconds / total for part in (checks, costs, logits)]
    race = ", a race" if cell.race else ""
    return (
        f"{cell.workload}, B = {cell.batch_size}, {cell.trials} trials{race}, {outcome.steps:,} steps: checks {parts[0]:.1%} of "
        f"{total:.1f} s (reading answers {parts[1]:.1%}, of which networks {parts[2]:.1%}), "
        f"{logits.answers / trained:.2f} answers per training example"
    )


if __name__ == "__main__":
    for name in benchmarks.chosen(__doc__, CELLS):
        for cell in CELLS[name]:
            print(share(cell), flush=True)
