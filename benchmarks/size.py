"""How large the book's code is, and what one search goes through: python -m benchmarks.size [code words walk]

Lines, syntax nodes and names of the code; words and pages of the book in _build/html, if it is built; the memory of the
table of searches; the files that run for one search from notebook to figure, and the frames between its sweep and a gradient.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import statistics
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import benchmarks
from lib import ROOT

# Names of values that say nothing of what they hold
EMPTY = frozenset(
    """asked at beside both came each every found given held known of one other own over rest some such told whole
    within""".split()
)
WALKED = {"workload": "digits-mlp", "batch_size": 1024, "trials": 16}
NOT_READ = """script, style, svg, pre, nav, select, option, template, noscript, .toctree-wrapper,
details > :not(summary), .book-long tbody tr:nth-child(n + 13)"""
A_MINUTE = 200  # words


def syntax_nodes(tree: ast.AST) -> int:
    return sum(1 for _ in ast.walk(tree))


def densities(source: str) -> Iterator[float]:
    """Syntax nodes a line of code of every function of eight lines or more; its docstring, comments and blank lines left
    out.
    """
    lines = source.splitlines()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            body = (line.strip() for line in lines[function.lineno - 1 : function.end_lineno])
            docstring = ast.get_docstring(function, clean=False)
            code = sum(bool(line) and not line.startswith("#") for line in body)
            code -= len(docstring.splitlines()) if docstring else 0
            if code >= 8:
                yield syntax_nodes(function) / code


def empty_names(sources: list[str]) -> float:
    """The share of assignments in functions to a name of EMPTY."""
    functions = (
        function
        for source in sources
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
    )
    names = [
        node.id
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return sum(name in EMPTY for name in names) / max(len(names), 1)


def code() -> None:
    for folder in ("lib", "chapters", "tests"):
        sources = [file.read_text(encoding="utf-8") for file in ROOT.glob(f"{folder}/**/*.py")]
        lines = sum(len(source.splitlines()) for source in sources)
        total = sum(syntax_nodes(ast.parse(source)) for source in sources)
        dense = sorted(density for source in sources for density in densities(source))
        spread = f"{statistics.median(dense):.1f} median, {dense[int(0.95 * len(dense))]:.1f} at 95 %"
        print(
            f"{folder}: {len(sources)} files, {lines} lines, {total} nodes; {spread} a line;",
            end=" ",
        )
        print(f"{empty_names(sources):.1%} of names say nothing")
    findings = [
        file.read_text(encoding="utf-8") for file in ROOT.glob("chapters/*/findings.py")
    ]
    cells = [
        "".join(cell["source"])
        for notebook in ROOT.glob("chapters/*.ipynb")
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    print(f"findings: {sum(len(source.splitlines()) for source in findings)} lines;", end=" ")
    print(f"notebooks: {sum(len(source.splitlines()) for source in cells)} lines of code")


def words() -> None:
    """What a reader of each page sees who unfolds nothing: words of sentences and tables together,
    minutes, charts and tables.
    """
    from bs4 import BeautifulSoup

    built = [ROOT / "_build/html/intro.html", *sorted(ROOT.glob("_build/html/chapters/*.html"))]
    rows = []
    for page in filter(Path.exists, built):
        article = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").find("article")
        if article is None:  # an old address
            continue
        charts = len(article.select(".vl-chart, svg[role=img]"))
        for tag in article.select(NOT_READ):
            tag.decompose()
        count = len(article.get_text(" ").split())
        rows.append((count, round(count / A_MINUTE), charts, len(article("table"))))
        print(f"{page.stem:34} {'{:6} words {:3} minutes {:2} charts {:2} tables'.format(*rows[-1])}")
    print(len(rows), "pages: {} words, {} minutes, {} charts, {} tables".format(*map(sum, zip(*rows))))


def walk() -> None:
    """Runs the code of a notebook for a search without a record, and removes its record."""
    from lib.records import searches, store

    table = searches.table()
    print(f"table of searches: {table.memory_usage(deep=True).sum() / 1e6:.0f} MB")
    notebook = json.loads((ROOT / "chapters/steps_to_result.ipynb").read_text(encoding="utf-8"))
    sources = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    settings = WALKED | {"budget": "full"}
    sources.insert(2, "\n".join(f"{name} = {value!r}" for name, value in settings.items()))
    entered, depths = set(), [0]

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        if not file.startswith(f"{ROOT}/") or "/.venv/" in file:
            return
        entered.add(file)
        if frame.f_code.co_name == "gradients":
            depths.append(frames_since_sweep(frame))

    module = sys.modules["walked"] = types.ModuleType("walked")
    exec(sources[0], vars(module))  # imports are not counted
    try:
        sys.setprofile(note)
        for source in sources[1:]:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, "<cell>", "exec"), vars(module))
    finally:
        sys.setprofile(None)
        for search in module.study.searches:
            store.record(search).unlink(missing_ok=True)
    print(
        f"one search: {len(entered)} files, {max(depths)} frames from the sweep to a gradient"
    )


def frames_since_sweep(frame: FrameType | None) -> int:
    """Frames of the project's code on the stack below that of lib/measuring/sweeps.py."""
    count = 0
    while frame is not None and not frame.f_code.co_filename.endswith("measuring/sweeps.py"):
        count += frame.f_code.co_filename.startswith(f"{ROOT}/")
        frame = frame.f_back
    return count if frame is not None else 0


if __name__ == "__main__":
    measures = {"code": code, "words": words, "walk": walk}
    for name in benchmarks.chosen(__doc__, measures):
        measures[name]()
