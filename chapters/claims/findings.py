"""What the ledger says about all claims, as numbers."""

from __future__ import annotations

from collections.abc import Mapping

from chapters.claims.ledger import BEFORE, HISTORY, read
from lib import claims
from lib.analysis.scaling import LEVEL
from lib.claims import front

WORDS = {"no": "no", "mixed": "mixed", "unclear": "unclear", "untested": "not tested"}


def _counted(counts: Mapping[str, int], side: str) -> list[str]:
    """How many claims have each verdict of WORDS, in words, without zeros."""
    return [f"{counts[side + key]} {WORDS[key]}" for key in WORDS if counts[side + key]]


def findings(judged: Mapping[str, claims.Claim]) -> dict[str, object]:
    """All values in the page's sentences."""
    measured = [(claim, group) for claim in judged.values() for group in claim.measured]
    able = [group for _, group in measured if group.verdict != claims.SHOWN]
    decided = [group for group in able if group.clear]
    counts = front.tally(judged)
    earlier = read(HISTORY).values()
    own = [group for _, group in measured if group.own]
    own_decided = [group for group in own if group.clear]
    return {
        "claims": counts["claims"],
        "hold": counts["yes"] + counts["mostly"],
        "our_hold": counts["our_yes"] + counts["our_mostly"],
        "theirs": _counted(counts, ""),
        "ours": _counted(counts, "our_"),
        "measured": len(measured),
        "able": len(able),
        "decided": len(decided),
        "own": len(own),
        "own_decided": len(own_decided),
        "own_repeated": sum(g.repeated for g in own_decided),
        **{f"{name}_before": count for name, count in read(BEFORE)["own_rows"].items()},
        "on_digits": sum("digits" in group.name for group in decided),
        "wrong": round((1 - LEVEL) / 2 * len(able)),  # expected by chance, on one side of each test
        "changed": sum(any(c.get("records_known", True) for c in changes) for changes in earlier),
    }
