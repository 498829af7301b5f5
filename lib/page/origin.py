"""Which function drew a figure, read from a page's cells."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from lib import ROOT

LINK = re.compile(r'<a href="#([^"]+)">Link to this figure</a>')  # as `prose.figure` writes it
OURS = ("lib.", "chapters.")
# What they get draws, they only arrange
WRAPPERS = ("lib.page.charts.", "lib.page.tips.", "altair.")


def told(text: str, drawn: dict[str, str], repository: str = "") -> str:
    """HTML whose figures name the function that drew them.

    Args:
        drawn: of `drawn_by`.
        repository: the address of its files, up to their paths; "" where it is not known: then the
            file is named and not linked.
    """

    def line(found: re.Match) -> str:
        if found[1] not in drawn:
            return found[0]
        module, _, function = drawn[found[1]].rpartition(".")
        file = module.replace(".", "/") + ".py"
        before = (ROOT / file).read_text(encoding="utf-8").partition(f"def {function}(")[0]
        number = before.count("\n") + 1
        place = f"{file}, line {number}"
        if repository:
            place = f'<a href="{repository}/{file}#L{number}">{place}</a>'
        return f"{found[0]} · drawn by <code>{function}</code>, {place}"

    return LINK.sub(line, text)


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
