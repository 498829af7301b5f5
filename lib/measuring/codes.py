"""The code that measures an experiment, apart from that in `lib.SOURCE`: the definitions in lib and
chapters that its spec refers to, directly or through others, in any file.
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator

import yaml

from lib import MEASURING, ROOT

# Code that only plans, checks, stores, runs, words and draws
PLUMBING = ("*.py", "records/*.py", "studies/*.py", "claims/*.py", "page/*.py")
PLUMBING += ("measuring/codes.py", "measuring/runner.py", "measuring/sweeps.py")
UNNAMED = "unnamed"  # the code of records whose first line names none
LEDGER = ROOT / "data" / "codes.yaml"
LISTED = yaml.load(LEDGER.read_bytes() if LEDGER.exists() else "", yaml.BaseLoader) or {}


def _texts() -> dict[str, bytes]:
    """The texts of the modules whose definitions are followed, by module name."""
    left_out = {f for pattern in (*MEASURING, *PLUMBING) for f in ROOT.glob(f"lib/{pattern}")}
    files = {*ROOT.glob("lib/**/*.py"), *ROOT.glob("chapters/*/*.py")} - left_out
    names = {file: ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files}
    return {name.removesuffix(".__init__"): file.read_bytes() for file, name in names.items()}


TEXTS = _texts()  # taken when lib is loaded, as `lib.SOURCE` is


def same(name: str, kind: type) -> list[str]:
    """The codes that measure the same as today's, according to data/codes.yaml; only today's, if it
    is not listed.

    Args:
        name: of the collection.
        kind: class of its specs.
    """
    today, listed = digest(kind), LISTED.get(f"{name}/{kind.__name__}", "").split()
    return listed if today in listed else [today]


def unlisted(kinds: Iterable[tuple[str, type]]) -> list[str]:
    """What to change in data/codes.yaml: a line for each code of today that is not listed, and for
    each entry that no experiment has any more; kinds: all pairs of arguments of `same`.
    """
    today = {f"{name}/{kind.__name__}": digest(kind) for name, kind in kinds}
    listed = {key: LISTED.get(key, "").split() for key in today}
    lines = [
        f"{key}: {' '.join([*listed[key], code])}"
        for key, code in today.items()
        if code not in listed[key]
    ]
    return sorted([*lines, *(f"{key}: no experiment has it" for key in {*LISTED} - {*today})])


@functools.lru_cache(maxsize=1024)
def digest(kind: type) -> str:
    """Digest, twelve hex digits, of the code that a spec's `measure` runs.  It does not depend on
    comments, docstrings, annotations, layout or the files in which definitions lie.
    """
    forms, followed, todo = set(), set(), [f"{kind.__module__}.{kind.__qualname__}"]
    while todo:
        name = todo.pop()
        if name not in followed:
            followed.add(name)
            for form, others in _definitions(name):
                forms.add(form)
                todo += others
    return hashlib.sha256("\n".join(sorted(forms)).encode()).hexdigest()[:12]


def _definitions(name: str) -> Iterator[tuple[str, list[str]]]:
    """Each statement by which a module defines a dotted name or its beginning, in normal form, with
    the dotted names in it; for the name of a module, all its statements.
    """
    module = name
    while module and module not in TEXTS:
        module = module.rpartition(".")[0]
    if not module:
        yield "" if name.startswith(("lib.", "chapters.")) else name, []
        return
    first, _, attributes = name.removeprefix(module).removeprefix(".").partition(".")
    by_name = _statements(TEXTS[module])
    names = [first, ""] if first else [*by_name]
    for statement in itertools.chain.from_iterable(by_name.get(n, ()) for n in names):
        imports = _imports(statement)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            origins = [imports[first]] if first else imports.values()
            yield "", [f"{origin}.{attributes}".rstrip(".") for origin in origins]
        else:
            words, others = [*_words(statement)], []
            for word in words:
                if word[0] == "@":
                    root, _, inner = word[1:].partition(".")
                    origin = imports.get(root, f"{module}.{root}")
                    others.append(f"{origin}.{inner}".rstrip("."))
            yield " ".join(words), others


@functools.lru_cache(maxsize=1024)
def _statements(text: bytes) -> dict[str, list[ast.stmt]]:
    """A module's statements, by each name that they bind; "": those that bind none."""
    by_name = defaultdict(list)
    for statement in ast.parse(text).body:
        steps = dis.get_instructions(compile(ast.Module([statement], []), "", "exec", optimize=0))
        stored = {step.argval for step in steps if step.opname == "STORE_NAME"}
        for name in stored or {""}:
            by_name[name].append(statement)
    by_name.pop("__doc__", None)
    return by_name


def _imports(node: ast.AST) -> dict[str, str]:
    """The dotted names imported anywhere in the node, by the names that they get there."""
    names = {}
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom):
            for alias in part.names:
                names[alias.asname or alias.name] = f"{part.module}.{alias.name}"
        elif isinstance(part, ast.Import):
            for alias in part.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
    return names


WITHOUT = {"annotation", "returns", "type_params", "type_comment", "ctx", "kind"}


def _words(node: object) -> Iterator[str]:
    """The node's syntax, the same in every version of Python; dotted names begin with @."""
    if name := _dotted(node):
        yield f"@{name}"
    elif isinstance(node, list):
        yield "["
        for item in node:
            # Docstrings do not count, and imports are followed
            text = isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
            if not (text or isinstance(item, ast.Import | ast.ImportFrom)):
                yield from _words(item)
        yield "]"
    elif isinstance(node, ast.AST):
        yield type(node).__name__
        for field, value in ast.iter_fields(node):
            if field not in WITHOUT and value not in (None, []):
                yield field
                yield from _words(value)
        yield "."
    else:
        yield repr(node)


def _dotted(node: object) -> str:
    """A name with its attributes; "" for anything else."""
    if isinstance(node, ast.Attribute):
        return (inner := _dotted(node.value)) and f"{inner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
