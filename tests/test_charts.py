"""Charts on a page: offline, readable without scripts, with them used by mouse and keyboard."""

import math
import re
import shutil
import struct

import altair as alt
import numpy as np
import pandas as pd
import pytest
import vl_convert as vlc
from docutils import nodes

from lib import ROOT, claims, wording
from lib.claims import claim
from lib.page import boxes, charts, prose, shared_figures, sphinx, vega
from tests.conftest import needs_browser


def chart(**encoding):
    rows = pd.DataFrame({"x": [1.0, 2.0], "y": [0.5, -0.5]})
    points = alt.Chart(rows).mark_point().encode(**{"x": "x:Q", "y": "y:Q", **encoding})
    return points.properties(width="container", description="two <points>")


def drawn(chart):
    """The picture of a chart, in the book's theme."""
    charts.enable()
    return vega.picture(vega.tidy(chart.to_dict()))


def test_a_chart_without_words_is_refused():
    with pytest.raises(ValueError, match="description"):
        prose.figure(chart(), "Title", "Caption", "fig-x", "  ")


def test_a_rounded_value_is_still_the_one_that_a_slider_chooses():
    goals = [0.123456789, 0.2]
    rows = pd.DataFrame({"goal": goals, "x": [1, 2]})
    points = alt.Chart(rows).mark_point().encode(x="x:Q")
    slider = charts.slider("goal", goals, goals[0], "g", "'now ' + value")
    svg = drawn(charts.controlled([points], slider))
    marks = '<path [^>]*stroke="#4c78a8"|<path [^>]*stroke="#c98100"'
    assert len(re.findall(marks, svg)) == 1 and ">now 0.123456789<" in svg


def test_numbers_read_as_prose_and_a_little_short_of_the_whole_never_as_the_whole():
    values = 1234, -999.7, -1.2e-6, -math.inf, 9.996e-5, 0.03125, math.nan, 0.9996, 1.0
    words = "1,234 −1,000 −1.2\u00a0×\u00a010⁻⁶ −∞ 0.0001 0.0312 — 0.9996 1"
    assert list(map(wording.number, values)) == words.split(" ")
    shares = 0.995, 0.9999, 172 / 173, -0.9999, 0.99999999, 1.0, 0.0, 0.004
    words = "99.5 99.99 99 −99.99 99.999999 100 0 0.4"
    assert list(map(wording.percent, shares)) == [f"{word}\u00a0%" for word in words.split()]
    rounded = [wording.percent(share, 0) for share in (0.9951, 0.004, 0.994, 0.0, 1.0)]
    assert rounded == [f"{word}\u00a0%" for word in ("99.5", "0.4", "99", "0", "100")]
    assert wording.span((0.2, 0.999)) == "0.20–0.999" and wording.brief(0.9996) == "0.9996"


def test_a_box_says_each_network():
    rule = claims.Claim("S7", "t", "three_regimes", "p.", "s", rule="r.", threshold=1.25)
    images = claims.Group("images <b>", 1.0, 0.5, 3.0, 2, theirs=True)
    judged = claim.judged(rule, [claims.Group("digits", 3.0, 2.5, 4.0, 3), images])
    box = boxes.claim(judged)
    assert "★ images &lt;b&gt;" in box and "Needed: above 1.25." in box
    assert '<td>● yes</td><td data-head="effect">3</td><td data-head="90 %">2.5 to 4</td>' in box


def test_names_beside_lines_stand_apart_on_the_axis():
    names = ["sgd", "adam", "muon"]
    rows = pd.DataFrame({"curve": ["a"] * 3 + ["b"] * 3, "algorithm": names * 2, "batch_size": 8})
    rows = rows.assign(steps=[100, 101, 102, 1000, 1001, 4000])
    ends = shared_figures.line_ends(rows, "algorithm", ["curve"], [100, 5000], 340)
    for _, part in ends.groupby("curve"):
        places = 340 * np.log(np.sort(part.steps)) / np.log(50)
        assert (np.diff(places) > shared_figures.LABEL_GAP - 0.01).all()
        assert part.steps.min() >= 100 - 1e-6
    assert list(ends.words) == ["Adam", "Muon", "SGD"] * 2


