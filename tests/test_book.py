"""The built pages in a real browser: charts and controls alive, nothing from another host."""

import functools
import http.server
import json
import re
import struct
import threading
from urllib.parse import unquote, urlparse

import pytest

from lib import ROOT
from lib.page import charts
from tests.conftest import needs_browser

HTML = ROOT / "_build" / "html"
MOVED = ROOT / "lib" / "page" / "moved"  # pages at old addresses, which redirect
PAGES = sorted(
    str(page)
    for page in (p.relative_to(HTML) for p in HTML.rglob("*.html"))
    if "_static" not in page.parts and page.name != "index.html" and not (MOVED / page).exists()
)

SOURCES = {page: (HTML / page).read_text(encoding="utf-8") for page in PAGES}
MOST = 4e6  # bytes of a page and all that it loads; the theme's icons are 1.5e6 of them
FRONT = "intro.html"
built = pytest.mark.skipif(not PAGES, reason="no built book; `make book` builds it")


def loaded(text):
    """The addresses that a page loads."""
    for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", text):
        if not re.search(r'\brel="(?:canonical|next|prev|search|index)"', tag):
            yield from re.findall(r'\b(?:src|href)="([^"]+)"', tag)


@built
def test_pages_are_light_and_load_nothing_from_another_host():
    for page, text in SOURCES.items():
        loads = [address for address in loaded(text) if not address.startswith("data:")]
        assert loads and not [a for a in loads if re.match(r"(https?:)?//", a)], page
        files = {(HTML / page).parent / unquote(urlparse(a).path) for a in loads}
        size = len(text.encode()) + sum(f.stat().st_size for f in files if f.is_file())
        assert size <= MOST, page


@built
def test_old_addresses_of_this_book_lead_somewhere():
    for old in MOVED.rglob("*.html"):
        file = HTML / old.relative_to(MOVED)
        (target,) = set(re.findall(r'(?:href="|url=)([^"]+)', file.read_text(encoding="utf-8")))
        page, _, section = target.partition("#")
        assert section in (file.parent / page).read_text(encoding="utf-8")


@built
@pytest.mark.parametrize("page", PAGES)
def test_per_cent_and_minus_have_one_spelling_and_every_figure_has_an_address(page):
    unread = r"<style.*?</style>|<pre.*?</pre>|<code.*?</code>|data:[^\"]*"
    text = re.sub(unread, "", SOURCES[page], flags=re.S)
    script = r'<script type="application/json">(.*?)</script>'
    data = " ".join(re.findall(script, text, flags=re.S))
    words = re.sub(r"<script.*?</script>|<svg.*?</svg>|<[^>]*>", " ", text, flags=re.S)
    assert not re.findall(r".{9}\d%|.{9}(?<![\w.,)\]–−-])-\d.{3}", words)
    assert not re.findall(r'.{9}(?<![.\d])\d+%(?=[ ,"]).{9}', data)
    figure = r'<figure class="book-figure" id="([^"]+)"(.*?)</figure>'
    for name, drawn in re.findall(figure, text, flags=re.S):
        assert f'<a href="#{name}">Link to this figure</a>' in drawn
    assert "<merror" not in text


@built
def test_other_sites_find_a_description_and_a_preview():
    meta = r'<meta (?:name|property)="([^"]+)" content="([^"]*)"'
    for page, text in SOURCES.items():
        tags = dict(re.findall(meta, text))
        assert tags["og:title"] and tags["og:image"].endswith("_static/preview.png"), page
        lead = re.search(r"<p><strong>(.*?)</strong></p>", text, re.S)
        assert not lead or tags["description"] == tags["og:description"], page
    tags, heads = dict(re.findall(meta, SOURCES[FRONT])), r"<(?:title|h1)>(.*?)<"
    texts = *re.findall(heads, SOURCES[FRONT], re.S)[:2], tags["description"], tags["og:title"]
    assert all("batch size" in text for text in texts)
    preview = (HTML / "_static" / "preview.png").read_bytes()
    assert struct.unpack(">II", preview[16:24]) == (1200, 630)


def scales(part):
    """Every pair of a scale's domain and range in a specification."""
    if isinstance(part, dict):
        if isinstance(part.get("domain"), list) and isinstance(part.get("range"), list):
            yield from zip(part["domain"], part["range"])
        part = list(part.values())
    for child in part if isinstance(part, list) else ():
        yield from scales(child)


