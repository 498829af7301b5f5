"""The front page's cards, its table of papers, and where to go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from lib import ROOT
from lib.claims import front
from lib.page.prose import PAGES, Html

COLAB = "binder/colab.ipynb"
SCALES = {
    "ratio": " times",
    "points": " points",
    "points a doubling": " points a doubling",
}
WORDS = ("yes", "mostly", "mixed", "no", "unclear", "not tested")
MARKUP = PAGES.from_string(Path(__file__).with_name("front.html").read_text("utf-8")).module


def cards(*questions: tuple[str, str, dict[str, str]]) -> Html:
    """Questions side by side, each with an answer and links; questions: (question, answer, {words
    of a link: address}).
    """
    return Html(MARKUP.cards(questions))


def papers(rows: Mapping[str, Iterable]) -> Html:
    """A row per claim: what the paper says, and how it came out on the paper's networks and ours.

    Args:
        rows: a paper's name (HTML, such as a link) -> its judged claims.
    """
    cells = [
        ("" if n else Html(name), claim, answers(claim))
        for name, claims in rows.items()
        for n, claim in enumerate(claims)
    ]
    return Html(MARKUP.papers(cells))


def answers(claim) -> dict[str, str]:
    """word: one of WORDS; effects: over networks with several searches, "" unless the claim's scale
    is in SCALES; theirs, ours: verdicts counted over the paper's networks and over others.
    """
    effects = front.effects(claim)
    return {
        "word": claim.verdict,
        "effects": effects + SCALES[claim.scale]
        if claim.scale in SCALES and effects != "—"
        else "",
        "theirs": claim.tally(theirs=True) or "not tested",
        "ours": claim.tally(theirs=False) or "not tested",
    }


def counted(judged: Mapping[str, object]) -> str:
    """How many claims came out each way: "20 yes, 3 mostly"."""
    counts = Counter(claim.verdict for claim in judged.values())
    return ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])


def doors(ways: dict[str, tuple[str, str]]) -> Html:
    """Links to other pages; ways: name -> (address, words)."""
    return Html(MARKUP.doors(ways))


def colab() -> str | None:
    """Colab's address for the notebook that clones the book and reruns a chapter; None if
    _config.yml names no repository on GitHub.
    """
    about = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    _, _, name = about["url"].rstrip("/").partition("github.com/")
    if not name:
        return None
    return f"https://colab.research.google.com/github/{name}/blob/{about['branch']}/{COLAB}"
