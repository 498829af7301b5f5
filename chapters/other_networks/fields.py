"""Searches on textures on a ring, and the receptive fields of each search's winner."""

from __future__ import annotations

import pandas as pd

from lib.fields import PART, Count, Number, Whole, spec
from lib.measuring.experiment import Collection

EDGED = 3.0  # the gain of inputs with edges
GOALS = {0.0: (0.05, 0.15), EDGED: (0.15, 0.2)}  # errors by gain, the harder first
BATCH_SIZES = (128, 512, 2048)
REPLICATES = (2, 3, 4, 5, 6)  # the pilot used the draws of replicate 1
PRUNED = {"sparsity": 0.8, "batch_size": 512, "trials": 1, "max_steps": 1}  # only for the mask


@spec
class Search:
    """Trials of momentum in lock step, until one meets the harder goal.

    gain: of the function that squashes the inputs; 0 leaves them Gaussian.  sparsity: share of the
    parameters that connection sensitivity removes at the start.  replicate: sets the draws, seeds,
    examples and their order.
    """

    gain: Number("[0, 100]")
    batch_size: Count(65_536)
    sparsity: PART = 0.0
    replicate: Whole(0, 9999) = 1
    trials: Count(4096) = 16
    max_steps: Count(10**6) = 20_000

    @property
    def goals(self) -> tuple[float, ...]:
        """Validation errors, the harder first."""
        return GOALS[EDGED if self.gain else 0.0]

    def definition(self) -> dict:
        return {"inputs": "ring", "goals": self.goals}

    def measure(self) -> pd.DataFrame:
        """A row per goal and hidden unit of its winner: the columns of `winners`, unit, and the
        unit's weights along the ring, site_0, site_1, and so on.
        """
        from chapters.other_networks import ring
        from lib.measuring import rerun

        seed, tables = 2 * self.replicate, []
        search = rerun.MomentumSearch(
            network=ring.network,
            training=ring.samples(ring.TRAIN, self.gain, seed),
            validation=ring.samples(ring.VALIDATION, self.gain, seed + 1),
            goals=self.goals,
            search=self,
            prepare=ring.shrink,
        )
        for row, module in rerun.winners(search):
            weights = pd.DataFrame(module[0].weight.detach().numpy().round(5))
            about = pd.DataFrame([row] * len(weights)).assign(unit=weights.index)
            tables.append(pd.concat([about, weights.add_prefix("site_")], axis=1))
        return pd.concat(tables, ignore_index=True)


def planned() -> list[Search]:
    """Pruned networks before training; then dense searches, one replicate after another."""
    masks = [Search(g, replicate=n, **PRUNED) for n in REPLICATES for g in GOALS]
    return masks + [
        Search(g, b, replicate=n) for n in REPLICATES for b in BATCH_SIZES for g in GOALS
    ]


NAME = "gain-{0.gain:g}-sparsity-{0.sparsity:g}-batch-{0.batch_size}"
ABOUT = (
    "Train networks on textures on a ring and keep what hidden units see, into data/fields/."
)
FIELDS = Collection("fields", "searches", NAME.format, planned, ABOUT)
EXPERIMENTS = {"receptive-fields": FIELDS}
