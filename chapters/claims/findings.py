"""What the ledger says of all claims, as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lib import claims


def findings(judged: Sequence[claims.Claim]) -> dict[str, object]:
    """All values of the page's sentences."""
    verdicts = Counter(claim.verdict.partition(":")[0] for claim in judged)
    groups = [group for claim in judged for group in claim.groups]
    decided = [group for group in groups if group.verdict != claims.UNDECIDED]
    return {
        "claims": len(judged),
        "reproduced": verdicts[claims.REPRODUCED],
        "contradicted": verdicts[claims.CONTRADICTED],
        "in_part": verdicts[claims.PART],
        "stand_ins": verdicts[claims.STAND_INS],
        "open": verdicts[claims.OPEN],
        "decided": len(decided),
        "wrong": round(claims.expected_wrong(judged)),
        "kept": sum(group.q_value <= 0.1 for group in decided),
        "fixed": sum(claim.fixed for claim in judged),
    }
