"""What the ledger says about all claims, as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from chapters.claims.ledger import BEFORE, HISTORY, read
from lib import claims
from lib.analysis.scaling import LEVEL

OTHER = claims.NO, claims.MIXED, claims.UNCLEAR, claims.UNTESTED


def _summed(verdicts: Iterable[str]) -> tuple[int, list[str]]:
    """How many claims hold on all or most networks, and how many have each verdict of OTHER, in
    words, without zeros.
    """
    counts = Counter(verdicts)
    others = [f"{counts[word]} {word}" for word in OTHER if counts[word]]
    return counts[claims.YES] + counts[claims.MOSTLY], others


def findings(judged: Mapping[str, claims.Claim]) -> dict[str, object]:
    """All values in the page's sentences."""
    measured = [(claim, group) for claim in judged.values() for group in claim.measured]
    able = [group for _, group in measured if group.verdict != claims.SHOWN]
    decided = [group for group in able if group.clear]
    hold, theirs = _summed(claim.theirs for claim in judged.values())
    our_hold, ours = _summed(claim.ours for claim in judged.values())
    earlier = read(HISTORY).values()
    papers = [group for _, group in measured if group.theirs]
    papers_decided = [group for group in papers if group.clear]
    return {
        "claims": len(judged),
        "hold": hold,
        "our_hold": our_hold,
        "theirs": theirs,
        "ours": ours,
        "measured": len(measured),
        "able": len(able),
        "decided": len(decided),
        "papers": len(papers),
        "papers_decided": len(papers_decided),
        "papers_repeated": sum(g.repeated for g in papers_decided),
        **{f"{name}_before": count for name, count in read(BEFORE)["papers_rows"].items()},
        "on_digits": sum("digits" in group.name for group in decided),
        "wrong": round((1 - LEVEL) / 2 * len(able)),  # expected by chance, on one side of each test
        "changed": sum(any(c.get("records_known", True) for c in changes) for changes in earlier),
    }
