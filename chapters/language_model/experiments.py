"""What this chapter measures besides searches: what goals in nats stand for, what pruning leaves of
each layer, the noise along a trial, and runs that branch.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Literal

import numpy as np
import pandas as pd

from lib.fields import Count, Number, Whole, spec
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
    windows = [ids[at : at + texts.CONTEXT + 1] for at in starts]
    rows = []
    for n in range(1, order + 1):
        for what, given in (("windows", windows), ("all", [ids[first:last]])):
            rows.append((n, what, *ngrams.scores(tables[:n], given)))
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

        module, rows = self.cell.work.network(), []
        for trial, mask in enumerate(one_cell.start(self.cell).mask):
            rows += [(trial, *left) for left in pruning.layer_densities(mask, module)]
        return pd.DataFrame(rows, columns=["trial", "name", "kept", "all"])


# By the rule for the rate, the run's own batch size first; and at the run's own rate
WAYS = [(0.5, (16, 256, 64, 4)), (0.0, (256, 64))]
# Steps of the run at which it branches, and the goal from there on, in nats
POINTS = ((50, 2.5), (200, 2.2), (800, 1.9))
# The first order of the examples, and how many: three, and six more that came later
ORDERS = ((0, 3), (3, 6))
LOOKS = 32  # checks while a branch takes as many examples as the run had by then


@spec
class Branch(tracks.Again):
    """A trial of a measured cell, trained again for `at` steps, and from there with batches of
    `size` to a goal: the examples that each size needs show how large a batch is useful there
    (Merrill et al. 2025).  No page reads its records.

    goal: mean validation cost at which a branch ends; examples: after which it ends without.
    power: the learning rate is multiplied by that power of size / batch_size.  orders: branches,
    each with an order of the examples that branches of other sizes share; first: the number of the
    first.  look: examples between checks, or a batch if that is more.
    """

    workload: WorkloadName
    batch_size: int
    algorithm: str
    sparsity: float
    trials: int
    trial: int
    hits: int
    max_steps: int | None
    at: Count(10**6)
    goal: Number("(0, inf]")
    size: Count(10**6)
    look: Count(10**6)
    examples: Count(10**9)
    power: Number("[0, 1]") = 0.5
    orders: Count(1000) = 3
    first: Whole(0, 10**6) = 0

    def measure(self) -> pd.DataFrame:
        """The checks of every branch: order, seen (examples since it began, 0 where it begins) and
        cost (mean, of validation).
        """
        from lib.measuring.rerun import Rerun

        trunk = Rerun(self.cell, [self.trial])
        for _ in range(self.at):
            trunk.update()
        drawn = trunk.trials.drawn
        rate = drawn["learning_rate"] * (self.size / self.batch_size) ** self.power
        moved = {"learning_rate": rate, "batch_size": rate.new_full(rate.shape, self.size)}
        scaled = dataclasses.replace(trunk.trials, drawn=drawn | moved)
        rows = []
        for order in range(self.first, self.first + self.orders):
            run = trunk.fork(scaled, self.size, 1000 * (order + 1) + self.at)
            due = 0
            for seen in range(0, self.examples + 1, self.size):
                if seen >= due:
                    due = seen + self.look
                    cost = run.costs(run.validation).double().mean().item()
                    rows.append((order, seen, cost))
                    if not cost > self.goal:
                        break
                run.update()
        return pd.DataFrame(rows, columns=["order", "seen", "cost"])


def branches() -> list[Branch]:
    """Branches of the language model's fastest trial at batch size 16; none without its record."""
    cells = plans.study("shakespeare-exact").cells
    (cell,) = (c for c in cells if c.batch_size == 16)
    found = []
    for (first, orders), (power, sizes), (at, goal) in itertools.product(ORDERS, WAYS, POINTS):
        own = {"first": first, "orders": orders}
        own |= {"power": power, "at": at, "goal": goal}
        look = at * cell.batch_size // LOOKS
        own |= {"look": look, "examples": 49_152}
        for size in sizes:
            found += tracks.fastest(Branch, cell, 1, size=size, **own)
    return found


def rungs() -> list[Rungs]:
    """Those of the searches' splits."""
    return [Rungs("tiny-shakespeare", split=split) for split in range(3)]


def followed() -> list:
    """In exact lock step, on a quarter of the training set."""
    cells = plans.study("shakespeare-exact").cells
    return tracks.of_cells(cells, 1, points=12, examples=4000, smoothness=False)


def _layers_of(what: Pruned) -> str:
    return f"{store.home(what.workload)}/{what.pruning}-{what.sparsity:g}"


PREDICTED = "Record how well n-gram models predict the texts, into data/ngrams/."
LOST = "Record which layers of the language model lose their weights when it is pruned, into data/layers/."
RUN_ON = "Continue a run of the language model from several steps with batches of several sizes"
NGRAMS = Collection(
    "ngrams", "texts", "{0.dataset}".format, rungs, PREDICTED, precision=None, alone=True
)
LAYERS = Collection(
    "layers", "networks", _layers_of, lambda: (Pruned("shakespeare", 0.9),), LOST, alone=True
)
FOLLOWED = tracks.experiment("shakespeare", followed)
BRANCHES = f"{RUN_ON}, into data/branches/."
EXPERIMENTS = {
    "noise-along-shakespeare": FOLLOWED,
    "ngrams": NGRAMS,
    "branches": Collection("branches", "branches", store.beginning, branches, BRANCHES),
    "pruned-layers": LAYERS,
}
