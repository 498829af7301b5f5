"""What every chapter shows: claim boxes, tables, numbers in prose, provenance."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

import pandas as pd

from lib import Told
from lib.page.prose import Html, html, kind
from lib.wording import brief, joined, named, number, percent, printed, span
from lib.workloads.catalogue import workload

FEW = 6  # networks of a claim that its box shows unfolded

# --- claims ---------------------------------------------------------------------------------------

BOX = """\
<div class="book-box book-{{ kind }}">\
<p class="book-verdict">{{ verdict[0]|upper }}{{ verdict[1:] }}</p><dl>
{% for name, aside, text in rows if text %}
<dt>{{ name }}{% if aside %} <small>({{ aside }})</small>{% endif %}</dt><dd>{{ text }}</dd>
{% endfor %}</dl></div>"""
NETWORKS = """\
{% if many %}<details><summary>{{ summary }}</summary>{% endif %}
<table class="book-table book-names book-stacked"><thead><tr>
<th>network</th>{% if judged %}<th>verdict</th>{% endif %}<th>effect</th><th>90 %</th><th>n</th>\
{% if judged %}<th>power</th>{% endif %}</tr></thead><tbody>
{% for group, numbers in rows %}
<tr><td>{% if group.own %}★ {% endif %}{{ group.name }}
{%- if group.note %}<br><small>{{ group.note }}</small>{% endif %}</td>
{% if group.n %}
{% if judged %}<td>{{ mark(group) }}</td>{% endif %}\
<td data-head="effect">{{ numbers[0] }}</td><td data-head="90 %">{{ numbers[1] }} to {{ numbers[2] }}</td>\
<td data-head="n">{{ group.n|count }}</td>
{% if judged %}<td data-head="power">{{ "%.0f %%"|format(100 * group.power[0]) if group.power else "—" }}</td>{% endif %}
{% else %}<td colspan="5">not measured</td>{% endif %}</tr>
{% endfor %}</tbody></table><small>★: the paper’s own network. n: searches, or \
what the row names.{% if judged %} ○: fewer than three. Power: how often the rule says yes of \
made-up data of this size where the claim is true; under half, the row has no verdict.{% endif %}\
</small>
{% if many %}</details>{% endif %}"""
POWER = """\
{% for words, share in tried %}{{ words }}: {{ share }}{% if not loop.last %}; {% endif %}{% endfor %}"""
READ = {
    "abstract": "of which we read the abstract",
    "summary": "as summarised by others",
    "text": "read in full",
    "code": "whose code we read",
}


def _box(verdict: str, word: str, *rows: tuple[str, object, object]) -> Html:
    """A verdict over rows of a name, an aside and a text; word: whose colour it has."""
    return html(BOX, kind=kind(word), verdict=verdict, rows=rows)


def claim(*judged) -> Html:
    """A box for every claim and finding (`lib.claims`): what the paper says, the rule and its
    power, and what was measured on every network.
    """
    return Html(
        "".join(_judged(one) if hasattr(one, "rule") else _found(one) for one in judged)
    )


def stated(paper: str, ours: str, verdict: str, source: str) -> Html:
    """The box of a statement that a page tests itself, and not from records: it "holds" or "does
    not hold".
    """
    return _box(verdict, verdict, ("Claim", source, paper), ("Measured here", "", ours))


def mark(group) -> str:
    """A network's verdict, with a sign where it is clear: of three searches or more, or of fewer."""
    sign = "●" if group.repeated else "○"
    return f"{sign} {group.verdict}" if group.clear else group.verdict


def _judged(c) -> Html:
    link = html('<a href="claims.html#claim-{{ key }}">{{ key }}</a>', key=c.key)
    words = f"The paper’s networks: {c.theirs}. Ours: {c.ours}"
    return _box(
        words,
        c.verdict,
        ("Claim", _source(c), c.paper),
        ("Rule", link, f"{c.rule} Needed: {c.needs}."),
        ("The rule says yes of", "made-up data", power(c)),
        ("Measured", EVERYWHERE, _networks(c, c.tally())),
    )


def _found(finding) -> Html:
    """The box of a finding, which has no rule."""
    return _box(
        "Measured, without a verdict",
        "unclear",
        ("The paper says", _source(finding), finding.paper),
        ("Shown", "", finding.shown),
        ("Measured", EVERYWHERE, _networks(finding, f"{len(finding.measured)} rows")),
    )


