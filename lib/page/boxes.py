"""What every chapter shows: claim boxes, tables, numbers in prose, provenance."""

from __future__ import annotations

import base64
import gzip
import html
import math
import re
from collections.abc import Sequence

import pandas as pd

from lib import Told, require
from lib.page.prose import Html, kind
from lib.wording import brief, joined, named, number, span
from lib.workloads.catalogue import workload

# --- in a chapter ---------------------------------------------------------------------------------


LONG = 20  # rows
KINDS = {"for": "yes", "against": "no", "not decided": "open"}  # of a network's verdict
FEW = 6  # networks of a claim that its box shows unfolded


def _text(words: str) -> str:
    """Words as HTML that shows them; a reader's own title may hold anything."""
    return html.escape(words, quote=False)


def claim(*judged) -> Html:
    """A box for every judged claim (`lib.claims.Claim`): what the paper says, the rule, and the
    verdict on every network.
    """
    return Html("".join(_judged(c) for c in judged))


def stated(paper: str, ours: str, verdict: str, source: str) -> Html:
    """The box of a statement that a page tests itself, and not from records: it "holds" or "does
    not hold".
    """
    return Html(
        _box(
            verdict,
            {
                f"Claim <small>({html.escape(source)})</small>": _text(paper),
                "Measured here": _text(ours),
            },
        )
    )


def _box(verdict: str, rows: dict[str, str]) -> str:
    body = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows.items())
    title = f'<p class="book-verdict">{verdict[0].upper()}{verdict[1:]}</p>'
    return f'<div class="book-box book-{kind(verdict)}">{title}<dl>{body}</dl></div>'


READ = {
    "abstract": "of which we read the abstract",
    "summary": "as summarised by others",
    "text": "read in full",
}


def _judged(c) -> str:
    source = html.escape(c.source)
    if c.read not in c.source:
        source += f"; {READ[c.read]}"
    return _box(
        c.verdict,
        {
            f"Claim <small>({source})</small>": html.escape(c.paper),
            f'Rule <small>(<a href="claims.html#claim-{c.key}">{c.key}</a>)</small>': f"{html.escape(c.rule)} Needed: {c.needs}.",
            "Measured <small>(on all records, whatever this page's parameters)</small>": networks(
                c
            ),
            **({"To decide it": html.escape(c.price)} if c.price else {}),
        },
    )


def networks(c) -> str:
    """Every network's effect with its interval, number of searches and verdict; folded away where
    there are many.
    """
    ordered = sorted(c.groups, key=lambda g: not g.own)
    heads = "<th>network</th><th>effect</th><th>90 %</th><th>n</th><th>verdict</th>"
    rows = "".join(f"<tr><td>{_network(g)}</td>{_cells(g, c)}</tr>" for g in ordered)
    table = f'<table class="book-table book-names"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    told = (
        "★: one of the paper’s own networks. n: independent searches, or what the row or rule names. "
        "Fragile: decided otherwise at ¾ or 4/3 of the threshold, or by fewer than three searches."
    )
    shown = f"{table}<small>{told}</small>"
    if len(c.groups) <= FEW:
        return shown
    return f"<details><summary>{html.escape(c.part)}</summary>{shown}</details>"


def _network(g) -> str:
    return f"{'★ ' * g.own}{html.escape(g.name)}" + (
        f"<br><small>{html.escape(g.note)}</small>" if g.note else ""
    )


def _cells(g, c) -> str:
    if not g.n:
        return '<td colspan="4">not measured</td>'
    digits = _digits(g, c)
    effect, low, high = (_in_scale(v, c.scale, digits) for v in (g.effect, g.low, g.high))
    fragile = " (fragile)" if g.verdict != "not decided" and not g.robust else ""
    return f"<td>{effect}</td><td>{low} to {high}</td><td>{g.n:,}</td><td>{g.verdict}{fragile}</td>"


def _digits(g, c) -> int:
    """The fewest digits with which no end of the interval reads like the threshold beside it: two,
    or three where one is near, or more.
    """
    edges = (c.threshold, 1 / c.threshold if c.scale == "ratio" else -c.threshold)
    edges = edges[: 1 + (c.kind == "within")]
    pairs = [(end, edge) for end in (g.low, g.high) for edge in edges]
    near = any(abs(end - edge) < 0.06 * max(abs(edge), 0.1) for end, edge in pairs)
    told_apart = (
        digits
        for digits in range(2 + near, 6)
        if all(end == edge or _reads_apart(end, edge, c.scale, digits) for end, edge in pairs)
    )
    return next(told_apart, 6)


