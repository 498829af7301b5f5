"""Claims on what two processes gain and what they tell, which are ours, and the rules that judge them."""

from lib.claims.verdicts import Rule

RULES = (
    Rule("W1", "frameworks",
         "Two processes that share every batch reach the goal before one process at its best batch.",
         "On every network timed, the shortest time with one process is longer than with data parallelism (quartiles of rounds).",
         1.0, True, "ratio",
         "For {group}, one process takes {effect} times as long as two with data parallelism, each at its best batch.",
         "{times} times as many rounds", "our question, in the setting of Nichols et al. 2021"),
    Rule("W2", "theory",
         "A running job’s workers tell the gradient noise scale for free.",
         "On every network, it lies within a factor of 1.25 of the offline one, in the mean over windows of a run.",
         1.25, False, "ratio",
         "On {group}, the noise scales of the workers and of other gradients differ by a factor of {effect}.",
         "{times} times as many windows", "McCandlish et al. 2018, in our words"),
)  # fmt: skip
