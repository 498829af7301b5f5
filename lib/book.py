"""The Sphinx side of the book (a local extension), and what every chapter shows: claim boxes, numbers, provenance."""

from __future__ import annotations

import contextlib
import hashlib
import html
import logging
import math
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from lib import ROOT

MATHJAX = "tex-svg.js"  # self-contained: its glyphs are paths, so no font files

# --- in a chapter -----------------------------------------------------------------------------------------------------


LONG = 20  # rows
MARKS = {"holds": "yes", "holds in part": "part", "does not hold": "no", "cannot be judged": "open"}


NAMES = {"sgd": "SGD", "nesterov": "Nesterov", "grasp": "GraSP", "synflow": "SynFlow",
         "connection-sensitivity": "connection sensitivity"}  # fmt: skip
LINES = re.compile(r"(?:\n- .*)+")


def _text(words: str) -> str:
    """Words as HTML that shows them; a reader's own title may hold anything."""
    return html.escape(words, quote=False)


def _listed(lines: re.Match) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in lines[0].split("\n- ")[1:]) + "</ul>"


class Html(str):
    """Text that notebooks display as HTML."""

    def _repr_html_(self) -> str:
        return str(self)


def claim(paper: str, ours: str, verdict: str, source: str) -> Html:
    """A box with a published claim, our measurement and a verdict, all three computed or cited by the caller, as text.

    ours: lines that begin with "- " become a list.
    verdict: one of "holds", "holds in part", "does not hold", "cannot be judged".  Raises ValueError for another.
    """
    if verdict not in MARKS:
        raise ValueError(f"verdict: {verdict!r} is not allowed; it must be one of {', '.join(MARKS)}")
    rows = ((f"Claim <small>({html.escape(source)})</small>", paper), ("Measured here", ours))
    body = "".join(f"<dt>{name}</dt><dd>{LINES.sub(_listed, _text(text))}</dd>" for name, text in rows)
    title = f'<p class="book-verdict">{verdict.capitalize()}</p>'
    return Html(f'<div class="book-box book-{MARKS[verdict]}">{title}<dl>{body}</dl></div>')


def ledger(rows: list[tuple[str, str, dict]]) -> Html:
    """A table of claims: key, chapter (its file's name) and the arguments of `claim`; keys link to #claim-KEY."""
    body = "".join(
        f'<tr><td><a href="#claim-{key}">{key}</a></td><td>{_text(c["paper"])}</td>'
        f'<td class="book-{MARKS[c["verdict"]]}"><span class="book-verdict">{c["verdict"].capitalize()}</span></td>'
        f'<td><a href="{chapter}.html">chapter</a></td></tr>'
        for key, chapter, c in rows
    )
    head = "<thead><tr><th></th><th>claim</th><th>verdict</th><th></th></tr></thead>"
    return Html(f'<table class="book-table">{head}<tbody>{body}</tbody></table>')


def glue(**numbers: object) -> None:
    """Make values available to the prose as {glue:text}`name`; floats to three digits, whole numbers with commas."""
    from myst_nb import glue as one  # slow to import, and not wanted where a chapter runs under papermill alone

    for name, value in numbers.items():
        one(name, number(value), display=False)


def power_of_ten(exponent: int) -> str:
    """10⁻⁶, and so on."""
    return f"10{str(exponent).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def named(name: str) -> str:
    """What a record calls sgd or synflow as the pages spell it; any other text as it is."""
    return NAMES.get(name, name)


def number(value: object) -> str:
    """A value as the prose prints it: 1,234; 0.0312; 1.79 × 10⁻⁷; "—" where there is none; "∞"; a text as `named`."""
    if isinstance(value, str):
        return named(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if math.isinf(value):
        return "∞"
    if float(value) == round(float(value)) and abs(value) < 1e15:
        return f"{round(float(value)):,}"
    if abs(value) >= 999.5:  # what three digits would make 1e+03
        return f"{value:,.0f}"
    digits, _, power = f"{value:.3g}".partition("e")
    return f"{digits}\u00a0×\u00a0{power_of_ten(int(power))}" if power else digits


def span(ends: tuple[float, float]) -> str:
    """An interval as the prose prints it: 8–64, or -2 to 1."""
    low, high = map(number, ends)
    return low if low == high else f"{low} to {high}" if "-" in low + high else f"{low}–{high}"


def trials(frame: pd.DataFrame) -> str:
    """How many trials stand behind a point of a figure of these results: "100", or "32–100"."""
    return span((frame["trials"].min(), frame["trials"].max())) if len(frame) else "—"


def table(frame: pd.DataFrame, **formats: str):
    """A frame as the pages show it: no index, numbers as in the prose unless a column has a format of its own.

    A table of more than `LONG` rows scrolls under its own head.
    """
    shown = {c: formats.get(c, number if pd.api.types.is_numeric_dtype(frame[c]) else _unbroken) for c in frame}
    styled = frame.style.hide(axis="index").format(shown, na_rep="—", escape="html")
    styled = styled.format_index(axis="columns", escape="html")
    right = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c])]
    names = list(frame.columns[:1]) != right[:1]
    kind = "book-table" + " book-names" * names + " book-long" * (len(frame) > LONG)
    return styled.set_table_attributes(f'class="{kind}"').set_properties(subset=right, **{"text-align": "right"})


