"""A training run that branches: from the same weights it goes on with batches of several sizes, to
the same next goal.

The examples that each size needs show how large a batch is useful at that point of the training
(Merrill et al. 2025).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import pandas as pd

from lib.fields import Count, Number, Whole, check, spec
from lib.measuring.experiment import Collection
from lib.probes import tracks
from lib.probes.tracks import Again
from lib.records import store
from lib.studies import plans
from lib.workloads.catalogue import WorkloadName, workload

SIZES = (16, 256, 64, 4)  # of a batch after the branch: the run's own first
LARGE = (256, 64)  # those that also go on at the run's own learning rate
MOST = 49_152  # examples of a branch
# Steps of the run at which it branches, and the goal from there on, in nats
POINTS = ((50, 2.5), (200, 2.2), (800, 1.9))
# The first order of the examples, and how many: three, and six more that came later
ORDERS = ((0, 3), (3, 6))
LOOKS = 32  # checks while a branch takes as many examples as the run had by then


@spec
class Branch(Again):
    """A trial of a measured cell, trained again for `at` steps, and from there with batches of
    `size` to a goal.

    goal: mean validation cost at which a branch ends; examples: after which it ends without.
    power: the learning rate is multiplied by that power of size / batch_size; 0.5 is the rule for
    Adam.  orders: branches, each with examples in an order of its own, which branches of other
    sizes share; first: the number of the first of them.  look: examples between checks, or a batch
    if that is more. Raises ValueError naming the field, its value and what is allowed, as
    `lib.studies.cells.Cell`.
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
    size: int
    look: Count(10**6)
    examples: int
    power: Number("[0, 1]") = 0.5
    orders: Count(1000) = 3
    first: Whole(0, 10**6) = 0

    def __post_init__(self):
        check("size", self.size, Count(workload(self.workload).train_size))
        check("examples", self.examples, Whole(self.size, 10**9))

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
            forked = trunk.fork(scaled, self.size, 1000 * (order + 1) + self.at)
            rows += [(order, *check) for check in self._checks(forked)]
        return pd.DataFrame(rows, columns=["order", "seen", "cost"])

    def _checks(self, run) -> Iterator[tuple[int, float]]:
        """Examples seen since the branch began and its cost, until it meets the goal or has seen
        all it may.
        """
        due = 0
        for seen in range(0, self.examples + 1, self.size):
            if seen >= due:
                due = seen + self.look
                cost = run.costs(run.validation).double().mean().item()
                yield seen, cost
                if not cost > self.goal:
                    return
            run.update()


def planned() -> list[Branch]:
    """Branches of the language model's fastest trial at batch size 16, first by the rule for the
    rate, then at its own rate; none without its record."""
    cells = [c for c in plans.study("shakespeare-exact").cells if c.batch_size == 16]
    ways = [(0.5, size) for size in SIZES], [(0.0, size) for size in LARGE]
    found = []
    for track in tracks.of_cells(cells, 1):
        shared = {n: v for n, v in vars(track).items() if n in Branch.__dataclass_fields__}
        for (first, orders), way, (at, goal) in itertools.product(ORDERS, ways, POINTS):
            look = at * track.batch_size // LOOKS
            own = {"at": at, "goal": goal, "look": look, "orders": orders, "first": first}
            own = shared | own | {"examples": MOST}
            found += [Branch(**own, size=size, power=power) for power, size in way]
    return found


BRANCHES = Collection(
    "branches",
    "branches",
    store.beginning,
    planned,
    "Continue a run of the language model from several steps with batches of several sizes, into data/branches/.",
)
