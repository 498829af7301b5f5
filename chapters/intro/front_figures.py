"""The front page's cards, its table of papers, and where to go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import yaml

from lib import ROOT
from lib.claims import front
from lib.page import boxes
from lib.page.prose import Html

COLAB = "binder/colab.ipynb"
SCALES = {"ratio": " times", "points": " points"}
WORDS = ("yes", "mostly", "mixed", "no", "unclear")
CARDS = """<style>
.bd-article h1 { font-size: 2.1rem; margin-top: .5rem; }
.book-cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr));
  gap: .8rem; margin: 1rem 0; }
.book-cards > div { border: 1px solid var(--pst-color-border, #ccc); border-radius: 6px;
  padding: .6rem .8rem; font-size: .92rem; break-inside: avoid; }
.book-cards b { display: block; font-size: 1.05rem; } .book-cards p { margin: .3rem 0; }
.book-cards a { display: block; font-weight: 600; }
</style><div class="book-cards">{% for name, text, links in cards %}
<div><b>{{ name }}</b><p>{{ text }}</p>
{% for words, address in links.items() %}<a href="{{ address }}">{{ words }} →</a>{% endfor %}</div>
{% endfor %}</div>"""
DOORS = """<style>
.book-doors { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr));
  gap: .8rem; margin: 1rem 0; }
.book-doors a { border: 1px solid var(--pst-color-border, #ccc); border-radius: 6px;
  padding: .6rem .8rem; color: inherit;
  text-decoration: none; } .book-doors b, .book-doors span { display: block; }
.book-doors span { font-size: .85rem; }
</style><div class="book-doors">
{% for name, (address, words) in ways.items() %}
<a href="{{ address }}"><b>{{ name }}</b><span>{{ words }}</span></a>
{% endfor %}</div>"""
PAPERS = """<style>
.book-word { font-weight: 700; } .book-word.book-yes { color: var(--book-yes); }
.book-word:is(.book-mostly, .book-mixed) { color: var(--book-part); }
.book-word.book-no { color: var(--book-no); }
.book-by-paper td:nth-child(n + 2) { min-width: 7.2rem; }
@media (max-width: 576px) { .book-by-paper td::before { content: attr(data-head); } }
</style><table class="book-table book-by-paper"><thead><tr>
<th>The paper says</th><th>Here</th><th>Its networks</th><th>Ours</th></tr></thead><tbody>
{% for paper, claim, told in rows %}<tr>
<td>{% if paper %}<b>{{ paper }}</b> {% endif %}{{ claim.title }}</td>
<td><a class="book-word book-{{ told.word }}" href="chapters/claims.html#claim-{{ claim.key }}">
{{- told.word }}</a>{% if told.found %}: {{ told.found }}{% endif %}</td>
<td data-head="Its networks: ">{{ told.theirs }}</td><td data-head="Ours: ">{{ told.ours }}</td></tr>
{% endfor %}</tbody></table>"""


def cards(*told: tuple[str, str, dict[str, str]]) -> Html:
    """Questions side by side, with an answer each and links.

    Args:
        *told: question, answer, and address by the words of the link.
    """
    return boxes.html(CARDS, cards=told)


def papers(rows: Mapping[str, Iterable]) -> Html:
    """A row per claim: what the paper says, how it came out, on its own networks and on ours.

    Args:
        rows: the paper's name (HTML, such as a link) -> its judged claims.
    """
    listed = [
        ("" if n else Html(name), claim, answers(claim))
        for name, claims in rows.items()
        for n, claim in enumerate(claims)
    ]
    return boxes.html(PAPERS, rows=listed)


def answers(claim) -> dict[str, str]:
    """word: of WORDS, or "not tested"; found: the effects, over networks of several searches, "" of
    shares; theirs, ours: how many networks say what, of the paper's own and of others.
    """
    found = front.effects(claim)
    return {
        "word": claim.verdict,
        "found": found + SCALES[claim.scale] if claim.scale in SCALES and found != "—" else "",
        "theirs": claim.tally(own=True) or "not tested",
        "ours": claim.tally(own=False) or "not tested",
    }


def counted(judged: Mapping[str, object]) -> str:
    """How many claims came out in each way: "20 yes, 3 mostly"."""
    counts = Counter(answers(claim)["word"] for claim in judged.values())
    return ", ".join(
        f"{counts[word]} {word}" for word in (*WORDS, "not tested") if counts[word]
    )


def doors(ways: dict[str, tuple[str, str]]) -> Html:
    """Where to go from here.

    Args:
        ways: name -> (address, words).
    """
    return boxes.html(DOORS, ways=ways)


def colab() -> str | None:
    """Where Colab opens the notebook that clones the book and reruns a chapter; None while
    _config.yml names no repository on GitHub.
    """
    about = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    _, _, name = about["url"].rstrip("/").partition("github.com/")
    if not name:
        return None
    return f"https://colab.research.google.com/github/{name}/blob/{about['branch']}/{COLAB}"
