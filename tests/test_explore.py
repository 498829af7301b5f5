"""The page on which a reader chooses what is drawn: its data, and the page in a browser."""

import json
import re

import numpy as np
import pytest

from chapters.explore import explorer
from lib.analysis import scaling
from lib.claims import front
from lib.records import results, selection
from lib.studies.study import Study
from tests import test_book as book
from tests.conftest import needs_browser

site, open_page = book.site, book.open_page  # fixtures
PAGE = "chapters/explore.html"
FILE = book.HTML / PAGE
needs_page = pytest.mark.skipif(not FILE.exists(), reason="no built book; `make book` builds it")


@pytest.fixture(scope="module")
def trials():
    """The digits' MLP with momentum, pruned in every way."""
    drawn = selection.curves(free=front.FREE).cells
    mlp = (c for c in drawn if (c.workload, c.algorithm) == ("digits-mlp", "momentum"))
    return results.read(Study("mlp", "", mlp))


@pytest.fixture(scope="module")
def tables(trials):
    pruned = trials.pruning.isin(["connection-sensitivity", "grasp"])
    few = trials[trials.sparsity.isin([0.0, 0.9]) & pruned]
    return explorer.tables(few.drop(columns=["steps@0.05", "steps@0.06", "steps@0.08"]))


def of(table, goal, sparsity, pruning="connection-sensitivity"):
    rows = table[(table.goal == goal) & (table.sparsity == sparsity) & (table.pruning == pruning)]
    return rows.sort_values("batch_size") if "batch_size" in rows else rows


@pytest.mark.parametrize(("goal", "sparsity"), [(0.04, 0.0), (0.1, 0.9)])
def test_a_point_is_the_geometric_mean_over_searches(trials, tables, goal, sparsity):
    """The line is fitted to these means."""
    own = trials[(trials.sparsity == sparsity) & (trials.pruning == "connection-sensitivity")]
    searches = scaling.steps_to_result(own, goal)
    for point in of(tables[0], goal, sparsity).itertuples():
        kept = searches[searches.batch_size == point.batch_size]
        kept = kept[scaling.apart(kept.replicate.to_numpy(), kept.split.to_numpy())]
        assert point.searches == len(kept) >= 3 and point.missed == kept.steps.isna().sum()
        mean = np.exp(np.log(kept.steps).mean())
        assert point.missed or point.steps == pytest.approx(mean)
    (line,) = of(tables[1], goal, sparsity).itertuples()
    curve = scaling.curve_of(searches)
    fit = scaling.fit(curve.sizes, curve.means)
    assert (line.c1, line.c2) == pytest.approx((fit.c1[0], fit.c2[0])) and line.identified


def box(tab, name, value):
    return tab.locator(f'.ex-form [name="{name}"][value="{value}"]')


def menu(tab, name):
    return tab.locator(f'.ex-form select[name="{name}"]')


def rows(tab, which=1):
    """A table of the page, its head first: 0 the lines, 1 the points."""
    shown = tab.locator(".ex-tables table").nth(which)
    return shown.evaluate("t => [...t.rows].map(r => [...r.cells].map(c => c.textContent))")


def plain(cells):
    """Cells without the commas of thousands."""
    return [re.sub(r"(?<=\d),(?=\d{3})", "", cell) for cell in cells]


@needs_page
@needs_browser
def test_by_keyboard_every_control_is_reached_seen_and_moved(open_page):
    tab = open_page(PAGE)
    menu(tab, "workload").focus()
    seen = []
    for _ in range(40):
        active = "document.activeElement"
        name = tab.evaluate(f"{active}.name || {active}.getAttribute('class')")
        seen.append(name)
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", name
        if "ex-point" in name:
            break
        tab.keyboard.press("Tab")
    assert {"workload", "goal", "pruning", "method", "sparsity", "y"} <= set(seen)
    assert "ex-point" in seen[-1]
    first = tab.locator(".ex-tip").inner_text()
    tab.keyboard.press("ArrowRight")
    assert first and tab.locator(".ex-tip").inner_text() not in ("", first)

    box(tab, "sparsity", 0.5).focus()
    tab.keyboard.press("Space")
    assert "sparsity=0,0.5,0.9" in tab.evaluate("location.hash")
    assert tab.evaluate("document.activeElement.name") == "sparsity"
    live = tab.locator(".book-explore .book-title[aria-live=polite]")
    assert "Critical batch size" in live.inner_text()


@needs_page
@needs_browser
def test_axes_are_what_they_say(open_page):
    """Examples: steps times batch size; time: times a step's; a line at a point: c1/B + c2."""
    text = FILE.read_text(encoding="utf-8")
    data = json.loads(re.search(r'class="ex-data">(.*?)</script>', text, re.S)[1])
    tab = open_page(PAGE)
    timed = [row[2:4] for row in data["times"]["rows"] if row[:2] == ["digits-mlp", "one-core"]]
    seconds = dict(timed)
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
