"""Claims on language models and the rules that judge them.

Of these papers the abstracts were at hand, not the texts.
"""

from lib.claims.verdicts import Rule

MERRILL = "Merrill et al. 2025, abstract, in our words"
BRANCHES = "{times} times as many orders of the examples, {cost}"

RULES = (
    Rule("G1", "language_model",
         "The critical batch size is near zero at the start of training and increases rapidly at first.",
         "Along one run, the critical batch size of its branches is larger at the second point than at the first.",
         1, True, "ratio",
         "With {group}, the critical batch size at the second point is {effect} times that at the first.",
         BRANCHES, MERRILL),
    Rule("G2", "language_model",
         "As training progresses, the critical batch size levels off. (Here: within one run of minutes.)",
         "Along one run, the critical batch size at the last point is less than 1.25 times that at the second.",
         1.25, False, "ratio",
         "With {group}, the critical batch size at the last point is {effect} times that at the second.",
         BRANCHES, MERRILL),
    Rule("G3", "language_model",
         "The gradient noise scale of a run tells its critical batch size at every point: often assumed, doubted by the authors.",
         "Along one run, noise scales are within a factor of two of the critical batch sizes of its branches, in the mean.",
         2, False, "ratio",
         "With {group}, noise scale and critical batch size differ by a factor of {effect} in the mean over points.",
         BRANCHES, "our question, after Merrill et al. 2025"),
    Rule("G4", "language_model",
         "The critical batch size grows with the amount of data, and hardly with the size of the model. (Here: the model’s width.)",
         "From half the width to double, the critical batch size changes by less than a factor of two.",
         2, False, "ratio",
         "With {group}, the critical batch size differs by a factor of {effect}.",
         "{times} times as many searches at all widths, {cost}", "Zhang et al. 2024, abstract, in our words"),
)  # fmt: skip
