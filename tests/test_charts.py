"""Charts in a page: offline, readable without scripts, and used by mouse and keyboard with them."""

import re
import shutil

import altair as alt
import pandas as pd
import pytest
import vl_convert as vlc

from lib import ROOT
from lib.page import charts, prose, sphinx, vega
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


CELLS = [
    "from lib.page import charts, prose",
    "from chapters.own_workload import own_figures as own",
    "drawn = own.with_critical(points, None)",
    "prose.figure(\n    charts.sized(drawn, 90),\n    'T', 'C', 'fig-a', 'd')",
    "prose.figure(points, 'T', 'C', 'fig-b', 'd')",
]


def test_a_figure_has_its_address_and_the_function_that_drew_it():
    drawn = sphinx.drawn_by(CELLS)
    assert drawn == {"fig-a": "chapters.own_workload.own_figures.with_critical"}
    page = "".join(prose.figure(chart(), "T", "C", name, "d") for name in ("fig-a", "fig-b"))
    named, linked = (sphinx.with_origins(page, drawn, at) for at in ("", "https://host/blob/main"))
    file, told = "chapters/own_workload/own_figures.py", "drawn by <code>with_critical</code>, "
    assert f"{told}{file}, line " in named and "https://host" not in named
    assert re.search(rf'{told}<a href="https://host/blob/main/{file}#L\d+">', linked)
    assert named.count('href="#fig-') == 2 and named.count("drawn by") == 1


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
    described = "Bars. Move the slider.", "fig-x", "Two lines."
    return prose.figure(charts.sized(drawn, 200), "T", *described)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A file with one figure and what the book's pages load for it."""
    folder = tmp_path_factory.mktemp("page")
    charts.enable()
    shutil.copytree(ROOT / "lib/page/static", folder, dirs_exist_ok=True)
    bundle = vlc.javascript_bundle(vl_version=vega.VEGALITE)
    (folder / "vega.js").write_text("(() => {" + bundle + "})();", encoding="utf-8")
    loads = "".join(f'<link rel="stylesheet" href="{name}.css">' for name in ("book", "charts"))
    scripts = ("vega", "charts", "page")
    loads += "".join(f'<script defer src="{name}.js"></script>' for name in scripts)
    answer = '<details id="answer"><summary>Answer</summary><p>Yes.</p></details>'
    style = "html { background: #fff } html[data-theme=dark] { background: #14181e }"
    head = f'<meta charset="utf-8"><style>{style}</style>{loads}'
    text = f'<!DOCTYPE html><html lang="en">{head}<body>{figure()}{answer}</body></html>'
    (folder / "page.html").write_text(text, encoding="utf-8")
    return (folder / "page.html").as_uri()


@pytest.fixture
def tab(browser, page):
    """The page, with its figure drawn; it fails the test on an error that the page causes."""
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
    told = tab.locator("svg.marks").get_attribute("aria-label")
    assert told == "Two lines. The arrow keys go from mark to mark."
    seen = []
    for key in ("Tab",) * 12:
        tab.keyboard.press(key)
        seen.append(tab.evaluate(ACTIVE))
    names = [name for name, *_ in seen]
    assert {"show only one", "show only two", "Save this figure as CSV"} <= set(names)
    assert all(outline == "solid" for name, outline, _ in seen if name)
    tab.locator("svg.marks").focus()
    told = ("one; steps: 1", "one; steps: 2", "two; steps: 6")
    for key, words in zip(("ArrowRight", "ArrowRight", "End"), told):
        tab.keyboard.press(key)
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
    tab.locator("input[type=range]").fill("0")  # as it began: nothing to keep
    tab.wait_for_function("location.hash === '#fig-x'")
