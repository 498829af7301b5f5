"""What this chapter measures besides searches of studies."""

from chapters.moving_masks.searches import MASKED
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "moving-masks": Experiment(
        "Train sparse networks whose masks move, into data/masks/.", MASKED, "searches"
    )
}
