"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, and legible on paper."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

# What docutils lacks
SPELT = {
    r"\dots": r"\ldots",
    r"\lVert": r"\|",
    r"\rVert": r"\|",
    r"\lvert": "|",
    r"\rvert": "|",
}


# As docutils does for brackets and |
def mathml(tex: str, block: bool = False) -> str:
    """A formula of LaTeX as MathML.  Raises ValueError naming the formula if it has what is not
    understood.
    """
    spelt = re.sub(r"\\[A-Za-z]+", lambda command: SPELT.get(command[0], command[0]), tex)
    spelt = re.sub(r"(\\[td]?frac) ?(\d)(\d)", r"\1{\2}{\3}", spelt)  # a half, as \frac12
    try:
        drawn = tex2mathml(spelt, as_block=block)
    except MathError as fault:
        raise ValueError(f"formula: {tex!r} is not understood: {fault}") from fault
    one_line = re.sub(r">\s+<", "><", drawn).strip()
    return one_line.replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>')


def setup(app) -> None:
    """Make Sphinx write formulas this way."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(translator, node: nodes.Element) -> None:
    translator.body.append(_drawn(node, block=False))
    raise nodes.SkipNode


def _block(translator, node: nodes.Element) -> None:
    anchor = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    translator.body.append(f'<div class="book-formula"{anchor}>{_drawn(node, block=True)}</div>\n')
    raise nodes.SkipNode


def _drawn(node: nodes.Element, block: bool) -> str:
    try:
        return mathml(node.astext(), block)
    except ValueError as fault:
        logging.getLogger(__name__).warning(str(fault), location=node)
        return f"<code>{nodes.Text(node.astext())}</code>"