def _reads_apart(end: float, edge: float, scale: str, digits: int) -> bool:
    return _in_scale(end, scale, digits) != _in_scale(edge, scale, digits)


def told(g, scale: str) -> str:
    """A network's effect in one line: "MLP on digits: 1.5 (1.2 to 1.8), n = 10, for"."""
    if not g.n:
        return f"{g.name}: not measured"
    effect, low, high = (_in_scale(v, scale) for v in (g.effect, g.low, g.high))
    return f"{g.name}: {effect} ({low} to {high}), n = {g.n}, {g.verdict}"


def _in_scale(value: float, scale: str, digits: int = 2) -> str:
    if scale == "share":
        return f"{100 * value:.{digits - 2}f}\u00a0%"
    return (
        brief(value)
        if digits == 2 or not math.isfinite(value)
        else number(float(f"{value:.{digits}g}"))
    )


def trials(frame: pd.DataFrame) -> str:
    """How many trials stand behind a point of a figure of these results: "100", or "32–100"."""
    return span((frame["trials"].min(), frame["trials"].max())) if len(frame) else "—"


def table(frame: pd.DataFrame, **formats: str):
    """A frame as the pages show it: no index, numbers as in the prose unless a column has a format
    of its own.

    A table of more than `LONG` rows scrolls under its own head.
    """
    shown = {
        c: formats.get(c, number if pd.api.types.is_numeric_dtype(frame[c]) else _unbroken)
        for c in frame
    }
    styled = frame.style.hide(axis="index").format(shown, na_rep="—", escape="html")
    styled = styled.format_index(axis="columns", escape="html")
    right = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c])]
    names = list(frame.columns[:1]) != right[:1]
    kind = "book-table" + " book-names" * names + " book-long" * (len(frame) > LONG)
    return styled.set_table_attributes(f'class="{kind}"').set_properties(
        subset=right, **{"text-align": "right"}
    )


def _unbroken(text: object) -> object:
    """A text, as `named`, in which ranges, 1–2 or −1 to +2, stay on one line."""
    if not isinstance(text, str):
        return text
    return re.sub(
        r"(?<=\d) to (?=[−+]?\d)", "\u00a0to\u00a0", named(text).replace("–", "\u2060–\u2060")
    )


def absent(frame: pd.DataFrame) -> Html | None:
    """What a study lacks, as a note; None if every cell has its record.  Raises ValueError if none
    has.
    """
    lacking = frame.attrs["missing"]
    if not lacking:
        return None
    if not len(frame):
        first = lacking[0]
        about = _curve(first.workload, first.algorithm, first.sparsity, first.pruning)
        raise Told(
            f"budget: no record is kept of any of these {len(lacking)} searches, the first of them "
            f"{about}, batch size {first.batch_size}; train them with -p budget full, or choose "
            f"what is on record (python -m lib status)"
        )
    sizes = {}
    for c in lacking:
        sizes.setdefault((c.workload, c.algorithm, c.sparsity, c.pruning), set()).add(c.batch_size)
    items = "".join(
        f"<li>{html.escape(_curve(*curve))}: {_sizes(sizes[curve])}</li>" for curve in sorted(sizes)
    )
    return Html(
        f'<div class="book-box book-open"><p class="book-verdict">Not measured yet: {len(lacking):,} of '
        f"{frame.attrs['cells_planned']:,} searches</p><details><summary>which</summary><ul>{items}</ul></details></div>"
    )


def warned(sentences: Sequence[str]) -> Html | None:
    """What to know before a page's answer is used, a line each; None where there is nothing."""
    if not sentences:
        return None
    items = "".join(f"<li>{_text(sentence)}</li>" for sentence in sentences)
    return Html(
        '<div class="book-box book-open"><p class="book-verdict">Before you use the answer</p>'
        f"<ul>{items}</ul></div>"
    )


def _curve(name: str, algorithm: str, sparsity: float, pruning: str) -> str:
    """What a cell is of, in words, but for its batch size."""
    kept = f"sparsity {sparsity:g}, pruned by {named(pruning)}" if sparsity else "dense"
    return f"{workload(name).title}, {named(algorithm)}, {kept}"