def test_a_part_reads_as_a_fraction_however_its_page_rounds_it():
    rows = pd.DataFrame({"x": [2.0**-10, 0.3, 4], "y": 1})
    axis = charts.fractions(values=[2.0**-10, 0.25, 0.3, 4])
    x = alt.X("x:Q", axis=axis, scale=charts.log())
    marks = alt.Chart(rows).mark_point().encode(x=x, y="y:Q")
    svg = drawn(charts.sized(marks, 90))
    labels = re.findall(r">([\d./,]+)</text>", svg)
    assert {"1/1,024", "1/4", "0.3", "4"} <= set(labels)


# --- in a browser, without a book -----------------------------------------------------------------


def figure():
    """Two lines with points, an interval, a faint region, a legend to choose from, and a slider."""
    rows = pd.DataFrame({"batch_size": [1, 2, 4] * 4, "steps": range(1, 13)})
    rows = rows.assign(kind=(["one"] * 3 + ["two"] * 3) * 2, goal=[0.1] * 6 + [0.2] * 6)
    rows = rows.assign(low=rows.steps / 1.2, high=rows.steps * 1.2)
    colour = charts.by_name("kind", {"one": charts.GREEN, "two": charts.INDIGO})
    pick, faded = charts.picked("kind")
    base = alt.Chart(rows).encode(x=charts.batch_axis(rows.batch_size), color=colour, opacity=faded)
    y = alt.Y("steps:Q", scale=charts.log(10))
    layers = charts.curve(base, y, charts.log(10), ["kind:N", "steps:Q"])
    control = charts.goal_slider([0.1, 0.2])
    region = alt.Chart(rows[:1]).mark_rect(color=charts.GUIDE, opacity=0.15)
    region = region.encode(y=alt.Y("low:Q"), y2="high:Q")
    drawn = charts.controlled([region, layers[0].add_params(pick), *layers[1:]], control)
    drawn = drawn.add_params(charts.title(["T", "At 20 %"], control))
    return prose.figure(charts.sized(drawn, 200), "T", "Bars. Move the slider.", "fig-x", "Two lines.")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A file with one figure and what the book's pages load for it."""
    folder = tmp_path_factory.mktemp("page")
    charts.enable()
    shutil.copytree(ROOT / "lib/page/static", folder, dirs_exist_ok=True)
    bundle = vlc.javascript_bundle(vl_version=vega.VEGALITE)
    (folder / "vega.js").write_text("(() => {" + bundle + "})();", encoding="utf-8")
    loads = [f'<link rel="stylesheet" href="{name}.css">' for name in ("book", "charts")]
    loads += [f'<script defer src="{name}.js"></script>' for name in ("vega", "charts", "page")]
    answer = '<details id="answer"><summary>Answer</summary><p>Yes.</p></details>'
    wide = boxes.table(pd.DataFrame([["a network on digits, momentum"] * 5]))
    style = "html { background: #fff } html[data-theme=dark] { background: #14181e }"
    head = f'<meta charset="utf-8"><style>{style}</style>{"".join(loads)}'
    text = f'<!DOCTYPE html><html lang="en">{head}<body>{figure()}{answer}<div class="bd-content">{wide}</div>'
    text += '<h2 id="end">End</h2><div style="height:3000px"></div></body></html>'
    (folder / "page.html").write_text(text, encoding="utf-8")
    return (folder / "page.html").as_uri()


@pytest.fixture
def tab(browser, page):
    """The page with its figure drawn; any error that the page causes fails the test."""
    faults = []
    tab = browser.new_page(viewport={"width": 900, "height": 700})
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.goto(page)
    tab.wait_for_selector(".vl-chart[data-drawn=light]", timeout=60_000)
    yield tab
    tab.close()
    assert not faults


