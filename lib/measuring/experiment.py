"""An experiment: what is planned, measured once and recorded under a name, besides the searches of
a study.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from lib.measuring.collection import Collection


@dataclass(frozen=True)
class Experiment:
    """What `python -m lib run NAME` measures.

    help: what it does, a sentence for the command line.
    measured: a `Collection`, or a module with its functions `missing` and `run`.
    units: what is counted, in the plural.
    plan: what is to be measured; None for what `measured` plans.
    alone: whether nothing else may run meanwhile, of this experiment or of others.
    """

    help: str
    measured: Collection | ModuleType
    units: str
    plan: Callable[[], Sequence] | None = None
    alone: bool = False

    def planned(self) -> Sequence:
        """All that is to be measured, whether it has a record or not."""
        return self.plan() if self.plan else self.measured.planned()

    def missing(self) -> list:
        """Those that have no record."""
        return self.measured.missing(self.planned())

    def run(self, jobs: int) -> None:
        """Measure what is missing, so many side by side unless it runs alone."""
        self.measured.run(self.planned(), **({} if self.alone else {"jobs": jobs}))
