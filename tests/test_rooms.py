"""The rooms of `lib` have one order and no circle: imports are read from the source."""

import ast
import graphlib
import json
import re

from lib import ROOT

OPEN = ("__init__", "own", "fields", "forms")  # to all
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


def name_of(file):
    """engine.sequential; a package's own file goes by the package's name, lib's by __init__."""
    parts = file.relative_to(ROOT / "lib").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


FILES = {name_of(file): file for file in sorted((ROOT / "lib").rglob("*.py"))}


def holder(name):
    """The file that a dotted name means: its longest beginning that is one."""
    name = name.removeprefix("lib").removeprefix(".")
    while name and name not in FILES:
        name = name.rpartition(".")[0]
    return name or "__init__"


def imports(source):
    """Names of files in lib that a source imports anywhere, also in functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports within lib are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {holder(name) for name in names if name.partition(".")[0] == "lib"}


def room(name):
    return name.partition(".")[0]


GRAPH = {name: imports(file.read_text(encoding="utf-8")) - {name} for name, file in FILES.items()}


def unexpected(graph):
    """What goes against the order, as (file, file it imports)."""
    arrows = {(name, imported) for name, others in graph.items() for imported in others}
    return {(a, b) for a, b in arrows if room(b) not in MAY[room(a)] | {room(a)}}


def circle(graph):
    """The files of a circle, or none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_every_import_is_of_an_earlier_room():
    assert unexpected(GRAPH) == set()


def test_no_circle_of_files():
    assert circle(GRAPH) == []


def test_imports_are_found_wherever_they_are():
    source = "if TYPE_CHECKING:\n    from lib.engine.sequential import SequentialExecutor\n"
    source += "def f():\n    import lib.page.charts\n    from lib.records import store\n"
    source += "    from lib import require, own\n"
    assert imports(source) == {"engine.sequential", "page.charts", "records.store", "__init__", "own"}
    graph = {**GRAPH, "analysis.links": {"page.charts"}}
    assert unexpected(graph) == {("analysis.links", "page.charts")}
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


# A chapter's notebook and what lies beside it: (chapter, file) -> its code
SOURCES = {(file.stem, file): code_of(file) for file in CHAPTERS}
SOURCES |= {(file.parent.name, file): file.read_text(encoding="utf-8") for file in BESIDE}


def of_one_chapter():
    """Files of lib that only one chapter imports, directly or through other such files."""
    imported = {**GRAPH, **{(owner, file): imports(text) for (owner, file), text in SOURCES.items()}}
    users = {name: {user for user, used in imported.items() if name in used} for name in FILES}
    users = {name: {u if isinstance(u, str) else u[:1] for u in by} for name, by in users.items()}
    entry_files = ("__init__.py", "__main__.py")
    inside = {name for name in FILES if FILES[name].name not in entry_files} - set(SHARED)
    owners, new = {}, True
    while new:
        importers = {name: {owners.get(u, u) for u in users[name]} for name in inside - set(owners)}
        single = {name: next(iter(by)) for name, by in importers.items() if len(by) == 1}
        new = {name: owner for name, owner in single.items() if isinstance(owner, tuple)}
        owners |= new
    return owners


def test_lib_imports_no_chapter():
    """The command line and the claims find what lies beside chapters by the names of its files."""
    for file in FILES.values():
        assert not re.search(r"^\s*(from|import) chapters\b", file.read_text(encoding="utf-8"), re.M), file


def test_what_one_chapter_alone_needs_lies_beside_it():
    assert of_one_chapter() == {}


def test_no_circle_of_files_beside_a_chapter():
    for page in {file.parent.name for file in BESIDE}:
        texts = {file.stem: SOURCES[page, file] for file in BESIDE if file.parent.name == page}
        names = re.compile(rf"^ *from chapters\.{page}\b(.*)", re.M)
        graph = {file: set(re.findall(r"\w+", " ".join(names.findall(text)))) for file, text in texts.items()}
        assert circle(graph) == []


def test_what_lies_beside_a_chapter_is_used_by_it_alone():
    for chapter in {file.parent.name for file in BESIDE} - {"own"}:
        name = re.compile(rf"^\s*(from|import) chapters\.{chapter}\b", re.M)
        others = [text for (owner, _), text in SOURCES.items() if owner != chapter]
        assert not any(map(name.search, others)), chapter
        pages = ROOT / f"chapters/{chapter}.ipynb", ROOT / f"{chapter}.md"
        assert any(page.exists() for page in pages), chapter


CITED = re.compile(r"`((?:lib|chapters)(?:\.\w+)+)")


def exists(name):
    """Whether a dotted name is a folder, a module, or what one defines, imports or has in a class."""
    *above, last = name.split(".")
    place = ROOT.joinpath(*above)
    if (place / last).is_dir() or (place / f"{last}.py").exists():
        return True
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.exists():
            top = re.search(rf"^( *(def|class) |    )?{last}\b", file.read_text(encoding="utf-8"), re.M)
            return top is not None
    return len(above) > 2 and exists(".".join(above))


def test_what_pages_and_docstrings_cite_is_there():
    patterns = "chapters/*.ipynb", "*.md", "lib/**/*.py", "chapters/*/*.py"
    files = [file for pattern in patterns for file in ROOT.glob(pattern)]
    texts = {str(file): file.read_text(encoding="utf-8") for file in files}
    cited = {(name, file) for file, text in texts.items() for name in CITED.findall(text)}
    assert len(cited) > 20 and not exists("lib.engine.nowhere") and not exists("lib.fields.absent")
    assert [citation for citation in sorted(cited) if not exists(citation[0])] == []
