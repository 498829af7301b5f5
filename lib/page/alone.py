"""Turns a rerun chapter into a page that can be read on its own.

    jupyter nbconvert --config lib/page/alone.py _build/runs/out.ipynb

The page leaves out the code and the progress bars, and links to the chapters of the built book;
where there is no built book, the words of a link stand without it.
"""

from __future__ import annotations

import re
from pathlib import Path

from nbconvert.preprocessors import Preprocessor

CHAPTERS = Path("_build/html/chapters").resolve()
LINK = re.compile(r"\[([^\]]+)\]\((?:chapters/)?(\w+)\.ipynb(#[^)]*)?\)")
ANCHOR = re.compile(
    r'<a ([^>]*)href="(?:chapters/)?(\w+)\.(?:ipynb|html)(#[^"]*)?"([^>]*)>(.*?)</a>', re.S
)


def _page(chapter: str, place: str | None) -> str | None:
    """The address of a chapter, or of a place on it, in the built book; None without one."""
    file = CHAPTERS / f"{chapter}.html"
    return f"{file.as_uri()}{place or ''}" if file.exists() else None


def linked(text: str) -> str:
    """Markdown or HTML whose links to chapters lead to the built book."""

    def link(found: re.Match) -> str:
        words, chapter, place = found.groups()
        address = _page(chapter, place)
        return f"[{words}]({address})" if address else words

    def anchor(found: re.Match) -> str:
        before, chapter, place, after, words = found.groups()
        address = _page(chapter, place)
        return f'<a {before}href="{address}"{after}>{words}</a>' if address else words

    return ANCHOR.sub(anchor, LINK.sub(link, text))


class Alone(Preprocessor):
    """Drops what was written to the terminal, and mends links."""

    def preprocess_cell(self, cell, resources, index):
        if cell.cell_type == "markdown":
            cell.source = linked(cell.source)
        outputs = cell.get("outputs", [])
        for output in outputs:
            words = output.get("data", {})
            for kind in {"text/markdown", "text/html"} & words.keys():
                words[kind] = linked(words[kind])
        if outputs:
            cell.outputs = [output for output in outputs if output.get("name") != "stderr"]
        return cell, resources


if "get_config" in globals():  # nbconvert runs this file as its configuration
    settings = get_config()  # noqa: F821
    settings.NbConvertApp.export_format = "html"
    settings.HTMLExporter.exclude_input = True
    settings.HTMLExporter.exclude_input_prompt = True
    settings.HTMLExporter.exclude_output_prompt = True
    settings.HTMLExporter.preprocessors = [Alone]
