"""Turns a rerun chapter into a page that can be read on its own.

    jupyter nbconvert --config lib/page/alone.py _build/runs/out.ipynb

The page leaves out the code and the progress bars; of links to other chapters, which lie elsewhere,
the words stay.
"""

from __future__ import annotations

import re

from nbconvert.preprocessors import Preprocessor

CHAPTER = r"(?:chapters/)?\w+\.(?:ipynb|html)(?:#[^)\"]*)?"
LINKS = (
    re.compile(rf"\[(?P<words>[^\]]+)\]\({CHAPTER}\)"),
    re.compile(rf'<a [^>]*href="{CHAPTER}"[^>]*>(?P<words>.*?)</a>', re.S),
)


def unlinked(text: str) -> str:
    """Markdown or HTML without its links to chapters."""
    for form in LINKS:
        text = form.sub(r"\g<words>", text)
    return text


class Alone(Preprocessor):
    """Drops what was written to the terminal, and links to chapters."""

    def preprocess_cell(self, cell, resources, index):
        if cell.cell_type == "markdown":
            cell.source = unlinked(cell.source)
        elif cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for words in (output.get("data", {}) for output in cell.outputs):
                for kind in {"text/markdown", "text/html"} & words.keys():
                    words[kind] = unlinked(words[kind])
        return cell, resources


if "get_config" in globals():  # nbconvert runs this file as its configuration
    settings = get_config()  # noqa: F821
    settings.NbConvertApp.export_format = "html"
    settings.HTMLExporter.exclude_input = True
    settings.HTMLExporter.exclude_input_prompt = True
    settings.HTMLExporter.exclude_output_prompt = True
    settings.HTMLExporter.preprocessors = [Alone]
