"""The page on which a reader chooses what is drawn: its data, and the page itself in a browser, by mouse and by keyboard."""

import csv
import json
import re

import numpy as np
import pandas as pd
import pytest

from chapters.explore import explore, explorer
from lib import ROOT
from lib.analysis import hardware, scaling
from lib.probes import step_times
from lib.records import on_record, results
from lib.studies import plans
from tests import test_book as book

browser, site, open_page = book.browser, book.site, book.open_page  # fixtures
PAGE = "chapters/explore.html"
FILE = book.HTML / PAGE
MOST = 2_500_000  # bytes of the page and all that it loads
needs_page = pytest.mark.skipif(not FILE.exists(), reason="no built book; `make book` builds it")


# --- its data ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trials():
    """The digits' MLP with momentum, pruned in every way."""
    return results.read(on_record.gathered(workload="digits-mlp", algorithm="momentum", **explorer.FIELDS))


@pytest.fixture(scope="module")
def tables(trials):
    few = trials[trials.sparsity.isin([0.0, 0.9]) & trials.pruning.isin(["connection-sensitivity", "grasp"])]
    return explorer.tables(few[[c for c in few if c not in ("steps@0.05", "steps@0.06", "steps@0.08")]])


def of(table, goal, sparsity, pruning="connection-sensitivity"):
    rows = table[(table.goal == goal) & (table.sparsity == sparsity) & (table.pruning == pruning)]
    return rows.sort_values("batch_size") if "batch_size" in rows else rows


@pytest.mark.parametrize(("goal", "sparsity"), [(0.04, 0.0), (0.04, 0.9), (0.1, 0.9)])
def test_a_point_is_the_geometric_mean_over_searches_and_the_line_is_fitted_to_them(trials, tables, goal, sparsity):
    own = trials[(trials.sparsity == sparsity) & (trials.pruning == "connection-sensitivity")]
    searches = scaling.steps_to_result(own, goal)
    points = of(tables[0], goal, sparsity)
    for point in points.itertuples():
        kept = searches[searches.batch_size == point.batch_size]
        kept = kept[scaling.apart(kept.replicate.to_numpy(), kept.split.to_numpy())]
        assert point.searches == len(kept) >= 3 and point.missed == kept.steps.isna().sum()
        bound = np.exp(np.log(kept.steps.fillna(kept.last_step)).mean())
        assert point.steps == pytest.approx(bound) if not point.missed else point.steps > bound
        assert point.low < point.steps < point.high
    (line,) = of(tables[1], goal, sparsity).itertuples()
    curve = scaling.curve_of(searches)
    fit = scaling.fit(curve.sizes, curve.means)
    assert (line.c1, line.c2) == pytest.approx((fit.c1[0], fit.c2[0])) and line.identified
    ends = line.critical_low, line.critical, line.critical_high
    assert ends == pytest.approx([scaling.critical(curve).row("v")[name] for name in ("v_low", "v", "v_high")])


def test_a_curve_of_single_searches_is_the_best_trial_of_each(trials, tables):
    own = trials[trials.pruning == "grasp"]
    best = own.groupby("batch_size")["steps@0.1"].min()
    points = of(tables[0], 0.1, 0.9, "grasp").set_index("batch_size")
    assert len(points) >= 8 and set(points.searches) == {1}
    np.testing.assert_allclose(points.steps, best[points.index])


def test_ratios_to_the_dense_network_are_those_of_the_points_where_searches_are_the_same(tables):
    dense, sparse = (of(tables[0], 0.1, level).set_index("batch_size") for level in (0.0, 0.9))
    assert dense.over.isna().all() and sparse.over.notna().all()
    same = (dense.searches == sparse.searches) & (dense.missed == 0) & (sparse.missed == 0)
    assert same.sum() >= 8
    np.testing.assert_allclose(sparse.over[same], (sparse.steps / dense.steps)[same], rtol=0.02)
    assert ((sparse.over_low < sparse.over) & (sparse.over < sparse.over_high)).all()
    assert of(tables[0], 0.1, 0.9, "grasp").over.notna().all(), "pruned in another way, beside the same dense network"


def test_without_trials_there_are_no_curves():
    points, lines = explorer.tables(pd.DataFrame())
    assert list(points) == explorer.POINTS and list(lines) == explorer.LINES and not len(points) and not len(lines)


