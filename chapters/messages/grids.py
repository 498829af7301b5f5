"""The searches of the page on sparse messages, from its parameters."""

from __future__ import annotations

from lib.messages.settings import Messages
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads import catalogue


def title(workload: str) -> str:
    """A workload as the pages name it, a reader's own, too."""
    return catalogue.workload(workload).title


def networks(chosen) -> list[str]:
    """Workloads of the comparison; a toy's alone."""
    return ["digits-mlp"] if chosen.budget == "smoke" else chosen.workloads_shown


def compared(chosen) -> Study:
    """Every method at every density on every network; Rand-k without feedback, too, as in the
    published comparison.
    """
    ways = [(name, True) for name in chosen.compressors]
    ways += [(name, False) for name in chosen.compressors if name == "rand-k"]
    sent = [("dense", 1.0, False), *((c, d, f) for d in sorted(chosen.densities) for c, f in ways)]
    usual = {"trials": chosen.trials, "stop": "budget", "space": "shi2019"}
    cells = [
        Cell(
            network,
            chosen.batch_size,
            replicate=replicate,
            max_steps=chosen.steps,
            messages=Messages(chosen.workers, *way),
            **usual,
        )
        for replicate in range(chosen.replicates)
        for network in networks(chosen)
        for way in sent
    ]
    return Study("messages", "Sparse messages", tuple(cells))


def convolutional(chosen) -> Study:
    """What the book's studies have on further networks."""
    named = ("messages-lenet-5", "messages-resnet-20") if chosen.budget == "cached" else ()
    known = set(compared(chosen).cells)
    cells = [cell for name in named for cell in plans.study(name).cells if cell not in known]
    return Study("beside", "Sparse messages", tuple(cells))


def titles(chosen) -> list[str]:
    """All networks as the page names them."""
    names = [*networks(chosen), *(cell.workload for cell in convolutional(chosen).cells)]
    return list(dict.fromkeys(map(title, names)))


def pruned() -> Study:
    """Dense and pruned networks with Top-k and feedback; density 1 sends everything."""
    names = ("both-sparsities", "both-sparsities-mnist")
    cells = [cell for name in names for cell in plans.study(name).cells]
    return Study("both", "Both sparsities", tuple(cells))
