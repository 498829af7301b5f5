"""Turns a rerun chapter into a standalone page.

    jupyter nbconvert --config lib/page/alone.py _build/runs/out.ipynb

The page leaves out the code and the progress bars, and keeps only the words of links to other
chapters, which lie elsewhere.  Formulas are MathML, which browsers show without a network.
"""

from __future__ import annotations

import re

from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from nbconvert.preprocessors import Preprocessor

CHAPTER = r"(?:chapters/)?\w+\.(?:ipynb|html|md)(?:#[^)\"]*)?"
SHOWN = {"text/markdown", "text/html"}
# In Markdown and in HTML
LINK = re.compile(
    rf"""\[([^\]]+)\]\({CHAPTER}\)|<a [^>]*href="{CHAPTER}"[^>]*>(.*?)</a>""", re.DOTALL
)
# First what is not a formula: code, scripts, pictures, tags
FORMULA = re.compile(
    r"```.*?```|`[^`]*`|<(script|style|svg|pre|code)\b.*?</\1>|<[^>]*>"
    r"|\\\$|\$\$(?P<block>.+?)\$\$|\$(?P<inline>(?:[^$<]|<(?![/a-zA-Z]))+?)\$",
    re.DOTALL,
)


def page(text: str) -> str:
    """Markdown or HTML without its links to chapters, its formulas as MathML."""
    return FORMULA.sub(_mathml, LINK.sub(lambda link: link[1] or link[2], text))


def _mathml(match: re.Match) -> str:
    formula = match["block"] or match["inline"]
    if not formula:
        return match[0]
    try:
        return " ".join(tex2mathml(formula, as_block=bool(match["block"])).split())
    except MathError:
        return match[0]


class Alone(Preprocessor):
    """Drops terminal output and links to chapters; converts formulas."""

    def preprocess_cell(self, cell, resources, index):
        if cell.cell_type == "markdown":
            cell.source = page(cell.source)
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            data |= {kind: page(data[kind]) for kind in SHOWN & data.keys()}
        return cell, resources


if "get_config" in globals():  # nbconvert runs this file as its configuration
    settings = get_config()  # noqa: F821
    settings.NbConvertApp.export_format = "html"
    settings.HTMLExporter.exclude_input = True
    settings.HTMLExporter.exclude_input_prompt = True
    settings.HTMLExporter.exclude_output_prompt = True
    settings.HTMLExporter.mathjax_url = "data:,"  # none
    settings.HTMLExporter.preprocessors = [Alone]
