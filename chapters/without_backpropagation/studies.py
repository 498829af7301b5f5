"""What this chapter's searches are: of networks that are trained without backpropagation."""

from lib.methods import LOCAL
from lib.studies.study import Study, grid

# With backpropagation, by which the chapter divides, before all
WITHOUT_BACKPROPAGATION = ("sgd", *LOCAL)
CLOSE = ("sgd", "lra", "lra-1")  # whose errors are a point or less apart


def _local_budget():
    """What each way to pass errors back ends at, on five splits, and on many more for those that
    come close.
    """
    for searches, methods in ((range(3, 8), WITHOUT_BACKPROPAGATION), (range(8, 103), CLOSE)):
        yield from grid(
            workload="digits-mlp-tanh",
            batch_size=64,
            search=searches,
            algorithm=methods,
            trials=16,
            stop="budget",
            max_steps=2048,
        )


STUDIES = (
    Study(
        "digits-local",
        "Digits: without backpropagation",
        grid(
            search=range(3, 8),
            batch_size=(64, 16, 256, 4, 1024, 1),
            workload="digits-mlp-tanh",
            algorithm=WITHOUT_BACKPROPAGATION,
            hits=1,
        ),
        apart=True,
    ),
    Study(
        "digits-local-budget",
        "Digits: without backpropagation, every trial to its budget",
        _local_budget(),
        apart=True,
    ),
)
