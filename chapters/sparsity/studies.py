"""What this chapter's searches are: of networks with hardly any weights left."""

from lib.studies.study import ALL_POWERS, DIGITS, Study, grid

FIRST = (4, 64, 16, 256)  # batch sizes
# A budget of its own, since little is left to train
STUDIES = (
    Study(
        "digits-sparsest",
        "Digits with 95 % of the weights removed",
        grid(
            replicate=range(3),
            algorithm=("momentum", "sgd", "nesterov"),
            batch_size=(*FIRST, *(size for size in ALL_POWERS if size not in FIRST)),
            workload=DIGITS,
            sparsity=0.95,
            max_steps=20_000,
        ),
    ),
)
