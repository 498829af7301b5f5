"""What a page says: computed sentences and figures that a book and a rerun notebook show alike.

Text is Markdown that both read: links such as [title](sparsity.ipynb#anchor), $formulas$, no roles
and no directives.
"""

from __future__ import annotations

import html
import re

import altair as alt
import numpy as np

from lib import require
from lib.page import vega
from lib.wording import brief, number

PLACE = re.compile(r"\{(\w+)\}")
WORDS = {
    "reproduced": "yes",
    "in part": "part",
    "contradicted": "no",
    "open": "open",
    "holds": "yes",
    "does not hold": "no",
}


class Html(str):
    """Text that notebooks display as HTML."""

    def _repr_html_(self) -> str:
        return str(self)


class Markdown(str):
    """Text that notebooks, and the book, display as Markdown."""

    def _repr_markdown_(self) -> str:
        return str(self)


def say(text: str, **values: object) -> Markdown:
    """Sentences with every {name} replaced by its value: numbers to two digits, counts and texts as
    they are.

    Raises ValueError for a name without a value, and for a value that the text does not use.
    """
    return Markdown(_filled(text, values))


def lead(question: str, answer: str, *judged, **values: object) -> Markdown:
    """How a page begins: its question, its answer, and the verdicts on its claims
    (`lib.claims.Claim`), linked to the ledger.
    """
    # Apart in a notebook, too, which has no style of ours
    pills = "&ensp;".join(pill(claim) for claim in judged)
    return Markdown(
        f"*{_filled(question, values, spare=True)}*\n\n**{_filled(answer, values, spare=True)}**\n\n{pills}"
    )


def kind(verdict: str) -> str:
    """The class of a verdict's colour: of a word that sums up a claim, or of a page's own test."""
    stand_in = verdict.startswith("on small stand-ins only")
    require(
        stand_in or verdict in WORDS,
        "verdict",
        verdict,
        f"one of {', '.join(WORDS)}, or on small stand-ins only",
    )
    return "part" if stand_in else WORDS[verdict]


def pill(claim, folder: str = "", words: bool = True) -> str:
    """A claim's verdict for the middle of a text, linked to the ledger; folder: where the chapters
    lie, "chapters/".

    words: say the verdict, or the claim's key alone.
    """
    # The ledger has it in full
    word = claim.verdict.replace("on small stand-ins only", "stand-ins")
    shown = f"{claim.key} {word}" if words else claim.key
    return (
        f'<a class="book-pill book-{kind(claim.verdict)}" href="{folder}claims.html#claim-{claim.key}" '
        f'title="{html.escape(claim.paper)}">'
        f"{html.escape(shown)}</a>"
    )


def figure(
    chart: alt.TopLevelMixin,
    title: str,
    caption: str,
    name: str,
    description: str,
    **values: object,
) -> Html:
    """A chart under the title that says its finding, over its caption; name: the anchor.

    description: what is drawn, for those who do not see it.  Raises ValueError as `say`, for an
    empty description, and what is wrong with the chart, if anything is: Altair itself only shows
    that as an output, and the page would be built with it.
    """
    require(
        bool(description.strip()),
        "description",
        description,
        "a sentence that says what the chart shows",
    )
    spec = chart.properties(description=" ".join(description.split())).to_dict()
    told, below = (_inline(_filled(text, values, spare=True)) for text in (title, caption))
    drawn = vega.renderer(spec)["text/html"]
    # Inline styles are for rerun notebooks, which have no style sheet of ours.
    return Html(
        f'<figure class="book-figure" id="{name}" style="margin:1.5em 0">'
        f'<p class="book-title" style="font-weight:600;margin:0 0 .5em">{told}</p>{drawn}'
        f'<figcaption style="font-size:.9em;margin-top:.3em;text-align:left">{below}</figcaption></figure>'
    )


def _filled(text: str, values: dict[str, object], spare: bool = False) -> str:
    """spare: allow values that this text does not use."""
    wanted = {name for name in PLACE.findall(re.sub(r"\$[^$]*\$", "", text))}
    lacking, left = sorted(wanted - set(values)), sorted(set(values) - wanted)
    require(not lacking, "text", lacking, "given a value each")
    require(spare or not left, "values", left, "used in the text")
    return PLACE.sub(
        lambda place: _word(values[place[1]]) if place[1] in wanted else place[0], text
    )


def _word(value: object) -> str:
    """A value of a sentence: counts as they are, other numbers to two digits."""
    return number(value) if isinstance(value, str | int | np.integer) else brief(value)


def _inline(text: str) -> str:
    """One paragraph of Markdown as HTML."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").renderInline(text)
