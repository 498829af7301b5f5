"""What the engine can be asked for, without PyTorch: names that cells and tables use."""

from __future__ import annotations

METHODS = ("connection-sensitivity", "random", "magnitude", "grasp", "synflow")  # of pruning, `lib.engine.pruning`
