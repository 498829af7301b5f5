"""The searches of the page on sparse messages, from its parameters."""

from __future__ import annotations

from lib.messages import Messages
from lib.studies.search import Search
from lib.studies.study import Study

# Compressor, error feedback: Rand-k without it, as in the published comparison
METHODS = (
    ("top-k", True),
    ("gaussian-k", True),
    ("rand-k", False),
    ("dgc-k", True),
)


def compared(chosen) -> Study:
    """Every method at every density on every network."""
    sent = [
        ("dense", 1.0, False),
        *((c, d, f) for d in sorted(chosen.densities) for c, f in METHODS),
    ]
    usual = {"trials": chosen.trials, "stop": "budget", "space": "shi2019"}
    cells = [
        Search(
            network,
            chosen.batch_size,
            replicate=replicate,
            max_steps=chosen.steps,
            messages=Messages(chosen.workers, *way),
            **usual,
        )
        for replicate in range(chosen.replicates)
        for network in chosen.workloads_shown
        for way in sent
    ]
    return Study("messages", "Sparse messages", tuple(cells))
