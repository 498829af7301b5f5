"""How the built pages read: short sentences, few numbers, a short lead, no page that goes on, nothing left unfilled."""

import functools
import json
import re

import pytest
from bs4 import BeautifulSoup

from lib import ROOT

HTML = ROOT / "_build" / "html"
PAGES = sorted([*HTML.glob("chapters/*.html"), *HTML.glob("intro.html")])


@functools.cache
def written_on(page):
    """The article of a page without scripts and pictures; empty where it leads elsewhere."""
    found = re.search(r"<article\b.*</article>", page.read_text(encoding="utf-8"), re.S)
    drawn = r"<(script|style|svg)\b.*?</\1>|(?<=src=\")data:[^\"]*"
    return re.sub(drawn, "", found[0], flags=re.S) if found else ""


def whole_article(page):
    return BeautifulSoup(written_on(page), "html.parser").find("article")


PAGES = [page for page in PAGES if "<article" in page.read_text(encoding="utf-8")]
APPENDICES = {
    "batch_size_is_data_parallelism", "noisy_quadratic", "gradients", "contraction", "operator_cost", "claims", "status",
    "glossary", "protocol", "steps_to_result", "frameworks",
}  # fmt: skip

# What is read, but is not prose: code, tables, verdicts (each has its own rules), what is folded away, and pictures.
ASIDE = ["script", "style", "pre", "table", "nav", "details", "svg", "img", "figure > :not(figcaption)", ".book-title",
         ".book-box", ".book-provenance", ".toctree-wrapper", ".cell", ".prev-next-area"]  # fmt: skip

built = pytest.mark.skipif(not PAGES, reason="no built book; `make book` builds it")


def article(page):
    """A page's article without what is no prose; a formula counts as one word."""
    found = whole_article(page)
    for formula in found.select("math, .math, .book-formula"):
        formula.replace_with(" formula ")
    for part in found.select(", ".join(ASIDE)):
        part.decompose()
    return found


@functools.cache
def paragraphs(page, captions=True):
    """The paragraphs, items and captions of a page, in their order, as texts of at least three words."""
    kinds = ["p", "li", "dd", *(["figcaption"] if captions else [])]
    innermost = [part for part in article(page).find_all(kinds) if not part.find(kinds)]
    texts = [" ".join(part.get_text(" ").split()) for part in innermost]
    return [text for text in texts if len(text.split()) > 2]


def sentences(text):
    """The sentences of a text, which end with a mark and go on with a capital, an opening bracket or a quotation."""
    parts = re.split(r"(?<!\bal\.)(?<!\be\.g\.)(?<=[.!?:;])[)”\"]?\s+(?=[A-Z(\[“\"])", text)
    return [part for part in parts if len(part.split()) > 2]


def words(text):
    return len(text.split())


def numbers(sentence):
    """How many numbers a sentence has, without years in brackets and what belongs to names, as FC-128 and c2."""
    bare = re.sub(r"\((?:19|20)\d\d[a-z]?\)|\b(?:19|20)\d\d\b|\[[^\]]*\]", "", sentence)
    return len(re.findall(r"(?<![\w.,-])[-−]?\d[\d,.]*", bare))


def test_sentences_and_numbers_are_counted_as_a_reader_would():
    text = "A batch of 1,024 saves 3.5 times the steps. Lee et al. (2021) saw it on FC-128, too (see c2). It is 1.5 × 4."
    assert [words(s) for s in sentences(text)] == [9, 11, 5]
    assert [numbers(s) for s in sentences(text)] == [2, 0, 2]


def told(page):
    return [sentence for text in paragraphs(page) for sentence in sentences(text)]


def share_and_where(wrong):
    """The share of the book's sentences that are wrong, and the pages that have them, the worst first."""
    every = {page.stem: told(page) for page in PAGES}
    bad = {name: [s for s in found if wrong(s)] for name, found in every.items()}
    total = sum(map(len, every.values()))
    where = sorted(((len(found), name, found[0]) for name, found in bad.items() if found), reverse=True)
    return sum(map(len, bad.values())) / total, "\n".join(f"{n} in {name}, as: {first}" for n, name, first in where)