def _unbroken(text: object) -> object:
    """A text, as `named`, in which ranges, 1–2 or -1 to +2, stay on one line."""
    if not isinstance(text, str):
        return text
    return re.sub(r"(?<=\d) to (?=[-+]?\d)", "\u00a0to\u00a0", named(text).replace("–", "\u2060–\u2060"))


def absent(frame: pd.DataFrame) -> Html | None:
    """What a study lacks, as a note; None if every cell has its record.  Raises ValueError if none has."""
    lacking = frame.attrs["missing"]
    if not lacking:
        return None
    if not len(frame):
        raise ValueError(
            f"budget: no record is kept of any of these {len(lacking)} cells, the first of them {lacking[0]}; "
            f"train them with -p budget full, or choose parameters that the studies have (python -m lib.sweeps status)"
        )
    names = sorted({
        f"{c.workload}, {c.algorithm}, sparsity {c.sparsity:g} ({c.pruning}), batch size {c.batch_size:,}" for c in lacking
    })  # fmt: skip
    some = "".join(f"<li>{html.escape(n)}</li>" for n in names[:12]) + (
        f"<li>… {len(names) - 12} more</li>" if len(names) > 12 else ""
    )
    return Html(
        f'<div class="book-box book-open"><p class="book-verdict">Not measured yet: {len(lacking)} of '
        f"{frame.attrs['cells_planned']} cells</p><details><summary>which</summary><ul>{some}</ul></details></div>"
    )


