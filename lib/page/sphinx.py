"""A local Sphinx extension for the book: runs chapters in parallel, moves code to the end of pages,
and shows formulas and charts without a network.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import os
import re
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import vl_convert as vlc
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.transforms.post_transforms import SphinxPostTransform

from lib import ROOT
from lib.page import execution
from lib.page.vega import VEGALITE

# Jupyter-book always loads these, but no page uses them
UNUSED = re.compile("thebe|design-tabs|sphinx-design|togglebutton", re.IGNORECASE)
SHOWN = {".py", ".csv", ".xz", ".js", ".css", ".html", ".svg", ".json", ".yaml"}


# --- in the build ---------------------------------------------------------------------------------


def setup(app) -> dict:
    """Register with Sphinx: charts and formulas without a network, `lib` for the kernels, and no
    stale pages.
    """
    paths = [str(ROOT), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("config-inited", _look)
    # Before myst-nb opens its cache
    app.connect("config-inited", _forget_stale_outputs, priority=100)
    # After the kernels' settings are known
    app.connect("config-inited", _execute_side_by_side, priority=900)
    # Starts threads, which would be missing in a fork
    app.connect("config-inited", _assets, priority=950)
    app.connect("env-get-outdated", lambda app, env, *_: env.found_docs if app.stale else ())
    app.connect("doctree-read", _citations_as_anchors)
    app.add_post_transform(CodeAtTheEnd)
    # After the extensions whose scripts it removes
    app.connect("html-page-context", _page, priority=900)
    app.connect("html-page-context", _described)
    # Jupyter-book has no option for this; one extension does not declare parallel reading safe
    app.connect("env-check-consistency", _write_in_parallel)
    app.connect("build-finished", _remember_inputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class CodeAtTheEnd(SphinxPostTransform):
    """Shows outputs of notebooks as if they were part of the text, and folds their code at the end
    of the page.
    """

    default_priority = 5  # after myst-nb has chosen among the formats of an output
    builders = ("html",)

    def run(self, **kwargs) -> None:
        code = []
        for cell in list(self.document.findall(nodes.container)):
            if cell.get("nb_element") == "cell_code":
                parts = {part.get("nb_element"): part for part in cell.children}
                code += filter(None, [parts.get("cell_code_source")])
                shown = parts.get("cell_code_output", nodes.container())
                cell["classes"] = []  # else docutils would refuse to drop them
                cell.replace_self(list(shown.children))
        if code:
            opened = '<details class="book-code"><summary>The code of this page</summary>'
            before, after = (
                nodes.raw("", text, format="html") for text in (opened, "</details>")
            )
            page = next(iter(self.document.findall(nodes.section)))
            page += [before, *code, after]


def _citations_as_anchors(app, doctree) -> None:
    """Make [Author (year)](glossary.md#key) a checked link, like those to headings."""
    if app.env.docname == "chapters/glossary":
        domain = app.env.get_domain("cite")
        keys = [entry.key for entry in domain.get_entries(list(domain.bibdata.bibfiles))]
        slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
        slugs |= {key: (None, key, key) for key in keys}


def _build(app) -> Path:
    return Path(app.doctreedir).parent


def _assets(app, config) -> None:
    out = _build(app) / "_assets"
    out.mkdir(parents=True, exist_ok=True)
    # In a function, since it declares a top-level `_`, and so does Sphinx's script
    bundle = vlc.javascript_bundle(vl_version=VEGALITE)
    (out / "vega.js").write_text("(() => {" + bundle + "})();", encoding="utf-8")
    config.html_static_path.append(str(out))


def _look(app, config) -> None:
    """The book's name and, if _config.yml names the repository, links to it, to its issues and to
    Binder.
    """
    options = config.html_theme_options
    options["logo"] = {"text": config.html_title}
    public = bool(options.get("repository_url"))
    options["use_repository_button"] = options["use_issues_button"] = public
    if not public:
        options["launch_buttons"] = {}


def digest() -> str:
    """Digest of what pages depend on besides their source: lib/, data/, code beside chapters, and
    the book's settings.
    """
    text = hashlib.sha256((ROOT / "_config.yml").read_bytes())
    for top in ("lib", "data", "chapters"):
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix in SHOWN:
                text.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return text.hexdigest()


def _forget_stale_outputs(app, config) -> None:
    app.inputs, app.stamp = digest(), _build(app) / ".inputs"
    app.stale = not app.stamp.exists() or app.stamp.read_text(encoding="utf-8") != app.inputs
    # Removed until the build succeeds, so that a failed build is repeated in full.
    app.stamp.unlink(missing_ok=True)
    if app.stale:
        shutil.rmtree(_build(app) / ".jupyter_cache", ignore_errors=True)


def _execute_side_by_side(app, config) -> None:
    """Run the chapters, one per core, whereas myst-nb runs one after another.

    Whatever fails here is left to myst-nb, which runs it again and reports it.
    """
    if config.nb_execution_mode == "cache":
        folder = config.nb_execution_cache_path or _build(app) / ".jupyter_cache"
        with contextlib.suppress(Exception):
            # `lib.claims.front` defines what to read and compute while the first chapters run
            execution.side_by_side(
                Path(folder), config.nb_execution_timeout, *app.before_chapters
            )


def _write_in_parallel(app, env) -> None:
    app.parallel = os.cpu_count() or 1


def _remember_inputs(app, exception) -> None:
    # With -W, a warning makes the build fail with status 1, but without an exception.
    if exception is None and app.statuscode == 0 and not app._warncount:
        app.stamp.write_text(app.inputs, encoding="utf-8")


def _page(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Leave out unused scripts and styles; templates/ adds the book's own."""
    for kind in ("script_files", "css_files"):
        context[kind][:] = [
            asset
            for asset in context[kind]
            if not UNUSED.search(f"{asset.filename or ''} {asset.attributes.get('body', '')}")
        ]


# --- what other sites show of a page --------------------------------------------------------------

LETTER = 640  # letters in a line of the preview's words, times their size
STYLES = (34, 700), (24, 400), (19, 400), (17, 700), (17, 400)  # size and weight of its words
CHARTED = re.compile(
    r'<p class="book-title"[^>]*>(.*?)</p>.*?src="data:image/svg\+xml,([^"]*)"', re.S
)
SHEET = """\
<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="630" \
font-family="DejaVu Sans, sans-serif">\
<rect width="1200" height="630" fill="#fff"/>{words}{chart}</svg>"""


def _described(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Describe the page by its lead; draw the preview image with the front page."""
    if doctree is None:
        return
    context["lead"] = lead_of(doctree)
    options = app.config.html_theme_options
    context["site"] = address = (app.config.html_baseurl or "").rstrip("/")
    if pagename == app.config.root_doc and (figure := CHARTED.search(context["body"])):
        home = address or options.get("repository_url") or ""
        words = context["title"], figure[1], context["lead"], app.config.html_title, home
        file = Path(app.outdir, "_static", "preview.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(vlc.svg_to_png(preview(unquote(figure[2]), words)))


def lead_of(doctree: nodes.Node) -> str:
    """The answer with which a page begins, its first paragraph in bold; "" if it has none."""
    for paragraph in doctree.findall(nodes.paragraph):
        first, *others = [part for part in paragraph.children if part.astext()] or [None]
        if isinstance(first, nodes.strong) and not others:
            return " ".join(paragraph.astext().split())
    return ""


def preview(chart: str, words: Sequence[str]) -> str:
    """SVG of 1200 × 630 pixels: words on the left, the chart on the right.

    Args:
        chart: SVG.
        words: title, finding, answer, book and address, as HTML; some may be "".
    """
    lines, y = [], 60
    for text, (size, weight) in zip(words, STYLES):
        style = f'x="36" font-size="{size}" font-weight="{weight}"'
        for line in textwrap.wrap(html.unescape(text), LETTER // size):
            lines.append(f'<text {style} y="{y}">{html.escape(line)}</text>')
            y += round(1.35 * size)
        y += 26
    width = float(re.search(r'width="([\d.]+)"', chart)[1])
    height = float(re.search(r'height="([\d.]+)"', chart)[1])
    scale = min(760 / width, 600 / height)
    left = 1180 - scale * width
    top = (630 - scale * height) / 2
    place = f"translate({left:.1f} {top:.1f}) scale({scale:.3f})"
    return SHEET.format(words="".join(lines), chart=f'<g transform="{place}">{chart}</g>')


# --- formulas -------------------------------------------------------------------------------------


def mathml(tex: str, block: bool = False) -> str:
    """A LaTeX formula as MathML, which browsers render themselves: no script, no fonts, and legible
    on paper.
    """
    one_line = re.sub(r">\s+<", "><", tex2mathml(tex, as_block=block)).strip()
    return one_line.replace("<mo>‖</mo>", '<mo stretchy="false">‖</mo>')


def _inline(translator, node: nodes.Element) -> None:
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(translator, node: nodes.Element) -> None:
    drawn = mathml(node.astext(), block=True)
    translator.body.append(f'<div class="book-formula">{drawn}</div>\n')
    raise nodes.SkipNode