def test_times_are_those_measured_and_more_devices_are_never_slower():
    known = step_times.one_core("digits-mlp")
    machines = {"one": hardware.Hardware(), "more": hardware.Hardware(devices=8, bandwidth=1e9, latency=1e-6)}
    times = explorer.times({"digits-mlp": known, "none": None}, {"digits-mlp": 9000}, machines, {"digits-mlp": [1, 1024]})
    one, more = (times[times.hardware == name].set_index("batch_size").seconds for name in machines)
    assert list(one.index) == [2**n for n in range(11)] and set(times.workload) == {"digits-mlp"}
    np.testing.assert_allclose(one[known.batch_size], known.seconds)
    assert (more <= one + 1e-12).all() and more[1024] < one[1024]


def test_a_dearer_update_is_added_to_a_step_and_a_cheaper_one_is_none():
    known = pd.DataFrame({"batch_size": [4, 64], "seconds": [1e-3, 4e-3]})
    ratio = {"sgd": (1.0, 1.0), "momentum": (1.25, 1.0), "kfac": (5.0, 3.0)}
    rows = [("digits-mlp", name, b, r) for name, both in ratio.items() for b, r in zip((4, 64), both)]
    ratios = pd.DataFrame(rows, columns=["workload", "algorithm", "batch_size", "ratio"])
    found = explorer.updates({"digits-mlp": known}, ratios).set_index(["algorithm", "batch_size"]).seconds
    assert found["kfac", 4] == pytest.approx(3e-3) and found["kfac", 64] == pytest.approx(8e-3)
    assert found["momentum", 4] == found["sgd", 4] == 0  # momentum's step is the one that was timed
    assert explorer.updates({"digits-mlp": None}, ratios).empty
    assert explorer.updates({"digits-mlp": known}, ratios[ratios.algorithm != "momentum"]).empty


def test_all_methods_that_are_compared_can_be_chosen():
    cells = explorer.gathered().cells
    drawn = {c.algorithm for c in cells if c.workload == "digits-mlp" and not c.sparsity}
    assert drawn == {c.algorithm for c in plans.study("digits-which").cells}
    points = [(c.workload, c.algorithm, c.pruning, c.sparsity, c.batch_size, c.replicate, c.split) for c in cells]
    assert len(set(points)) == len(points), "one search a point"


def pack(tables, **more):
    start = {"workload": "digits-mlp", "method": ["momentum"], "sparsity": [0.0, 0.9], "goal": 0.04, **more}
    return explore.packed(*tables, pd.DataFrame(columns=explorer.TIMES), {}, start)


def test_what_is_packed_is_the_tables_to_five_digits(tables):
    data = json.loads(pack(tables))
    lines, points = (pd.DataFrame(data[name]["rows"], columns=data[name]["columns"]) for name in ("curves", "points"))
    assert len(lines) == len(tables[1]) and len(points) == len(tables[0])
    both = points.merge(lines.reset_index(names="curve"), on="curve").merge(tables[0], on=[*explorer.KEYS, "batch_size"])
    assert len(both) == len(points)
    for name in ("steps", "low", "high", "over"):
        np.testing.assert_allclose(both[f"{name}_x"].astype(float), both[f"{name}_y"].astype(float), rtol=1e-4)
    merged = lines.merge(tables[1], on=explorer.KEYS)
    np.testing.assert_allclose(merged.c1_x, merged.c1_y.astype(float), rtol=1e-4)


def test_ends_without_bound_are_told_and_a_text_ends_no_script(tables):
    lines = tables[1].assign(critical_high=np.inf)
    text = pack((tables[0], lines), pruning="</script>")
    assert '"inf"' in text and "Infinity" not in text and "</" not in text
    assert json.loads(text)["start"]["pruning"] == "</script>"


def test_more_data_than_a_page_should_hold_is_refused(tables, monkeypatch):
    monkeypatch.setattr(explore, "MOST", 1000)
    with pytest.raises(ValueError, match="data: .* bytes' is not allowed"):
        pack(tables)


def test_every_column_of_the_table_is_described(tables):
    described = " ".join(explore.COLUMNS)
    assert all(head in described for head in explore.HEADS.values())