def some(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """The table, if it has a row.  Raises ValueError if no record is kept of what the parameters ask for."""
    if not len(frame):
        raise ValueError(f"budget: no record is kept of such {what}; measure them with -p budget full")
    return frame


def provenance(*frames: pd.DataFrame) -> Html:
    """A footer from the records of these tables' workloads: how many, when, with what.  Records in several count once.

    A table that still has every workload with a record is whole: what it lacks counts all, as in `absent`.
    """
    found, lacking = {}, {}
    for frame in frames:
        own = set(frame.workload) if len(frame) else set()
        found |= {head["sha256"]: head for head in frame.attrs["provenance"] if head["workload"] in own}
        whole = own >= {head["workload"] for head in frame.attrs["provenance"]}
        lacking |= {cell: None for cell in frame.attrs["missing"] if whole or cell.workload in own}
    heads = pd.DataFrame(found.values())
    if heads.empty:
        return Html('<p class="book-provenance">No records.</p>')
    columns = ("date", "torch", "device", "precision", "source")
    seen = {k: ", ".join(sorted(map(str, heads[k].unique()))) for k in columns}
    minutes = heads["wall_s"].sum() / 60
    time = f"{minutes / 60:.1f} core hours" if minutes >= 60 else f"{minutes:.1f} core minutes"
    return Html(
        f'<p class="book-provenance">{len(heads)} of {len(heads) + len(lacking)} cells, {heads["rows"].sum():,} '
        f"trials, {heads['trial_steps'].sum():,} training steps in {time}; measured {seen['date']} with "
        f"PyTorch {seen['torch']} on {seen['device']} in {seen['precision']}; code {seen['source']}.</p>"
    )


def sources(frame: pd.DataFrame) -> Html:
    """The same for records that are not cells."""
    heads = pd.DataFrame(frame.attrs["provenance"])
    if heads.empty:
        return Html('<p class="book-provenance">No records.</p>')
    seen = {k: ", ".join(sorted(map(str, heads[k].unique()))) for k in ("date", "torch", "device") if k in heads}
    return Html(
        f'<p class="book-provenance">{len(heads)} of {frame.attrs["planned"]} records; measured {seen["date"]} with PyTorch '
        f"{seen['torch']} on {seen['device']}.</p>"
    )


# --- in the build -----------------------------------------------------------------------------------------------------


def setup(app) -> dict:
    """Register with Sphinx: charts and formulas without a network, `lib` for the kernels, and no stale pages."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    app.config.mathjax_path = MATHJAX
    app.connect("config-inited", _assets)
    app.connect("config-inited", _repository_buttons)
    app.connect("config-inited", _forget_stale_outputs, priority=100)  # before myst-nb opens its cache
    app.connect("config-inited", _execute_side_by_side, priority=900)  # after the kernels' settings are known
    app.connect("env-get-outdated", _outdated)
    app.connect("html-page-context", _page, priority=900)  # after the extensions whose scripts it takes off
    app.connect("build-finished", _remember_inputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _build(app) -> Path:
    return Path(app.doctreedir).parent


def _assets(app, config) -> None:
    import vl_convert as vlc

    from lib.charts import VEGALITE

    out = _build(app) / "_assets"
    out.mkdir(parents=True, exist_ok=True)
    # The bundle declares a top-level `_`, and so does Sphinx's own script: hence a function around it.
    (out / "vega.js").write_text("(() => {" + vlc.javascript_bundle(vl_version=VEGALITE) + "})();")
    shutil.copy(Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / MATHJAX, out / MATHJAX)
    for asset in (ROOT / "lib" / "static").iterdir():
        shutil.copy(asset, out / asset.name)
    config.html_static_path.append(str(out))


def _repository_buttons(app, config) -> None:
    """Links to the repository, to its issues and to Binder, which reads it, where _config.yml says what it is: else none."""
    options = config.html_theme_options
    known = bool(options.get("repository_url"))
    options["use_repository_button"] = options["use_issues_button"] = known
    if not known:
        options["launch_buttons"] = {}


def _digest() -> str:
    """What a page shows besides its own source: lib/, data/ and the example of a reader's own workload."""
    text = hashlib.sha256()
    folders = ((ROOT / "lib", "*"), (ROOT / "data", "*.csv"), (ROOT / "chapters" / "own", "*.py"))
    for file in sorted(file for folder, names in folders for file in folder.rglob(names)):
        if file.suffix in {".py", ".csv", ".js", ".css"}:
            text.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return text.hexdigest()


def _stamp(app) -> Path:
    return _build(app) / ".inputs"


def _forget_stale_outputs(app, config) -> None:
    app.inputs = _digest()
    app.stale = not _stamp(app).exists() or _stamp(app).read_text() != app.inputs
    # Gone until the build ends well, so that a failed build is tried again in full.
    _stamp(app).unlink(missing_ok=True)
    if app.stale:
        shutil.rmtree(_build(app) / ".jupyter_cache", ignore_errors=True)


def _execute_side_by_side(app, config) -> None:
    """Run the chapters whose outputs are not in the cache, one per core: myst-nb itself runs one after another.

    Whatever fails here is left to myst-nb, which runs it again and reports it.
    """
    if (os.cpu_count() or 1) < 2 or config.nb_execution_mode != "cache":
        return
    from jupyter_cache import get_cache
    from jupyter_cache.executors import load_executor

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a core for each chapter, not all for all
    cache = get_cache(config.nb_execution_cache_path or _build(app) / ".jupyter_cache")
    pages = re.findall(r"(?:root|file): (\S+)", (ROOT / "_toc.yml").read_text())
    for page in (ROOT / f"{name}{suffix}" for name in pages for suffix in (".ipynb", ".md")):
        if page.exists() and (page.suffix == ".ipynb" or "{code-cell}" in page.read_text()):
            reader = {"name": "nbformat" if page.suffix == ".ipynb" else "myst_nb_md", "type": "plugin"}
            cache.add_nb_to_project(str(page), read_data=reader)
    with contextlib.suppress(Exception):
        executor = load_executor("local-parallel", cache=cache)
        executor.run_and_cache(timeout=config.nb_execution_timeout)
    logging.getLogger("multiprocessing").setLevel(logging.WARNING)  # the executor makes it talkative


def _outdated(app, env, added, changed, removed) -> list[str]:
    return list(env.found_docs) if app.stale else []


def _remember_inputs(app, exception) -> None:
    # A warning under -W ends the build with status 1 but without an exception.
    if exception is None and app.statuscode == 0 and not app._warncount:
        _stamp(app).write_text(app.inputs)


def _page(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    app.add_css_file("book.css")
    if "vl-chart" in (context.get("body") or ""):
        app.add_js_file("vega.js")
        app.add_js_file("charts.js")
        app.add_css_file("charts.css")
    # jupyter-book always loads Thebe, which this book does not use and whose script declares one name twice.
    context["script_files"][:] = [f for f in context["script_files"] if "thebe" not in _source(f).lower()]


def _source(script) -> str:
    return f"{script.filename or ''} {script.attributes.get('body', '')}"
