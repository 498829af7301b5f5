"""The batch-size sheet: its formula finds the best batch, and its form says the same."""

import json
import re

import numpy as np
import pytest
import torch
from torch import nn

from chapters.sheet import decide
from lib import ROOT
from tests.conftest import needs_browser

SIZES = (16, 64, 256)
LAW = {"rho": 0.6, "low": 0.4, "high": 0.9, "smallest": 1, "largest": 1024}


def timings(overhead, example):
    return [(size, overhead + example * size) for size in SIZES]


@pytest.mark.parametrize(
    ("overhead", "example", "critical"),
    [(1e-3, 1e-4, 150), (0.5, 2e-4, 4000), (2e-3, 1e-2, 20)],
)
def test_no_batch_is_sooner_at_the_goal(overhead, example, critical):
    found = decide.decide(timings(overhead, example), critical)
    sizes = np.geomspace(1e-2, 1e6, 20_001)
    time = (1 + critical / sizes) * (overhead + example * sizes)
    assert found.best == pytest.approx(sizes[time.argmin()], rel=0.01)
    near = sizes[time <= (1 + decide.MORE) * time.min()]
    assert (found.low, found.high) == pytest.approx((near[0], near[-1]), rel=0.01)


def test_without_a_fixed_time_there_is_no_best_batch():
    assert decide.decide(timings(0.0, 1e-3), 100) is None


@needs_browser
def test_the_form_answers_as_the_formula_does(browser):
    times, found = timings(1e-3, 1e-4), decide.decide(timings(1e-3, 1e-4), 150)
    page = browser.new_page()
    page.set_content(str(decide.form(times, 150, LAW)))
    said = page.locator("output").inner_text()
    assert f"Use about {found.best:.2g} examples" in said and f"From {found.low:.2g} to" in said
    page.fill("[name=steps]", "\n".join(f"{size} {200 + 30_000 / size}" for size in SIZES))
    assert page.locator("output").inner_text() == said
    page.fill("[name=times]", "16 1.6\n64 6.4")
    assert "proportional" in page.locator("output").inner_text()
    page.close()


@needs_browser
def test_the_form_takes_commas_and_names_a_line_that_it_cannot_read(browser):
    page = browser.new_page()
    page.set_content(str(decide.form(timings(1e-3, 1e-4), 150, LAW)))

    def said(times, steps="", critical="150"):
        for name, text in (("times", times), ("steps", steps), ("critical", critical)):
            page.fill(f"[name={name}]", text)
        return page.locator("output").inner_text()

    plain = said("64 0.0421\n1024 0.5")
    assert plain.startswith("Use about")
    for times in ("64 0,0421\n1,024 0.5", "64; 0.0421\n\n1,024, 0,5", "64,0.0421\n1024\t5e-1"):
        assert said(times) == plain
    for form in (".0f", ",.0f"):
        steps = "\n".join(f"{size} {format(3000 + 450_000 / size, form)}" for size in SIZES)
        assert said("64 0.0421\n1024 0.5", steps, "") == plain
    thousands = [said("64 0.0421\n1024 0.5", critical=text) for text in ("1,500", "1500")]
    assert thousands[0] == thousands[1] != plain
    unread = ["sixteen", "1,024", "1 024 0.5", "64 2.1 ms", "1.024 0,5", "16 1,234", "0 1"]
    for line in [*unread, "-64 0.1", "64 0.0.1"]:
        assert f"“{line}” cannot be read" in said(f"64 0.0421\n{line}")
    assert "“many” cannot be read" in said("64 0.0421\n1024 0.5", critical="many")
    assert "two batch sizes" in said("64 0.0421")
    page.close()


@needs_browser
def test_the_form_moves_a_tuned_rate_as_the_law_does(browser):
    page = browser.new_page()
    page.set_content(str(decide.form(timings(1e-3, 1e-4), 150, LAW)))
    without = page.locator("output").inner_text()
    page.fill("[name=rate]", "64 0.2")
    page.fill("[name=wanted]", "512")
    said = page.locator("output").inner_text()
    at, low, high = (0.2 * (1 + rho * 150 / 64) / (1 + rho * 150 / 512) for rho in (0.6, 0.4, 0.9))
    assert f"At 510 examples take a learning rate of {at:.2g} ({low:.2g} to {high:.2g}). Use" in said
    assert said.endswith(without)
    page.fill("[name=wanted]", "4096")
    assert "beyond the batch sizes tested" in page.locator("output").inner_text()
    page.fill("[name=rate]", "often")
    assert "“often” cannot be read" in page.locator("output").inner_text()
    page.set_content(str(decide.form(timings(1e-3, 1e-4), 150, {})))
    assert page.locator("[name=rate]").count() == 0
    assert page.locator("output").inner_text() == without
    page.close()


@needs_browser
def test_what_is_entered_is_in_the_address_and_comes_back(browser, tmp_path):
    (tmp_path / "sheet.html").write_text(str(decide.form(timings(1e-3, 1e-4), 150, LAW)), encoding="utf-8")
    here = (tmp_path / "sheet.html").as_uri()
    page, other = browser.new_page(), browser.new_page()  # the other has nothing of the first one's kept
    page.goto(here)
    for name, text in {"times": "16 0,4016\n256 0.4256", "critical": "500", "rate": "64 0.1"}.items():
        page.fill(f"[name={name}]", text)
    said = page.locator("output").inner_text()
    other.goto(page.url)
    assert other.locator("output").inner_text() == said and said.startswith("At ")
    page.goto("about:blank")
    page.goto(f"{here}#takeaway")  # the job that the front page keeps is known there, too
    assert json.loads(page.evaluate("localStorage['book-job']")) == {"C": "500", "a": 0.4, "b": 0.0001}
    assert page.url.endswith("#takeaway") and page.locator("output").inner_text() in said
    page.close()
    other.close()


def test_the_page_that_tells_how_to_get_the_critical_batch_size_finds_a_known_noise_scale():
    """An example's gradient is the example: of mean 0.5 and deviation 3 in every direction."""
    page, _, section = decide.HOW.partition(".html#")
    text = json.loads((ROOT / f"chapters/{page}.ipynb").read_text(encoding="utf-8"))
    told = "\n".join("".join(cell["source"]) for cell in text["cells"])
    assert f"## {section.replace('-', ' ')}\n" in told.lower()
    (code,) = re.findall(r"```python\n(.*?)```", told, re.S)
    assert len(code.splitlines()) <= 15 and "lib" not in code
    exec(code, names := {})
    pairs = (0.5 + 3 * torch.randn(4000, 2, 8, 20), torch.zeros(4000, 2, 8))
    found = names["noise_scale"](nn.Linear(20, 1, bias=False), lambda out, _: out.mean(), map(zip, *pairs))
    assert found == pytest.approx(3**2 / 0.5**2, rel=0.1)
