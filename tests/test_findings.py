"""What pages say, whichever way the records decide: every template, filled with its page's findings and with variants of them."""

import ast
import functools
import hashlib
import itertools
import json
import re

import numpy as np
import pytest

from lib import ROOT, claims
from lib.analysis.scaling import CURVE
from lib.claims import MIXED, MOSTLY, NO, UNCLEAR, UNTESTED, YES, front, kept
from lib.page import prose
from lib.wording import brief, named
from lib.workloads.catalogue import workload
from tests.test_reruns import built

PAGES = sorted(file.parent.name for file in (ROOT / "chapters").glob("*/findings.py"))
VERDICTS = (YES, MOSTLY, MIXED, NO, UNCLEAR, UNTESTED)
TEXTS = {"say": (0, 1), "lead": (0, 2), "figure": (1, 3)}  # positions of the templates among the arguments
LONGEST = 15  # lines of a cell


def cells(page, kind="code"):
    notebook = json.loads((ROOT / "chapters" / f"{page}.ipynb").read_text(encoding="utf-8"))
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == kind]


def calls(page):
    """Every call of `prose.say`, `lead` and `figure`, with the name of the function."""
    for node in itertools.chain.from_iterable(ast.walk(ast.parse(cell)) for cell in cells(page)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"prose.{name}" for name in TEXTS}:
            yield node.func.attr, node


def templates(page):
    return [text.value for name, call in calls(page) for text in call.args[slice(*TEXTS[name])] if text.value]


def computed(page):
    """What a page's cells compute up to its findings."""
    names = {"__name__": "page"}
    for cell in cells(page):
        exec(compile(cell, page, "exec"), names)
        if "facts" in names:
            return names["facts"]
    raise AssertionError(f"{page}: no cell makes `facts`")


@functools.cache
def findings(page):
    """A page's findings, as plain JSON; those of the built book, if it is up to date."""
    if page in (there := built()):
        outputs = (output for cell in there[page].cells for output in cell.get("outputs", []))
        return next(filter(None, (carried(output) for output in outputs)))
    digest = hashlib.sha256("".join(cells(page)).encode()).hexdigest()[:12]
    return kept(f"findings-{page}-{digest}", lambda: computed(page))


def carried(output):
    """The findings that a page's lead carries in this output; None for any other output."""
    return output.get("metadata", {}).get("text/markdown", {}).get("findings")


def variants(values):
    """These values in every combination of their verdicts and truths; with all others, with none of
    them, and with empty lists."""
    choices = {name: (True, False) for name, value in values.items() if isinstance(value, bool)}
    words = (name for name, value in values.items() if isinstance(value, str) and value in VERDICTS)
    choices |= dict.fromkeys(words, VERDICTS)
    nothing = {name: [] if isinstance(value, list) else None for name, value in values.items()}
    for decided in itertools.product(*choices.values()):
        for others in (values, nothing):
            yield {**others, **dict(zip(choices, decided))}


def wrong(text):
    """What a sentence must not have."""
    bare = re.sub(r"\$[^$]*\$", "formula", text)
    marks = r"\bNone\b|\bnan\b|Undefined|\{[{%]|[%}]\}|\[\]|\b\w* [.,;:](?!\d)|\.\.(?!/)|\(\)|,,"
    unpaired = [pair for pair in ("()", "[]") if bare.count(pair[0]) != bare.count(pair[1])]
    return re.findall(marks, bare) + unpaired + ["**"] * (bare.count("**") % 2)


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
    assert not [name for name in set(findings(page)) - named if f'facts["{name}"]' not in code]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_reads_well_whatever_the_records_say(page):
    values = findings(page)
    for template in templates(page):
        named = {name: values[name] for name in prose.variables(template)}
        assert prose.say(template, named)
        for variant in variants(named):
            text = prose.say(template, variant)
            assert not wrong(text), (text, variant)


# --- one number a fact ---

SHARED = {  # facts of several pages: what a line is about, and the words around the number
    "pruned": ("(?i)prun.*(90 %|0[.]9)|(90 %|0[.]9).*prun", "times (?:as many steps|the steps|[$]K)"),
    "momentum": ("^(?!.*Muon).*(ritical|[$]C[$])", "times (?:that of SGD|SGD.s)(?! and)"),
    "noise": ("noise", "times (?:this mean|the noise scale)"),
}
CRITICAL = re.compile(r"(?:critical batch size (?:is|was|of)|, it is) (?:about )?(\d[\d,.]*\d|\d)")
STATE = {"answers", "explore", "sheet", "sparsity", "three_regimes"}  # the pages that must


def stated(text):
    """Shared facts and networks' critical batch sizes, wherever a text has them, each beside its one
    value."""
    pairs, dense = [], front.critical().query("sparsity == 0")
    facts = front.facts(claims.every())
    for line in text.replace("\u00a0", " ").splitlines():
        for name, (about, words) in SHARED.items():
            values = re.findall(rf"([\d.,]+(?: to [\d.,]+)?) {words}", line)
            pairs += [(value, facts[name]) for value in values if re.search(about, line)]
        for row in dense.itertuples():
            if workload(row.workload).title in line and named(row.algorithm) in line:
                pairs += [(size, brief(row.critical)) for size in CRITICAL.findall(line)[:1]]
    return pairs


def test_a_second_value_is_seen():
    planted = "Pruning 90 % takes 2.5 to 4 times the steps\nwith momentum, $C$ is 7 times SGD's\n"
    planted += "MLP on digits, SGD: the critical batch size is 1,500"
    assert [value for value, right in stated(planted) if value != right] == ["2.5 to 4", "7", "1,500"]


@pytest.mark.parametrize("page", PAGES)
def test_what_several_pages_state_has_one_value(page):
    sentences = [prose.say(template, findings(page)) for template in templates(page)]
    pairs = stated("\n".join([*sentences, *cells(page, "markdown")]))
    assert all(value == right for value, right in pairs), pairs
    assert pairs or page not in STATE


def test_the_front_page_states_and_draws_the_same():
    page = (ROOT / "intro.md").read_text(encoding="utf-8")
    assert "{{ pruned }} times" in page and not stated(page)
    curves = front.collapsed().drop_duplicates(CURVE).merge(front.critical(), on=CURVE)
    assert len(curves) > 50 and np.allclose(curves["at"], curves.critical, rtol=1e-3)
