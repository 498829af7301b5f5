"""The experiments of all sections."""

from chapters.other_workers import delays, federated_experiments, parts_experiments

EXPERIMENTS = {
    **delays.EXPERIMENTS,
    **federated_experiments.EXPERIMENTS,
    **parts_experiments.EXPERIMENTS,
}
