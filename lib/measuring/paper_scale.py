"""Searches of the papers' own networks for a graphics processor that is at hand for minutes.

They run one after another, the most wanted first.  All trials of a search are launched from one
process into one stream, their kernels recorded once (`lib.engine.sequential`).  Records lie in
data/paper-scale/KIND/, apart from those that pages read, so that no curve mixes devices unless a
page asks for it; the first line of each names the device.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from lib import Told
from lib.measuring import sweeps
from lib.records import store
from lib.records.store import DATA
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import BY_LOSSES, Study, grid

# A search that is measured again with other rounding finds its result within this factor: so did
# all replays on record (`lib.probes.replays`).
ROUNDING = 1.7


class Differs(Told):
    """A device on which a search on record comes out otherwise than rounding explains."""


def wanted() -> Iterator[Cell]:
    """Searches, the most wanted a minute first: of Lee et al. and of Shallue et al., then of the
    language model.  What is wanted of Shi et al. is runs, `resnet-20-as-published`.
    """
    for name in ("mnist-own-splits", "mnist-low-momentum", "cifar-10-gpu"):
        yield from plans.study(name).cells
    yield from grid(
        search=range(2),
        batch_size=(128, 512, 32, 2048, 8),
        algorithm=("nesterov", "sgd"),
        workload="cifar-10-resnet-8",
        trials=16,
        hits=1,
        **BY_LOSSES,
    )
    for search in (1, 2):
        for cell in plans.study("shakespeare-widths").cells:
            yield replace(cell, replicate=search, split=search)


@dataclass(frozen=True)
class Shelf:
    """Searches that wait for a device, and their records.

    Attributes:
        wanted: all of them, the first first.
        folder: of the records, a folder in it for every kind of device.
        data: other records; what has one is not searched again.
        device: "cuda:1" is of the kind "cuda".
    """

    wanted: Callable[[], Iterable[Cell]] = wanted
    folder: Path = DATA / "paper-scale"
    data: Path = DATA
    device: str = "cuda"

    # As of an `lib.measuring.experiment.Collection`
    help = (
        "Search the papers' own networks on a graphics processor, the most wanted first, into "
        "data/paper-scale/."
    )
    units, alone, on_device = "searches", True, True

    @property
    def own(self) -> Path:
        """The folder of this kind of device."""
        return self.folder / self.device.partition(":")[0]

    def planned(self) -> tuple[Cell, ...]:
        """All searches, each once."""
        return tuple(dict.fromkeys(self.wanted()))

    def record(self, cell: Cell) -> Path:
        """Where its record lies that such a device measures."""
        return store.record(cell, self.own)

    def missing(self) -> list[Cell]:
        """Those that have no record by such a device, and none in `data`."""
        new = store.missing(self.planned(), store.record, self.data)
        return store.missing(new, store.record, self.own)

    def run(self, jobs: int = 1) -> None:
        """Check the device, then search what is missing, one after another; what is under way is
        saved as ever.

        Raises as `check` and `lib.measuring.sweeps.run`.
        """
        todo = self.missing()
        if todo:
            self.check()
            sweeps.run(Study("paper-scale", "", todo), self.own, device=self.device)

    def check(self) -> None:
        """Measure on the device, aside, the search in `data` that took a processor the least time,
        of those that met a goal.

        Raises:
            Differs: if the fewest steps to some goal differ by more than a factor ROUNDING, or only
                one of both meets it; or if there is no search on record to compare with.
        """
        files = store.existing(self.planned(), store.record, self.data)
        heads = {file: store.head(file) for file in files}
        known = [file for file in files if heads[file]["device"].startswith("cpu")]
        known = [file for file in known if _best(file).notna().any()]
        if not known:
            raise Differs(
                f"{self.device}: cannot be checked; no search of the shelf is on record"
            )
        file = min(known, key=lambda file: heads[file]["wall_s"])
        with tempfile.TemporaryDirectory() as folder:
            study = Study("a known record", "", [files[file]])
            sweeps.run(study, Path(folder), device=self.device)
            factor = apart(_best(file), _best(store.record(files[file], Path(folder))))
        if factor > ROUNDING:
            raise Differs(
                f"{self.device}: finds steps to goals that differ from {file.name} by a factor of "
                f"{factor:.2f}; allowed is {ROUNDING}, for rounding; nothing else was measured"
            )


def _best(file: Path) -> pd.Series:
    """The fewest steps to each goal that a record tells."""
    return store.read(file)[1].filter(like="steps@").min()


def apart(one: pd.Series, other: pd.Series) -> float:
    """By what factor steps to goals differ at most; infinite where only one of both meets some."""
    met = one.notna().equals(other.notna())
    return float(np.exp(np.log(one / other).abs().max())) if met else np.inf


PAPER_SCALE = Shelf()
