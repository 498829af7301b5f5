"""Batch sizes and learning rates that change while a search trains, as examples pass."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from lib.methods.method import Method


@dataclasses.dataclass(frozen=True)
class Ramp:
    """By what batch size and learning rate are multiplied once so many examples have passed.

    A step belongs to the stage in which it begins.  Stages depend on the step alone and are shared
    by all trials, so that lock step, early rejection and a search that goes on from its state are
    exact.

    Attributes:
        cuts: numbers of examples, in order.
        batch: factor of the batch size at every cut.
        rate: factor of the learning rate.
    """

    cuts: tuple[int, ...]
    batch: int = 1
    rate: float = 1.0

    def sizes(self, first: int) -> Iterator[int]:
        """Endless batch sizes, of step 1 and so on; first: that of the first."""
        seen = 0
        while True:
            size = first * self.batch ** sum(seen >= cut for cut in self.cuts)
            yield size
            seen += size

    def starts(self, first: int) -> list[int]:
        """The step, from 1, with which the stage after each cut begins."""
        return [self.steps(cut - 1, first) + 2 for cut in self.cuts]

    def examples(self, steps: int, first: int) -> int:
        """Examples of so many steps."""
        return sum(itertools.islice(self.sizes(first), steps))

    def steps(self, examples: int, first: int) -> int:
        """The most steps that take no more than so many examples."""
        totals = itertools.accumulate(self.sizes(first))
        return sum(1 for _ in itertools.takewhile(lambda total: total <= examples, totals))


def ramped(base: Method, ramp: Ramp, first: int) -> Method:
    """The method `base` with the rates of the ramp, and told its batch sizes.

    Trials are proved dead only where a drift without the ramp bounds that with it: the rate does
    not rise, and no average depends on the batch size.
    """
    starts = ramp.starts(first)

    def step(w, g, buffers, drawn, k, layers):
        passed = sum(k >= start for start in starts)
        rate = drawn["learning_rate"] * ramp.rate**passed
        size = drawn["batch_size"] * ramp.batch**passed
        base.step(w, g, buffers, drawn | {"learning_rate": rate, "batch_size": size}, k, layers)

    bounded = ramp.rate <= 1 and "half_life" not in base.space
    return dataclasses.replace(base, step=step, drift=base.drift if bounded else None)
