"""The book's studies: which cells it measures, and in what order."""

from __future__ import annotations

from lib import require
from lib.studies import digits, images, late, messages, methods, texts
from lib.studies.digits import HARD_SPLITS
from lib.studies.grids import (
    ALL_POWERS,
    DENSE_AND_SPARSE,
    DIGITS,
    LEVELS,
    own_splits,
    powers,
    variants,
    whole,
)
from lib.studies.late import LATE_SIZES
from lib.studies.methods import COMPARED, EVERYWHERE, FOURS
from lib.studies.study import Study
from lib.studies.texts import SHAKESPEARE_BUDGETS, TEXT_ENDS, TEXT_RACE, TEXT_WIDTHS
from lib.workloads.catalogue import FRACTIONS, MLP_SHAPES

# Studies of curves that were run to budgets, and to no goal
TO_BUDGETS = (
    "mnist-budget",
    "fashion-mnist-budget",
)
# What the chapters compare unless they are about one of these fields.
USUAL = {
    "stop": "goal",
    "checks": "geometric",
    "precision": None,
    "space": None,
    "pruning": "connection-sensitivity",
    "label_smoothing": 0.0,
    "messages": None,
    "max_steps": None,
    "staleness": 0,
    "delays": "fixed",
}
# Studies of a question of their own: the same networks on the same images once more are no further
# curves of the book. By a dozen methods.
WHICH = (
    "digits-which",
    "digits-which-more",
    "digits-which-sparse",
    "mnist-fc-which",
    "mnist-fc-which-more",
    "mnist-which",
    "digits-kfac",
)
# A task and goals of their own.
TEXT = (
    "shakespeare-exact",
    "shakespeare",
    "shakespeare-methods",
    "shakespeare-sparse",
    "shakespeare-sgd",
    "shakespeare-widths",
)
LOCALLY = ("digits-local", "digits-local-budget")  # an activation and methods of their own
# Late gradients: other training, on the same networks
LATE_STUDIES = (
    "staleness",
    "staleness-depth",
)
LOW_MOMENTUM = ("digits-low-momentum", "fc-low-momentum", "mnist-low-momentum")
APART = (
    "races",
    *LOW_MOMENTUM,
    "mnist-own-splits",
    "mnist-split",
    "mnist-split-fc",
    "mnist-longer-budget",
    "messages-rates",
    *WHICH,
    *TEXT,
    *LOCALLY,
    *LATE_STUDIES,
)
STUDIES = {
    s.name: s
    for s in (
        Study("digits", "Digits: every batch size, sparsity and algorithm", tuple(digits.every())),
        Study(
            "digits-searches",
            "Digits: twenty searches to forty, each on a split of its own",
            tuple(digits.searches()),
        ),
        Study(
            "digits-between",
            "Digits: half and 70 % of the weights removed, searches on splits of their own",
            tuple(digits.between()),
        ),
        Study(
            "digits-low-momentum",
            "Digits: momentum below the published range",
            tuple(digits.low_momentum()),
        ),
        Study(
            "digits-sparsest", "Digits with 95 % of the weights removed", tuple(digits.sparsest())
        ),
        Study("digits-methods", "Digits: six methods of pruning", tuple(digits.prunings())),
        Study("digits-budget", "Digits: every trial to its budget", tuple(digits.budget())),
        Study(
            "digits-smoothing",
            "Digits: label smoothing, every trial to its budget, searches on splits of their own",
            tuple(digits.smoothing()),
        ),
        Study("digits-nats", "Digits: goals of cross-entropy", tuple(digits.nats())),
        Study("digits-adam", "Digits: Adam", tuple(digits.adam())),
        Study(
            "digits-shapes",
            "Digits: width and depth",
            tuple(
                variants([f"digits-mlp-{s}" for s in MLP_SHAPES], ALL_POWERS, "momentum", 100, 5)
            ),
        ),
        Study(
            "digits-fractions",
            "Digits: fractions of the data",
            tuple(
                variants(
                    [f"digits-mlp-{1350 // n}" for n in FRACTIONS], powers(0, 7), "momentum", 100, 5
                )
            ),
        ),
        Study(
            "digits-shapes-searches",
            "Digits: width and depth, searches on splits of their own",
            tuple(own_splits([f"digits-mlp-{s}" for s in MLP_SHAPES], ALL_POWERS, range(3, 13))),
        ),
        Study(
            "digits-fractions-searches",
            "Digits: fractions of the data, searches on splits of their own",
            tuple(
                own_splits(
                    [f"digits-mlp-{1350 // n}" for n in FRACTIONS], powers(0, 7), range(3, 13)
                )
            ),
        ),
        Study(
            "fc-searches",
            "MNIST and Fashion-MNIST: FC-128×3, searches on splits of their own",
            tuple(images.fc_searches()),
        ),
        Study(
            "fc-low-momentum",
            "MNIST and Fashion-MNIST: FC-128×3, momentum below the published range",
            tuple(images.fc_low_momentum()),
        ),
        Study(
            "mnist-fractions-searches",
            "MNIST: an eighth of the data and all, searches on splits of their own",
            tuple(images.fractions_searches()),
        ),
        Study("mnist", "MNIST: Simple-CNN with momentum", tuple(images.mnist())),
        Study("mnist-ladder", "MNIST: fully connected networks with SGD", tuple(images.ladder())),
        Study(
            "mnist-fractions",
            "MNIST: fractions of the data",
            tuple(
                variants(
                    [f"mnist-fc-128x3-{54_000 // n}" for n in FRACTIONS],
                    (64, 16, 256, 4, 1024, 4096),
                    "sgd",
                    32,
                    2,
                )
            ),
        ),
        Study(
            "mnist-widths",
            "MNIST: Simple-CNN of half and double width",
            tuple(
                variants(
                    [f"mnist-simple-cnn-{s}" for s in ("half", "double")],
                    (64, 16, 256, 4),
                    "momentum",
                    32,
                    2,
                )
            ),
        ),
        Study(
            "mnist-budget",
            "MNIST: every trial to its budget",
            tuple(whole("mnist-fc-128x3", images.MNIST_SIZES, 32, 2**18)),
        ),
        Study(
            "fashion-mnist-budget",
            "Fashion-MNIST: every trial to its budget",
            tuple(whole("fashion-mnist-fc-128x3", images.MNIST_SIZES, 32, 2**18)),
        ),
        Study(
            "mnist-longer-budget",
            "MNIST: every trial to a longer budget",
            tuple(images.mnist_longer_budget()),
        ),
        Study(
            "messages",
            "Sparse messages: five methods, two data sets",
            tuple(messages.rivals("mnist-fnn-3", "fashion-mnist-fnn-3")),
        ),
        Study(
            "message-variants",
            "Sparse messages: one thing changed at a time",
            tuple(messages.variants()),
        ),
        Study(
            "messages-lenet-5",
            "Sparse messages: LeNet-5",
            tuple(messages.rivals("mnist-lenet-5", "fashion-mnist-lenet-5")),
        ),
        Study(
            "messages-rates",
            "Sparse messages: Rand-k at higher learning rates",
            tuple(messages.rates()),
        ),
        Study(
            "messages-resnet-20", "Sparse messages: ResNet-20 on CIFAR-10", tuple(messages.resnet())
        ),
        Study(
            "both-sparsities",
            "Digits: pruned networks with sparse messages",
            tuple(messages.both_sparsities("digits-mlp", (64, 16, 256), 100)),
        ),
        Study(
            "both-sparsities-mnist",
            "MNIST: pruned networks with sparse messages",
            tuple(messages.both_sparsities_mnist()),
        ),
        Study("mnist-algorithms", "MNIST: SGD and Nesterov", tuple(images.mnist_algorithms())),
        Study("mnist-methods", "MNIST: five methods of pruning", tuple(images.mnist_methods())),
        Study("mnist-precision", "MNIST: precision and check interval", tuple(images.precision())),
        Study(
            "mnist-searches",
            "MNIST: Simple-CNN, searches on splits of their own",
            tuple(images.mnist_searches()),
        ),
        Study(
            "mnist-own-splits",
            "MNIST: Simple-CNN at the hardest goal, searches on splits of their own",
            tuple(images.cnn_own_splits()),
        ),
        Study(
            "mnist-low-momentum",
            "MNIST: Simple-CNN, momentum below the published range",
            tuple(images.cnn_own_splits("low-momentum")),
        ),
        Study("races", "Exact searches to judge races by", tuple(images.watched())),
        Study(
            "mnist-split",
            "MNIST: Simple-CNN on the split of Lee et al.",
            tuple(images.mnist_split_cnn()),
        ),
        Study(
            "mnist-split-fc",
            "MNIST: a cheap network on the split of Lee et al. and on ours",
            tuple(images.mnist_split_fc()),
        ),
        Study("fashion-mnist", "Fashion-MNIST: Simple-CNN", tuple(images.fashion_mnist())),
        Study("cifar-10", "CIFAR-10: ResNet-8", tuple(images.cifar())),
        Study(
            "cifar-10-gpu",
            "CIFAR-10: ResNet-8, for a graphics processor",
            tuple(images.cifar_on_a_gpu()),
        ),
        Study("digits-which", "Digits: training methods", tuple(methods.digits_which(DIGITS))),
        Study(
            "digits-which-more",
            "Digits: training methods, more searches of a few",
            tuple(methods.digits_more(DIGITS)),
        ),
        Study(
            "digits-kfac",
            "Digits: K-FAC without its clip",
            tuple(methods.which(DIGITS, ALL_POWERS, ("kfac-unclipped",), range(3, 8))),
        ),
        Study(
            "digits-which-sparse",
            "Digits: training methods on pruned networks",
            tuple(
                methods.which(
                    DIGITS, ALL_POWERS, methods.COMPARED_SPARSE, range(3, 8), sparsity=0.9
                )
            ),
        ),
        Study(
            LOCALLY[0],
            "Digits: without backpropagation",
            tuple(
                methods.which(
                    ("digits-mlp-tanh",),
                    powers(0, 10, 2),
                    methods.WITHOUT_BACKPROPAGATION,
                    range(3, 8),
                )
            ),
        ),
        Study(
            LOCALLY[1],
            "Digits: without backpropagation, every trial to its budget",
            tuple(methods.local_budget()),
        ),
        Study("mnist-fc-which", "MNIST: training methods, FC-128×3", tuple(methods.fc_which())),
        Study(
            "mnist-fc-which-more",
            "MNIST: training methods, FC-128×3, more searches",
            tuple(methods.fc_more()),
        ),
        Study("mnist-which", "MNIST: training methods, Simple-CNN", tuple(methods.mnist_which())),
        Study("staleness", "Digits: late gradients", tuple(late.staleness())),
        Study(
            "staleness-depth",
            "Digits: late gradients in networks of other depth",
            tuple(late.depth()),
        ),
        Study(
            "shakespeare-exact", "Tiny Shakespeare: Adam in exact lock step", tuple(texts.exact())
        ),
        Study("shakespeare", "Tiny Shakespeare: Adam", tuple(texts.searches(range(3), ("adam",)))),
        Study(
            "shakespeare-methods",
            "Tiny Shakespeare: momentum and Muon",
            tuple(texts.searches(range(2), ("muon", "momentum"))),
        ),
        Study(
            "shakespeare-sparse",
            "Tiny Shakespeare: 90 % of the weights removed",
            tuple(texts.pruned()),
        ),
        Study(
            "shakespeare-sgd", "Tiny Shakespeare: SGD", tuple(texts.searches(range(1), ("sgd",)))
        ),
        Study(
            "shakespeare-widths",
            "Tiny Shakespeare: half and double the width",
            tuple(texts.widths()),
        ),
    )
}


def prunings() -> Study:
    """All searches by which methods of pruning are compared, each network's on the same trials."""
    cells = (cell for name in ("digits-methods", "mnist-methods") for cell in study(name).cells)
    return Study("prunings", "Methods of pruning", tuple(cells))


def study(name: str) -> Study:
    """Look a study up.  Raises ValueError naming the allowed ones."""
    require(name in STUDIES, "study", name, STUDIES)
    return STUDIES[name]
