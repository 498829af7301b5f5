"""A reader's title may hold anything, and is shown as the text that it is: in tables, claims, notes and charts."""

import json
import re
from html.parser import HTMLParser

import altair as alt
import pandas as pd
import pytest

from lib import claims
from lib.claims import claim
from lib.page import boxes, charts, ledger_figures

TITLES = ["<!--<script>alert(1)</script>", "a & b <i>c</i> &lt; ]]> it's \"quoted\" \\ `x` {y}"]


class Page(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_comment(self, data):
        self.tags.add("comment")

    def handle_data(self, data):
        self.text.append(data)


def shows(text, title):
    page = Page(text)
    return title in "".join(page.text) and not page.tags & {"script", "i", "comment"}


@pytest.mark.parametrize("title", TITLES)
def test_claims_the_ledger_and_notes_show_it_as_text(title):
    rule = claims.Claim("L1", title, "theory", f"of {title}", title, f"on {title}.", "above", 1.0)
    judged = claim.judged(rule, [claims.Group(title, 2.0, 1.5, 3.0, 5, note=title)])
    assert shows(boxes.claim(judged), title) and "".join(Page(boxes.claim(judged)).text).count(title) == 5
    for shown in (ledger_figures.matrix([judged]), ledger_figures.papers({"paper": [judged]})):
        assert shows(shown, title)
    assert shows(boxes.stated(title, title, "holds", title), title)


def chart(title):
    rows = pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0], "curve": title, "place": 0})
    marks = alt.Chart(rows).mark_point().encode(x="x:Q", y=alt.Y("y:Q", title=title), color="curve:N", tooltip=["curve:N"])
    controls = charts.ladder_slider({title: [0.1, 0.2]}, [0, 1]), charts.menu("curve", [title], title, "workload")
    return charts.controlled([marks], *controls).properties(description=f"Steps for {title}.")


@pytest.mark.parametrize("title", [*TITLES, "a value network ][b]"])
def test_charts_show_it_as_text_and_their_scripts_end_where_they_should(title):
    charts.enable()
    bundle = chart(title)._repr_mimebundle_()
    inside = re.search(r'<script type="application/json">(.*?)</script>', bundle["text/html"], re.DOTALL)[1]
    spec = json.loads(inside)
    assert "<" not in inside and title in spec["description"]
    assert [p["value"] for p in spec["params"] if p["name"] == "curve_chosen"] == [title]
    rest = Page(bundle["text/html"].replace(inside, ""))
    assert rest.tags == {"div", "script", "img"}
