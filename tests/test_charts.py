"""The renderer's contract: valid in a notebook, offline, and readable without scripts."""

import math
import re
from dataclasses import replace

import altair as alt
import nbformat
import pandas as pd
import pytest

from lib import claims, wording
from lib.claims import claim
from lib.page import axes, boxes, charts, prose, vega


def chart():
    points = alt.Chart(pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 1.0]})).mark_point().encode(x="x:Q", y="y:Q")
    return points.properties(width="container", description="two <points>")


@pytest.fixture(scope="module")
def bundle():
    charts.enable()
    return chart()._repr_mimebundle_()


def test_bundle_is_a_valid_notebook_output(bundle):
    output = nbformat.v4.new_output("display_data", data=bundle)
    nbformat.validate(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("c", outputs=[output])]))
    assert {"text/html", "text/plain"} <= set(bundle)


def test_html_needs_no_network_and_has_words(bundle):
    body = re.sub("https://vega.github.io/schema|http://www.w3.org/[0-9a-z/]+", "", bundle["text/html"])  # names, not fetched
    assert "http" not in body and 'alt="two &lt;points&gt;"' in body


def test_a_name_in_single_braces_is_refused():
    assert prose.say("$x_{a}$ is {{ n }}", {"n": 2}) == "$x_{a}$ is 2"
    assert prose.say("One\nline.\n- first\n  item\n- second") == "One line.\n- first item\n- second"
    with pytest.raises(ValueError, match="double braces"):
        prose.say("{n} steps", {"n": 2})


def test_a_chart_without_words_is_refused():
    with pytest.raises(ValueError, match="description"):
        prose.figure(chart(), "Title", "Caption", "fig-x", "  ")
    with pytest.raises(ValueError, match="description"):
        vega.renderer(alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x:Q").to_dict())


def test_a_rounded_value_is_still_the_one_that_a_slider_chooses():
    goals = [0.123456789, 0.2]
    rows = pd.DataFrame({"goal": goals, "x": [1, 2]})
    chart = charts.controlled([alt.Chart(rows).mark_point().encode(x="x:Q")], charts.slider("goal", goals, goals[0], "g", "value"))
    svg = vega.picture(vega.tidy(chart.to_dict()))
    assert len(re.findall("<path [^>]*fill='transparent'|<path [^>]*stroke=\"#4c78a8\"", svg)) == 1


def test_the_titles_of_axes_say_what_a_menu_chose():
    charts.enable()
    points = alt.Chart(pd.DataFrame({"x": [1], "what": ["time"]})).mark_point().encode(x="x:Q")
    drawn = charts.controlled([points], charts.menu("what", ["time", "price"], "time", "show"))
    chart = alt.layer(drawn, axes.beside("what_chosen"), axes.below("what_chosen + ' in all'"))
    svg = vega.picture(vega.tidy(chart.to_dict()))
    assert ">time</text>" in svg and ">time in all</text>" in svg


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234, "1,234"),
        (-999.7, "−1,000"),
        (-1.2e-6, "−1.2\u00a0×\u00a010⁻⁶"),
        (-math.inf, "−∞"),
        (9.996e-5, "0.0001"),
        (0.03125, "0.0312"),
        (float("nan"), "—"),
    ],
)
def test_numbers_read_as_prose(value, text):
    assert wording.number(value) == text


def test_a_verdict_must_be_known_and_a_box_says_each_network():
    rule = claims.Claim("S7", "t", "three_regimes", "p.", "s", "r.", "above", 1.25)
    groups = [claims.Group("digits", 3.0, 2.5, 4.0, 3), claims.Group("images <b>", 1.0, 0.5, 3.0, 2, own=True)]
    judged = claim.judged(rule, groups)
    for verdict in ("maybe", "holds in part"):
        with pytest.raises(ValueError, match=f"verdict: '{verdict}' is not allowed"):
            boxes.stated("a", "b", verdict, "c")
        with pytest.raises(ValueError, match=f"verdict: '{verdict}' is not allowed"):
            boxes.claim(replace(judged, verdict=verdict))
    assert "Does not hold" in boxes.stated("a", "b", "does not hold", "Lee & Co.")
    told = boxes.claim(judged, judged)
    assert told.count("On small stand-ins only: for") == 2 and "★ images &lt;b&gt;" in told
    assert "<td>3</td><td>2.5 to 4</td><td>3</td><td>for</td>" in told and "Needed: above 1.25." in told
