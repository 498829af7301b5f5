"""A page's computed sentences and figures, which look alike in the book and in a rerun notebook.

Text is a Jinja2 template for Markdown that both understand: links such as
[title](sparsity.ipynb#anchor), $formulas$, no roles and no directives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping

import altair as alt
import numpy as np
from jinja2 import Environment, StrictUndefined, meta
from markupsafe import escape

from lib import require
from lib.page import vega
from lib.wording import between, brief, joined, number, percent, span

KINDS = {
    **dict.fromkeys(("yes", "mostly"), "yes"),
    "mixed": "part",
    "no": "no",
    **dict.fromkeys(("unclear", "not tested", "measured"), "open"),
}


class Html(str):
    """Text that notebooks display as HTML and Jinja2 does not escape."""

    def _repr_html_(self) -> str:
        return str(self)

    __html__ = _repr_html_


class Markdown(str):
    """Text that notebooks, and the book, display as Markdown."""

    def _repr_markdown_(self) -> str:
        return str(self)


class Lead(Markdown):
    """The beginning of a page; in notebooks it carries the page's findings by name as metadata."""

    findings: dict[str, object]

    def _repr_markdown_(self) -> tuple[str, dict]:
        text = json.dumps(self.findings, default=lambda value: getattr(value, "item", str)())
        # JSON has neither infinity nor NaN
        return str(self), {"findings": json.loads(text, parse_constant=str)}


# What a Markdown renderer may take for markup, anywhere or at the beginning of a line or item
MARK = re.compile(
    r"[*`~|\[\]\n\r\t]|(?<![^\W_])_|_(?![^\W_])|^[-+#=%(:]|^\d(?=\d*[.)](?:\s|$))"
)
# What MathJax interprets in the finished page, but not across elements
TEX = re.compile(r"[$\\]")


def escaped(value: object) -> Html:
    """HTML, valid also in Markdown, that shows a value as plain text: a reader's title or a record
    may contain anything; `Html` and `Markdown` stay as they are.

    In attributes, use Jinja2's `|e`.
    """
    if isinstance(value, Markdown) or hasattr(value, "__html__"):
        return Html(value)
    text = MARK.sub(_reference, str(escape(value)))
    return Html(TEX.sub(lambda sign: f"<span>{_reference(sign)}</span>", text))


def _reference(character: re.Match) -> str:
    return f"&#{ord(character[0])};"


