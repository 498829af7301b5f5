"""The renderer's contract: valid in a notebook, offline, and readable without scripts."""

import itertools
import re
from dataclasses import replace

import altair as alt
import nbformat
import numpy as np
import pandas as pd
import pytest
import vl_convert as vlc

from lib import ROOT, claims, wording
from lib.analysis import evidence
from lib.page import boxes, charts, vega


def chart():
    points = alt.Chart(pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 1.0]})).mark_point().encode(x="x:Q", y="y:Q")
    return charts.finish(points.properties(width="container"), "two <points>")


@pytest.fixture(scope="module")
def bundle():
    charts.enable()
    return chart()._repr_mimebundle_()


def test_bundle_is_a_valid_notebook_output(bundle):
    output = nbformat.v4.new_output("display_data", data=bundle)
    nbformat.validate(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("c", outputs=[output])]))
    assert {"text/html", "text/plain"} <= set(bundle)


def test_html_needs_no_network_and_has_words(bundle):
    body = bundle["text/html"].replace("https://vega.github.io/schema", "")  # an identifier, never fetched
    assert "http" not in body and 'alt="two &lt;points&gt;"' in body


def test_a_chart_without_words_is_refused():
    with pytest.raises(ValueError, match="description"):
        charts.finish(alt.Chart(), "  ")
    with pytest.raises(ValueError, match="description"):
        vega.renderer(alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x:Q").to_dict())


def test_the_pinned_converter_knows_altairs_vega_lite():
    assert vega.VEGALITE in vlc.get_vegalite_versions()


PALETTES = {
    "sparsity": [*charts.SPARSITY_COLOURS.values(), charts.GUIDE],
    "algorithm": [*charts.ALGORITHM_COLOURS.values(), charts.GUIDE],
    "method": list(charts.METHOD_COLOURS.values()),
    "outcome": list(charts.OUTCOMES.values()),
    "category": [*charts.CATEGORIES, charts.GUIDE],
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


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_colours_stand_out_on_both_grounds(palette, ground):
    assert min(contrast(colour, ground) for colour in palette) >= 3


# Machado, Oliveira and Fernandes (2009), severity 1, on linear light.
EYES = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(light):
    """CIELAB [3] of linear sRGB light [3], white D65."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ light
    xyz = xyz / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", EYES.values(), ids=EYES)
@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_colours_of_a_palette_are_told_apart(palette, eyes):
    seen = [lab(np.clip(np.array(eyes) @ linear(colour), 0, 1)) for colour in palette]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= 12


def test_text_is_legible_on_both_grounds():
    """Text takes the page's ink: a colour that stands out on white and on near-black has less than 4.5:1 on one."""
    ink = dict(re.findall(r'(light|dark): "(#\w+)"', (ROOT / "lib" / "page" / "static" / "charts.js").read_text()))
    assert min(contrast(ink[theme], ground) for theme, ground in GROUNDS.items()) >= 4.5
    sliders = charts.goal_slider([0.1, 0.2]), charts.dial("w_at", [1, 2], 1, "w", "value + ' workers'")
    for chart in (sliders[0][2], charts.captions([sliders[1][2]]), charts.nothing("nothing")):
        assert '"color"' not in chart.to_json()
    verdicts = (ROOT / "lib" / "page" / "static" / "book.css").read_text()
    light, dark = (re.findall(r"--book-\w+: (#\w+)", line) for line in verdicts.splitlines() if "--book-yes:" in line)
    assert min(contrast(c, GROUNDS["light"]) for c in light) >= 4.5 and len(light) == 3
    assert min(contrast(c, GROUNDS["dark"]) for c in dark) >= 4.5 and len(dark) == 3


def test_a_slider_says_its_value_in_words():
    rows = alt.Chart(pd.DataFrame({"goal": [0.1, 0.2], "x": [1, 2]})).mark_point().encode(x="x:Q")
    dial, _, words = charts.dial("w_at", [1, 2], 1, "w", "value + ' workers'")
    chart = charts.controlled([rows], charts.goal_slider([0.1, 0.2])) + charts.captions([words]).add_params(dial)
    told = {p["name"]: p["expr"] for p in chart.to_dict()["params"] if "expr" in p}
    assert told["w_at_text"] == "[1, 2][w_at] + ' workers'" and "[0.1, 0.2][goal_place]" in told["goal_place_text"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234, "1,234"),
        (1234.0, "1,234"),
        (999.7, "1,000"),
        (-999.7, "-1,000"),
        (999.4, "999"),
        (1000.4, "1,000"),
        (99.97, "100"),
        (1.79e-7, "1.79\u00a0×\u00a010⁻⁷"),
        (9.996e-5, "0.0001"),
        (0.03125, "0.0312"),
        (float("nan"), "—"),
        (None, "—"),
        ("a", "a"),
        (0, "0"),
        (float("inf"), "∞"),
    ],
)
def test_numbers_read_as_prose(value, text):
    assert wording.number(value) == text


def test_a_verdict_must_be_one_of_four():
    groups = evidence.table([("digits", 3.0, 2.5, 4.0, 3), ("images <b>", 1.0, 0.5, 3.0, 2)])
    judged = claims.RULES["S7"].judge(groups)
    with pytest.raises(ValueError, match="verdict: 'maybe' is not allowed"):
        boxes.claim(replace(judged, verdict="maybe"))
    with pytest.raises(ValueError, match="verdict: 'maybe' is not allowed"):
        boxes.stated("a", "b", "maybe", "c")
    assert "Does not hold" in boxes.stated("a", "b", "does not hold", "Lee & Co.")
    told = boxes.claim(judged, judged)
    assert told.count("Holds in part") == 2 and "Holds for digits, undecided for images &lt;b&gt;." in told
    assert "digits: 3 (2.5 to 4); n = 3" in told and "to hold, above 1" in told
