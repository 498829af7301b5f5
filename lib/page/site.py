"""What surrounds and fills the pages without a network: descriptions and citations, old addresses,
formulas as MathML, and the few icons that are used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from jinja2 import Environment
from sphinx.util import logging

from lib import ROOT

PAGES = Environment(autoescape=True, keep_trailing_newline=True)

# --- descriptions, citations, old addresses -------------------------------------------------------

REDIRECTS = {
    "chapters/momentum_and_sparsity": "chapters/sparsity",
    "chapters/noise_scale": "chapters/theory",
    "chapters/both_sparsities": "chapters/messages",
}
LENGTH = 200  # characters of a description, about as many as search engines show
ASIDES = (nodes.figure, nodes.table, nodes.Admonition, nodes.footnote)
# Of a page: what is no text of its own
NO_TEXT = re.compile(r"(<(?:script|pre|code)\b.*?</(?:script|pre|code)>|<[^>]*>)", re.DOTALL)
CITATION = PAGES.from_string(
    '<details class="book-cite"><summary>Cite this page</summary><p>{{ author|safe }}: '
    "“{{ title|safe }}”. In: <cite>{{ book }}</cite>, {{ year }}. "
    '<a href="{{ static }}/CITATION.cff" download>CITATION.cff</a></p></details>'
)
MOVED = PAGES.from_string(
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Moved</title>'
    '<link rel="canonical" href="{{ target }}">'
    '<meta http-equiv="refresh" content="0; url={{ target }}"></head>'
    '<body><p>This page has moved: <a href="{{ target }}">{{ name }}</a>.</p></body></html>\n'
)


def description(doctree: nodes.document) -> str:
    """What a page is about in at most LENGTH characters: its lead's answer, which is bold, or else
    its first paragraph.
    """
    around = [aside for kind in ASIDES for aside in doctree.findall(kind)]
    asides = {p for aside in around for p in aside.findall(nodes.paragraph)}
    paragraphs = [p for p in doctree.findall(nodes.paragraph) if p not in asides]
    bold = [p for p in paragraphs[:3] if _is_bold(p)]
    first = (bold or paragraphs)[:1]
    text = " ".join(word for p in first for word in p.astext().split())
    if len(text) <= LENGTH:
        return text
    return text[:LENGTH].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def _is_bold(paragraph: nodes.paragraph) -> bool:
    """Whether all of it is."""
    bold = [part.astext() for part in paragraph.findall(nodes.strong)]
    return bold == [paragraph.astext()]


def citation(title: str, book: str, author: str, year: str, static: str) -> str:
    """How to cite a page, folded.

    Args:
        title, author: HTML, as Sphinx has them.
        static: the address of the folder with CITATION.cff, seen from the page.
    """
    told = {"title": title, "book": book, "author": author, "year": year, "static": static}
    return CITATION.render(told)


def unbroken(body: str) -> str:
    """A page whose numbers stay on a line with their per cent sign; scripts and code stay as they
    are.
    """
    parts = NO_TEXT.split(body)
    parts[::2] = (re.sub(r"(?<=\d) (?=%)", "\u00a0", text) for text in parts[::2])
    return "".join(parts)


def redirect(out: Path, built: set[str]) -> None:
    """Write pages that send readers of old addresses, with or without scripts, to new ones, into
    the folder of a book with these pages; none where a page has an old address.
    """
    for old, new in REDIRECTS.items():
        if new in built and old not in built:
            page = out / f"{old}.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            target = "../" * old.count("/") + f"{new}.html"
            text = MOVED.render(target=target, name=new.rpartition("/")[2])
            page.write_text(text, encoding="utf-8")


# --- what drew a figure ---------------------------------------------------------------------------

TOOLS = PAGES.from_string(
    '<p class="book-tools"><a href="#{{ name }}">Link to this figure</a>'
    "{% if function %} · drawn by <code>{{ function }}</code>, "
    "{% if address %}"
    '<a href="{{ address }}/{{ file }}#L{{ line }}">{{ file }}, line {{ line }}</a>'
    "{% else %}{{ file }}, line {{ line }}{% endif %}{% endif %}</p>"
)
FIGURE = re.compile(r'(<figure class="book-figure" id="([^"]+)".*?)(</figure>)', re.DOTALL)
OURS = ("lib.", "chapters.")
# What they get draws, they only arrange
WRAPPERS = ("lib.page.charts.", "lib.page.tips.", "altair.")


def with_tools(text: str, drawn: dict[str, str], repository: str = "") -> str:
    """HTML with a line below every figure: its address, and the function that drew it.

    Args:
        drawn: of `drawn_by`.
        repository: the address of its files, up to their paths; "" where it is not known: then the
            file is named and not linked.
    """

    def line(found: re.Match) -> str:
        module, _, function = drawn.get(found[2], "").rpartition(".")
        told = {"name": found[2], "function": function, "address": repository}
        if function:
            file = module.replace(".", "/") + ".py"
            source = (ROOT / file).read_text(encoding="utf-8")
            before = source.partition(f"def {function}(")[0]
            told |= {"file": file, "line": before.count("\n") + 1}
        return found[1] + TOOLS.render(told) + found[3]

    return FIGURE.sub(line, text)


def drawn_by(cells: Iterable[str]) -> dict[str, str]:
    """The functions whose charts a page's cells hand to `prose.figure`, by the figure's name:
    {"fig-x": "chapters.x.x_figures.chart"}; without figures that a cell draws by itself.

    Args:
        cells: Python, in the order of the page.
    """
    known, values, found = {}, {}, {}
    for node in ast.parse("\n".join(cells)).body:
        if isinstance(node, ast.ImportFrom):
            for one in node.names:
                known[one.asname or one.name] = f"{node.module}.{one.name}"
        elif isinstance(node, ast.Assign):
            values[ast.unparse(node.targets[0])] = node.value
        for call in ast.walk(node):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != "prose.figure":
                continue
            name = re.search(r"'(fig-[^']+)'", ast.unparse(call))
            function = _function(call.args[0], known, values)
            if name and function:
                found[name[1]] = function
    return found


def _function(node: ast.AST, known: dict, values: dict) -> str | None:
    """The dotted name of the function of ours that makes an expression's value."""
    if isinstance(node, ast.Name) and node.id in values:
        left = {name: value for name, value in values.items() if name != node.id}
        return _function(values[node.id], known, left)
    if isinstance(node, ast.Call):
        root, dot, rest = ast.unparse(node.func).partition(".")
        dotted = known.get(root, "") + dot + rest
        if dotted.startswith(OURS) and not dotted.startswith(WRAPPERS):
            return dotted
    parts = (_function(part, known, values) for part in ast.iter_child_nodes(node))
    return next(filter(None, parts), None)


