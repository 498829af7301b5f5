"""The ledger of all claims: verdicts at a glance, and everything about each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from lib.claims import PAPERS
from lib.page import boxes
from lib.page.prose import Html

SIGNS = {"yes": "✓", "no": "✗", "unclear": "?", "no verdict": "·"}
KINDS = {"yes": "yes", "no": "no", "unclear": "open", "no verdict": "open"}  # of a network's

MATRIX = Path(__file__).with_name("matrix.html").read_text(encoding="utf-8")
DETAILS = Path(__file__).with_name("details.html").read_text(encoding="utf-8")


def told(group, scale: str) -> str:
    """A network's effect in one line: "MLP on digits: 1.5 (1.2 to 1.8), n = 10, for"."""
    if not group.n:
        return f"{group.name}: not measured"
    effect, low, high = boxes.numbers(group, scale)
    return f"{group.name}: {effect} ({low} to {high}), n = {group.n}, {group.verdict}"


def matrix(judged: Iterable) -> Html:
    """A row per claim: key, title, the words that sum up the paper's networks and ours, and a sign
    per network, the paper's own before all; a sign's title says the numbers.  Above, a choice among
    the papers.
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


def powers(judged: Iterable) -> Html:
    """A row per claim: how often its rule says yes of each kind of made-up data, and on how many of
    the rows measured it can tell.
    """
    rows = []
    for claim in judged:
        measured = claim.measured
        able = [g for g in measured if g.verdict != "no verdict"]
        shares = [
            boxes.span_of_shares(column)
            for column in zip(*(g.power for g in able or measured if g.power))
        ]
        words = [*claim.made_up, *[""] * 3][:3]
        both = (f"{word}: {share}" for word, share in zip(words, shares or [""] * 3))
        rows.append([f"{claim.key} {claim.title}", f"{len(able)} of {len(measured)}", *both])
    columns = "claim|rows that can tell|claim true|no effect|opposite, or another shape"
    return boxes.table(pd.DataFrame(rows, columns=columns.split("|")))


def since(claim) -> str:
    """When its rule got its present form."""
    return max([claim.since, *(change.when for change in claim.history)])
