"""What this chapter measures besides searches of studies."""

from chapters.receptive_fields.searches import FIELDS
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "receptive-fields": Experiment(
        "Train networks on textures on a ring and keep what hidden units see, into data/fields/.",
        FIELDS,
        "searches",
    )
}
