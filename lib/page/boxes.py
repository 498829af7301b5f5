"""What every chapter shows: claim boxes, tables, numbers in prose, provenance."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib import BookError
from lib.page.prose import PAGES, Html, html, kind
from lib.wording import brief, joined, named, number, percent, printed, span
from lib.workloads.catalogue import workload

MARKUP = PAGES.from_string(Path(__file__).with_name("boxes.html").read_text("utf-8")).module

# --- claims ---------------------------------------------------------------------------------------

READ = {
    "abstract": "we read the abstract",
    "summary": "we read others’ summaries",
    "figures": "we read its code and others’ summaries",
    "text": "we read all of it",
    "code": "we read its code",
}


def claim(*claims) -> Html:
    """A box for every claim and finding (`lib.claims`): what the paper says, the rule and its
    power, and what was measured on every network.
    """
    return Html("".join(map(_claim, claims)))


def stated(paper: str, ours: str, verdict: str, source: str) -> Html:
    """The box of a statement that a page tests itself, not from records: "yes" or "no"."""
    rows = ("Claim", source, paper), ("Measured here", "", ours)
    return Html(MARKUP.box(kind(verdict), verdict, rows))


def _claim(c) -> Html:
    source = c.source if c.read in c.source else f"{c.source}; {READ[c.read]}"
    judged = hasattr(c, "rule")
    groups = sorted(c.groups, key=lambda group: not group.theirs)
    rows = [(g, mark(g), numbers(g, c.scale, _digits(g, c))) for g in groups]
    summary = c.tally() if judged else f"{len(c.measured)} rows"
    measured = (
        "Measured",
        "on all records" * judged,
        Html(MARKUP.networks(rows, judged, summary, c.ends)),
    )
    if not judged:
        about = ("The paper says", source, c.paper), ("Shown", "", c.shown)
        return Html(MARKUP.box("open", "Measured, without a verdict", (*about, measured)))
    link = html('<a href="claims.html#claim-{{ key }}">{{ key }}</a>', key=c.key)
    power = "; ".join(map(": ".join, zip(c.made_up, shares(c))))
    about = (
        ("Claim", source, c.paper),
        ("Rule", link, f"{c.rule} Needed: {c.needs}."),
        ("The rule says", "on made-up data", power),
    )
    verdict = f"The paper’s networks: {c.theirs}. Ours: {c.ours}"
    shown = (*about, measured)
    return Html(MARKUP.box(kind(c.verdict), verdict, shown))


def mark(group) -> str:
    """A network's verdict; if clear, with a sign: one for three searches or more, one for fewer."""
    sign = "●" if group.repeated else "○"
    return f"{sign} {group.verdict}" if group.clear else group.verdict


def shares(c) -> list[str]:
    """How often a claim's rule says yes, no and unclear of each kind of simulated data ("80–100 %
    yes, 0 % no, 0–20 % unclear"), over the networks that bear a verdict, or else over all.
    """
    groups = [g for g in c.measured if g.power]
    groups = [g for g in groups if g.verdict != "no verdict"] or groups
    words = []
    for world in zip(*(g.power for g in groups)):
        yes, no = np.rint(100 * np.transpose(world))
        rates = {"yes": yes, "no": no, "unclear": 100 - yes - no}
        ends = (f"{span((v.min(), v.max()))}\u00a0% {word}" for word, v in rates.items())
        words.append(", ".join(ends))
    return words


def numbers(group, scale: str, digits: int = 2) -> list[str]:
    """A network's effect and the ends of its interval."""
    return [_in_scale(value, scale, digits) for value in (group.effect, group.low, group.high)]


def _digits(group, c) -> int:
    """The fewest digits, from two, with which no end of the interval reads like the nearby
    threshold.
    """
    if not hasattr(c, "rule"):
        return 2
    edges = [c.threshold]
    if c.kind == "within":
        edges.append(1 / c.threshold if c.scale == "ratio" else -c.threshold)
    pairs = list(itertools.product((group.low, group.high), edges))
    near = any(abs(end - edge) < 0.06 * max(abs(edge), 0.1) for end, edge in pairs)

    def alike(digits: int) -> bool:
        return any(len({_in_scale(v, c.scale, digits) for v in pair}) == 1 for pair in pairs)

    return next((digits for digits in range(2 + near, 6) if not alike(digits)), 6)


def _in_scale(value: float, scale: str, digits: int) -> str:
    if scale == "share":
        return percent(value, digits - 2)
    if digits == 2 or not math.isfinite(value):
        return brief(value)
    return number(float(f"{value:.{digits}g}"))


# --- tables ---------------------------------------------------------------------------------------


def trials(frame: pd.DataFrame) -> str:
    """How many trials are behind each point of a figure of these results: "100", or "32–100"."""
    return span((frame["trials"].min(), frame["trials"].max())) if len(frame) else "—"


