"""The ledger of all claims: an overview of the verdicts, and the details of each claim."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import yaml

from lib.claims import PAPERS
from lib.page import boxes
from lib.page.prose import Html

SIGNS = {"yes": "✓", "no": "✗", "unclear": "?", "no verdict": "·"}
KINDS = {"yes": "yes", "no": "no", "unclear": "open", "no verdict": "open"}  # of a network's

HISTORY = Path(__file__).with_name("history.yaml")
MATRIX, DETAILS = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("matrix.html", "details.html")
)


def effect(group, scale: str) -> str:
    """A network's effect in one line: "MLP on digits: 1.5 (1.2 to 1.8), n = 10, for"."""
    if not group.n:
        return f"{group.name}: not measured"
    value, low, high = boxes.numbers(group, scale)
    return f"{group.name}: {value} ({low} to {high}), n = {group.n}, {group.verdict}"


def matrix(judged: Iterable) -> Html:
    """A row per claim: key, title, the words that sum up the paper's networks and ours, and a sign
    per network, the paper's networks first; a sign's tooltip shows the numbers.  Above, a choice of
    papers.
    """
    claims = list(judged)
    letters = {claim.key[0] for claim in claims}
    papers = {letter: title for letter, title in PAPERS.items() if letter in letters}
    words = {"kinds": KINDS, "signs": SIGNS, "effect": effect}
    return boxes.html(MATRIX, judged=claims, papers=papers, **words)


def histories() -> dict:
    """The earlier forms of every rule that has changed, by the claim's key: as in HISTORY."""
    return yaml.safe_load(HISTORY.read_text(encoding="utf-8"))


def details(judged: Iterable) -> Html:
    """The details of each claim, folded; the link #claim-KEY opens one."""
    earlier = histories()
    rows = [(claim, boxes.claim(claim), earlier.get(claim.key, [])) for claim in judged]
    return boxes.html(DETAILS, judged=rows)


def powers(judged: Iterable) -> Html:
    """A row per claim: its key, on how many of its measured rows its rule can decide, and how often
    the rule says yes when the claim is true and when it is false.
    """
    rows = []
    for claim in judged:
        able = sum(group.verdict != "no verdict" for group in claim.measured)
        shares = boxes.shares_of_yes(claim) or ["—", "—"]
        cells = [f"{words}: {share}" for words, share in zip(claim.made_up, shares[:2])]
        rows.append([claim.key, f"{able} of {len(claim.measured)}", *cells])
    columns = "claim|rows that can tell|claim true|claim false"
    return boxes.table(pd.DataFrame(rows, columns=columns.split("|")))
