"""The claim on volunteers, which is ours, and the rule that judges it."""

from lib.claims.verdicts import Rule

RULES = (
    Rule("V1", "volunteers",
         "Volunteers reach their goal soonest with batches of √(critical batch size × latency × speed).",
         "However often peers leave, the formula’s batch takes less than 1.1 times the shortest simulated time, in the mean.",
         1.1, False, "ratio",
         "With {group}, the formula’s batch takes {effect} times the shortest time, in the mean over settings and curves.",
         "{times} times as many curves", "our derivation, in the setting of Diskin et al. 2021"),
)  # fmt: skip