def _sizes(batches: set[int]) -> str:
    return f"batch size{'s' * (len(batches) > 1)} {joined([f'{b:,}' for b in sorted(batches)])}"


def some(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """The table, if it has a row.  Raises ValueError if no record is kept of what the parameters
    ask for.
    """
    if not len(frame):
        raise Told(f"budget: no record is kept of such {what}; measure them with -p budget full")
    return frame


def provenance(*frames: pd.DataFrame) -> Html:
    """A footer from the records of these tables' workloads: how many, when, with what.  Records in
    several count once.

    A table that still has every workload with a record is whole: what it lacks counts all, as in
    `absent`.
    """
    found, lacking = {}, {}
    for frame in frames:
        listed = set(frame.workload) if len(frame) else set()
        found |= {
            head["sha256"]: head for head in frame.attrs["provenance"] if head["workload"] in listed
        }
        whole = listed >= {head["workload"] for head in frame.attrs["provenance"]}
        lacking |= {
            cell: None for cell in frame.attrs["missing"] if whole or cell.workload in listed
        }
    heads = pd.DataFrame(found.values())
    if heads.empty:
        return Html('<p class="book-provenance">No records.</p>')
    columns = ("torch", "device", "precision", "source")
    seen = {k: ", ".join(sorted(map(str, heads[k].unique()))) for k in columns}
    versions, time = heads["source"].nunique(), _core_time(heads["wall_s"].sum())
    code = (
        f"; code {seen['source']}."
        if versions < 4
        else (
            f".<details><summary>{versions} versions of the code</summary>{seen['source']}</details>"
        )
    )
    return Html(
        f'<div class="book-provenance">{len(heads):,} of {len(heads) + len(lacking):,} searches, {heads["rows"].sum():,} '
        f"trials, {heads['trial_steps'].sum():,} training steps in {time}; measured {_days(heads)} with "
        f"PyTorch {seen['torch']} on {seen['device']} in {seen['precision']}{code}</div>"
    )


def _core_time(seconds: float) -> str:
    """Of one core, in the largest unit of which it has one."""
    units = {"core-hours": 3600, "core-minutes": 60, "core-seconds": 1}
    unit = next((name for name, long in units.items() if seconds >= long), "core-seconds")
    return f"{seconds / units[unit]:.1f} {unit}"


def _days(heads: pd.DataFrame) -> str:
    """On which day the records were made, or from which to which."""
    return " to ".join(dict.fromkeys([heads["date"].min(), heads["date"].max()]))


def download(frame: pd.DataFrame, name: str, columns: dict[str, str]) -> Html:
    """A link that saves the frame as a compressed CSV file, over what its columns hold.

    columns: what is written, and the words for it.  Raises ValueError for a name that does not end
    in .csv.gz.
    """
    require(name.endswith(".csv.gz"), "name", name, "a name that ends in .csv.gz")
    packed = base64.b64encode(
        gzip.compress(frame[list(columns)].to_csv(index=False).encode(), mtime=0)
    ).decode()
    rows = "".join(
        f"<tr><td><code>{column}</code></td><td>{html.escape(words)}</td></tr>"
        for column, words in columns.items()
    )
    return Html(
        f'<p><a download="{name}" href="data:application/gzip;base64,{packed}">Download {name}</a>: {len(frame):,} rows, '
        f"{len(packed) * 3 // 4 / 1000:,.0f} kB.</p><details><summary>What its columns hold</summary>"
        '<table class="book-table"><thead><tr><th>column</th><th>what it holds</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></details>"
    )


def sources(frame: pd.DataFrame) -> Html:
    """The same for records that are not cells."""
    heads = pd.DataFrame(frame.attrs["provenance"])
    if heads.empty:
        return Html('<p class="book-provenance">No records.</p>')
    seen = {
        k: ", ".join(sorted(map(str, heads[k].unique()))) for k in ("torch", "device") if k in heads
    }
    return Html(
        f'<p class="book-provenance">{len(heads)} of {frame.attrs["planned"]} records; measured {_days(heads)} with PyTorch '
        f"{seen['torch']} on {seen['device']}.</p>"
    )
