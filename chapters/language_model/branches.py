"""A training run that branches: from the same weights it goes on with batches of several sizes, to
the same next goal.

The examples that each size needs show how large a batch is useful at that point of the training
(Merrill et al. 2025).  No page reads its records.
"""

from __future__ import annotations

import dataclasses
import itertools

import pandas as pd

from lib.fields import Count, Number, Whole, spec
from lib.measuring.experiment import Collection
from lib.probes import tracks
from lib.records import store
from lib.studies import plans
from lib.workloads.catalogue import WorkloadName

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
    `size` to a goal.

    goal: mean validation cost at which a branch ends; examples: after which it ends without.
    power: the learning rate is multiplied by that power of size / batch_size; 0.5 is the rule for
    Adam.  orders: branches, each with examples in an order of its own, which branches of other
    sizes share; first: the number of the first of them.  look: examples between checks, or a batch
    if that is more.
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
    goal: Number("(0, inf]", "a number above 0")
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
        # Brings PyTorch, which is slow to import, and most chapters only read
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


def planned() -> list[Branch]:
    """Branches of the language model's fastest trial at batch size 16; none without its record."""
    (cell,) = (c for c in plans.study("shakespeare-exact").cells if c.batch_size == 16)
    found = []
    for (first, orders), (power, sizes), (at, goal) in itertools.product(ORDERS, WAYS, POINTS):
        own = {"first": first, "orders": orders, "power": power, "at": at, "goal": goal}
        own |= {"look": at * cell.batch_size // LOOKS, "examples": 49_152}
        for size in sizes:
            found += tracks.fastest(Branch, cell, 1, size=size, **own)
    return found


BRANCHES = Collection(
    "branches",
    "branches",
    store.beginning,
    planned,
    "Continue a run of the language model from several steps with batches of several sizes, into data/branches/.",
)
