"""Claims on training without backpropagation, and the rules that judge them.

Of these papers the abstracts were at hand, not the texts.
"""

from lib.claims.verdicts import Rule

RULES = (
    Rule("B1", "without_backpropagation",
         "Local representation alignment generalises as well as backpropagation. (Theirs: a recursive variant on residual "
         "networks; here: the basic rule on a small MLP.)",
         "Its test error, at the lowest validation error, exceeds that of backpropagation by less than one point.",
         1, False, "points",
         "With {group}, local representation alignment makes {effect} points more mistakes on test images.",
         "{times} times as many searches, {cost}", "Ororbia et al. 2020, abstract"),
    Rule("B2", "without_backpropagation",
         "Local representation alignment converges sooner than backpropagation. (Theirs: in time, as updates are parallel and "
         "cheap; here: in steps.)",
         "In the mean over batch sizes, backpropagation takes more steps to the goal error.",
         1, True, "ratio",
         "With {group}, backpropagation takes {effect} times the steps of local representation alignment.",
         "{times} times as many searches, {cost}", "Ororbia et al. 2020, abstract"),
    Rule("B3", "without_backpropagation",
         "Coordinate descent on Boolean weights converges exponentially.",
         "As the error nears its floor, its third e-fold takes less than 1.5 times as long as its first, or the reverse.",
         1.5, False, "ratio",
         "With {group}, the times of the third and the first e-fold differ by a factor of {effect}.",
         "{times} times as many runs, {cost}", "Andreoli et al. 2023, abstract"),
    Rule("B4", "without_backpropagation",
         "The steps of coordinate descent on Boolean weights grow linearly with the number of neurons.",
         "From the fewest features to the most, steps per feature change by a factor below 1.5.",
         1.5, False, "ratio",
         "With {group}, steps per feature change by a factor of {effect} from the fewest features to the most.",
         "{times} times as many runs, {cost}", "Andreoli et al. 2023, abstract"),
)  # fmt: skip
