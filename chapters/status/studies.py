"""What this chapter's searches are: the same two with other arithmetic and other checks."""

from collections.abc import Iterator

from lib.studies.cells import Cell
from lib.studies.study import DENSE_AND_SPARSE, EXACT, Study


def _mnist_precision() -> Iterator[Cell]:
    """Each also in single precision, and with the check interval of Lee et al. (2021)."""
    for sparsity in DENSE_AND_SPARSE:
        shared = {"workload": "mnist-simple-cnn", "batch_size": 64, "sparsity": sparsity, **EXACT}
        yield Cell(**shared | {"hits": 5})  # as `mnist` has it
        yield Cell(precision="float32", **shared)
        yield Cell(checks="every-100", **shared)


STUDIES = (Study("mnist-precision", "MNIST: precision and check interval", _mnist_precision()),)
