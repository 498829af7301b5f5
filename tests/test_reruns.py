"""Every chapter as a reader of JupyterLab sees it, from the records, without the book around it.

The book's build runs chapters in forks of itself, and its outputs are examined where it is up to
date; one chapter is run by papermill in any case, and shows the same.
"""

import contextlib
import functools
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest
from jupyter_cache import get_cache

from lib import ROOT
from lib.page import sphinx
from tests.test_chapters import started

CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))
ALWAYS = ("three_regimes",)  # run by papermill
SOURCES = {name: (ROOT / f"chapters/{name}.ipynb").read_text(encoding="utf-8") for name in CHAPTERS}


def rerun(name, folder):
    """Run a chapter as it is: (papermill's words, the notebook it left or None)."""
    out = str(folder / f"{name}.ipynb")
    command = [sys.executable, "-m", "papermill", f"chapters/{name}.ipynb", out]
    done = started([*command, "--log-level", "ERROR", "--no-progress-bar"], ROOT)
    return done.stderr[-3000:], nbformat.read(out, 4) if done.returncode == 0 else None


@functools.cache
def built():
    """Chapters with the outputs of the built book, by name; none if records or code changed."""
    stamp, cache = ROOT / "_build" / ".inputs", ROOT / "_build" / ".jupyter_cache"
    notebooks = {}
    if stamp.exists() and stamp.read_text(encoding="utf-8") == sphinx.digest() and cache.exists():
        outputs = get_cache(cache)
        for name in CHAPTERS:
            with contextlib.suppress(KeyError):  # edited since
                place = outputs.match_cache_file(str(ROOT / f"chapters/{name}.ipynb")).pk
                notebooks[name] = outputs.get_cache_bundle(place).nb
    return notebooks


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """All chapters, two at a time, once for all tests here: (what went wrong, notebook)."""
    folder = tmp_path_factory.mktemp("reruns")
    notebooks = {name: ("", nb) for name, nb in built().items() if name not in ALWAYS}
    missing = [name for name in CHAPTERS if name not in notebooks]
    with ThreadPoolExecutor(2) as pool:
        return notebooks | dict(zip(missing, pool.map(lambda name: rerun(name, folder), missing)))


@pytest.fixture(params=CHAPTERS)
def rerun_of(request, runs):
    """A chapter's name, and its notebook with outputs."""
    words, notebook = runs[request.param]
    assert notebook is not None, words
    return request.param, notebook


def shown(notebook, kind):
    """What the cells of a notebook show of a kind ("text/html", "text/markdown")."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


def test_a_rerun_shows_every_figure_with_title_picture_and_caption(rerun_of):
    name, notebook = rerun_of
    pages = "".join(shown(notebook, "text/html"))
    figures = re.findall(r"<figure\b.*?</figure>", pages, re.S)
    if name == "explore":  # that page itself draws its one figure
        return
    # The others are pictures of panels
    charts = [figure for figure in figures if "<svg viewBox" not in figure]
    assert pages.count("vl-chart") == len(charts), "a chart without title and caption"
    assert figures or not re.search(r"prose\.figure|charts\.(?!enable)", SOURCES[name]), "no figure"
    for figure in figures:
        parts = (re.search(rf"<{tag}[^>]*>(.*?)</", figure, re.S)[1] for tag in ("p", "figcaption"))
        drawn = r'<img alt="[^"]{20,}"[^>]* src="data:image/svg'
        words = drawn if figure in charts else r'<svg [^>]*aria-label="[^"]{20,}"'
        assert min(map(len, parts)) > 10 and re.search(words, figure)


def test_a_rerun_leaves_nothing_to_be_filled_in(rerun_of):
    """In all that a reader reads, except pictures, specifications, formulas and code."""
    _, notebook = rerun_of
    drawn = re.compile(r"<script.*?</script>|data:image[^\"]*|<style.*?</style>", re.S)
    written = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    written += shown(notebook, "text/markdown")
    written += [drawn.sub("", page) for page in shown(notebook, "text/html")]
    left = r"\{(?:glue|ref|cite|numref|term|doc)\b|\{[a-z_]+\}|glue:|^:::|^\([a-z:-]+\)="
    for text in written:
        bare = re.sub(r"\$\$.*?\$\$|\$[^$\n]*\$|`[^`]*`|```.*?```", "", text, flags=re.S)
        assert not re.search(left, bare, re.M), bare[:300]


def test_a_rerun_shows_nothing_that_a_reader_has_no_use_for(rerun_of):
    _, notebook = rerun_of
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "stream" or output.name == "stderr", output.text[:200]
            plain = output.get("data", {})
            assert set(plain) & {"text/html", "text/markdown"} or not plain, plain


@pytest.mark.parametrize("name", ALWAYS)
def test_the_build_shows_what_a_kernel_shows(runs, name):
    if name not in built():
        pytest.skip("no book is built of these records and this code")
    kernel, fork = (shown(notebook, "text/html") for notebook in (runs[name][1], built()[name]))
    tables = re.compile(r"clip\d+|view_[0-9a-f]{16}")  # these names are random, or counted
    assert [tables.sub("T", page) for page in kernel] == [tables.sub("T", page) for page in fork]