def table(frame: pd.DataFrame, **formats: str) -> Html:
    """A frame as pages show it: no index, numbers as in the prose unless their column has a
    format.

    On a phone, sentences may take several lines, but values may not; long tables have a separate
    class.
    """
    numeric = list(map(pd.api.types.is_numeric_dtype, frame.dtypes))
    cells = []
    for (name, values), is_number in zip(frame.items(), numeric):
        write = number if is_number else _unbroken
        if name in formats:
            write = formats[name].format
        cells.append(["—" if pd.isna(value) else printed(write(value)) for value in values])
    return Html(MARKUP.table(list(frame), list(zip(*cells)), numeric))


def _unbroken(value: object) -> str:
    """A text, as by `named`, in which ranges such as 1–2 or −1 to +2 stay on one line."""
    text = named(str(value)).replace("–", "\u2060–\u2060")
    return re.sub(r"(?<=\d) to (?=[−+-]?\d)", "\u00a0to\u00a0", text)


# --- what is lacking ------------------------------------------------------------------------------


def absent(frame: pd.DataFrame) -> Html | None:
    """A note on what a study lacks; None if every search has a record.

    Raises:
        ValueError: if none has one.
    """
    missing = frame.attrs["missing"]
    if not missing:
        return None
    if not len(frame):
        raise BookError(
            f"budget: none of these {len(missing)} searches is on record (the first: "
            f"{_curve(missing[0])}, batch size {missing[0].batch_size}); train them with -p budget "
            f"full, or choose recorded ones (python -m lib status)"
        )
    items = []
    cells = sorted({(_curve(cell), cell.batch_size) for cell in missing})
    for curve, of_curve in itertools.groupby(cells, key=lambda cell: cell[0]):
        sizes = [f"{size:,}" for _, size in of_curve]
        items.append(f"{curve}: batch size{'s' * (len(sizes) > 1)} {joined(sizes)}")
    planned = frame.attrs["cells_planned"]
    title = f"Not measured, or only in part: {len(missing):,} of {planned:,} searches"
    return Html(MARKUP.note(title, items, folded=True))


def warned(sentences: Sequence[str]) -> Html | None:
    """Warnings to read before using a page's answer, a line each; None if there are none."""
    note = MARKUP.note("Before you use the answer", sentences, folded=False)
    return Html(note) if sentences else None


def _curve(cell) -> str:
    """A search in words, without its batch size."""
    pruned = f"sparsity {cell.sparsity:g}, pruned by {named(cell.pruning)}"
    about = f"{workload(cell.workload).title}, {named(cell.algorithm)}"
    return f"{about}, {pruned if cell.sparsity else 'dense'}"


def some(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """The table, if it has any rows.

    Raises:
        ValueError: if there is no record for the chosen parameters.
    """
    if not len(frame):
        raise BookError(
            f"budget: no such {what} are on record; measure them with -p budget full"
        )
    return frame


# --- provenance -----------------------------------------------------------------------------------

HEADS = "torch device precision date source wall_s rows trial_steps".split()
UNITS = {"core-hours": 3600, "core-minutes": 60, "core-seconds": 0}


def provenance(*frames: pd.DataFrame) -> Html:
    """A footer on the records of these tables' workloads: how many, when, with what.  Records in
    several tables count once.

    A table that still has every workload with a record is complete: all that it lacks counts, as in
    `absent`.
    """
    heads, missing = {}, set()
    for frame in frames:
        listed = set(frame.get("workload", ()))
        recorded = frame.attrs["provenance"]
        complete = listed >= {head["workload"] for head in recorded}
        heads |= {head["sha256"]: head for head in recorded if head["workload"] in listed}
        for cell in frame.attrs["missing"]:
            if complete or cell.workload in listed:
                missing.add(cell)
    return _footer(list(heads.values()), len(heads) + len(missing), searches=True)


def sources(*frames: pd.DataFrame) -> Html:
    """The same for records of experiments."""
    heads = [head for frame in frames for head in frame.attrs["provenance"]]
    planned = sum(frame.attrs["planned"] for frame in frames)
    others = sum(frame.attrs.get("other_code", 0) for frame in frames)
    return _footer(heads, planned, others=others)


def _footer(records: list[dict], planned: int, searches: bool = False, others: int = 0) -> Html:
    """What these records were made with, and on which day or between which days; others: how many
    are by other code.
    """
    if not records:
        return Html('<p class="book-provenance">No records.</p>')
    heads = pd.DataFrame(records).reindex(columns=HEADS)
    seconds = heads.wall_s.sum()
    unit, least = next(unit for unit in UNITS.items() if seconds >= unit[1])
    about = {}
    for name in ("torch", "device", "precision"):
        texts = set(map(str, heads[name]))  # some heads lack a precision
        about[name] = ", ".join(sorted(texts))
    about["days"] = " to ".join(dict.fromkeys([heads.date.min(), heads.date.max()]))
    about["versions"] = list(heads.source.value_counts().index)  # the most used first
    about["time"] = f"{seconds / max(least, 1):.1f} {unit}"
    return Html(MARKUP.footer(heads, planned, searches, others, **about))
