"""The experiments of all six questions."""

from chapters.disputed import (
    decay_experiments,
    local_steps_experiments,
    lora_experiments,
    masks_experiments,
    norms_experiments,
    ramps_experiments,
)

PARTS = (
    ramps_experiments,
    local_steps_experiments,
    norms_experiments,
    decay_experiments,
    masks_experiments,
    lora_experiments,
)
EXPERIMENTS = {name: found for part in PARTS for name, found in part.EXPERIMENTS.items()}
