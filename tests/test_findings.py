"""What pages say, whichever way the records decide: every template, filled with its page's findings and with variants of them."""

import ast
import functools
import hashlib
import itertools
import json
import re

import pytest

from lib import ROOT
from lib.claims import MIXED, MOSTLY, NO, UNCLEAR, UNTESTED, YES, kept
from lib.page import prose
from tests.test_reruns import built

PAGES = sorted(file.parent.name for file in (ROOT / "chapters").glob("*/findings.py"))
VERDICTS = (YES, MOSTLY, MIXED, NO, UNCLEAR, UNTESTED)
TEXTS = {"say": (0, 1), "lead": (0, 2), "figure": (1, 3)}  # where the templates stand among the arguments
LONGEST = 15  # lines of a cell


def cells(page):
    notebook = json.loads((ROOT / "chapters" / f"{page}.ipynb").read_text(encoding="utf-8"))
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]


def calls(page):
    """Every call of `prose.say`, `lead` and `figure`, with the name of the function."""
    for node in itertools.chain.from_iterable(ast.walk(ast.parse(cell)) for cell in cells(page)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"prose.{name}" for name in TEXTS}:
            yield node.func.attr, node


def templates(page):
    return [text.value for name, call in calls(page) for text in call.args[slice(*TEXTS[name])]]


def computed(page):
    """What a page's cells compute until they have its findings."""
    names = {"__name__": "page"}
    for cell in cells(page):
        exec(compile(cell, page, "exec"), names)
        if "found" in names:
            return names["found"]
    raise AssertionError(f"{page}: no cell makes `found`")


@functools.cache
def findings(page):
    """A page's findings, as JSON knows them: they are plain.  Those of the built book, where it is up to date."""
    if page in (there := built()):
        outputs = (output for cell in there[page].cells for output in cell.get("outputs", []))
        return next(filter(None, (carried(output) for output in outputs)))
    digest = hashlib.sha256("".join(cells(page)).encode()).hexdigest()[:12]
    return kept(f"findings-{page}-{digest}", lambda: computed(page))


def carried(output):
    """The findings that a page's lead takes along, of one of its outputs; None of any other."""
    return output.get("metadata", {}).get("text/markdown", {}).get("findings")


def variants(found):
    """These values in every combination of their verdicts and truths; with all others, with none of them, and with empty lists."""
    choices = {name: (True, False) for name, value in found.items() if isinstance(value, bool)}
    choices |= {name: VERDICTS for name, value in found.items() if isinstance(value, str) and value in VERDICTS}
    nothing = {name: [] if isinstance(value, list) else None for name, value in found.items()}
    for decided in itertools.product(*choices.values()):
        for values in (found, nothing):
            yield {**values, **dict(zip(choices, decided))}


def wrong(text):
    """What a sentence must not have."""
    bare = re.sub(r"\$[^$]*\$", "formula", text)
    found = re.findall(r"\bNone\b|\bnan\b|Undefined|\{[{%]|[%}]\}|\[\]|\b\w* [.,;:](?!\d)|\.\.(?!/)|\(\)|,,", bare)
    found += [pair for pair in ("()", "[]") if bare.count(pair[0]) != bare.count(pair[1])]
    return found + ["**"] * (bare.count("**") % 2)


@pytest.mark.parametrize("page", PAGES)
def test_texts_are_templates_and_cells_are_short(page):
    for name, call in calls(page):
        texts = call.args[slice(*TEXTS[name])]
        assert all(isinstance(text, ast.Constant) for text in texts), ast.unparse(call)
        assert not call.keywords and not any(isinstance(arg, ast.Starred) for arg in call.args), ast.unparse(call)
    assert all(sum(bool(line.strip()) for line in cell.splitlines()) <= LONGEST for cell in cells(page))


@pytest.mark.parametrize("page", PAGES)
def test_every_finding_is_told_and_every_name_is_a_finding(page):
    named = set().union(*map(prose.variables, templates(page)))
    assert named <= set(findings(page))
    code = " ".join(cells(page))
    assert not [name for name in set(findings(page)) - named if f'found["{name}"]' not in code]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_reads_well_whatever_the_records_say(page):
    found = findings(page)
    for template in templates(page):
        named = {name: found[name] for name in prose.variables(template)}
        assert prose.say(template, named)
        for values in variants(named):
            text = prose.say(template, values)
            assert not wrong(text), (text, values)


def test_a_name_without_a_value_is_refused_in_every_branch():
    with pytest.raises(ValueError, match=r"text: \['lost'\] is not allowed"):
        prose.say("{% if more %}{{ lost }}{% endif %}", more=False)


@pytest.mark.parametrize("chapter", ["sparsity", "theory", "three_regimes"])
def test_a_rerun_with_too_few_points_claims_nothing(chapter):
    """Titles, leads and takeaways where nothing was found: no share of none, no dash for a number."""
    cells = json.loads((ROOT / f"chapters/{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    texts = {node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for text in texts:
        if names := prose.variables(text) if "{%" in text or "{{" in text else ():
            listed = re.findall(r"{{ ([a-z_]+) ?\| ?joined }}", text)
            told = " ".join(prose.say(text, dict.fromkeys(names, 0) | dict.fromkeys(listed, [])).split())
            assert not re.search(r"0 of 0|Of 0|than SGD's on 0|surely smaller .* 0", told), told
