"""How the built pages read: short sentences, few numbers, short leads, nothing left unfilled."""

import functools
import re

import pytest
from bs4 import BeautifulSoup

from lib import ROOT

HTML = ROOT / "_build" / "html"
PAGES = sorted([*HTML.glob("chapters/*.html"), *HTML.glob("intro.html")])
PAGES = [page for page in PAGES if "<article" in page.read_text(encoding="utf-8")]


@functools.cache
def written_on(page):
    """The article of a page without scripts and pictures."""
    found = re.search(r"<article\b.*</article>", page.read_text(encoding="utf-8"), re.S)
    drawn = r"<(script|style|svg)\b.*?</\1>|(?<=src=\")data:[^\"]*"
    return re.sub(drawn, "", found[0], flags=re.S)


def whole_article(page):
    return BeautifulSoup(written_on(page), "html.parser").find("article")


APPENDICES = (
    "batch_size_is_data_parallelism gradients operator_cost claims "
    "status glossary protocol steps_to_result frameworks"
).split()

# What is read, but is not prose: code, tables, verdicts (each has its own rules), what is folded
# away, and pictures.
ASIDE = (
    "script, style, pre, table, nav, details, svg, img, figure > :not(figcaption), .book-title, "
    ".book-box, .book-provenance, .toctree-wrapper, .cell, .prev-next-area"
)

built = pytest.mark.skipif(not PAGES, reason="no built book; `make book` builds it")


def article(page):
    """A page's article without what is no prose; a formula counts as one word."""
    found = whole_article(page)
    for formula in found.select("math, .math, .book-formula"):
        formula.replace_with(" formula ")
    for part in found.select(ASIDE):
        part.decompose()
    return found


@functools.cache
def paragraphs(page, captions=True):
    """The paragraphs, items and captions of a page, in order, as texts of three words or more."""
    kinds = ["p", "li", "dd", *(["figcaption"] if captions else [])]
    innermost = [part for part in article(page).find_all(kinds) if not part.find(kinds)]
    texts = [" ".join(part.get_text(" ").split()) for part in innermost]
    return [text for text in texts if len(text.split()) > 2]


def sentences(text):
    """The sentences of a text: they end with a mark; a capital, bracket or quotation follows."""
    parts = re.split(r"(?<!\bal\.)(?<!\be\.g\.)(?<=[.!?:;])[)”\"]?\s+(?=[A-Z(\[“\"])", text)
    return [part for part in parts if len(part.split()) > 2]


def words(text):
    return len(text.split())


def numbers(sentence):
    """How many numbers a sentence has, without years and what belongs to names, as FC-128; a value
    with its interval in brackets is one.
    """
    sentence = re.sub(r"\([-−+]?[\d.,]+(?:\u2060?–\u2060?| to )[-−+]?[\d.,∞]+(?:\s?%)?\)", "", sentence)
    bare = re.sub(r"\((?:19|20)\d\d[a-z]?\)|\b(?:19|20)\d\d\b|\[[^\]]*\]", "", sentence)
    return len(re.findall(r"(?<![\w.,-])[-−]?\d[\d,.]*", bare))


def told(page):
    return [sentence for text in paragraphs(page) for sentence in sentences(text)]


@built
def test_sentences_are_short_and_few_are_long_or_full_of_numbers():
    every = [(page.stem, sentence) for page in PAGES for sentence in told(page)]
    assert sum(words(sentence) for _, sentence in every) / len(every) <= 17
    for count, most in (words, 30), (numbers, 3):
        wrong = [found for found in every if count(found[1]) > most]
        assert len(wrong) <= 0.04 * len(every), wrong


@built
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_lead_is_short(page):
    """From the title to the first figure, heading, table or line that tells what was measured."""
    found = whole_article(page)
    for formula in found.select("math"):
        formula.replace_with(" formula ")
    lead = []
    for part in found.find("h1").find_all_next(["p", "figure", "h2", "table", "li"]):
        text = " ".join(part.get_text(" ").split())
        if part.name != "p" or text.startswith("Measured on"):
            break
        lead += [] if part.find_parent(class_="book-box") else text.split()
    assert len(lead) <= 60 and (lead or page.stem == "intro"), " ".join(lead)


@built
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_ends_before_its_reader_tires(page):
    most = 2000 if page.stem in APPENDICES else 1500
    total = sum(map(words, paragraphs(page, captions=False)))
    assert total <= most, f"{total} words"


@built
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_nothing_is_left_to_be_filled_in(page):
    found = whole_article(page)
    for code in found.select("pre, code, script, style, math"):
        code.decompose()
    text = found.get_text(" ")
    roles = r"\{(glue|ref|cite|numref|term|doc)\b|\{[a-z_]+\}|glue:|Undefined|<lib\."
    assert not re.search(rf"{roles}|\\(frac|mathbb|sum)\b", text)
    assert not re.search(r"\bnan\b|\bNone\b(?! of)|\binf\b", text), "a value that is none"