@built
def test_a_method_has_one_colour_and_a_data_set_one_shape_on_all_pages():
    looks = charts.METHOD_TITLES | charts.ALGORITHM_COLOURS | charts.SHAPES
    script = r'<div class="vl-chart"[^>]*><script type="application/json">(.*?)</script>'
    specs = [json.loads(s) for text in SOURCES.values() for s in re.findall(script, text, re.S)]
    pairs = [pair for pair in scales(specs) if isinstance(pair[0], str) and pair[0] in looks]
    assert [(name, look) for name, look in pairs if looks[name] != look] == []
    assert {"sgd", "momentum", "SGD", "MNIST"} <= {name for name, _ in pairs}


@built
@needs_browser
def test_the_curves_slide_once_and_then_follow_their_reader(open_page):
    tab = open_page(FRONT)
    slider, title = tab.locator("[name=together]"), tab.locator("#fig-one-curve .book-title")
    tab.wait_for_function("document.querySelector('[name=together]').value === '1'", timeout=60_000)
    shape = title.inner_text()
    assert shape.endswith("one shape") and location(tab) == ""
    slider.focus()
    tab.keyboard.press("Home")
    tab.wait_for_function("location.hash === '#fig-one-curve?together=0'")
    assert title.inner_text().endswith("as measured") and slider.get_attribute("aria-valuetext")
    tab.keyboard.press("End")
    tab.locator("[name=pruned]").check()
    tab.wait_for_function("location.hash === '#fig-one-curve?pruned=true'")
    assert int(title.inner_text().split()[0]) > int(shape.split()[0])
    for name, value in {"C": "500", "a": "0.4", "b": "0.0001"}.items():
        tab.locator(f"[name={name}]").fill(value)
    tab.wait_for_function("location.hash.endsWith('pruned=true&C=500&a=0.4&b=0.0001')")
    assert title.inner_text().startswith("Your batch: 1,400")
    assert tab.locator("svg.marks text", has_text="your batch").count() == 1


def location(tab):
    return tab.evaluate("location.hash")


@built
@needs_browser
def test_an_address_restores_the_curves_and_paper_has_them_on_one(open_page):
    state = "#fig-one-curve?together=0.5&pruned=true"
    tab = open_page(FRONT + state, width=390)
    assert tab.locator("[name=together]").input_value() == "0.5" and location(tab) == state
    assert tab.locator("[name=pruned]").is_checked()
    tab.emulate_media(media="print")
    assert tab.locator("#fig-one-curve img").is_visible()  # the curves as one
    assert not tab.locator("#fig-one-curve .vl-live").is_visible()


@built
@needs_browser
def test_who_asks_for_less_motion_sees_one_curve_at_once(open_page):
    tab = open_page(FRONT, reduced_motion="reduce")
    assert tab.locator("[name=together]").input_value() == "1"


@built
@needs_browser
def test_keyboard_focus_is_seen_everywhere(open_page):
    tab = open_page("chapters/claims.html")
    for _ in range(14 + len(PAGES)):
        tab.keyboard.press("Tab")
        outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", tab.evaluate("document.activeElement.outerHTML.slice(0, 80)")
    buttons = "[...document.querySelectorAll('summary, button')]"
    nameless = "s => !s.textContent.trim() && !s.ariaLabel && !s.title"
    assert tab.evaluate(f"{buttons}.filter({nameless}).map(s => s.outerHTML)") == []


@pytest.fixture(scope="module")
def site():
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(HTML))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def open_page(browser, site):
    """A function that opens a page; any error or request elsewhere fails the test."""
    faults, context = [], None

    def open_it(page, width=1280, theme="light", **options):
        nonlocal context
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        tab, ours = context.new_page(), (site, "data:", "blob:")
        for name in ("mode", "theme"):
            tab.add_init_script(f"localStorage.setItem('{name}', '{theme}')")
        tab.on("console", lambda m: m.type == "error" and faults.append(m.text))
        tab.on("pageerror", lambda e: faults.append(str(e)))
        tab.on("request", lambda r: r.url.startswith(ours) or faults.append(r.url))
        tab.on("response", lambda r: r.status >= 400 and faults.append(f"{r.status} {r.url}"))
        tab.goto(f"{site}/{page}")
        if options.get("java_script_enabled", True):
            for chart in tab.locator(".vl-chart").all():
                chart.scroll_into_view_if_needed()  # a chart is drawn once it is near
                element = chart.element_handle()
                tab.wait_for_function("c => c.dataset.drawn", arg=element, timeout=60_000)
        return tab

    yield open_it
    if context:
        context.close()
    assert not faults


