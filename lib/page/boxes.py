"""What every chapter shows: claim boxes, tables, numbers in prose, provenance."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from operator import attrgetter

import pandas as pd
from jinja2 import Environment, StrictUndefined

from lib import Told
from lib.page.prose import Html, kind
from lib.wording import brief, joined, named, number, percent, printed, span
from lib.workloads.catalogue import workload

LONG = 20  # rows
SENTENCE = 32  # characters of a cell, above which it is no value
FEW = 6  # networks of a claim that its box shows unfolded
PAGES = Environment(
    autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
PAGES.filters["count"] = "{:,}".format


def html(template: str, **values: object) -> Html:
    """HTML of a Jinja2 template, values as text that shows them, since a reader's own title may
    hold anything; `Html` stays as it is.
    """
    return Html(PAGES.from_string(template).render(values))


# --- claims ---------------------------------------------------------------------------------------

BOX = """\
<div class="book-box book-{{ kind }}"><p class="book-verdict">{{ verdict }}</p><dl>
{% for name, aside, text in rows %}
<dt>{{ name }}{% if aside %} <small>({{ aside }})</small>{% endif %}</dt><dd>{{ text }}</dd>
{% endfor %}</dl></div>"""
NETWORKS = """\
{% if many %}<details><summary>{{ claim.tally }}</summary>{% endif %}
<table class="book-table book-names"><thead><tr>
<th>network</th><th>verdict</th><th>effect</th><th>90 %</th><th>n</th></tr></thead><tbody>
{% for group, numbers in rows %}
<tr><td>{% if group.own %}★ {% endif %}{{ group.name }}
{%- if group.note %}<br><small>{{ group.note }}</small>{% endif %}</td>
{% if group.n %}
<td>{{ group.verdict }}
{%- if group.verdict != "not decided" and not group.robust %} (fragile){% endif %}</td>\
<td>{{ numbers[0] }}</td><td>{{ numbers[1] }} to {{ numbers[2] }}</td><td>{{ group.n|count }}</td>
{% else %}<td colspan="4">not measured</td>{% endif %}</tr>
{% endfor %}</tbody></table><small>★: one of the paper’s own networks. n: independent searches, \
or what the row or rule names. Fragile: decided otherwise at ¾ or 4/3 of the threshold, or by \
fewer than three searches.</small>
{% if many %}</details>{% endif %}"""
READ = {
    "abstract": "of which we read the abstract",
    "summary": "as summarised by others",
    "text": "read in full",
}


def _box(verdict: str, *rows: tuple[str, object, object]) -> Html:
    """A verdict over rows of a name, an aside and a text."""
    return html(BOX, kind=kind(verdict), verdict=verdict[0].upper() + verdict[1:], rows=rows)


def claim(*judged) -> Html:
    """A box for every judged claim (`lib.claims.Claim`): what the paper says, the rule, and the
    verdict on every network.
    """
    return Html("".join(map(_judged, judged)))


def stated(paper: str, ours: str, verdict: str, source: str) -> Html:
    """The box of a statement that a page tests itself, and not from records: it "holds" or "does
    not hold".
    """
    return _box(verdict, ("Claim", source, paper), ("Measured here", "", ours))


def _judged(c) -> Html:
    source = c.source if c.read in c.source else f"{c.source}; {READ[c.read]}"
    link = html('<a href="claims.html#claim-{{ key }}">{{ key }}</a>', key=c.key)
    rows = [
        ("Claim", source, c.paper),
        ("Rule", link, f"{c.rule} Needed: {c.needs}."),
        ("Measured", "on all records, whatever this page's parameters", _networks(c)),
    ]
    return _box(c.verdict, *rows, *([("To decide it", "", c.price)] if c.price else []))


def _networks(c) -> Html:
    """Every network's effect with its interval, number of searches and verdict; folded away where
    there are many.
    """
    ordered = sorted(c.groups, key=lambda group: not group.own)
    rows = [(group, numbers(group, c.scale, _digits(group, c))) for group in ordered]
    return html(NETWORKS, claim=c, rows=rows, many=len(rows) > FEW)


def numbers(group, scale: str, digits: int = 2) -> list[str]:
    """A network's effect and the ends of its interval."""
    return [_in_scale(value, scale, digits) for value in (group.effect, group.low, group.high)]


