"""What a page says of records and titles: counted once, named, and shown as literal text."""

import json
import math
import re

import altair as alt
import nbformat
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup, Comment
from docutils.core import publish_parts
from myst_parser.docutils_ import Parser
from nbconvert import HTMLExporter
from traitlets.config import Config

from chapters.claims import ledger
from chapters.intro import front_figures
from lib import ROOT, claims
from lib.claims import claim
from lib.page import boxes, charts, estimates, prose, vega
from lib.records import store
from lib.studies.search import Search

CELL = Search("digits-mlp", 64, "sgd")
USUAL = {"workload": "digits-mlp", "rows": 2, "trial_steps": 10, "wall_s": 3600.0}
USUAL |= dict.fromkeys(("torch", "device", "precision", "source", "date"), "x")


def results(names, *missing):
    """A table as `sweeps.results` gives it, with a record for every name."""
    heads = [USUAL | {"sha256": name} for name in names]
    frame = pd.DataFrame({"workload": ["digits-mlp"] * len(heads)})
    planned = len(heads) + len(missing)
    frame.attrs.update(provenance=store.Shared(heads), missing=missing, cells_planned=planned)
    return frame


def test_records_in_several_tables_count_once():
    tables = results("ab", CELL), results("bc", CELL)
    footer = boxes.provenance(*tables)
    assert "3 of 4 searches, 6 trials, 30 training steps in 3.0 core-hours" in footer
    rough = [{name: value for name, value in USUAL.items() if name != "precision"}, USUAL]
    tables[0].attrs.update(provenance=rough, planned=3)
    assert "2 of 3 records; measured x" in boxes.sources(tables[0])


def test_what_is_missing_is_told_and_nothing_at_all_stops_the_chapter():
    assert boxes.absent(results("a")) is None
    note = boxes.absent(results("a", CELL))
    assert "Not measured, or only in part: 1 of 2 searches" in note
    assert "MLP on digits, SGD, dense: batch size 64<" in note
    first = "the first: MLP on digits, SGD, dense, batch size 64.; .*-p budget full"
    with pytest.raises(ValueError, match=f"none of these 1 searches is on record .{first}"):
        boxes.absent(results("", CELL))
    with pytest.raises(ValueError, match="budget: no such paths are on record; .*-p budget"):
        boxes.some(pd.DataFrame(), "paths")


EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script> [m](javascript:alert(3)) *b* $x$ |"
HARD = "a & b <i>c</i> &lt; ]]> it's \"quoted\" \\ `x` {y}"
TITLES = [EVIL, "<!--<script>alert(1)</script>", HARD]


def shows(text, title, times=1):
    page = BeautifulSoup(text, "html.parser")
    hidden = page.find(["script", "i"]) or page.find(string=lambda part: isinstance(part, Comment))
    return page.get_text().count(title) >= times and not hidden


@pytest.mark.parametrize("title", TITLES)
def test_claims_the_ledger_and_notes_show_it_as_text(title):
    rule = claims.Claim("L1", title, "theory", f"of {title}", title, rule=f"on {title}.", kind="above", threshold=1.0)
    judged = claim.judged(rule, [claims.Group(title, 2.0, 1.5, 3.0, 5, note=title)])
    assert shows(boxes.claim(judged), title, 5)
    assert shows(ledger.matrix([judged]), title)
    assert shows(front_figures.papers({"paper": [judged]}), title)
    assert shows(boxes.stated(title, title, "yes", title), title)
    assert shows(boxes.table(pd.DataFrame({title: [title]})), title)


def chart(title):
    rows = pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0], "curve": title})
    y = alt.Y("y:Q", title=title)
    marks = alt.Chart(rows).mark_point().encode(x="x:Q", y=y, color="curve:N", tooltip=["curve:N"])
    menu = charts.menu("curve", [title], title, "workload")
    return charts.controlled([marks], menu).properties(description=f"Steps for {title}.")


@pytest.mark.parametrize("title", [*TITLES, "a value network ][b]"])
def test_charts_show_it_as_text_and_their_scripts_end_where_they_should(title):
    charts.enable()
    drawn = vega.drawn(chart(title).to_dict())
    script = '<script type="application/json">(.*?)</script>'
    inside = re.search(script, drawn, re.DOTALL)[1]
    spec = json.loads(inside)
    assert "<" not in inside and title in spec["description"]
    assert [p["value"] for p in spec["params"] if p["name"] == "curve_chosen"] == [title]
    tags = BeautifulSoup(drawn.replace(inside, ""), "html.parser").find_all()
    assert {tag.name for tag in tags} == {"div", "script", "img"}