ACTIVE = """() => { const at = document.activeElement, box = at.getBoundingClientRect();
  return [at.getAttribute('aria-label'), getComputedStyle(at).outlineStyle, box.width]; }"""


@needs_browser
def test_marks_and_legends_are_reached_and_used_by_keyboard(tab):
    label = tab.locator("svg.marks").get_attribute("aria-label")
    assert label == "Two lines. The arrow keys go from mark to mark."
    outlines = {}
    for _ in range(12):
        tab.keyboard.press("Tab")
        name, outline, _ = tab.evaluate(ACTIVE)
        outlines[name] = outline
    assert {"show only one", "show only two", "Save this figure as CSV"} <= set(outlines)
    assert all(outline == "solid" for name, outline in outlines.items() if name)
    tab.locator("svg.marks").focus()
    marks = {"ArrowRight": "one; steps: 1", "ArrowRight ": "one; steps: 2", "End": "two; steps: 6"}
    for key, words in marks.items():
        tab.keyboard.press(key.strip())
        name, outline, width = tab.evaluate(ACTIVE)
        assert name == f"kind: {words}" and outline == "solid" and width > 0
    assert "two" in tab.locator("#vg-tooltip-element.visible").inner_text()
    entry = tab.get_by_label("show only one")
    entry.focus()
    faint = tab.locator('svg.marks .role-mark [opacity="0.1"]')  # behind what is singled out
    before = faint.count()
    for key, pressed in (("Enter", "true"), ("Enter", "false"), (" ", "true"), ("Escape", "false")):
        tab.keyboard.press(key)
        is_pressed = "([e, p]) => e.getAttribute('aria-pressed') === p"
        tab.wait_for_function(is_pressed, arg=[entry.element_handle(), pressed])
        assert (faint.count() > before) == (pressed == "true")


@needs_browser
def test_a_figure_is_saved_as_picture_and_as_data(tab, tmp_path):
    for form, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("CSV", b"batch_size,steps,kind")):
        with tab.expect_download() as saved:
            tab.get_by_label(f"Save this figure as {form}").click()
        file = tmp_path / saved.value.suggested_filename
        saved.value.save_as(file)
        assert file.name == f"fig-x.{form.lower()}" and start in file.read_bytes()[:200]
    picture = (tmp_path / "fig-x.svg").read_text(encoding="utf-8")
    for words in ("one", ">T<", ">Bars.<", "page.html#fig-x"):  # legend, title, caption, address
        assert words in picture
    assert "goal: validation error" in picture and "Move the slider" not in picture


@needs_browser
def test_what_is_chosen_is_in_the_title_and_in_the_address_which_restores_it(tab, page):
    slider = tab.locator("input[type=range]")
    slider.fill("1")
    tab.wait_for_function("location.hash === '#fig-x?goal_place=1'")
    tab.goto("about:blank")
    tab.goto(f"{page}#fig-x?goal_place=1")
    tab.wait_for_selector(".vl-chart[data-drawn]")
    assert tab.locator("input[type=range]").input_value() == "1"
    assert "20" in tab.locator(".book-value").inner_text()
    assert tab.locator(".book-title").inner_text() == "At 20 %"
    with tab.expect_download() as saved:
        tab.get_by_label("Save this figure as SVG").click()
    assert "page.html#fig-x?goal_place=1<" in saved.value.path().read_text(encoding="utf-8")
    tab.locator("input[type=range]").fill("0")  # as at first: nothing to keep
    tab.wait_for_function("location.hash === '#fig-x'")


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_deep_link_lands_below_charts_until_the_reader_scrolls(tab, page, width):
    tab.set_viewport_size({"width": width, "height": 800})
    tab.goto(f"{page}?#end")
    tab.wait_for_selector(".vl-chart[data-drawn]")
    top = "document.getElementById('end').getBoundingClientRect().top"
    for scrolled in (0, 500):
        tab.evaluate(f"scrollBy(0, {scrolled})")
        tab.wait_for_timeout(200)
        tab.evaluate(f"document.body.style.paddingTop = '{90 + 2 * scrolled}px'")  # as if a chart grew
        tab.wait_for_timeout(200)
        assert (abs(tab.evaluate(top)) < 2) == (scrolled == 0)


