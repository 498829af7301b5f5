"""The experiments on three questions; those on the others have left the book (`closed`)."""

from chapters.disputed import decay_experiments, local_steps_experiments, lora_experiments

EXPERIMENTS = {
    **local_steps_experiments.EXPERIMENTS,
    **decay_experiments.EXPERIMENTS,
    **lora_experiments.EXPERIMENTS,
}