# --- the page ---------------------------------------------------------------------------------------------------------


def embedded():
    """The page's data, as text."""
    return re.search(r'class="ex-data">(.*?)</script>', FILE.read_text(encoding="utf-8"), re.S)[1]


@needs_page
def test_the_pages_data_are_at_most_a_megabyte_and_every_colour_is_the_books():
    text = embedded()
    assert len(text.encode()) <= explore.MOST
    from lib.page import charts

    data = json.loads(text)
    assert {m["name"]: m["colour"] for m in data["methods"]}.items() <= charts.ALGORITHM_COLOURS.items()
    assert {s["level"]: s["colour"] for s in data["sparsities"]}.items() <= charts.SPARSITY_COLOURS.items()


def box(tab, name, value):
    return tab.locator(f'.ex-form [name="{name}"][value="{value}"]')


def menu(tab, name):
    return tab.locator(f'.ex-form select[name="{name}"]')


def words(tab):
    return tab.locator(".book-explore .book-title").inner_text()


def rows(tab, which=1):
    """A table of the page, its head first: 0 the lines, 1 the points."""
    shown = tab.locator(".ex-tables table").nth(which)
    return shown.evaluate("t => [...t.rows].map(r => [...r.cells].map(c => c.textContent))")


def plain(cells):
    """Cells without the commas of thousands."""
    return [re.sub(r"(?<=\d),(?=\d{3})", "", cell) for cell in cells]


def chosen(tab):
    """What the address says."""
    return dict(part.split("=") for part in tab.evaluate("location.hash").lstrip("#").split("&") if "=" in part)


def browser_test(function):
    """Skipped without a built page and without Chromium."""
    return needs_page(book.needs_browser(function))


@browser_test
def test_by_mouse_what_is_chosen_is_drawn_and_in_the_address_and_stays(open_page):
    tab = open_page(PAGE)
    data = json.loads(embedded())
    assert tab.locator(".ex-still").count() == 0 and tab.locator(".ex-point").count() == len(rows(tab)) - 1
    before = words(tab)
    assert re.match(r"Critical batch size \d+ \(\d+–\d+\) dense", before) and chosen(tab) == {}

    menu(tab, "workload").select_option("mnist-simple-cnn")
    usual = {w["name"]: w["goal"] for w in data["workloads"]}
    assert chosen(tab)["workload"] == "mnist-simple-cnn" and float(chosen(tab)["goal"]) == usual["mnist-simple-cnn"]
    menu(tab, "workload").select_option("digits-mlp")
    menu(tab, "goal").select_option("0.08")
    assert chosen(tab)["goal"] == "0.08" and words(tab) != before
    box(tab, "sparsity", 0.5).check()
    box(tab, "method", "sgd").check()
    box(tab, "y", "examples").check()
    told = {"workload": "digits-mlp", "method": "sgd,momentum", "sparsity": "0,0.5,0.9", "goal": "0.08", "y": "examples"}
    assert chosen(tab) == told
    drawn, title, address = rows(tab), words(tab), tab.url
    assert drawn[0][4] == "examples" and {row[0] for row in drawn[1:]} == {"momentum", "SGD"}

    tab.reload()
    assert tab.url == address and rows(tab) == drawn and words(tab) == title
    tab.go_back()
    tab.wait_for_function("document.querySelector('[name=y][value=steps]').checked")
    assert rows(tab)[0][4] == "steps" and chosen(tab)["y"] == "steps"
    tab.go_forward()
    tab.wait_for_function("document.querySelector('[name=y][value=examples]').checked")
    assert rows(tab) == drawn


def curves(data):
    return [dict(zip(data["curves"]["columns"], row)) for row in data["curves"]["rows"]]


