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
LAW = {"rho": 0.6, "within": 1.5, "smallest": 1, "largest": 1024}


def timings(overhead, example):
    return [(size, overhead + example * size) for size in SIZES]


@pytest.mark.parametrize(
    ("overhead", "example", "critical"),
    [(1e-3, 1e-4, 150), (0.5, 2e-4, 4000), (2e-3, 1e-2, 20)],
)
def test_no_batch_is_sooner_at_the_goal(overhead, example, critical):
    choice = decide.decide(timings(overhead, example), critical)
    sizes = np.geomspace(1e-2, 1e6, 20_001)
    time = (1 + critical / sizes) * (overhead + example * sizes)
    assert choice.best == pytest.approx(sizes[time.argmin()], rel=0.01)
    near = sizes[time <= (1 + decide.MORE) * time.min()]
    assert (choice.low, choice.high) == pytest.approx((near[0], near[-1]), rel=0.01)
    assert decide.decide(timings(0.0, example), critical) is None, "without a fixed time"


@pytest.fixture
def page(browser, tmp_path):
    """The form in a browser, with an address: of timings(1e-3, 1e-4), C = 150 and LAW."""
    file, page = tmp_path / "sheet.html", browser.new_page()
    file.write_text(str(decide.form(timings(1e-3, 1e-4), 150, LAW)), encoding="utf-8")
    page.goto(file.as_uri())
    yield page
    page.close()


def said(page, **entered):
    """What the form answers once this is entered."""
    for name, text in entered.items():
        page.fill(f"[name={name}]", text)
    return page.locator("output").inner_text()


@needs_browser
def test_the_form_answers_as_the_formula_does(page):
    choice, answer = decide.decide(timings(1e-3, 1e-4), 150), said(page)
    assert f"Use about {choice.best:.2g} examples" in answer
    assert f"From {choice.low:.2g} to" in answer
    assert said(page, steps="16 2075\n64 668.75\n256 317.1875") == answer  # 200 (1 + 150/B)
    assert "proportional" in said(page, times="16 1.6\n64 6.4")


@needs_browser
def test_the_form_takes_commas_and_names_a_line_that_it_cannot_read(page):
    usual = "64 0.0421\n1024 0.5"
    plain = said(page, times=usual)
    assert plain.startswith("Use about")
    for times in ("64 0,0421\n1,024 0.5", "64; 0.0421\n\n1,024, 0,5", "64,0.0421\n1024\t5e-1"):
        assert said(page, times=times) == plain
    steps = "\n".join(f"{size} {3000 + 450_000 / size:,.0f}" for size in SIZES)
    assert said(page, steps=steps, critical="") == plain
    assert said(page, steps="", critical="1,500") == said(page, critical="1500") != plain
    unread = ["sixteen", "1,024", "1 024 0.5", "64 2.1 ms", "1.024 0,5", "16 1,234", "0 1"]
    for line in [*unread, "-64 0.1", "64 0.0.1"]:
        assert f"“{line}” cannot be read" in said(page, times=f"64 0.0421\n{line}")
    assert "“many” cannot be read" in said(page, times=usual, critical="many")
    assert "two batch sizes" in said(page, times="64 0.0421", critical="150")


@needs_browser
def test_the_form_moves_a_tuned_rate_as_the_law_does(page):
    without, answer = said(page), said(page, rate="64 0.2", wanted="512")
    rate = 0.2 * (1 + 90 / 64) / (1 + 90 / 512)
    words = f"At 510 examples take a learning rate of {rate:.2g} (nine in ten: {rate / 1.5:.2g} to {1.5 * rate:.2g}). "
    assert answer == words + without
    assert said(page, times="").startswith(words), "without timings"
    assert "beyond the batch sizes tested" in said(page, wanted="4096")
    assert "“often” cannot be read" in said(page, rate="often")
    assert 'name="rate"' not in decide.form(timings(1e-3, 1e-4), 150, {})


@needs_browser
def test_what_is_entered_is_in_the_address_and_comes_back(page, browser):
    address, stranger = page.url, browser.new_page()  # with nothing kept from the first one
    answer = said(page, times="16 0,4016\n256 0.4256", critical="500", rate="64 0.1")
    stranger.goto(page.url)
    assert said(stranger) == answer and answer.startswith("At ")
    stranger.close()
    page.goto("about:blank")
    page.goto(f"{address}#takeaway")  # the job that the front page keeps is known there, too
    job = json.loads(page.evaluate("localStorage['book-job']"))
    assert job == {"C": "500", "a": 0.4, "b": 0.0001}
    assert page.url.endswith("#takeaway") and said(page) in answer


def test_the_page_that_tells_how_to_get_the_critical_batch_size_finds_a_known_noise_scale():
    """An example's gradient is the example: of mean 0.5 and deviation 3 in every direction."""
    page, _, section = decide.HOW.partition(".html#")
    text = json.loads((ROOT / f"chapters/{page}.ipynb").read_text(encoding="utf-8"))
    source = "\n".join("".join(cell["source"]) for cell in text["cells"])
    assert f"## {section.replace('-', ' ')}\n" in source.lower()
    (code,) = re.findall(r"```python\n(.*?)```", source, re.S)
    assert len(code.splitlines()) <= 15 and "lib" not in code
    exec(code, names := {})
    pairs = (0.5 + 3 * torch.randn(4000, 2, 8, 20), torch.zeros(4000, 2, 8))
    model = nn.Linear(20, 1, bias=False)
    scale = names["noise_scale"](model, lambda outputs, _: outputs.mean(), map(zip, *pairs))
    assert scale == pytest.approx(3**2 / 0.5**2, rel=0.1)
