"""The renderer's contract: valid in a notebook, offline, and readable without scripts."""

import base64
import io
import itertools
import json
import math
import re
from dataclasses import replace
from urllib.parse import unquote
from xml.etree import ElementTree

import altair as alt
import nbformat
import numpy as np
import pandas as pd
import pytest
import vl_convert as vlc

from lib import ROOT, claims, wording
from lib.claims import claim
from lib.page import boxes, charts, prose, shared_figures, vega


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


def test_a_figure_reads_well_in_a_notebook_that_has_no_style_sheet():
    points = alt.Chart(pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 1.0]})).mark_point().encode(x="x:Q", y="y:Q")
    shown = prose.figure(points.properties(width="container"), "Twice as {{ n }} & more", "K* = c₁/B", "fig-x", "points", n="many")
    assert '>Twice as many &amp; more</p>' in shown and ">K* = c₁/B</figcaption>" in shown and 'id="fig-x"' in shown
    picture = re.search("<img[^>]*>", shown)[0]
    assert "max-width:100%" in picture and "background:#fff" in picture, "its ink is dark, whatever the notebook's ground"
    inks = set(re.findall("<text[^>]* fill='#([0-9a-f]{3,6})'", unquote(picture)))
    assert all(contrast("#" + (i if len(i) == 6 else "".join(2 * c for c in i)), GROUNDS["light"]) >= 4.5 for i in inks) and inks


def test_a_chart_without_words_is_refused():
    with pytest.raises(ValueError, match="description"):
        prose.figure(chart(), "Title", "Caption", "fig-x", "  ")
    with pytest.raises(ValueError, match="description"):
        vega.renderer(alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x:Q").to_dict())


def test_the_pinned_converter_knows_altairs_vega_lite():
    assert vega.VEGALITE in vlc.get_vegalite_versions()


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


def difference(one, other):
    """CIEDE2000 between two colours in CIELAB, after Sharma, Wu and Dalal (2005); 1 is just noticeable side by side."""
    chroma = np.hypot(one[1], one[2]), np.hypot(other[1], other[2])
    grey = 0.5 * (1 - np.sqrt(np.mean(chroma) ** 7 / (np.mean(chroma) ** 7 + 25.0**7)))
    (l1, c1, h1), (l2, c2, h2) = (
        (v[0], np.hypot(v[1] * (1 + grey), v[2]), np.degrees(np.arctan2(v[2], v[1] * (1 + grey))) % 360) for v in (one, other)
    )
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    light, strong = (l1 + l2) / 2, (c1 + c2) / 2
    waves = ((0.17, 1, -30, -1), (0.24, 2, 0, 1), (0.32, 3, 6, 1), (0.20, 4, -63, -1))
    tint = 1 + sum(sign * size * np.cos(np.radians(times * hue + by)) for size, times, by, sign in waves)
    parts = np.array([
        (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)),
        (c2 - c1) / (1 + 0.045 * strong),
        2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2) / (1 + 0.015 * strong * tint),
    ])  # fmt: skip
    bent = 2 * np.sqrt(strong**7 / (strong**7 + 25.0**7)) * np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    return np.sqrt(parts @ parts - bent * parts[1] * parts[2])


