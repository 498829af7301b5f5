"""The searches of the page's section on SOAP."""

from lib.studies.study import Study, grid, powers

# With the draws, orders and splits of the first searches by the methods that it is compared with
STUDIES = (
    Study(
        "digits-soap",
        "Digits: SOAP",
        grid(
            search=range(3, 11),
            batch_size=powers(2, 10, 2),
            workload="digits-mlp",
            algorithm=("soap", "soap-10"),
            hits=1,
        ),
    ),
)
