"""The Sphinx side of the book, a local extension."""

from __future__ import annotations

import contextlib
import hashlib
import html
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from lib import ROOT
from lib.page import execution, site

PAGE = Path(__file__).parent
ICONS = (
    "pydata_sphinx_theme",
    "theme/pydata_sphinx_theme/static/vendor/fontawesome/6.5.2/js/all.min.js",
)
# What a page loads if its text holds a mark
LOADED = {
    "": ("icons.css", "book.css", "page.js"),
    "vl-chart": ("vega.js", "charts.js", "charts.css"),
    "book-explore": ("explore.js", "explore.css"),
}
# Jupyter-book always loads these, which no page uses
UNUSED = (
    "thebe",
    "design-tabs",
    "sphinx-design",
    "togglebutton",
)


# --- in the build ---------------------------------------------------------------------------------


def setup(app) -> dict:
    """Register with Sphinx: charts and formulas without a network, `lib` for the kernels, and no
    stale pages.
    """
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    )
    inline, block = (site.inline_formula, None), (site.block_formula, None)
    app.add_html_math_renderer("mathml", inline, block)
    app.connect("config-inited", _look)
    # Before myst-nb opens its cache
    app.connect("config-inited", _forget_stale_outputs, priority=100)
    app.meanwhile = lambda: None  # what other extensions compute while the first chapters run
    # After the kernels' settings are known
    app.connect("config-inited", _execute_side_by_side, priority=900)
    # Starts threads, of which a fork would lack those that answer
    app.connect("config-inited", _assets, priority=950)
    app.connect("env-get-outdated", lambda app, env, *_: env.found_docs if app.stale else ())
    app.connect("doctree-read", _citations_as_anchors)
    app.add_post_transform(CodeAtTheEnd)
    # After the extensions whose scripts it takes off
    app.connect("html-page-context", _page, priority=900)
    app.connect("build-finished", _remember_inputs)
    app.connect("build-finished", _redirect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class CodeAtTheEnd(SphinxPostTransform):
    """What notebooks compute stands in the page as if it were written there; their code is folded
    at the page's end.
    """

    default_priority = 5  # after myst-nb has chosen among the kinds of an output
    builders = ("html",)

    def run(self, **kwargs) -> None:
        cells = [
            c for c in self.document.findall(nodes.container) if c.get("nb_element") == "cell_code"
        ]
        inputs = []
        for cell in cells:
            parts = {part.get("nb_element"): part for part in cell.children}
            inputs += [code for code in [parts.get("cell_code_source")] if code]
            shown = parts.get("cell_code_output")
            cell["classes"] = []  # else docutils would not let go of them
            cell.replace_self(list(shown.children) if shown else [])
        drawn = site.drawn_by(code.astext() for code in inputs)
        for output in self.document.findall(nodes.raw):
            text = site.with_tools(output.astext(), drawn, self._repository())
            if text != output.astext():
                output.children = [nodes.Text(text)]
        page = next(iter(self.document.findall(nodes.section)), None)
        if page is not None and inputs:
            opened = '<details class="book-code"><summary>The code of this page</summary>'
            page += [
                nodes.raw("", opened, format="html"),
                *inputs,
                nodes.raw("", "</details>", format="html"),
            ]

    def _repository(self) -> str:
        """The address of the repository's files; "" where _config.yml does not have it."""
        options = self.config.html_theme_options
        address = options.get("repository_url") or ""
        return address and f"{address}/blob/{options.get('repository_branch') or 'main'}"


def _citations_as_anchors(app, doctree) -> None:
    """Let [Author (year)](../bibliography.md#key) be a link that is checked, as those to headings
    are.
    """
    if app.env.docname == "bibliography":
        domain = app.env.get_domain("cite")
        keys = [entry.key for entry in domain.get_entries(list(domain.bibdata.bibfiles))]
        app.env.metadata["bibliography"].setdefault("myst_slugs", {}).update(
            {key: (None, key, key) for key in keys}
        )


def _build(app) -> Path:
    return Path(app.doctreedir).parent


def _assets(app, config) -> None:
    import vl_convert as vlc

    from lib.page.vega import VEGALITE

    out = _build(app) / "_assets"
    out.mkdir(parents=True, exist_ok=True)
    # The bundle declares a top-level `_`, and so does Sphinx's own script: hence a function around
    # it.
    bundle = vlc.javascript_bundle(vl_version=VEGALITE)
    (out / "vega.js").write_text("(() => {" + bundle + "})();", encoding="utf-8")
    package, script = ICONS
    drawn = (Path(find_spec(package).origin).parent / script).read_text(encoding="utf-8")
    (out / "icons.css").write_text(site.icons_css(drawn), encoding="utf-8")
    shutil.copy(ROOT / "CITATION.cff", out)
    shutil.copytree(PAGE / "static", out, dirs_exist_ok=True)
    config.html_static_path.append(str(out))


def _look(app, config) -> None:
    """The book's logo and templates, formulas without a script, and links to the repository, to its
    issues and to Binder, which reads it, where _config.yml says what it is: else none.
    """
    config.html_math_renderer = "mathml"
    config.html_logo = str(PAGE / "static" / "logo.svg")
    config.templates_path.append(str(PAGE / "templates"))
    options = config.html_theme_options
    options["logo"] = {"text": config.html_title or config.project}
    known = bool(options.get("repository_url"))
    options["use_repository_button"] = options["use_issues_button"] = known
    if not known:
        options["launch_buttons"] = {}


def digest() -> str:
    """What a page shows besides its own source: lib/, data/ and all code beside chapters."""
    text = hashlib.sha256()
    folders = ((ROOT / "lib", "*"), (ROOT / "data", "*"), (ROOT / "chapters", "*.py"))
    for file in sorted(file for folder, names in folders for file in folder.rglob(names)):
        if file.suffix in {".py", ".csv", ".xz", ".js", ".css", ".html", ".svg"}:
            text.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return text.hexdigest()


def _stamp(app) -> Path:
    return _build(app) / ".inputs"


def _forget_stale_outputs(app, config) -> None:
    app.inputs = digest()
    app.stale = not _stamp(app).exists() or _stamp(app).read_text(encoding="utf-8") != app.inputs
    # Gone until the build ends well, so that a failed build is tried again in full.
    _stamp(app).unlink(missing_ok=True)
    if app.stale:
        shutil.rmtree(_build(app) / ".jupyter_cache", ignore_errors=True)


def _execute_side_by_side(app, config) -> None:
    """Run the chapters, one per core: myst-nb itself runs one after another.

    Whatever fails here is left to myst-nb, which runs it again and reports it.
    """
    if config.nb_execution_mode == "cache":
        folder = config.nb_execution_cache_path or _build(app) / ".jupyter_cache"
        with contextlib.suppress(Exception):
            execution.side_by_side(Path(folder), config.nb_execution_timeout, app.meanwhile)


def _remember_inputs(app, exception) -> None:
    # A warning under -W ends the build with status 1 but without an exception.
    if exception is None and app.statuscode == 0 and not app._warncount:
        _stamp(app).write_text(app.inputs, encoding="utf-8")


def _page(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    body = context.get("body") or ""
    for file in (file for mark, files in LOADED.items() if mark in body for file in files):
        if file.endswith(".css"):
            app.add_css_file(file)
        else:
            app.add_js_file(file, loading_method="defer")
    for kind in ("script_files", "css_files"):
        context[kind][:] = [asset for asset in context[kind] if not _is_unused(asset)]
    if doctree is not None:
        about = html.escape(site.description(doctree))
        tag = f'<meta name="description" content="{about}" />\n'
        context["metatags"] = context.get("metatags", "") + tag
        year = app.config.copyright.split(",")[0]
        static = "../" * pagename.count("/") + "_static"
        title, book = context["title"], context["docstitle"]
        context["body"] = site.unbroken(body) + site.citation(
            title,
            book,
            app.config.author,
            year,
            static,
        )


def _is_unused(asset) -> bool:
    source = f"{asset.filename or ''} {asset.attributes.get('body', '')}".lower()
    return any(name in source for name in UNUSED)


def _redirect(app, exception) -> None:
    if exception is None and app.builder.name == "html":
        site.redirect(Path(app.outdir), set(app.env.found_docs))
