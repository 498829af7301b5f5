"""What this chapter measures besides searches."""

from __future__ import annotations

from collections.abc import Sequence

from lib.probes import timings


def _frameworks() -> Sequence:
    from chapters.frameworks import framework_times  # brings PyTorch, which is slow to import

    return framework_times.PLANNED


ABOUT = "PyTorch's own ways to train with two processes"
EXPERIMENTS = {"timings-frameworks": timings.experiment(ABOUT, _frameworks)}