DRAWN = ":is(canvas, svg).marks"  # few marks are drawn as SVG
LOOK = """c => c.toDataURL ? c.toDataURL()
  : c.innerHTML.replace(/ (tabindex|aria-[a-z]+|role)="[^"]*"/g, '')"""


def changed(tab, chart, act, value):
    """Whether a chart looks different within a second of setting a control to this value."""
    drawn = chart.locator(DRAWN).first
    before = drawn.evaluate(LOOK)
    act(value)
    for _ in range(40):
        tab.wait_for_timeout(25)
        if drawn.evaluate(LOOK) != before:
            tab.wait_for_timeout(75)  # until it is fully drawn
            return True
    return False


def moves(tab, chart, slider):
    """A slider changes its chart and tells a screen reader its value, not a place in a list."""
    now, words = slider.input_value(), slider.get_attribute("aria-valuetext")
    if ends := {slider.get_attribute("min"), slider.get_attribute("max")} - {now}:
        assert words and words != now
        assert any(changed(tab, chart, slider.fill, end) for end in ends), "nothing changes"
        assert slider.get_attribute("aria-valuetext") not in (None, "", words)
        slider.fill(now)
        tab.wait_for_timeout(75)


@built
@needs_browser
@pytest.mark.parametrize("page", PAGES)
def test_charts_are_drawn_and_answer(open_page, page):
    tab = open_page(page)
    for chart in tab.locator(".vl-chart").all():
        assert int(chart.get_attribute("data-marks")) > 20
        assert not chart.locator(":scope > img").is_visible()
        for slider in chart.locator("input[type=range]:visible").all():
            moves(tab, chart, slider)
        for menu in chart.locator("select").all():
            now = menu.input_value()
            options = [o for o in menu.locator("option").all_inner_texts() if o != now]
            if options:
                assert changed(tab, chart, menu.select_option, options[-1]), "nothing changes"
                menu.select_option(now)
                tab.wait_for_timeout(75)


# How far right the words of the legends reach, and how wide the canvas is, in pixels.
REACH = """c => { let most = 0; const walk = (item, x) => { for (const m of item.items || []) {
    if (/^legend-(label|title)$/.test(item.role)) most = Math.max(most, x + m.bounds.x2);
    walk(m, m.marktype ? x : x + (m.x || 0)); } };
  walk(c.vegaView.scenegraph().root, c.vegaView.origin()[0]);
  return [most, c.querySelector('.marks').getBoundingClientRect().width]; }"""


@built
@needs_browser
@pytest.mark.parametrize("page", PAGES)
def test_page_fits_a_phone_follows_the_dark_theme_and_has_its_charts_as_tables(open_page, page):
    tab = open_page(page, width=390, theme="dark")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    drawn = tab.evaluate("[...document.querySelectorAll('.vl-chart')].map(c => c.dataset.drawn)")
    assert all(theme == "dark" for theme in drawn)
    for i in range(len(drawn)):
        assert tab.locator(f".vl-chart {DRAWN}").nth(i).bounding_box()["width"] <= 390
        reach, width = tab.locator(".vl-chart").nth(i).evaluate(REACH)
        assert reach <= width, "a legend is cut"
        read_as_a_table(tab.locator("figure:has(.vl-chart)").nth(i))


def read_as_a_table(chart):
    """Open a figure's table without a pointer: it has all values, under headings in words."""
    chart.locator(".book-data > summary").press("Enter")
    chart.locator(".book-data tbody td").first.wait_for(timeout=10_000)  # drawn once it comes near
    cells = chart.locator(".book-data tbody tr:first-child td").all_inner_texts()
    assert cells, "no rows"
    heads = chart.locator(".book-data th").all_inner_texts()
    assert len(heads) == len(cells) and not [h for h in heads if "_" in h]
    values = chart.locator(".book-data tbody").inner_text()
    assert not re.findall(r".*\b(?:NaN|null|undefined)\b.*", values)


@built
@needs_browser
def test_without_scripts_a_picture_with_words_stands_in(open_page):
    tab = open_page("chapters/sparsity.html", java_script_enabled=False)
    picture = tab.locator(".vl-chart > img").first
    assert picture.is_visible() and len(picture.get_attribute("alt")) > 40
    assert picture.bounding_box()["width"] > 300
