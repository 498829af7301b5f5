"""The batch-size sheet: its formula finds the best batch, and its form says the same."""

import json
import re

import numpy as np
import pytest
import torch
from torch import nn

from chapters.sheet import decide
from lib import ROOT
from lib.probes import noise_scale
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


def test_a_critical_batch_size_is_read_off_three_steps():
    assert decide.critical_of([(size, 200 + 30_000 / size) for size in SIZES]) == pytest.approx(150)
    assert decide.critical_of([(size, 30_000 / size) for size in SIZES]) > 1e6


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
def test_a_job_is_kept_for_the_front_page_and_comes_back(browser, tmp_path):
    (tmp_path / "sheet.html").write_text(str(decide.form(timings(1e-3, 1e-4), 150, {})), encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "sheet.html").as_uri())
    page.fill("[name=times]", "16 0.4016\n256 0.4256")
    page.fill("[name=critical]", "500")
    said, kept = page.locator("output").inner_text(), page.evaluate("localStorage['book-job']")
    assert json.loads(kept) == {"C": "500", "a": 0.4, "b": 0.0001}
    page.reload()
    assert page.locator("output").inner_text() == said
    page.close()


def test_a_tuned_rate_is_proportional_to_small_batches_and_kept_at_large_ones():
    def move(size):
        return decide.rate_at(size, (64, 0.2), 100, 0.6)

    assert move(64) == pytest.approx(0.2)
    assert move(0.02) / move(0.01) == pytest.approx(2, rel=1e-3)
    assert move(1e7) == pytest.approx(0.2 * (1 + 60 / 64), rel=1e-4)
    assert move(60) == pytest.approx(move(1e12) / 2)


@needs_browser
def test_the_form_moves_a_tuned_rate_as_the_law_does(browser):
    page = browser.new_page()
    page.set_content(str(decide.form(timings(1e-3, 1e-4), 150, LAW)))
    without = page.locator("output").inner_text()
    page.fill("[name=rate]", "64 0.2")
    page.fill("[name=wanted]", "512")
    said = page.locator("output").inner_text()
    at, low, high = (decide.rate_at(512, (64, 0.2), 150, rho) for rho in (0.6, 0.4, 0.9))
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
def test_what_is_entered_is_in_the_address_and_another_reader_sees_it(browser, tmp_path):
    (tmp_path / "sheet.html").write_text(str(decide.form(timings(1e-3, 1e-4), 150, LAW)), encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "sheet.html").as_uri())
    entered = {"times": "16 0,4016\n1,024 0.5024", "steps": "", "critical": "500", "rate": "64 0.1"}
    for name, text in entered.items():
        page.fill(f"[name={name}]", text)
    said, sent = page.locator("output").inner_text(), page.url
    assert "#decide?" in sent and said.startswith("At ")
    other = browser.new_context().new_page()  # with nothing of the first reader's kept
    other.goto(sent)
    assert other.locator("output").inner_text() == said
    assert {name: other.input_value(f"[name={name}]") for name in entered} == entered
    other.goto("about:blank")
    other.goto((tmp_path / "sheet.html").as_uri() + "#takeaway")
    assert other.url.endswith("#takeaway") and other.input_value("[name=critical]") == "150"
    page.close()
    other.context.close()


ANSWERS = json.loads((ROOT / "chapters/answers.ipynb").read_text(encoding="utf-8"))["cells"]
MARKDOWN = ["".join(cell["source"]) for cell in ANSWERS if cell["cell_type"] == "markdown"]


def printed():
    """The function that the page of answers prints, and its lines."""
    (code,) = re.findall(r"```python\n(.*?)```", "\n".join(MARKDOWN), re.S)
    names = {}
    exec(code, names)
    return names["noise_scale"], [line for line in code.splitlines() if line.strip()]


def test_the_form_says_where_to_get_the_critical_batch_size():
    page, _, section = decide.HOW.partition("#")
    titles = [re.sub(r"\W+", "-", text.lstrip("# ").lower()) for text in MARKDOWN if text.startswith("## ")]
    assert page == "answers.html" and section in titles
    assert f'href="{decide.HOW}"' in decide.form(timings(1e-3, 1e-4), 150, {})


@pytest.mark.parametrize("deviation", [1.0, 3.0])
def test_the_printed_function_finds_a_known_noise_scale(deviation):
    """The gradient of an example is the example: mean 0.5 and a known deviation in every direction."""
    noise_of, lines = printed()
    model = nn.Linear(20, 1, bias=False)
    pairs = [[(0.5 + deviation * torch.randn(8, 20), None) for _ in range(2)] for _ in range(4000)]
    found = noise_of(model, lambda outputs, _: outputs.mean(), pairs)
    assert found == pytest.approx(deviation**2 / 0.5**2, rel=0.1)
    assert len(lines) <= 15 and not any("lib" in line for line in lines)


def test_the_printed_function_is_the_estimator_from_two_batch_sizes():
    """Of McCandlish et al. (2018), appendix A.1: from |g|^2 of micro-batches and of their mean; and that of the book."""
    noise_of, _ = printed()
    model, loss, size = nn.Linear(5, 3), nn.CrossEntropyLoss(), 16
    pair = [(torch.randn(size, 5), torch.randint(3, (size,))) for _ in range(2)]
    grads = []
    for x, y in pair:
        parts = torch.autograd.grad(loss(model(x), y), list(model.parameters()))
        grads.append(torch.cat([part.flatten() for part in parts]))
    small = sum(g.square().sum() for g in grads) / 2
    large = (sum(grads) / 2).square().sum()
    signal = (2 * size * large - size * small) / size
    noise = (small - large) / (1 / size - 1 / (2 * size))
    assert noise_of(model, loss, [pair]) == pytest.approx(float(noise / signal), rel=1e-4)
    trace, square = noise_scale.estimate(noise_scale.gram(torch.stack(grads).double()), size)
    assert noise_of(model, loss, [pair]) == pytest.approx(trace / square, rel=1e-4)