@needs_browser
def test_a_phone_shows_every_column_of_a_row(tab):
    tab.set_viewport_size({"width": 390, "height": 700})
    assert tab.evaluate("[...document.querySelectorAll('td')].every(c => c.getBoundingClientRect().right <= 390)")


SHADES = """() => [...document.querySelectorAll('svg.marks .role-mark > *')].map(part => {
  const style = getComputedStyle(part), lines = style.fill === 'none' || part.tagName === 'line';
  return [part.parentNode.getAttribute('class').split(' ')[0], lines ? style.stroke : style.fill,
    Number(style.opacity) * Number(style.strokeOpacity)]; })"""


def contrast(colour, opacity, ground):
    """WCAG's contrast of a colour on a page, at its opacity."""

    def bright(parts):
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear))

    behind = [int(ground[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    front = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
    seen = [opacity * f + (1 - opacity) * b for f, b in zip(front, behind)]
    high, low = sorted((bright(seen), bright(behind)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@needs_browser
@pytest.mark.parametrize(("theme", "ground"), [("light", "#ffffff"), ("dark", "#14181e")])
def test_marks_bars_and_regions_are_seen_on_either_page(tab, theme, ground):
    tab.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    tab.wait_for_selector(f".vl-chart[data-drawn={theme}]")
    least = {}
    for kind, *shade in tab.evaluate(SHADES):
        least[kind] = min(contrast(*shade, ground), least.get(kind, math.inf))
    assert least["mark-rect"] >= (1.4 if theme == "dark" else 1.1)
    for kind in ("mark-rule", "mark-symbol", "mark-line"):
        assert least[kind] >= (4.4 if theme == "dark" else 3)


@needs_browser
def test_paper_has_answers_open_and_no_words_on_what_cannot_be_done_there(tab):
    placed = "document.querySelector('.book-figure').computedStyleMap().get('float').toString()"
    assert tab.locator(".book-live").is_visible() and tab.evaluate(placed) == "none"
    tab.emulate_media(media="print")
    assert tab.evaluate(placed) == "left"
    assert tab.locator("#answer p").is_visible()
    for unused in (".book-live", ".book-take", ".vega-bindings"):
        assert not tab.locator(unused).is_visible()
    box = tab.locator("svg.marks").bounding_box()
    drawn = [float(n) for n in tab.locator("svg.marks").get_attribute("viewBox").split()[2:]]
    assert box["width"] / box["height"] == pytest.approx(drawn[0] / drawn[1], rel=0.02)


def test_a_page_is_described_by_its_lead_alone():
    strong = nodes.strong("", "Two  words.")
    mixed = nodes.paragraph("", "", nodes.strong("", "Bold"), nodes.Text(" and more"))
    lead = nodes.paragraph("", "", nodes.Text(""), strong, nodes.Text(""))
    assert sphinx.lead_of(nodes.section("", mixed, lead)) == "Two words."
    assert sphinx.lead_of(nodes.section("", mixed)) == ""


def test_a_preview_holds_the_chart_and_all_words_within_its_edges():
    words = ("How large a <i>batch</i> size?", "57 curves", "Doubling " * 30, "B", "https://x.org")
    svg = sphinx.preview(drawn(chart()), words)
    assert vlc.svg_to_png(svg)[16:24] == struct.pack(">II", 1200, 630)
    places = re.findall(r'<text x="36"[^>]* y="(\d+)">([^<]*)', svg)
    assert max(int(y) for y, _ in places) < 630 and sum("Doubling" in t for _, t in places) > 3
    assert places[-1][1] == "https://x.org" and "How large a" in places[0][1]
