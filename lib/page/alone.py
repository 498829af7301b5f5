"""Turns a rerun chapter into a page that can be read on its own.

    jupyter nbconvert --config lib/page/alone.py _build/runs/out.ipynb

The page leaves out the code and the progress bars; of links to other chapters, which lie elsewhere,
the words stay.  Formulas are MathML, which browsers show without a network.
"""

from __future__ import annotations

import re

from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
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


# What is no formula comes first: code, scripts, pictures, tags
FORMULA = re.compile(
    r"```.*?```|`[^`]*`|<(script|style|svg|pre|code)\b.*?</\1>|<[^>]*>"
    r"|\\\$|\$\$(?P<block>.+?)\$\$|\$(?P<inline>(?:[^$<]|<(?![/a-zA-Z]))+?)\$",
    re.DOTALL,
)


def typeset(text: str) -> str:
    """Markdown or HTML with its formulas as MathML."""

    def written(found: re.Match) -> str:
        formula = found["block"] or found["inline"]
        try:
            drawn = tex2mathml(formula, as_block=bool(found["block"])) if formula else found[0]
        except MathError:
            return found[0]
        return " ".join(drawn.split()) if formula else drawn

    return FORMULA.sub(written, text)


class Alone(Preprocessor):
    """Drops what was written to the terminal, and links to chapters; draws formulas."""

    def preprocess_cell(self, cell, resources, index):
        if cell.cell_type == "markdown":
            cell.source = typeset(unlinked(cell.source))
        elif cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                told = output.get("data", {})
                told |= {kind: typeset(unlinked(told[kind])) for kind in SHOWN & told.keys()}
        return cell, resources


if "get_config" in globals():  # nbconvert runs this file as its configuration
    settings = get_config()  # noqa: F821
    settings.NbConvertApp.export_format = "html"
    settings.HTMLExporter.exclude_input = True
    settings.HTMLExporter.exclude_input_prompt = True
    settings.HTMLExporter.exclude_output_prompt = True
    settings.HTMLExporter.mathjax_url = "data:,"  # none
    settings.HTMLExporter.preprocessors = [Alone]
