"""The ledger of all claims: an overview of the verdicts, and the details of each claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
import yaml

from lib.claims import PAPERS
from lib.page import boxes
from lib.page.prose import Html

SIGNS = {"yes": "✓", "no": "✗", "unclear": "?", "no verdict": "·"}
KINDS = {"yes": "yes", "no": "no", "unclear": "open", "no verdict": "open"}  # of a network's

HISTORY = "history.yaml"  # the earlier forms of every rule that has changed, by the claim's key
BEFORE = "before.yaml"  # the words before every rule's power was computed


def text(name: str) -> str:
    """A file beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def effect(group, scale: str) -> str:
    """A network's effect in one line: "MLP on digits: 1.5 (1.2 to 1.8), n = 10, yes"."""
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
    return boxes.html(text("matrix.html"), judged=claims, papers=papers, **words)


def read(name: str) -> dict:
    """A YAML file beside this one."""
    return yaml.safe_load(text(name))


def details(judged: Iterable) -> Html:
    """The details of each claim, folded; the link #claim-KEY opens one."""
    earlier = read(HISTORY)
    rows = [(claim, boxes.claim(claim), earlier.get(claim.key, [])) for claim in judged]
    return boxes.html(text("details.html"), judged=rows)


def before(judged: Mapping) -> Html:
    """The verdicts of 28 November 2026 beside today's, folded, and why they differ."""
    rows = []
    for key, (was, why) in read(BEFORE)["claims"].items():
        claim = judged.get(key)
        now = f"{claim.theirs}; ours: {claim.ours}" if claim else "no verdict"
        rows.append([key, was, now, why])
    columns = ["claim", "28 November", "now", "why"]
    fold = "<details><summary>{{ n }} claims on 28 November and now</summary>{{ table }}</details>"
    return boxes.html(fold, n=len(rows), table=boxes.table(pd.DataFrame(rows, columns=columns)))


def powers(judged: Iterable) -> Html:
    """A row per claim: its key, on how many of its measured rows its rule can decide, and how often
    the rule says what when the claim is true and when it is false.
    """
    rows = []
    for claim in judged:
        able = sum(group.verdict != "no verdict" for group in claim.measured)
        shares = boxes.shares(claim) or ["—", "—"]
        cells = [f"{words}: {share}" for words, share in zip(claim.made_up, shares[:2])]
        rows.append([claim.key, f"{able} of {len(claim.measured)}", *cells])
    columns = "claim|rows that can tell|claim true|claim false"
    return boxes.table(pd.DataFrame(rows, columns=columns.split("|")))
