"""The claims of Shi et al. (2019) and the rules that judge them."""

from lib.claims.verdicts import Rule

ABSTRACT = "Shi et al. 2019, abstract"
COMPARED = 0.001  # the density of the authors' runs
WARMED = " with a density warmed up"  # names the groups in which it falls to that during the first steps

RULES = (
    Rule("T1", "gradients",
         "The vector that Top-k compresses is bell-shaped around zero, for fully connected, convolutional and recurrent networks.",
         "For each kind of network, more than half of its vectors have one peak at zero and are rounder than a semicircle.",
         0.5, True, "share",
         "Of the vectors of {group}, {effect} are bell-shaped.",
         "vectors of a recurrent network", ABSTRACT),
    Rule("T3", "contraction",
         "What Top-k leaves of the vector's energy is at most (1 − k/d)², a tighter bound than 1 − k/d.",
         "For every vector and density, what is left stays below (1 − k/d)², to rounding.",
         -1e-6, True, "share",
         "Over {n} pairs of a vector and a density, the bound exceeds what is left by {effect} of the energy in the median.",
         "vectors from training", ABSTRACT),
    Rule("T4", "messages",
         "Top-k with feedback trains as well as dense messages.",
         "At the authors' density, Top-k loses less than one point of test error on every workload trained for d/k steps or more.",
         1, False, "points",
         "On {group}, Top-k loses {effect} points of test error to dense messages.",
         "{times} times as many seeds, {cost}", ABSTRACT),
    Rule("T4b", "messages",
         "Rand-k, with the same classical bound as Top-k, trains far worse.",
         "At the authors' density, Rand-k without feedback loses over ten points on every workload, at a rate inside its search.",
         10, True, "points",
         "On {group}, Rand-k loses {effect} points of test error to dense messages.",
         "higher learning rates in the study messages-rates", f"{ABSTRACT}; runs named in the authors' plotting code"),
    Rule("T5", "messages",
         "Gaussian-k trains almost as well as exact Top-k.",
         "At the authors' density, at a rate inside its search, Gaussian-k loses under one point to Top-k on every workload, in "
         "d/k steps or more.",
         1, False, "points",
         "On {group}, Gaussian-k loses {effect} points of test error to Top-k.",
         "{times} times as many seeds, {cost}", ABSTRACT),
    Rule("T5b", "messages",
         "Gaussian-k trains almost as well as exact Top-k. (Here: with as much sent, where it sends more than Top-k.)",
         "Cut off when it has sent as much as Top-k, Gaussian-k loses less than one point of test error on every workload.",
         1, False, "points",
         "On {group}, Gaussian-k loses {effect} points of test error to Top-k when both have sent as much.",
         "{times} times as many seeds, {cost}", "our question, after Shi et al. 2019"),
    Rule("T6", "operator_cost",
         "Gaussian-k selects in a fraction of the time of exact Top-k on a graphics processor.",
         "On a graphics processor, PyTorch's exact Top-k takes over twice the time of Gaussian-k at long vectors.",
         2, True, "ratio",
         "On a graphics processor, exact Top-k takes {effect} times as long as Gaussian-k, from {group}.",
         "timings on another graphics processor, some minutes on one", ABSTRACT),
    Rule("T9", "messages",
         "A larger density narrows the gap to dense messages: no statement of theirs, but a comparison named in the authors' "
         "plotting code.",
         "Top-k's loss in test error falls from the lowest density to the highest, in the mean over workloads and seeds.",
         0, True, "points",
         "Over {group}, Top-k's loss falls by {effect} points of test error at the larger density, {n} seeds pooled.",
         "{times} times as many seeds, {cost}", "plotting code of Shi et al. 2019"),
)  # fmt: skip