# --- formulas -------------------------------------------------------------------------------------

# What docutils lacks, as it spells it for brackets and |
SPELT = {
    r"\dots": r"\ldots",
    r"\lVert": r"\|",
    r"\rVert": r"\|",
    r"\lvert": "|",
    r"\rvert": "|",
}


def mathml(tex: str, block: bool = False) -> str:
    """A formula of LaTeX as MathML, which browsers draw by themselves: no script, no fonts, and
    legible on paper.

    Raises:
        ValueError: naming the formula, if it has what is not understood.
    """
    spelt = re.sub(r"\\[A-Za-z]+", lambda command: SPELT.get(command[0], command[0]), tex)
    spelt = re.sub(r"(\\[td]?frac) ?(\d)(\d)", r"\1{\2}{\3}", spelt)  # a half, as \frac12
    try:
        drawn = tex2mathml(spelt, as_block=block)
    except MathError as fault:
        raise ValueError(f"formula: {tex!r} is not understood: {fault}") from fault
    one_line = re.sub(r">\s+<", "><", drawn).strip()
    return one_line.replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>')


def inline_formula(translator, node: nodes.Element) -> None:
    """Write a formula within a line, for Sphinx."""
    translator.body.append(_formula(node, block=False))
    raise nodes.SkipNode


def block_formula(translator, node: nodes.Element) -> None:
    """Write a formula that stands by itself, for Sphinx."""
    anchor = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    drawn = _formula(node, block=True)
    translator.body.append(f'<div class="book-formula"{anchor}>{drawn}</div>\n')
    raise nodes.SkipNode


def _formula(node: nodes.Element, block: bool) -> str:
    try:
        return mathml(node.astext(), block)
    except ValueError as fault:
        logging.getLogger(__name__).warning(str(fault), location=node)
        return f"<code>{nodes.Text(node.astext())}</code>"


# --- icons ----------------------------------------------------------------------------------------

# Those of the theme's templates and script, of two thousand that it has.
ICONS = (
    "angle-left angle-right arrow-up bars chevron-down circle-half-stroke code download ellipsis "
    "expand file file-lines file-pdf github house lightbulb list magnifying-glass moon outdent "
    "pencil play rocket square-github sun xmark"
).split()
ICON_STYLE = """:is(.fa-solid, .fas, .fa-regular, .far, .fa-brands, .fab) {
  display: inline-block; width: 1em; height: 1em; vertical-align: -0.125em;
  background: currentColor;
  -webkit-mask: var(--icon) center / contain no-repeat;
  mask: var(--icon) center / contain no-repeat;
}
.fa-lg { font-size: 1.25em; }
a.github:before, a.gitlab:before, a.reference.download:before, .nav-external:after,
li > a.reference.external:after,
.admonition > .admonition-title:after, span.versionmodified:before, p.highlight-link a:before {
  content: none !important; }
.bd-sidebar-secondary.hide:not(:hover) .onthispage:after { content: "▾" !important;
  font-family: inherit !important; }
ul.bd-breadcrumbs li.breadcrumb-item:not(.breadcrumb-home):before { content: "›" !important;
  font-family: inherit !important; }
"""


def icons_css(collection: str) -> str:
    """A style sheet of ICONS.

    Args:
        collection: Font Awesome's script, which has for each icon
            name:[width,height,[aliases],"code point","path"].

    Raises:
        ValueError: for an icon that it lacks.
    """
    return ICON_STYLE + "".join(_icon_rule(name, collection) for name in ICONS)


def _icon_rule(name: str, collection: str) -> str:
    form = rf'[{{,]"?{name}"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]+)"\]'
    entries = re.findall(form, collection)
    if not entries:
        raise ValueError(
            f"icon: {name!r} is not in the theme's collection; name one that is, in {__file__}"
        )
    width, height, path = entries[-1]  # the solid ones come last
    box = f"xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}'"
    svg = f"<svg {box}><path d='{path}'/></svg>".replace("#", "%23")
    return f'.fa-{name} {{ --icon: url("data:image/svg+xml,{svg}"); }}\n'
