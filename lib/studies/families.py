"""Names of families of workloads that differ in one thing: their members are in
`chapters/limits/families.py`, the goal error of each in `lib.analysis.goals`.
"""

WIDTH, DEPTH, FRACTION = "digits: width", "digits: depth", "digits: fractions of the data"
LADDER, MNIST_DEPTH = "MNIST: fully connected networks", "MNIST: depth"
MNIST_WIDTH, MNIST_FRACTION = "MNIST: width", "MNIST: fractions of the data"
MODEL, MNIST_MODEL, ALGORITHM = (
    "digits: kind of network",
    "MNIST: kind of network",
    "digits: algorithm",
)
MNIST_MODEL_EASIER = "MNIST: kind of network, easier goal"
DATA, DATA_CNN = "data set (FC-128×3)", "data set (Simple-CNN)"
