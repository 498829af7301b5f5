"""The rooms of `lib` have one order and no circle: every import is read from the source, those inside functions, too."""

import ast
import graphlib
import json
import re

from lib import ROOT

OPEN = ("__init__", "own", "atomic", "fields", "forms")  # to all
SHELVES = ("workloads", "messages", "methods")
MEASURED = ("engine", "studies", "records", "measuring", "workers", "probes")
LATER = ("wording", *MEASURED, "analysis", "claims", "page", "__main__")
ORDER = (*OPEN, *SHELVES, *LATER)
MAY = {room: set(ORDER[: ORDER.index(room)]) for room in ORDER} | {
    **{room: set() for room in OPEN},
    "own": {"__init__"},
    "fields": {"__init__"},
    "forms": {"__init__"},
    **{room: set(OPEN) for room in SHELVES},
    "methods": {*OPEN, "workloads"},  # a reader's own method is loaded as a reader's own workload is
    "wording": {*OPEN, "methods"},
    "analysis": {*OPEN, *SHELVES, "wording", "engine", "studies", "records"},
    # claims ask probes what is planned of them, and what is on record
    "claims": {*OPEN, *SHELVES, "wording", "engine", "studies", "records", "probes", "analysis"},
    "page": {*OPEN, *SHELVES, "wording"},
    "__main__": {*ORDER} - {"page", "analysis", "claims", "__main__"},
}
# What breaks the order, (file, file it imports): why it may, and until when.
DEVIATIONS: dict[tuple[str, str], str] = {}


def name_of(file):
    """engine.sequential; a package's own file goes by the package's name, lib's by __init__."""
    parts = file.relative_to(ROOT / "lib").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


FILES = {name_of(file): file for file in sorted((ROOT / "lib").rglob("*.py"))}


def known(name):
    """The file of lib that a dotted name without `lib.` means, or None: a module, or the one that holds the name."""
    return name if name in FILES else None


def imports(source):
    """Names of files in lib that a source imports anywhere: at its top, in functions, for type checking alone."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("lib.") for alias in node.names if alias.name.startswith("lib.")}
            found |= {"__init__" for alias in node.names if alias.name == "lib"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports within lib are absolute"
            if node.module == "lib":
                found |= {known(alias.name) or "__init__" for alias in node.names}
            elif node.module and node.module.startswith("lib."):
                inside = node.module.removeprefix("lib.")
                found |= {known(f"{inside}.{alias.name}") or inside for alias in node.names}
    return found


def room(name):
    return name.partition(".")[0]


GRAPH = {name: imports(file.read_text(encoding="utf-8")) - {name} for name, file in FILES.items()}


def unexpected(graph):
    """What goes against the order, as (file, file it imports)."""
    arrows = {(name, other) for name, others in graph.items() for other in others if room(name) != room(other)}
    return {(name, other) for name, other in arrows if room(other) not in MAY[room(name)]}


def circle(graph):
    """The files of a circle, or none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_every_import_is_of_an_earlier_room():
    assert unexpected(GRAPH) - set(DEVIATIONS) == set()
    assert set(DEVIATIONS) <= unexpected(GRAPH), "an exception that is needed no more"


def test_no_circle_of_files():
    assert circle(GRAPH) == []


def test_imports_are_found_wherever_they_are():
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lib.engine.sequential import SequentialExecutor\n"
    source += "def f():\n    import lib.page.charts\n    from lib.records import store\n    from lib import require, own\n"
    assert imports(source) == {"engine.sequential", "page.charts", "records.store", "__init__", "own"}
    graph = {**GRAPH, "analysis.links": {"page.charts"}}
    assert unexpected(graph) - unexpected(GRAPH) == {("analysis.links", "page.charts")}
    assert circle({"a": {"b"}, "b": {"a"}})


CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
BESIDE = sorted((ROOT / "chapters").glob("*/*.py"))
SHARED = {  # what one chapter alone imports, and why it lies in lib
    "probes.replays": "the command line verifies any study",
    "workers.noise_hook": "readers put it on jobs of their own",
}


def code_of(chapter):
    """All code of a notebook as one source."""
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    sources = ("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    return "\n".join(re.sub(r"^[%!].*", "", source, flags=re.M) for source in sources)


def of_one_chapter():
    """Files of lib that are imported by one chapter alone, be it through others that are."""
    users = {name: {other for other, imported in GRAPH.items() if name in imported} for name in FILES}
    for chapter in CHAPTERS:
        for name in imports(code_of(chapter)) & set(FILES):
            users[name].add(f"chapter {chapter.stem}")
    for file in BESIDE:
        for name in imports(file.read_text(encoding="utf-8")) & set(FILES):
            users[name].add(f"chapter {file.parent.name}")
    inside = {name for name in FILES if FILES[name].name not in ("__init__.py", "__main__.py", "experiments.py")}
    owners = {}
    while True:
        found = {name: {owners.get(user, user) for user in users[name]} for name in inside - set(owners) - set(SHARED)}
        new = {name: one for name, (one, *more) in ((n, u) for n, u in found.items() if u) if not more and " " in one}
        if not new:
            return owners
        owners |= new


def test_lib_imports_no_chapter():
    """The command line and the claims find what lies beside chapters by the names of its files."""
    for file in FILES.values():
        assert not re.search(r"^\s*(from|import) chapters\b", file.read_text(encoding="utf-8"), re.M), file


def test_what_one_chapter_alone_needs_lies_beside_it():
    assert of_one_chapter() == {}


def test_what_lies_beside_a_chapter_is_used_by_it_alone():
    sources = {(c.stem, c): code_of(c) for c in CHAPTERS} | {(b.parent.name, b): b.read_text(encoding="utf-8") for b in BESIDE}
    for chapter in {file.parent.name for file in BESIDE} - {"own"}:
        name = re.compile(rf"^\s*(from|import) chapters\.{chapter}\b", re.M)
        assert not [file for (owner, file), source in sources.items() if owner != chapter and name.search(source)], chapter
        pages = ROOT / f"chapters/{chapter}.ipynb", ROOT / f"{chapter}.md"
        assert any(page.exists() for page in pages), chapter


CITED = re.compile(r"`((?:lib|chapters)(?:\.\w+)+)")


def exists(name):
    """Whether a dotted name is a folder, a module, or what one defines: at its top, or in a class that the name has, too."""
    *above, last = name.split(".")
    place = ROOT.joinpath(*above)
    if place.is_dir():
        gathers = place / "__init__.py"
        brought = re.search(rf"\b{last}\b", gathers.read_text(encoding="utf-8")) if gathers.exists() else None
        return (place / last).is_dir() or (place / f"{last}.py").exists() or brought is not None
    if not (file := place.with_suffix(".py")).exists():
        return len(above) > 2 and exists(".".join(above))
    return re.search(rf"^((def|class) )?{last}\b", file.read_text(encoding="utf-8"), re.M) is not None


def test_what_pages_and_docstrings_cite_is_there():
    files = [*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("*.md"), *ROOT.glob("lib/**/*.py"), *ROOT.glob("chapters/*/*.py")]
    cited = {(name, file.name) for file in files for name in CITED.findall(file.read_text(encoding="utf-8"))}
    assert len(cited) > 20 and not exists("lib.engine.nowhere") and not exists("lib.atomic.absent")
    assert [one for one in sorted(cited) if not exists(one[0])] == []