def _digits(group, c) -> int:
    """The fewest digits with which no end of the interval reads like the threshold beside it: two,
    or three where one is near, or more.
    """
    edges = {c.threshold}
    if c.kind == "within":
        edges.add(1 / c.threshold if c.scale == "ratio" else -c.threshold)
    ends = {group.low, group.high}
    pairs = list(itertools.product(ends, edges))
    near = any(abs(end - edge) < 0.06 * max(abs(edge), 0.1) for end, edge in pairs)
    for digits in range(2 + near, 6):
        read = {value: _in_scale(value, c.scale, digits) for value in ends | edges}
        if not any(end != edge and read[end] == read[edge] for end, edge in pairs):
            return digits
    return 6


def _in_scale(value: float, scale: str, digits: int = 2) -> str:
    if scale == "share":
        return percent(value, digits - 2)
    if digits == 2 or not math.isfinite(value):
        return brief(value)
    return number(float(f"{value:.{digits}g}"))


# --- tables ---------------------------------------------------------------------------------------


def trials(frame: pd.DataFrame) -> str:
    """How many trials stand behind a point of a figure of these results: "100", or "32–100"."""
    return span((frame["trials"].min(), frame["trials"].max())) if len(frame) else "—"


def table(frame: pd.DataFrame, **formats: str):
    """A frame as the pages show it: no index, numbers as in the prose unless a column has a format
    of its own.

    A table of more than `LONG` rows has a class of its own.
    """
    numbers = [column for column in frame if pd.api.types.is_numeric_dtype(frame[column])]
    shown = {column: number if column in numbers else _unbroken for column in frame}
    classes = ["book-table"]
    if list(frame.columns[:1]) != numbers[:1]:
        classes.append("book-names")
    if len(frame) > LONG:
        classes.append("book-long")
    styled = frame.style.hide(axis="index")
    styled = styled.format(shown | _spelt(formats), na_rep="—", escape="html")
    styled = styled.format_index(axis="columns", escape="html")
    styled = styled.set_table_attributes(f'class="{" ".join(classes)}"')
    # On a phone, sentences may take several lines, whereas values may not
    long = frame.map(lambda cell: "book-words" if len(str(cell)) > SENTENCE else "")
    styled = styled.set_td_classes(long)
    return styled.set_properties(subset=numbers, **{"text-align": "right"})


def _spelt(formats: dict) -> dict:
    """The formats of columns, whose numbers read as in the prose."""
    return {
        column: lambda value, write=write: printed(
            write(value) if callable(write) else write.format(value)
        )
        for column, write in formats.items()
    }


def _unbroken(text: object) -> object:
    """A text, as `named`, in which ranges, 1–2 or −1 to +2, stay on one line."""
    if not isinstance(text, str):
        return text
    text = printed(named(text)).replace("–", "\u2060–\u2060")
    return re.sub(r"(?<=\d) to (?=[−+]?\d)", "\u00a0to\u00a0", text)


# --- what is lacking ------------------------------------------------------------------------------

NOTE = """\
<div class="book-box book-open"><p class="book-verdict">{{ title }}</p>
{% if folded %}<details><summary>which</summary>{% endif %}
<ul>{% for item in items %}<li>{{ item }}</li>{% endfor %}</ul>
{% if folded %}</details>{% endif %}</div>"""


def absent(frame: pd.DataFrame) -> Html | None:
    """What a study lacks, as a note; None if every cell has its record.

    Raises:
        ValueError: if none has.
    """
    lacking = frame.attrs["missing"]
    if not lacking:
        return None
    if not len(frame):
        first = lacking[0]
        raise Told(
            f"budget: no record is kept of any of these {len(lacking)} searches, the first of them "
            f"{_curve(first)}, batch size {first.batch_size}; train them with -p budget full, or "
            f"choose what is on record (python -m lib status)"
        )
    order = attrgetter("workload", "algorithm", "sparsity", "pruning", "batch_size")
    items = []
    for curve, cells in itertools.groupby(sorted(lacking, key=order), _curve):
        sizes = [f"{size:,}" for size in dict.fromkeys(cell.batch_size for cell in cells)]
        items.append(f"{curve}: batch size{'s' * (len(sizes) > 1)} {joined(sizes)}")
    planned = frame.attrs["cells_planned"]
    title = f"Not measured yet: {len(lacking):,} of {planned:,} searches"
    return html(NOTE, title=title, items=items, folded=True)


