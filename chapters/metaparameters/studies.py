"""What this chapter's searches are: with Adam, whose best rates it compares."""

from lib.studies.study import ALL_POWERS, DIGITS, Study, grid

STUDIES = (
    Study(
        "digits-adam",
        "Digits: Adam",
        grid(replicate=range(3), workload=DIGITS, batch_size=ALL_POWERS, algorithm="adam"),
    ),
)
