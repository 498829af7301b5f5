"""Turns a rerun chapter into a page that can be read on its own.

    jupyter nbconvert --config lib/page/alone.py _build/runs/out.ipynb

The page leaves out the code and the progress bars; of links to other chapters, which lie elsewhere,
the words stay.
"""

from __future__ import annotations

import re

from nbconvert.preprocessors import Preprocessor

CHAPTER = r"(?:chapters/)?\w+\.(?:ipynb|html)(?:#[^)\"]*)?"
SHOWN = {"text/markdown", "text/html"}
# In Markdown and in HTML
LINK = re.compile(
    rf"""\[([^\]]+)\]\({CHAPTER}\)|<a [^>]*href="{CHAPTER}"[^>]*>(.*?)</a>""", re.DOTALL
)


def unlinked(text: str) -> str:
    """Markdown or HTML without its links to chapters."""
    return LINK.sub(lambda link: link[1] or link[2], text)


class Alone(Preprocessor):
    """Drops what was written to the terminal, and links to chapters."""

    def preprocess_cell(self, cell, resources, index):
        if cell.cell_type == "markdown":
            cell.source = unlinked(cell.source)
        elif cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                told = output.get("data", {})
                told |= {kind: unlinked(told[kind]) for kind in SHOWN & told.keys()}
        return cell, resources


if "get_config" in globals():  # nbconvert runs this file as its configuration
    settings = get_config()  # noqa: F821
    settings.NbConvertApp.export_format = "html"
    settings.HTMLExporter.exclude_input = True
    settings.HTMLExporter.exclude_input_prompt = True
    settings.HTMLExporter.exclude_output_prompt = True
    settings.HTMLExporter.preprocessors = [Alone]