PAGES = Environment(
    autoescape=True,
    finalize=lambda value: escaped(value) if isinstance(value, str) else value,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
PAGES.filters["count"] = "{:,}".format


def html(template: str, **values: object) -> Html:
    """HTML from a Jinja2 template and its values, `escaped`."""
    return Html(PAGES.from_string(template).render(values))


def say(text: str, values: Mapping[str, object] | None = None, /, **more: object) -> Markdown:
    """Sentences from a Jinja2 template and its values.

    Args:
        text: the template. Numbers print with two digits, counts as they are, None as a dash, texts
            `escaped`; $formulas$ stay untouched. Lines of a paragraph are joined; a blank line ends
            it.
        values, more: what the template may name, such as a chapter's findings.

    Raises:
        ValueError: if the template names something without a value, in any branch.
    """
    return Markdown(_filled(text, values, more))


def lead(
    question: str,
    answer: str,
    judged: Iterable = (),
    values: Mapping[str, object] | None = None,
    /,
    **more: object,
) -> Lead:
    """The beginning of a page: its question, its answer, and the verdicts on its claims, linked to
    the ledger.

    Args:
        question, answer: templates as for `say`; question "": the title is the question.
        judged: `lib.claims.Claim`s.
        values, more: what the templates may name.
    """
    texts = (_filled(text, values, more) for text in (question, answer))
    # Spaces, since rerun notebooks have none of our styles
    verdicts = "&ensp;".join(pill(claim) for claim in judged if hasattr(claim, "rule"))
    page = Lead("*{}*\n\n**{}**\n\n{}".format(*texts, verdicts).removeprefix("**\n\n"))
    page.findings = {**(values or {}), **more}
    return page


def kind(verdict: str) -> str:
    """The CSS class for a verdict's colour: on a claim, or on a page's own test."""
    return KINDS[verdict]


PILL = """\
<a class="book-pill book-{{ kind }}" href="{{ folder }}{{ page }}" title="{{ claim.paper|e }}\
{% if judged %} — its networks: {{ claim.theirs }}; ours: {{ claim.ours }}{% endif %}">\
{{ claim.key }} {{ verdict }}</a>"""


def pill(claim, folder: str = "") -> Html:
    """A claim's verdict for use within a text, linked to the ledger, or to a finding's page.

    folder: where the chapters lie, "chapters/".
    """
    judged = hasattr(claim, "rule")
    page = f"claims.html#claim-{claim.key}" if judged else f"{claim.chapter}.html"
    verdict = claim.verdict if judged else "measured"
    about = {"folder": folder, "page": page, "kind": kind(verdict)}
    return html(PILL, claim=claim, judged=judged, verdict=verdict, **about)


def pills(judged: Mapping[str, object], folder: str = "") -> dict[str, Html]:
    """The `pill` of every judged claim, by its key."""
    return {key: pill(claim, folder) for key, claim in judged.items()}


# Inline styles are for rerun notebooks, which do not have our style sheet.
FIGURE = """\
<figure class="book-figure" id="{{ name }}" style="margin:1.5em 0">\
<p class="book-title" style="font-weight:600;margin:0 0 .5em">{{ told }}</p>{{ drawn }}\
<figcaption style="font-size:.9em;margin-top:.3em;text-align:left">{{ below }}</figcaption>
<div class="book-tools"><a href="#{{ name }}">Link to this figure</a></div></figure>"""
# A caption's sentences on what to do with a pointer: left out on paper and in rerun notebooks,
# whose pictures have no controls.
POINTING = re.compile(
    r"(?:^|(?<=[.!?] )(?=[A-Z(]))(?:[^.!?]|[.!?](?! [A-Z(]))*?"
    r"\b(?i:click|hover|point at|sliders?|menus?|choose|tick)\b"
    r"(?:[^.!?]|[.!?](?! [A-Z(]|$))*[.!?]"
)
LIVE = r'<span class="book-live" style="display:none">\g<0></span>'


def figure(
    chart: alt.TopLevelMixin,
    title: str,
    caption: str,
    name: str,
    description: str,
    values: Mapping[str, object] | None = None,
    **more: object,
) -> Html:
    """A chart below a title that states its finding, and above its caption.

    Args:
        title, caption: templates as for `say`.
        name: the anchor.
        description: what is drawn, for those who do not see it.
        values, more: what the templates may name.

    Raises:
        ValueError: as `say`, for an empty description, and for errors in the chart, which Altair
            only displays as an output, so that the page would be built with them.
    """
    spec = chart.properties(description=" ".join(description.split())).to_dict()
    heading, below = (_inline(_filled(text, values, more)) for text in (title, caption))
    below = Html(POINTING.sub(LIVE, below))
    return html(FIGURE, name=name, told=heading, drawn=Html(vega.drawn(spec)), below=below)


def variables(text: str) -> set[str]:
    """The names for which a template needs values, in all of its branches.

    Raises:
        jinja2.TemplateSyntaxError: if the text is not a template.
    """
    return meta.find_undeclared_variables(TEMPLATES.parse(_source(text)))


def _filled(text: str, values: Mapping[str, object] | None, more: Mapping[str, object]) -> str:
    values = {**(values or {}), **more}
    missing = sorted(variables(text) - set(values))
    require(not missing, "text", missing, "among the values")
    written = TEMPLATES.from_string(_source(text)).render(values)
    # A branch that is left out leaves spaces on either side
    plain = re.sub(r" *\n *", "\n", re.sub(r"  +", " ", written))
    return re.sub(r"(?<=\d) (?=[%×])", "\u00a0", re.sub(r"\n{3,}", "\n\n", plain)).strip()


def _source(text: str) -> str:
    """The template with each paragraph and list item on one line, and formulas protected from
    Jinja2.
    """
    item = r"(?![-*|#] |\d+\. )"
    lines = re.sub(rf"(?<=\S)[ \t]*\n[ \t]*{item}(?=\S)", " ", text)
    return DOLLAR.sub(_raw, lines)


def _raw(dollar: re.Match) -> str:
    """A formula protected from Jinja2, or a dollar sign for money."""
    return f"{{% raw %}}{dollar[1]}{{% endraw %}}" if dollar[1] else escaped("$")


def _word(value: object) -> Html:
    """A value in a sentence: counts as they are, other numbers to two digits."""
    return escaped(number(value) if isinstance(value, COUNTS) else brief(value))


def _inline(text: str) -> Html:
    """One paragraph of Markdown as HTML."""
    from markdown_it import MarkdownIt

    return Html(MarkdownIt("commonmark").renderInline(text))


def _unless_none(write: Callable[..., str]) -> Callable[..., str]:
    """A filter that returns None, which prints as a dash, for None and for an empty list."""
    return lambda value: None if value is None or value == [] else write(value)


COUNTS = (str, int, np.integer, type(None))
# As in Pandoc, a formula has no space just inside its dollar signs, and no digit after them
DOLLAR = re.compile(r"(?<!\\)(\$[^\s$](?:[^$]*[^\s$])?\$(?!\d))|\\?\$")
TEMPLATES = Environment(undefined=StrictUndefined, finalize=_word)
TEMPLATES.filters |= {
    "percent": _unless_none(percent),
    "span": _unless_none(span),
    "between": _unless_none(lambda values: between(*values)),
    "joined": _unless_none(lambda items: Html(joined([_word(item) for item in items]))),
}
