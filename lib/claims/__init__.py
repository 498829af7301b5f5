"""The papers' claims and the rules by which the records judge them: what a claim box and the ledger show."""

from lib.claims.ledger import RULES, judge, kept, planned, rounds
from lib.claims.lee import FOLLOWS
from lib.claims.verdicts import FAILS, HOLDS, MATTERS, OPEN, PART, Claim, Group, Rule, decide, together

__all__ = ["Claim", "FAILS", "FOLLOWS", "Group", "HOLDS", "MATTERS", "OPEN", "PART", "RULES", "Rule", "decide", "judge", "kept",
           "planned", "rounds", "together"]  # fmt: skip
