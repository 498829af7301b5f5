"""The renderer's contract: valid in a notebook, offline, and readable without scripts."""

import json
import math
import re
from dataclasses import replace

import altair as alt
import nbformat
import numpy as np
import pandas as pd
import pytest

from lib import claims, wording
from lib.claims import claim
from lib.page import boxes, charts, prose, vega


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


def test_a_chart_without_words_is_refused():
    with pytest.raises(ValueError, match="description"):
        prose.figure(chart(), "Title", "Caption", "fig-x", "  ")
    with pytest.raises(ValueError, match="description"):
        vega.renderer(alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x:Q").to_dict())


LEVELS = [0.0, 0.5, 0.7, 0.9, 0.95]  # of sparsity, on record
PALETTES = {
    "sparsity": [*map(charts.sparsity_colour, LEVELS), charts.GUIDE],
    "algorithm": [*dict.fromkeys(charts.ALGORITHM_COLOURS.values()), charts.DENSE, charts.GUIDE],
    "method": list(charts.METHOD_COLOURS.values()),
    "outcome": list(charts.OUTCOMES.values()),
    "category": [*charts.CATEGORIES, charts.DENSE, charts.GUIDE],
}
GROUNDS = {"light": "#ffffff", "dark": "#14181e"}  # of the theme's pages


def linear(colour):
    """Red, green and blue light [3] of an sRGB colour, 0 to 1."""
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """Of WCAG 2."""
    low, high = sorted(linear(c) @ [0.2126, 0.7152, 0.0722] for c in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_colours_stand_out_on_both_grounds(palette):
    assert min(contrast(colour, ground) for colour in palette for ground in GROUNDS.values()) >= 3


def curves():
    """Steps of two kinds of networks at two goals; the rows of one lack a value."""
    sizes = 2.0 ** np.arange(8)
    parts = [
        pd.DataFrame({"batch_size": sizes, "steps": times * (1000 / sizes + 10), "sparsity": level, "goal": goal, "note": None})
        for level, times in ((0.0, 1), (0.5, 1.02), (0.9, 3))
        for goal in (0.1, 0.2)
    ]
    return pd.concat(parts, ignore_index=True)


def test_a_page_has_what_the_data_have_and_tells_it_in_words():
    marks = alt.Chart(curves()).mark_point().encode(x="batch_size:Q", y="steps:Q", tooltip=["batch_size:Q", "note:N"])
    spec = vega.tidy(marks.properties(width="container").to_dict())
    (rows,) = spec["datasets"].values()
    assert len(rows) == 48 and not any("note" in row for row in rows), "null is told as zero"
    assert {row["goal"] for row in rows} == {0.1, 0.2} and rows[3]["steps"] == 135
    assert [t["title"] for t in spec["encoding"]["tooltip"]] == ["batch size", "note"]
    assert vega.unpacked(vega.packed(spec)) == spec
    assert len(vega.packed(spec)) < 0.5 * len(json.dumps(marks.to_dict()))


def test_a_rounded_value_is_still_the_one_that_a_slider_chooses():
    goals = [0.123456789, 0.2]
    rows = pd.DataFrame({"goal": goals, "x": [1, 2]})
    chart = charts.controlled([alt.Chart(rows).mark_point().encode(x="x:Q")], charts.slider("goal", goals, goals[0], "g", "value"))
    svg = vega.picture(vega.tidy(chart.to_dict()))
    assert len(re.findall("<path [^>]*fill='transparent'|<path [^>]*stroke=\"#4c78a8\"", svg)) == 1


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
