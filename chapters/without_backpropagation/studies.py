"""What this chapter's searches are."""

from lib.methods import LOCAL
from lib.studies.study import Study, grid

# With backpropagation, by which the chapter divides, before all
WITHOUT_BACKPROPAGATION = ("sgd", *LOCAL)
NETWORK = "digits-mlp-tanh"
CLOSE = ("sgd", "lra", "lra-1")  # whose errors are a point or less apart


def _local_budget():
    """What each way to pass errors back ends at, on five splits, and on many more for those that
    come close.
    """
    fields = {"batch_size": 64, "trials": 16, "stop": "budget", "max_steps": 2048}
    for searches, methods in ((range(3, 8), WITHOUT_BACKPROPAGATION), (range(8, 103), CLOSE)):
        yield from grid(workload=NETWORK, search=searches, algorithm=methods, **fields)


def _local():
    sizes = (64, 16, 256, 4, 1024, 1)
    fields = {"workload": NETWORK, "algorithm": WITHOUT_BACKPROPAGATION, "hits": 1}
    return grid(search=range(3, 8), batch_size=sizes, **fields)


TITLE = "Digits: without backpropagation"
BUDGET = f"{TITLE}, every trial to its budget"
STUDIES = (
    Study("digits-local", TITLE, _local(), apart=True),
    Study("digits-local-budget", BUDGET, _local_budget(), apart=True),
)
