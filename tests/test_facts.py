"""One number a fact: what pruning costs, and a network's critical batch size, have one value on every page."""

import json
import re

import pytest

from chapters.answers import shares
from chapters.intro import front_figures
from chapters.limits import findings as limits
from lib import ROOT, claims
from lib.analysis import scaling
from lib.claims import front
from lib.page import prose
from lib.wording import brief, named
from lib.workloads.catalogue import workload
from tests.test_findings import PAGES, findings, templates

COST = re.compile(r"([\d.,]+(?: to [\d.,]+)?) times (?:as many steps|the steps|\$K)")
CRITICAL = re.compile(r"(?:critical batch size (?:is|was|of)|, it is) (?:about )?(\d[\d,.]*\d|\d)")
STATED = {  # on which pages a fact is stated, at least
    "cost": {"intro", "answers", "sheet", "sparsity"},
    "critical": {"sheet", "three_regimes", "explore"},
}


def paragraphs(page):
    """Every paragraph and item that a page's reader reads, filled with its findings."""
    if page == "intro":
        return front_page()
    filled = [prose.say(template, findings(page)) for template in templates(page)]
    cells = json.loads((ROOT / f"chapters/{page}.ipynb").read_text(encoding="utf-8"))["cells"]
    typed = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return "\n".join([*filled, *typed]).splitlines()


def front_page():
    """The front page's sentences with the facts of several pages, and its row of what pruning costs."""
    judged = claims.every()
    texts = re.findall(r'"""(.*?)"""', (ROOT / "intro.md").read_text(encoding="utf-8"), re.S)
    facts = [
        {**dict.fromkeys(prose.variables(text), "—"), **front.facts(judged)} for text in texts
    ]
    row = f"90 % pruned: {front_figures.answers(judged[front.COST])['found']} the steps"
    return "\n".join([*map(prose.say, texts, facts), row]).splitlines()


def costs(paragraph):
    """What a paragraph says that pruning 90 % of the weights costs in steps."""
    plain = paragraph.replace("\u00a0", " ")
    about = "prun" in plain.lower() and re.search(r"\b90 %|sparsity 0\.9\b", plain)
    return COST.findall(plain) if about else []


def critical(paragraph):
    """Which critical batch size a paragraph states of one network and method: ((workload, method), size) pairs."""
    known = front.critical().query("sparsity == 0")
    titles = {workload(name).title: name for name in known.workload}
    names = sorted((t for t in titles if t in paragraph), key=len)
    methods = [m for m in known.algorithm.unique() if re.search(rf"\b{named(m)}\b", paragraph)]
    single = names and all(name in names[-1] for name in names) and len(methods) == 1
    found = CRITICAL.search(paragraph) if single else None
    return [((titles[names[-1]], methods[0]), found[1])] if found else []


def test_a_second_value_is_seen():
    assert costs("Pruning 90 % before training. 2.5 to 4.0 times the steps") == ["2.5 to 4.0"]
    assert costs("At sparsity 0.9, pruned, plan 1.9 to 5.3 times $K^\\star$") == ["1.9 to 5.3"]
    own = "With momentum on the Simple-CNN on MNIST, the critical batch size is 1,500 examples."
    assert critical(own) == [(("mnist-simple-cnn", "momentum"), "1,500")]
    assert not critical("With SGD and momentum on MLP on digits, the critical batch size is 76.")


@pytest.mark.parametrize("page", ["intro", *PAGES])
def test_a_fact_has_one_value_on_every_page(page):
    rows = front.critical().query("sparsity == 0").set_index(["workload", "algorithm"])
    stated = {"cost": [], "critical": []}
    for paragraph in paragraphs(page):
        stated["cost"] += costs(paragraph)
        stated["critical"] += critical(paragraph)
    assert set(stated["cost"]) <= {front.facts(claims.every())["pruned"]}
    for key, size in stated["critical"]:
        assert size == brief(rows.critical[key]), key
    assert all(stated[fact] for fact, pages in STATED.items() if page in pages)


def test_curves_are_drawn_at_the_critical_batch_size_that_pages_print():
    told = front.critical().set_index(scaling.CURVE).critical
    drawn = front.collapsed().drop_duplicates(scaling.CURVE).set_index(scaling.CURVE)["at"]
    both = drawn.index.intersection(told.index)
    assert len(both) > 50
    assert drawn[both].to_list() == pytest.approx(told[both].to_list(), rel=1e-3)
    ladder = limits.networks().set_index(scaling.CURVE).critical
    assert ladder.to_list() == told[ladder.index].to_list()


def test_shares_are_of_a_network_that_has_weights():
    """With all weights zero, gradients have hardly a mean, and the noise scale has no sign."""
    found = shares.measured()
    assert 1 < found["noise"] < 1000 and 0.5 < found["clipped"] / found["noise"] < 2
