"""What this chapter's searches are: networks that differ in width, depth or data."""

from __future__ import annotations

from lib.studies.study import ALL_POWERS, EXACT, Study, grid, powers, races
from lib.workloads.catalogue import FC_WIDTHS, FRACTIONS, MLP_SHAPES

SHAPES = [f"digits-mlp-{shape}" for shape in MLP_SHAPES]
DIGITS_FRACTIONS = [f"digits-mlp-{1350 // n}" for n in FRACTIONS]


MNIST_SIZES = (64, 16, 256, 1024, 4, 4096)
LADDER = [f"mnist-fc-{width}" for width in FC_WIDTHS]
STUDIES = (
    Study("digits-shapes", "Digits: width and depth", grid(batch_size=ALL_POWERS, workload=SHAPES)),
    Study(
        "digits-fractions",
        "Digits: fractions of the data",
        grid(batch_size=powers(0, 7), workload=DIGITS_FRACTIONS),
    ),
    Study(
        "digits-shapes-searches",
        "Digits: width and depth, searches on splits of their own",
        grid(search=range(3, 13), batch_size=ALL_POWERS, workload=SHAPES, hits=1),
    ),
    Study(
        "digits-fractions-searches",
        "Digits: fractions of the data, searches on splits of their own",
        grid(search=range(3, 13), batch_size=powers(0, 7), workload=DIGITS_FRACTIONS, hits=1),
    ),
    # With the same goals
    Study(
        "mnist-fractions-searches",
        "MNIST: an eighth of the data and all, searches on splits of their own",
        races(
            search=range(1, 6),
            batch_size=MNIST_SIZES,
            workload=("mnist-fc-128x3-6750", "mnist-fc-128x3-54000"),
            algorithm="sgd",
        ),
    ),
    Study(
        "mnist-ladder",
        "MNIST: fully connected networks with SGD",
        (
            cell
            for cell in grid(batch_size=MNIST_SIZES, workload=LADDER, algorithm="sgd", **EXACT)
            # The smallest network also at 4, where the others would take two hours together
            if cell.batch_size > 4 or cell.workload == "mnist-fc-128x3"
        ),
    ),
    Study(
        "mnist-fractions",
        "MNIST: fractions of the data",
        grid(
            batch_size=(64, 16, 256, 4, 1024, 4096),
            workload=[f"mnist-fc-128x3-{54_000 // n}" for n in FRACTIONS],
            algorithm="sgd",
            **EXACT,
        ),
    ),
    Study(
        "mnist-widths",
        "MNIST: Simple-CNN of half and double width",
        grid(
            batch_size=(64, 16, 256, 4),
            workload=("mnist-simple-cnn-half", "mnist-simple-cnn-double"),
            **EXACT,
        ),
    ),
)
