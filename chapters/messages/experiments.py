"""What this chapter measures besides searches: ResNet-20 as Shi et al. (2019) train it."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from lib import SOURCE
from lib.fields import SHARE, Count, Whole, spec
from lib.measuring import codes
from lib.measuring.experiment import Collection
from lib.records import store

FOLDER = "resnet-20-as-published"
NAME = "{0.compressor}-seed-{0.seed}"
COMPRESSORS = ("dense", "top-k", "gaussian-k")


@spec
class Published:
    """A run with the settings of the authors' released code, on 16 workers with 32 images each.

    seed: of weights, order and augmentation.  epochs: of 98 steps.  precision: of the arithmetic;
    weights, messages and updates are float32.
    """

    compressor: Literal[*COMPRESSORS]
    seed: Whole(0, 9999) = 0
    epochs: Count(10_000) = 120
    density: SHARE = 0.001
    precision: Literal["bfloat16", "float32"] = "bfloat16"

    def measure(self, device: str = "cpu") -> pd.DataFrame:
        """As `published.trained`.  An unfinished run is saved beside its record and resumed."""
        from chapters.messages import published
        from lib.engine.checkpoint import Checkpoint
        from lib.workloads import datasets

        file = store.DATA / FOLDER / f"{NAME.format(self)}-{store.digest(self)}.part"
        key = f"{store.digest(self)} {SOURCE} {codes.digest(type(self))}"
        checkpoint = Checkpoint(file, key)
        splits = datasets.canonical("cifar-10")
        tests = published.trained(self, checkpoint, *splits, device=device)
        file.unlink(missing_ok=True)
        return tests


ABOUT = (
    "Train ResNet-20 as Shi et al. (2019) did, with dense and sparse messages (4 hours a run; 15 on "
    "a core without bfloat16)."
)
PUBLISHED = Collection(
    FOLDER,
    "runs",
    NAME.format,
    lambda: tuple(map(Published, COMPRESSORS)),
    ABOUT,
    precision=None,
    on_device=True,
)
EXPERIMENTS = {FOLDER: PUBLISHED}