@pytest.mark.parametrize(
    ("one", "other", "known"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (50, 3.2592, 0.335), 1.0),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_measure_of_colours_is_that_of_its_authors(one, other, known):
    """Pairs from the table of Sharma, Wu and Dalal (2005)."""
    assert difference(np.array(one), np.array(other)) == pytest.approx(known, abs=1e-4)


@pytest.mark.parametrize("eyes", EYES.values(), ids=EYES)
@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_colours_of_a_palette_are_told_apart(palette, eyes):
    seen = [lab(np.clip(np.array(eyes) @ linear(colour), 0, 1)) for colour in palette]
    assert min(difference(a, b) for a, b in itertools.combinations(seen, 2)) >= 8


@pytest.mark.parametrize("eyes", EYES.values(), ids=EYES)
def test_the_sparser_the_darker_whoever_looks(eyes):
    levels = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    light = [lab(np.clip(np.array(eyes) @ linear(charts.sparsity_colour(s)), 0, 1))[0] for s in levels]
    assert all(a > b for a, b in itertools.pairwise(light))


def test_a_level_between_two_has_a_colour_between_theirs_and_dense_has_one_everywhere():
    assert charts.sparsity_colour(0.99) == charts.sparsity_colour(0.95) != charts.sparsity_colour(0.9)
    low, mid, high = (linear(charts.sparsity_colour(s)) for s in (0.5, 0.6, 0.7))
    assert ((mid - low) * (high - mid) >= 0).all() and (mid != low).any()
    assert charts.sparsity_colour(0) == charts.METHOD_COLOURS["dense"] == charts.DENSE
    assert charts.DENSE not in charts.ALGORITHM_COLOURS.values() and len(set(charts.CATEGORIES)) >= 10
    with pytest.raises(ValueError, match="sparsity"):
        charts.sparsity_colour(1)


def test_text_is_legible_on_both_grounds():
    """Text takes the page's ink: a colour that stands out on white and on near-black has less than 4.5:1 on one."""
    ink = dict(re.findall(r'(light|dark): "(#\w+)"', (ROOT / "lib" / "page" / "static" / "charts.js").read_text(encoding="utf-8")))
    assert min(contrast(ink[theme], ground) for theme, ground in GROUNDS.items()) >= 4.5
    sliders = charts.goal_slider([0.1, 0.2]), charts.dial("w_at", [1, 2], 1, "w", "value + ' workers'")
    for chart in (sliders[0][2], charts.captions([sliders[1][2]]), charts.nothing("nothing")):
        assert '"color"' not in chart.to_json()
    verdicts = (ROOT / "lib" / "page" / "static" / "book.css").read_text(encoding="utf-8")
    screens = [line for line in verdicts.splitlines() if line.startswith("html") and "--book-yes:" in line]
    light, dark = (re.findall(r"--book-\w+: (#\w+)", line) for line in screens)
    assert min(contrast(c, GROUNDS["light"]) for c in light) >= 4.5 and len(light) == 3
    assert min(contrast(c, GROUNDS["dark"]) for c in dark) >= 4.5 and len(dark) == 3


def test_a_slider_says_its_value_in_words():
    rows = alt.Chart(pd.DataFrame({"goal": [0.1, 0.2], "x": [1, 2]})).mark_point().encode(x="x:Q")
    dial, _, words = charts.dial("w_at", [1, 2], 1, "w", "value + ' workers'")
    chart = charts.controlled([rows], charts.goal_slider([0.1, 0.2])) + charts.captions([words]).add_params(dial)
    told = {p["name"]: p["expr"] for p in chart.to_dict()["params"] if "expr" in p}
    assert told["w_at_text"] == "[1, 2][w_at] + ' workers'" and "[0.1, 0.2][goal_place]" in told["goal_place_text"]


def curves():
    """Steps of two kinds of networks at two goals; the rows of one lack a value."""
    sizes = 2.0 ** np.arange(8)
    parts = [
        pd.DataFrame({"batch_size": sizes, "steps": times * (1000 / sizes + 10), "sparsity": level, "goal": goal, "note": None})
        for level, times in ((0.0, 1), (0.5, 1.02), (0.9, 3))
        for goal in (0.1, 0.2)
    ]
    return pd.concat(parts, ignore_index=True)


def test_names_beside_lines_keep_their_order_and_their_distance():
    within, height = [5, 4000], 300
    ends = shared_figures.line_ends(curves(), "batch_size", "steps", "sparsity", ["goal"], within, height)
    assert len(ends) == 6 and set(ends.batch_size) == {128.0} and set(ends.words) == {"dense", "0.5", "0.9"}
    for _, part in ends.groupby("goal"):
        at = height * np.log(within[1] / part.sort_values("sparsity").steps) / np.log(within[1] / within[0])
        assert (np.diff(at) <= -shared_figures.LABEL_GAP + 1e-6).all(), "dense lowest, and none on another"
    joined = pd.concat([curves().query("sparsity == 0.9"), curves().query("sparsity < 0.9")])
    joined.index = joined.groupby("sparsity").cumcount()  # as that of tables that were joined
    again = shared_figures.line_ends(joined, "batch_size", "steps", "sparsity", ["goal"], within, height)
    pd.testing.assert_frame_equal(*(e.sort_values(["goal", "sparsity"], ignore_index=True) for e in (ends, again)))
    alone = shared_figures.line_ends(curves().query("sparsity == 0.9"), "batch_size", "steps", "sparsity", ["goal"], within, height)
    assert alone.steps.to_numpy() == pytest.approx(3 * (1000 / 128 + 10)), "one that meets no other stays where its line ends"


@pytest.mark.parametrize("at", [[290.0, 295.0, 299.0], [1.0, 2.0, 3.0], [5.0, 5.0, 5.0, 200.0]])
def test_names_that_meet_at_an_end_of_the_axis_stay_on_it(at):
    placed = shared_figures._apart(np.array(at), 300)
    assert placed.min() >= 0 and placed.max() <= 300
    assert (np.diff(placed) >= shared_figures.LABEL_GAP - 1e-9).all()


def test_networks_are_listed_as_a_person_would():
    names = ["width 64 on MNIST", "CNN on Fashion-MNIST", "ResNet on CIFAR-10", "width 8 on MNIST", "CNN on digits"]
    assert charts.in_order(names) == [names[i] for i in (4, 3, 0, 1, 2)]
    assert charts.in_order(["fixed steps", "fixed epochs"]) == ["fixed steps", "fixed epochs"]


def test_the_largest_effects_come_first():
    rows = pd.DataFrame({"row": ["a", "a", "b", "b", "c"], "ratio": [1.0, 4.0, 3.0, 3.0, float("inf")]})
    assert shared_figures.by_effect(rows, "ratio") == ["b", "a", "c"]


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


def test_the_picture_of_a_chart_is_a_small_svg_with_all_its_words(bundle):
    source = re.search('src="data:image/svg\\+xml;utf8,([^"]*)"', bundle["text/html"])[1]
    drawn = ElementTree.fromstring(unquote(source))
    words = [t.text for t in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"x", "y", "1.0", "2.0"} <= set(words) and "aria" not in source and "font-family" in drawn.attrib


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234, "1,234"),
        (1234.0, "1,234"),
        (999.7, "1,000"),
        (-999.7, "−1,000"),
        (-0.047, "−0.047"),
        (-1.2e-6, "−1.2\u00a0×\u00a010⁻⁶"),
        (-math.inf, "−∞"),
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