# --- in both renderers of Markdown ----------------------------------------------------------------

def myst(text):
    """The text as the built book shows it."""
    about = {"myst_enable_extensions": ["dollarmath"], "halt_level": 5, "report_level": 5}
    how = {"parser": Parser(), "writer_name": "html5", "settings_overrides": about}
    return publish_parts(text, **how)["body"]


def page_alone(*shown):
    """The page of a rerun notebook that shows these."""
    kinds = {prose.Html: "text/html", prose.Markdown: "text/markdown", prose.Lead: "text/markdown"}
    data = [{kinds[type(text)]: str(text)} for text in shown]
    outputs = [nbformat.v4.new_output("display_data", contents) for contents in data]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=outputs)])
    config, file = Config(), ROOT / "lib" / "page" / "alone.py"
    exec(compile(file.read_text(encoding="utf-8"), file, "exec"), {"get_config": lambda: config})
    return HTMLExporter(config=config).from_notebook_node(notebook)[0]


def test_money_in_a_sentence_leaves_no_value_out():
    text = prose.say("It costs $5 for {{ n }} or \\$6 ($7); $64 B$ and $c_1/B$.", n=3)
    page = BeautifulSoup(myst(text), "html.parser")
    formulas = [formula.extract().get_text() for formula in page.find_all(class_="formula")]
    assert len(formulas) == 2
    assert " ".join(page.get_text().split()) == "It costs $5 for 3 or $6 ($7); and ."


def everywhere(evil):
    """All that a page makes of what a record, reader's file or parameter may say."""
    charts.enable()
    head = dict.fromkeys(("torch", "device", "precision", "source", "date"), evil)
    frame = pd.DataFrame({"workload": [evil], evil: [1.0]})
    heads = [{**USUAL, **head, "workload": evil, "sha256": evil}]
    frame.attrs.update(provenance=heads, missing=(), planned=1)
    values = {"title": evil, "measure": evil, "settings": [evil, evil]}
    template = "On {{ title }}, to {{ measure }}: {{ settings | joined }}"
    yield prose.say(template, values)
    yield prose.lead(template, template, (), values)
    yield prose.figure(chart(evil), template, template, "fig-x", evil, values)
    yield from (boxes.provenance(frame), boxes.sources(frame), boxes.table(frame))
    yield boxes.warned([evil])
    yield boxes.stated(evil, evil, "yes", evil)


def test_no_field_of_a_record_or_of_a_readers_file_becomes_markup():
    texts = list(everywhere(EVIL))
    in_book = (text if isinstance(text, prose.Html) else myst(text) for text in texts)
    for page in (page_alone(*texts), *in_book):
        made = BeautifulSoup(page, "html.parser")
        assert not made.select("[onerror], [href^='javascript:']")
        assert not [s for s in made("script") if s.get("type") is None and "alert(" in s.text]
        assert EVIL in made.get_text()


def test_predictions_stand_beside_what_came():
    inf = float("inf")
    rows = (("a", 1.25, 3, 1.26), ("b", 1, inf, (0.9, 0.8, 0.99)), ("c", 0, 0.5, (0.4, -0.3, 0.6)), ("d", 1, 2, None))
    table = estimates.predictions([*rows, ("e", 1, inf, (3.1, 2.1, inf))])
    assert table.predicted.tolist() == ["1.25–3", "over 1", "under 0.5", "1–2", "over 1"]
    assert table[estimates.MEASURED].tolist() == ["1.26", "0.9 (0.8–0.99)", "0.4 (−0.3 to 0.6)", "—", "3.1 (2.1–∞)"]
    assert table.fits.tolist() == ["yes, by the estimate", "no", "unclear", "—", "yes"]


def test_a_pages_findings_are_json_even_where_they_are_without_bound():
    values = {"critical": math.inf, "low": np.float64("nan"), "n": np.int64(3)}
    _, about = prose.lead("Why?", "So.", (), values)._repr_markdown_()
    assert json.loads(json.dumps(about, allow_nan=False)) == {"findings": {"critical": "Infinity", "low": "NaN", "n": 3}}


def test_a_rerun_as_a_page_shows_formulas_without_a_network():
    text = prose.say(r"A $K^\star(B)$ of `$5`, $a < b$, $$c_1/c_2$$; it costs $5 or $6. [L](g.md#l)")
    page = page_alone(text)
    assert page.count("<math") == 3 and "<mi>K</mi>" in page and "mathjax/" not in page.lower()
    words = BeautifulSoup(page, "html.parser").find("body").get_text()
    assert "it costs $5 or $6. L" in " ".join(words.split()) and ".md" not in page
