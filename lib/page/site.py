"""What surrounds the pages: a description and a citation of each, and pages that send old addresses
on.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

from docutils import nodes

REDIRECTS = {
    "chapters/momentum_and_sparsity": "chapters/sparsity",
    "chapters/noise_scale": "chapters/theory",
    "chapters/both_sparsities": "chapters/messages",
}
LENGTH = 200  # characters of a description, about as many as search engines show


def description(doctree: nodes.document) -> str:
    """What a page is about in at most LENGTH characters: its lead's answer, which is bold, or else
    its first paragraph.
    """
    paragraphs = [p for p in doctree.findall(nodes.paragraph) if not _aside(p)]
    answers = [
        p for p in paragraphs[:3] if [s.astext() for s in p.findall(nodes.strong)] == [p.astext()]
    ]
    text = " ".join((answers or paragraphs)[0].astext().split()) if paragraphs else ""
    return text if len(text) <= LENGTH else text[:LENGTH].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def _aside(paragraph: nodes.Element) -> bool:
    around, kinds = paragraph.parent, (nodes.figure, nodes.table, nodes.Admonition, nodes.footnote)
    while around is not None and not isinstance(around, kinds):
        around = around.parent
    return around is not None


def citation(title: str, book: str, author: str, year: str, static: str) -> str:
    """How to cite a page, folded; static: the address of the folder with CITATION.cff, seen from
    the page.
    """
    words = f"{author}: “{title}”. In: <cite>{html.escape(book)}</cite>, {html.escape(year)}."
    return (
        f'<details class="book-cite"><summary>Cite this page</summary><p>{words} '
        f'<a href="{static}/CITATION.cff" download>CITATION.cff</a></p></details>'
    )


def moved(old: str, new: str) -> str:
    """A page that sends a reader of an old address, with or without scripts, to the new one (both
    without .html).
    """
    target = "../" * old.count("/") + f"{new}.html"
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Moved</title>'
        f'<link rel="canonical" href="{target}"><meta http-equiv="refresh" content="0; url={target}">'
        f'</head><body><p>This page has moved: <a href="{target}">{re.sub(".*/", "", new)}</a>.</p></body></html>\n'
    )


def redirect(out: Path, built: set[str]) -> None:
    """Write the pages for old addresses into the folder of a book with these pages, where no page
    has an old one.
    """
    for old, new in REDIRECTS.items():
        if new in built and old not in built:
            (out / f"{old}.html").parent.mkdir(parents=True, exist_ok=True)
            (out / f"{old}.html").write_text(moved(old, new), encoding="utf-8")
