"""The ledger of all claims: verdicts at a glance, and everything about each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lib.claims import PAPERS
from lib.page import boxes
from lib.page.prose import Html

SIGNS = {"for": "✓", "against": "✗", "not decided": "?"}
KINDS = {"for": "yes", "against": "no", "not decided": "open"}  # of a network's verdict

MATRIX = Path(__file__).with_name("matrix.html").read_text(encoding="utf-8")
DETAILS = Path(__file__).with_name("details.html").read_text(encoding="utf-8")


def told(group, scale: str) -> str:
    """A network's effect in one line: "MLP on digits: 1.5 (1.2 to 1.8), n = 10, for"."""
    if not group.n:
        return f"{group.name}: not measured"
    effect, low, high = boxes.numbers(group, scale)
    return f"{group.name}: {effect} ({low} to {high}), n = {group.n}, {group.verdict}"


def matrix(judged: Iterable) -> Html:
    """A row per claim: key, title, the word that sums it up, and a sign per network, the paper's own
    before all; a sign's title says the numbers.  Above, a choice among the papers.
    """
    judged = list(judged)
    letters = {claim.key[0] for claim in judged}
    papers = {letter: title for letter, title in PAPERS.items() if letter in letters}
    words = {"kinds": KINDS, "signs": SIGNS, "told": told}
    return boxes.html(MATRIX, judged=judged, papers=papers, **words)


def details(judged: Iterable) -> Html:
    """Everything about each claim, folded; #claim-KEY opens one."""
    both = [(claim, boxes.claim(claim)) for claim in judged]
    return boxes.html(DETAILS, judged=both, since=since)


def since(claim) -> str:
    """When its rule got its present form."""
    return max([claim.since, *(change.when for change in claim.history)])