@browser_test
def test_by_keyboard_every_control_is_reached_seen_and_moved(open_page):
    tab = open_page(PAGE)
    menu(tab, "workload").focus()
    seen = []
    for _ in range(40):
        name = tab.evaluate("document.activeElement.name || document.activeElement.getAttribute('class')")
        seen.append(name)
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", name
        if "ex-point" in name:
            break
        tab.keyboard.press("Tab")
    assert {"workload", "goal", "pruning", "method", "sparsity", "y"} <= set(seen) and "ex-point" in seen[-1]
    first = tab.locator(".ex-tip").inner_text()
    tab.keyboard.press("ArrowRight")
    assert first and tab.locator(".ex-tip").inner_text() not in ("", first)

    box(tab, "sparsity", 0.5).focus()
    tab.keyboard.press("Space")
    assert chosen(tab)["sparsity"] == "0,0.5,0.9" and tab.evaluate("document.activeElement.name") == "sparsity"
    box(tab, "y", "steps").focus()
    tab.keyboard.press("ArrowDown")
    assert chosen(tab)["y"] == "examples"
    menu(tab, "goal").focus()
    at = menu(tab, "goal").evaluate("menu => menu.selectedIndex")
    tab.keyboard.press("ArrowDown")
    assert chosen(tab)["goal"] == menu(tab, "goal").evaluate(f"menu => menu.options[{at + 1}].value")
    assert tab.evaluate("document.activeElement.name") == "goal"
    live = tab.locator(".book-explore .book-title[aria-live=polite]")
    assert "Critical batch size" in live.inner_text()


@browser_test
def test_what_was_not_measured_cannot_be_chosen_and_says_why(open_page):
    tab, data = open_page(PAGE), json.loads(embedded())
    for name in [w["name"] for w in data["workloads"]][:12:3]:
        menu(tab, "workload").select_option(name)
        own = [c for c in curves(data) if c["workload"] == name]
        for method in data["methods"]:
            measured = any(c["algorithm"] == method["name"] for c in own)
            control = box(tab, "method", method["name"])
            assert control.is_enabled() == measured and bool(control.get_attribute("title")) == (not measured)
        timed = any(row[0] == name for row in data["times"]["rows"])
        assert box(tab, "y", "time").is_enabled() == timed
    menu(tab, "workload").select_option("digits-mlp")
    for level in (0.9, 0):
        box(tab, "sparsity", level).click()
    assert tab.locator('.ex-form input[name="sparsity"]:checked').count() == 1, "one stays"


@browser_test
@pytest.mark.parametrize("which", ["lines", "points"])
@pytest.mark.parametrize("choice", ["", "#workload=digits-mlp&method=momentum,sgd&sparsity=0,0.9&goal=0.05&y=relative"])
def test_the_file_is_the_table(open_page, tmp_path, which, choice):
    tab = open_page(PAGE + choice)
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name=f"Download {which}.csv").click()
    name = waiting.value.suggested_filename
    assert name.startswith(f"{which}-digits-mlp-0.0") and name.endswith(".csv")
    waiting.value.save_as(tmp_path / name)
    with open(tmp_path / name, encoding="utf-8", newline="") as file:
        written = list(csv.reader(file))
    shown = rows(tab, ["lines", "points"].index(which))
    assert written[0] == ["workload", "goal", *shown[0]] and len(written) == len(shown) > 2
    for line, row in zip(written[1:], shown[1:]):
        assert line[:2] == ["digits-mlp", chosen(tab).get("goal") or menu(tab, "goal").input_value()]
        assert [{"inf": "∞", "": "—"}.get(cell, cell) for cell in line[2:]] == plain(row)


@browser_test
def test_axes_are_what_they_say(open_page):
    """Examples are steps times the batch size; time is steps times the time of a step; a line at a point is c1/B + c2."""
    tab, data = open_page(PAGE), json.loads(embedded())
    seconds = {row[2]: row[3] for row in data["times"]["rows"] if row[:2] == ["digits-mlp", "one-core"]}
    steps = [list(map(float, plain(row[3:]))) for row in rows(tab)[1:]]
    lines = {float(row[2]): [float(c) for c in plain(row[3:5])] for row in rows(tab, 0)[1:]}
    levels = [float(row[2]) for row in rows(tab)[1:]]
    for level, row in zip(levels, steps):
        assert row[4] == pytest.approx(lines[level][0] / row[0] + lines[level][1], rel=2e-3)
    for axis, factor in (("examples", lambda b: b), ("time", lambda b: seconds[b])):
        box(tab, "y", axis).check()
        for row, before in zip(rows(tab)[1:], steps):
            expected = [before[i] * factor(before[0]) for i in (1, 2, 3, 4)]
            assert list(map(float, plain(row[4:8]))) == pytest.approx(expected, rel=2e-3)
    assert menu(tab, "hardware").is_visible()


