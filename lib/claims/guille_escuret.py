"""The claims of Guille-Escuret et al. (2024) and the rules that judge them; of the paper the abstract was at hand, not the text."""

from lib.claims.verdicts import Rule

SOURCE = "Guille-Escuret et al. 2024, abstract, in our words"

RULES = (
    Rule("P1", "paths",
         "Trajectories never encounter significant obstacles. (Here: whether the gradients of batches point to the path’s end.)",
         "On every network, over 95 % of batch gradients have a positive cosine with the way from the path’s end.",
         0.95, True, "share",
         "For {group}, {effect} of batch gradients have a positive cosine; so would most random ones.",
         "{times} times as many followed trials, {cost}", SOURCE),
    Rule("P2", "paths",
         "Trajectories keep stable dynamics during the majority of training. (Here: restricted secant and error bound.)",
         "Over the middle 80 % of the median path, each quantity’s 90th percentile is less than four times its 10th.",
         4, False, "ratio",
         "Along the median path, {group} varies {effect}-fold.",
         "{times} times as many followed trials, {cost}", SOURCE),
)  # fmt: skip
