"""What the ledger says of all claims, as numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from scipy import stats
from scipy.special import stdtr

from lib import claims
from lib.analysis.scaling import LEVEL


def findings(judged: Sequence[claims.Claim]) -> dict[str, object]:
    """All values of the page's sentences."""
    verdicts = Counter(claim.verdict.partition(":")[0] for claim in judged)
    known = [(claim, group) for claim in judged for group in claim.groups]
    decided = [(claim, group) for claim, group in known if group.verdict != claims.UNDECIDED]
    return {
        "claims": len(judged),
        "reproduced": verdicts[claims.REPRODUCED],
        "fragile": sum(one.verdict == claims.REPRODUCED and one.fragile for one in judged),
        "contradicted": verdicts[claims.CONTRADICTED],
        "in_part": verdicts[claims.PART],
        "stand_ins": verdicts[claims.STAND_INS],
        "open": verdicts[claims.OPEN],
        "decided": len(decided),
        # Each was decided at one side's share of 1 - LEVEL
        "wrong": round((1 - LEVEL) / 2 * len(decided)),
        "kept": _discoveries(decided),
        "fixed": sum(claim.fixed for claim in judged),
    }


def _discoveries(decided: Sequence[tuple[claims.Claim, claims.Group]]) -> int:
    """How many of them are discoveries at a false discovery rate of 0.1 over all claims (Benjamini
    and Hochberg 1995).
    """
    p_values = [_p_value(claim, group) for claim, group in decided]
    return int((stats.false_discovery_control(p_values) <= 0.1).sum())


def _p_value(claim: claims.Claim, group: claims.Group) -> float:
    """Of the test by which a group is decided, were the effect at the threshold; 0.05 where its
    error is not known.
    """
    if not 0 < group.error < math.inf:
        return 0.0 if group.error == 0 else 0.05
    effect, edge = claim.inner(group.effect), claim.inner(claim.threshold)
    edges = (-edge, edge) if claim.kind == "within" else (edge,)
    beyond = [float(stdtr(group.freedom, -abs(effect - at) / group.error)) for at in edges]
    inside = claim.kind == "within" and abs(effect) < edge
    return max(beyond) if inside else min(beyond)