@browser_test
def test_a_methods_own_update_counts_in_time(open_page):
    tab, data = open_page(f"{PAGE}#workload=digits-mlp&method=kfac&sparsity=0&goal=0.04&y=steps"), json.loads(embedded())
    step = {row[2]: row[3] for row in data["times"]["rows"] if row[:2] == ["digits-mlp", "one-core"]}
    update = {row[2]: row[3] for row in data["updates"]["rows"] if row[:2] == ["digits-mlp", "kfac"]}
    steps = {float(plain(row)[3]): float(plain(row)[4]) for row in rows(tab)[1:]}
    box(tab, "y", "time").check()
    seconds = {float(plain(row)[3]): float(plain(row)[4]) for row in rows(tab)[1:]}
    assert set(update) & set(seconds)
    for b in set(update) & set(seconds):
        assert seconds[b] == pytest.approx(steps[b] * (step[b] + update[b]), rel=2e-3)


@browser_test
def test_the_link_is_the_address_and_a_wrong_one_becomes_a_right_one(open_page):
    tab = open_page(f"{PAGE}#workload=nothing&method=sgd,x&sparsity=0.9,7&goal=0.5&y=z")
    told = {"workload": "digits-mlp", "method": "sgd", "sparsity": "0.9", "goal": menu(tab, "goal").input_value(), "y": "steps"}
    assert chosen(tab) == told and told["goal"] != "0.5"
    tab.get_by_role("button", name="Copy link").click()
    said = tab.locator(".ex-form output")
    tab.wait_for_function("document.querySelector('.ex-form output').childNodes.length")
    assert "Copied" in said.inner_text() or said.locator("input").input_value() == tab.url


@browser_test
def test_it_works_from_a_file_and_asks_nothing_of_a_network(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab, asked, faults = context.new_page(), [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.goto(FILE.as_uri())
    box(tab, "y", "examples").check()
    assert chosen(tab)["y"] == "examples" and rows(tab)[0][4] == "examples"
    tab.reload()
    assert rows(tab)[0][4] == "examples"
    tab.go_back()
    tab.wait_for_function("document.querySelector('[name=y][value=steps]').checked")
    assert not faults and all(url.startswith(("file:", "data:", "blob:")) for url in asked)
    context.close()


@browser_test
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_phone_whatever_is_chosen(open_page, theme):
    tab = open_page(PAGE, width=390, theme=theme)
    for choice in ("workload=digits-mlp&method=momentum,sgd,nesterov&sparsity=0,0.5,0.9&goal=0.05&y=time",
                   "workload=fashion-mnist-simple-cnn&method=momentum&sparsity=0,0.9&goal=0.18&y=relative"):  # fmt: skip
        tab.evaluate(f"location.hash = '{choice}'")
        tab.wait_for_timeout(300)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.locator(".ex-chart").bounding_box()["width"] <= 390
        ink = tab.evaluate("getComputedStyle(document.querySelector('.ex-chart text')).fill")
        assert (sum(map(int, re.findall(r"\d+", ink)[:3])) > 380) == (theme == "dark"), "letters that the page's ground hides"


@browser_test
def test_the_page_is_light_enough_to_load(open_page):
    tab = open_page(PAGE)
    sizes = "['resource', 'navigation'].flatMap(kind => performance.getEntriesByType(kind)).map(e => e.decodedBodySize)"
    assert len(embedded()) < sum(tab.evaluate(sizes)) <= MOST


@browser_test
def test_without_scripts_the_default_choice_and_its_table_stand(open_page):
    tab = open_page(PAGE, java_script_enabled=False)
    assert tab.locator(".ex-still").is_visible() and tab.locator(".ex-form").count() == 0
    assert tab.locator(".ex-tables tbody tr").count() > 10
    assert not re.search(r"(?i)click|choose|slider|menu", tab.locator(".book-explore figcaption").inner_text())


def test_the_caption_asks_for_no_controls():
    assert not re.search(r"(?i)click|choose|slider|menu", explore.CAPTION)


def test_the_page_is_in_the_book():
    assert "chapters/explore" in (ROOT / "_toc.yml").read_text(encoding="utf-8")