def warned(sentences: Sequence[str]) -> Html | None:
    """What to know before a page's answer is used, a line each; None where there is nothing."""
    if not sentences:
        return None
    return html(NOTE, title="Before you use the answer", items=sentences, folded=False)


def _curve(cell) -> str:
    """What a cell is of, in words, but for its batch size."""
    pruned = f"sparsity {cell.sparsity:g}, pruned by {named(cell.pruning)}"
    kept = pruned if cell.sparsity else "dense"
    return f"{workload(cell.workload).title}, {named(cell.algorithm)}, {kept}"


def some(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """The table, if it has a row.

    Raises:
        ValueError: if no record is kept of what the parameters ask for.
    """
    if not len(frame):
        raise Told(f"budget: no record is kept of such {what}; measure them with -p budget full")
    return frame


# --- provenance -----------------------------------------------------------------------------------

NO_RECORDS = Html('<p class="book-provenance">No records.</p>')
SEARCHES = """\
<div class="book-provenance">{{ heads|length|count }} of {{ planned|count }} searches, \
{{ heads.rows.sum()|count }} trials, {{ heads.trial_steps.sum()|count }} training steps in \
{{ time }}; measured {{ days }} with PyTorch {{ torch }} on {{ device }} in {{ precision }}.
<details><summary>{{ versions|length }} version{{ "s" if versions|length > 1 }} of the code\
</summary>{{ versions[:6]|join(", ") }}{% if versions|length > 6 %}, \
and {{ versions|length - 6 }} more, each in the head of its records{% endif %}</details></div>"""
RECORDS = """\
<p class="book-provenance">{{ heads|length }} of {{ planned }} records; measured {{ days }} with \
PyTorch {{ torch }} on {{ device }}.</p>"""


def provenance(*frames: pd.DataFrame) -> Html:
    """A footer from the records of these tables' workloads: how many, when, with what.  Records in
    several count once.

    A table that still has every workload with a record is whole: what it lacks counts all, as in
    `absent`.
    """
    found, lacking = {}, {}
    for frame in frames:
        heads = frame.attrs["provenance"]
        listed = set(frame.workload.unique()) if len(frame) else set()
        whole = listed >= {head["workload"] for head in heads}
        found |= {head["sha256"]: head for head in heads if head["workload"] in listed}
        left = [c for c in frame.attrs["missing"] if whole or c.workload in listed]
        lacking |= dict.fromkeys(left)
    heads = pd.DataFrame(found.values())
    if heads.empty:
        return NO_RECORDS
    return _footer(
        SEARCHES,
        heads,
        planned=len(heads) + len(lacking),
        time=_core_time(heads.wall_s.sum()),
        versions=list(heads.source.value_counts().index),  # the most used first
    )


def sources(frame: pd.DataFrame) -> Html:
    """The same for records that are not cells."""
    heads = pd.DataFrame(frame.attrs["provenance"])
    return NO_RECORDS if heads.empty else _footer(RECORDS, heads, planned=frame.attrs["planned"])


def _footer(template: str, heads: pd.DataFrame, **values: object) -> Html:
    """With what these records were made, and on which day or from which to which."""
    told = {
        name: ", ".join(sorted(map(str, heads[name].unique())))
        for name in ("torch", "device", "precision")
        if name in heads
    }
    days = " to ".join(dict.fromkeys([heads.date.min(), heads.date.max()]))
    return html(
        template,
        heads=heads,
        days=days,
        **told,
        **values,
    )


def _core_time(seconds: float) -> str:
    """Of one core, in the largest unit of which it has one."""
    units = {"core-hours": 3600, "core-minutes": 60, "core-seconds": 1}
    unit = next((name for name, long in units.items() if seconds >= long), "core-seconds")
    return f"{seconds / units[unit]:.1f} {unit}"