@built
def test_sentences_are_short():
    every = {page.stem: [words(s) for s in told(page)] for page in PAGES}
    mean = sum(map(sum, every.values())) / sum(map(len, every.values()))
    means = sorted(((sum(n) / len(n), name) for name, n in every.items() if n), reverse=True)
    assert mean <= 17, "\n".join(f"{m:.1f} words a sentence in {name}" for m, name in means if m > 17)


@built
def test_few_sentences_are_long():
    share, where = share_and_where(lambda sentence: words(sentence) > 30)
    assert share <= 0.04, where


@built
def test_few_sentences_are_full_of_numbers():
    share, where = share_and_where(lambda sentence: numbers(sentence) > 3)
    assert share <= 0.04, where


@built
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_lead_is_short(page):
    """What stands between the title and the first figure, heading, table or line that tells what was measured."""
    found = whole_article(page)
    for formula in found.select("math"):
        formula.replace_with(" formula ")
    lead = []
    for part in found.find("h1").find_all_next(["p", "figure", "h2", "table", "li"]):
        text = " ".join(part.get_text(" ").split())
        if part.name != "p" or text.startswith("Measured on"):
            break
        lead += [] if part.find_parent(class_="book-box") else text.split()
    assert len(lead) <= 60 and (lead or page.stem == "intro"), f"{len(lead)} words before the first figure: {' '.join(lead[:20])} …"


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
    assert not re.search(r"\{(glue|ref|cite|numref|term|doc)\b|\{[a-z_]+\}|glue:|Undefined|<lib\.", text)
    assert not re.search(r"\bnan\b|\bNone\b(?! of)|\binf\b", text), "a value that is none"


@built
def test_each_answer_has_four_sentences():
    page = whole_article(HTML / "chapters" / "answers.html")
    for part in page.select("math, .book-pill"):
        part.replace_with(" formula " if part.name == "math" else "")
    asked = [heading for heading in page.find_all("h2") if "?" in heading.get_text()]
    replies = {h.get_text(): sentences(" ".join(h.find_next("p").get_text(" ").split())) for h in asked}
    assert len(replies) == 9 and {q: s for q, s in replies.items() if len(s) != 4} == {}


# Words that were used up, and what to write instead.  Claims' texts are in boxes and tables, which are not read.
WORN = {
    r"surely|for sure": "how likely it is",
    r"dear(?:er|est)?": "expensive",
    r"hangs? on": "depends on",
    r"tells? (?:nothing|of|much|less|all)": "says nothing, reveals, determines",
    r"(?<!initialised from )so many": "this many, or the number",
    r"hardly": "barely, or by how much",
    r"at hand": "available, or who read it",
    r"anew": "again, or new",
    r"(?:lies?|stands?|trained|steps|kept|process are [^ ]+) apart": "differ by, or separately",
    r"of which the \w+ (?:is|are|was|were)": "whose",
    r"nobody": "no one",
    r"as everywhere else": "as on the other pages",
}


def written():
    """Every text in the source of a page by its file: Markdown, and the strings of code."""
    for path in sorted([ROOT / "intro.md", ROOT / "README.md", *ROOT.glob("chapters/*.md")]):
        yield path.name, re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for path in sorted(ROOT.glob("chapters/*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            strings = re.findall(r'"""(.*?)"""|"([^"\n]*)"', source, flags=re.DOTALL)
            markdown = cell["cell_type"] == "markdown"
            # Names of values in braces are not read
            text = source if markdown else " ".join(a or b for a, b in strings if " " in (a or b))
            yield path.name, re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", text, flags=re.DOTALL)


def worn(texts):
    """Where the texts (of name and text) have a worn word, and what would be better."""
    return [
        f"{name}: “{hit[0]}” → {better}, in: …{text[max(0, hit.start() - 40) : hit.end() + 40]}…"
        for name, text in texts
        for word, better in WORN.items()
        for hit in re.finditer(rf"\b(?:{word})\b", text, flags=re.IGNORECASE)
    ]


def test_worn_words_stay_away():
    assert worn([("a page", "Small batches are dearer.")]) == [
        "a page: “dearer” → expensive, in: …Small batches are dearer.…"
    ]
    assert not (found := worn(written())), "\n".join(found)


@built
def test_worn_words_stay_away_from_built_pages():
    found = worn((page.stem, sentence) for page in PAGES for sentence in told(page))
    assert not found, "\n".join(found)
