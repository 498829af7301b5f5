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
ADDRESS = r"(?P<address>(?:chapters/)?(?P<chapter>\w+)\.(?:ipynb|html)(?P<place>#[^)\"]*)?)"
LINKS = (
    re.compile(rf"\[(?P<words>[^\]]+)\]\({ADDRESS}\)"),
    re.compile(rf'<a [^>]*href="{ADDRESS}"[^>]*>(?P<words>.*?)</a>', re.S),
)


def _mended(link: re.Match) -> str:
    """A link to a chapter, or to a place on it, in the built book; its words without one."""
    file = CHAPTERS / f"{link['chapter']}.html"
    if not file.exists():
        return link["words"]
    return link[0].replace(link["address"], file.as_uri() + (link["place"] or ""))


def linked(text: str) -> str:
    """Markdown or HTML whose links to chapters lead to the built book."""
    for form in LINKS:
        text = form.sub(_mended, text)
    return text


class Alone(Preprocessor):
    """Drops what was written to the terminal, and mends links."""

    def preprocess_cell(self, cell, resources, index):
        if cell.cell_type == "markdown":
            cell.source = linked(cell.source)
        elif cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for words in (output.get("data", {}) for output in cell.outputs):
                for kind in {"text/markdown", "text/html"} & words.keys():
                    words[kind] = linked(words[kind])
        return cell, resources


if "get_config" in globals():  # nbconvert runs this file as its configuration
    settings = get_config()  # noqa: F821
    settings.NbConvertApp.export_format = "html"
    settings.HTMLExporter.exclude_input = True
    settings.HTMLExporter.exclude_input_prompt = True
    settings.HTMLExporter.exclude_output_prompt = True
    settings.HTMLExporter.preprocessors = [Alone]