def test_a_download_holds_the_table_and_says_what_its_columns_are():
    frame = pd.DataFrame({"steps": [3, 5], "goal": [0.04, 0.05], "other": 0})
    link = boxes.download(frame, "some.csv.gz", {"goal": "an error < 1", "steps": "a count"})
    packed = base64.b64decode(re.search(r'download="some.csv.gz" href="data:application/gzip;base64,([^"]+)"', link)[1])
    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(packed), compression="gzip"), frame[["goal", "steps"]])
    assert "an error &lt; 1" in link and link == boxes.download(frame, "some.csv.gz", {"goal": "an error < 1", "steps": "a count"})
    with pytest.raises(ValueError, match="name: 'some.csv' is not allowed"):
        boxes.download(frame, "some.csv", {"goal": ""})


def test_long_names_of_a_legend_stand_below_each_other_on_a_phone():
    """Side by side they are wider than the page."""
    short = ["sgd", "momentum", "nesterov", "adam", "lars", "clars", "lamb", "momentum-ema", "muon", "kfac"]
    wide = [*short, "kfac-unclipped"]
    assert charts.by_algorithm(short).to_dict()["legend"]["columns"] == 2
    assert charts.by_algorithm(wide).to_dict()["legend"]["columns"] == {"expr": f"width < {charts.PHONE} ? 1 : 2"}
