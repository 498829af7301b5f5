"""How heavy the built pages are, and how soon their first chart is drawn: python -m benchmarks.pages [_build/html]

Pages are opened from disk, each in a fresh browser context without a cache; weights are uncompressed, of the page and of
all that it loads until its end was reached.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from urllib.parse import unquote, urlparse

from playwright.sync_api import sync_playwright

from lib import ROOT

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
WATCH = """new MutationObserver((_, watch) => { if (!document.querySelector('.vl-chart[data-drawn]')) return;
  window.firstChart = performance.now(); watch.disconnect(); })
  .observe(document, {subtree: true, attributes: true, attributeFilter: ['data-drawn']});"""
END = """async () => { for (let y = 0; y < document.body.scrollHeight; y += 700) {
  window.scrollTo(0, y); await new Promise(r => setTimeout(r, 100)); } }"""


def pages(folder: Path) -> list[Path]:
    """The pages of a built book that say something themselves."""
    return sorted(
        page
        for page in folder.rglob("*.html")
        if "_static" not in page.parts
        and page.name not in ("genindex.html", "search.html")
        and 'http-equiv="refresh"' not in page.read_text(encoding="utf-8").lower()
    )


def measure(browser, page: Path) -> dict[str, float]:
    """Bytes of the page and of what it loads, charts, and seconds to the first chart that is in view (NaN: none)."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    loaded = set()
    tab.on(
        "request",
        lambda r: (
            loaded.add(unquote(urlparse(r.url).path)) if r.url.startswith("file:") else None
        ),
    )
    tab.add_init_script(WATCH)
    tab.goto(page.as_uri())
    charts = tab.locator(".vl-chart").count()
    first = float("nan")
    if charts:
        tab.evaluate("document.querySelector('.vl-chart').scrollIntoView({block: 'center'})")
        tab.wait_for_function("window.firstChart", timeout=120_000)
        first = tab.evaluate("window.firstChart") / 1000
    tab.evaluate(END)
    tab.close()
    weight = sum(Path(path).stat().st_size for path in loaded if Path(path).is_file())
    return {"html": page.stat().st_size, "weight": weight, "charts": charts, "first": first}


def main(folder: Path) -> None:
    """Print a row per page."""
    print(f"{'page':44} {'page MB':>8} {'all MB':>8} {'charts':>7} {'first chart s':>14}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for page in pages(folder):
            m = measure(browser, page)
            name = str(page.relative_to(folder))
            print(
                f"{name:44} {m['html'] / 1e6:8.2f} {m['weight'] / 1e6:8.2f} {m['charts']:7} {m['first']:14.2f}",
                flush=True,
            )
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "_build" / "html")
    main(parser.parse_args().folder.resolve())
