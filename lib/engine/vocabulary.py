"""What the engine can be asked for, without PyTorch: names that cells and tables use."""

from __future__ import annotations

RUNGS = ("goals", "losses")  # of a race, `lib.engine.lockstep`
# Training losses, nats: from 4 to 0.25, a factor of √2 apart
LOSSES = tuple(2 ** (j / 2) for j in range(4, -5, -1))
# Of pruning, `lib.engine.pruning`.
METHODS = ("connection-sensitivity", "random", "magnitude", "grasp", "grasp-200", "synflow")
