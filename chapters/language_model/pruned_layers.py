"""What pruning leaves of each layer: how many weights of every parameter tensor survive."""

from __future__ import annotations

import pandas as pd

from lib.fields import spec
from lib.measuring.experiment import Collection, WithCell
from lib.records import store
from lib.studies.cells import Cell
from lib.workloads.catalogue import WorkloadName


@spec
class Pruned(WithCell):
    """The first `trials` networks of a workload's searches, pruned before training.

    Raises ValueError naming the field, its value and what is allowed, as `lib.studies.cells.Cell`.
    """

    workload: WorkloadName
    sparsity: float
    pruning: str = "connection-sensitivity"
    trials: int = 3

    def __post_init__(self):
        _ = self.cell  # its checks are ours

    @property
    def cell(self) -> Cell:
        return Cell(
            self.workload, 1, sparsity=self.sparsity, pruning=self.pruning, trials=self.trials
        )

    def measure(self) -> pd.DataFrame:
        """trial, name of the parameter tensor, kept and all (counts), a row each."""
        # Brings PyTorch, which is slow to import, and most chapters only read
        from lib.engine import pruning
        from lib.measuring import one_cell
        from lib.workloads import models

        masks, module = one_cell.start(self.cell).mask, models.build(self.cell.work.model)
        rows = [
            (trial, *left)
            for trial, mask in enumerate(masks)
            for left in pruning.layer_densities(mask, module)
        ]
        return pd.DataFrame(rows, columns=["trial", "name", "kept", "all"])


PLANNED = (Pruned("shakespeare", 0.9),)


LAYERS = Collection(
    "layers",
    "networks",
    lambda what: f"{store.home(what.workload)}/{what.pruning}-{what.sparsity:g}",
    lambda: PLANNED,
    "Record which layers of the language model lose their weights when it is pruned, into data/layers/.",
    alone=True,
)
