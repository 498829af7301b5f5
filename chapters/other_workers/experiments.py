"""The experiments of all sections."""

from chapters.other_workers import delays, federated_experiments, parts_experiments

PARTS = (delays, federated_experiments, parts_experiments)
EXPERIMENTS = {name: each for part in PARTS for name, each in part.EXPERIMENTS.items()}
