"""What the ledger says about all claims, as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from scipy import stats
from scipy.special import stdtr

from chapters.claims.ledger import histories
from lib import claims
from lib.analysis.scaling import LEVEL
from lib.claims import front

TODAY = "2026-11-29"  # when the rules' power was added
WORDS = {"no": "fail", "mixed": "are mixed", "unclear": "are unclear", "untested": "are not tested"}


def findings(judged: Mapping[str, claims.Claim]) -> dict[str, object]:
    """All values in the page's sentences."""
    measured = [(claim, group) for claim in judged.values() for group in claim.measured]
    able = [group for _, group in measured if group.verdict != claims.SHOWN]
    decided = [group for group in able if group.clear]
    counts = front.tally(judged)
    sides = {"theirs": "", "ours": "our_"}
    return {
        "claims": counts["claims"],
        "hold": counts["yes"] + counts["mostly"],
        "our_hold": counts["our_yes"] + counts["our_mostly"],
        **{
            name: [f"{counts[s + key]} {WORDS[key]}" for key in WORDS if counts[s + key]]
            for name, s in sides.items()
        },
        "measured": len(measured),
        "able": len(able),
        "decided": len(decided),
        "on_digits": sum("digits" in group.name for group in decided),
        "wrong": round((1 - LEVEL) / 2 * len(able)),  # expected by chance, on one side of each test
        "kept": _discoveries(measured),
        "fixed": sum(claim.fixed for claim in judged.values()),
        "changed": sum(TODAY in {c["when"] for c in changes} for changes in histories().values()),
    }


def _discoveries(measured: Sequence[tuple[claims.Claim, claims.Group]]) -> int:
    """How many groups are both decided and discoveries at a false discovery rate of 0.1 over all
    measured groups (Benjamini and Hochberg 1995).
    """
    p_values = [_p_value(claim, group) for claim, group in measured]
    discovered = stats.false_discovery_control(p_values) <= 0.1
    decided = [group.clear for _, group in measured]
    return int((discovered & decided).sum())


def _p_value(claim: claims.Claim, group: claims.Group) -> float:
    """Two-sided p-value of the test that decides a group, under an effect at the nearest threshold.
    Without a standard error, the verdict's: 1 - LEVEL if it is clear, else 1.
    """
    if not 0 < group.error < math.inf:
        return 1 - LEVEL if group.clear else 1.0
    effect, threshold = claim.inner(group.effect), claim.inner(claim.threshold)
    edges = (-threshold, threshold) if claim.kind == "within" else (threshold,)
    beyond = [float(stdtr(group.freedom, -abs(effect - edge) / group.error)) for edge in edges]
    return min(1.0, 2 * max(beyond))