EVERYWHERE = "on all records, whatever this page's parameters"


def _source(c) -> str:
    return c.source if c.read in c.source else f"{c.source}; {READ[c.read]}"


def _networks(c, summary: str) -> Html:
    """The table of a claim's or finding's networks, the paper's own first."""
    ordered = sorted(c.groups, key=lambda group: not group.own)
    rows = [(group, numbers(group, c.scale, _digits(group, c))) for group in ordered]
    shown = {"judged": hasattr(c, "rule"), "mark": mark, "summary": summary}
    return html(NETWORKS, rows=rows, many=len(rows) > FEW, **shown)


def power(c) -> Html | str:
    """How often a claim's rule says yes of each kind of made-up data, over the networks that bear a
    verdict, or else over all.
    """
    able = [g for g in c.measured if g.power and g.verdict != "no verdict"]
    known = able or [g for g in c.measured if g.power]
    if not known:
        return ""
    shares = [span_of_shares(column) for column in zip(*(g.power for g in known))]
    return html(POWER, tried=list(zip(c.made_up, shares)))


def span_of_shares(shares: Sequence[float]) -> str:
    """Shares from the least to the most: "80 to 100 %"."""
    low, high = (f"{100 * end:.0f}" for end in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def numbers(group, scale: str, digits: int = 2) -> list[str]:
    """A network's effect and the ends of its interval."""
    return [_in_scale(value, scale, digits) for value in (group.effect, group.low, group.high)]


def _digits(group, c) -> int:
    """The fewest digits with which no end of the interval reads like the threshold beside it: two,
    or three where one is near, or more.
    """
    if not hasattr(c, "rule"):
        return 2
    edges = [c.threshold]
    if c.kind == "within":
        edges.append(1 / c.threshold if c.scale == "ratio" else -c.threshold)
    ends = group.low, group.high
    near = any(abs(end - edge) < 0.06 * max(abs(edge), 0.1) for end in ends for edge in edges)
    for digits in range(2 + near, 6):
        read, beside = (
            {_in_scale(v, c.scale, digits) for v in values} for values in (ends, edges)
        )
        if read.isdisjoint(beside):
            return digits
    return 6


def _in_scale(value: float, scale: str, digits: int) -> str:
    if scale == "share":
        return percent(value, digits - 2)
    if digits == 2 or not math.isfinite(value):
        return brief(value)
    return number(float(f"{value:.{digits}g}"))


# --- tables ---------------------------------------------------------------------------------------


def trials(frame: pd.DataFrame) -> str:
    """How many trials stand behind a point of a figure of these results: "100", or "32–100"."""
    return span((frame["trials"].min(), frame["trials"].max())) if len(frame) else "—"


LONG = 20  # rows
SENTENCE = 32  # characters of a cell, above which it is no value
TABLE = """\
<table class="book-table{{ ' book-names' if names }}{{ ' book-stacked' if names and columns|length > 4 }}\
{{ ' book-long' if rows|length > LONG }}">
<thead><tr>{% for name in columns %}<th>{{ name }}</th>{% endfor %}</tr></thead><tbody>
{% for row in rows %}<tr>{% for text in row %}
<td data-head="{{ columns[loop.index0]|e }}"{% if numeric[loop.index0] %} style="text-align:right"
{%- elif text|length > SENTENCE %} class="book-words"{% endif %}>{{ text }}</td>
{%- endfor %}</tr>
{% endfor %}</tbody></table>"""


def table(frame: pd.DataFrame, **formats: str) -> Html:
    """A frame as the pages show it: no index, numbers as in the prose unless a column has a format
    of its own.

    On a phone, sentences may take several lines, whereas values may not; a long table has a class
    of its own.
    """
    numeric = list(map(pd.api.types.is_numeric_dtype, frame.dtypes))
    cells = []
    for (name, values), is_number in zip(frame.items(), numeric):
        write = number if is_number else _unbroken
        if name in formats:
            write = formats[name].format
        cells.append(["—" if pd.isna(value) else printed(write(value)) for value in values])
    return html(
        TABLE,
        columns=list(frame),
        rows=list(zip(*cells)),
        numeric=numeric,
        names=not any(numeric[:1]),
        LONG=LONG,
        SENTENCE=SENTENCE,
    )


def _unbroken(value: object) -> str:
    """A text, as `named`, in which ranges, 1–2 or −1 to +2, stay on one line."""
    text = named(str(value)).replace("–", "\u2060–\u2060")
    return re.sub(r"(?<=\d) to (?=[−+-]?\d)", "\u00a0to\u00a0", text)


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
    items = []
    cells = sorted({(_curve(cell), cell.batch_size) for cell in lacking})
    for curve, own in itertools.groupby(cells, key=lambda cell: cell[0]):
        sizes = [f"{size:,}" for _, size in own]
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
    about = f"{workload(cell.workload).title}, {named(cell.algorithm)}"
    return f"{about}, {pruned if cell.sparsity else 'dense'}"


def some(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """The table, if it has a row.

    Raises:
        ValueError: if no record is kept of what the parameters ask for.
    """
    if not len(frame):
        raise Told(
            f"budget: no record is kept of such {what}; measure them with -p budget full"
        )
    return frame


# --- provenance -----------------------------------------------------------------------------------

HEADS = "torch device precision date source wall_s rows trial_steps".split()
UNITS = {"core-hours": 3600, "core-minutes": 60, "core-seconds": 0}
FOOTER = """\
<div class="book-provenance">{{ heads|length|count }} of {{ planned|count }} \
{% if searches %}searches, {{ heads.rows.sum()|count }} trials, \
{{ heads.trial_steps.sum()|count }} training steps in {{ time }}\
{% else %}records{% endif %}\
{% if other %} ({{ other|count }} of them by other code than today’s){% endif %}; \
measured {{ days }} with PyTorch {{ torch }} on {{ device }}\
{% if searches %} in {{ precision }}.
<details><summary>{{ versions|length }} version{{ "s" if versions|length > 1 }} of the code\
</summary>{{ versions[:6]|join(", ") }}{% if versions|length > 6 %}, \
and {{ versions|length - 6 }} more, each in the head of its records{% endif %}</details>\
{% else %}.{% endif %}</div>"""


def provenance(*frames: pd.DataFrame) -> Html:
    """A footer from the records of these tables' workloads: how many, when, with what.  Records in
    several count once.

    A table that still has every workload with a record is whole: what it lacks counts all, as in
    `absent`.
    """
    found, lacking = {}, set()
    for frame in frames:
        heads = frame.attrs["provenance"]
        listed = set(frame.get("workload", ()))
        whole = listed >= {head["workload"] for head in heads}
        found |= {head["sha256"]: head for head in heads if head["workload"] in listed}
        for cell in frame.attrs["missing"]:
            if whole or cell.workload in listed:
                lacking.add(cell)
    planned = len(found) + len(lacking)
    return _footer(list(found.values()), planned, searches=True)


def sources(*frames: pd.DataFrame) -> Html:
    """The same for records that are not cells."""
    heads = [head for frame in frames for head in frame.attrs["provenance"]]
    planned = sum(frame.attrs["planned"] for frame in frames)
    other = sum(frame.attrs.get("other_code", 0) for frame in frames)
    return _footer(heads, planned, searches=False, other=other)


def _footer(found: list[dict], planned: int, searches: bool, other: int = 0) -> Html:
    """With what these records were made, and on which day or from which to which; other: how many
    by other code.
    """
    if not found:
        return Html('<p class="book-provenance">No records.</p>')
    heads = pd.DataFrame(found).reindex(columns=HEADS)
    made = heads[["torch", "device", "precision"]]
    told = {}
    for name, values in made.items():
        told[name] = ", ".join(sorted(set(map(str, values))))
    days = dict.fromkeys([heads.date.min(), heads.date.max()])
    told["days"] = " to ".join(days)
    most_used_first = heads.source.value_counts()
    told["versions"] = list(most_used_first.index)
    seconds = heads.wall_s.sum()
    unit, least = next(unit for unit in UNITS.items() if seconds >= unit[1])
    told["time"] = f"{seconds / max(least, 1):.1f} {unit}"
    return html(FOOTER, heads=heads, planned=planned, searches=searches, other=other, **told)
