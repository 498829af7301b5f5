"""What every chapter does with parameters that it must refuse.

python -m tests.fuzz --share 0.02       # every fiftieth case of all chapters: a minute
python -m tests.fuzz hardware theory    # all cases of two chapters

A case sets a parameter where papermill would, and runs the chapter's cells in a fork of this
process, with limits of time and memory and nothing trained.  It must be refused by a message that
names what was set, its value and what is allowed.  Whatever else happens is listed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import importlib
import io
import math
import multiprocessing
import os
import random
import re
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a fork must not wait for its parent's threads

import nbformat

from lib import ROOT

SECONDS, PATIENCE, BYTES = 90, 400, 8 * 2**30  # of computing, of waiting, of memory
NAMES = sorted(file.stem for file in (ROOT / "chapters").glob("*.ipynb"))
REFUSED, RAN, LACKING, TRAINS = "refused", "ran", "lacking", "would train"
WRONG = [
    *(None, True, [], [1], {}, {"a": 1}, "", " ", "\n", "x", "x" * 100_000, "ünïcode ☃", "NaN"),
    *("0 x", "-", "None", math.nan, math.inf, -math.inf),
]


class Case(NamedTuple):
    """A chapter and what is set in it."""

    chapter: str
    given: dict

    def __str__(self) -> str:
        return f"{self.chapter} " + ", ".join(f"{k}={v!r:.60}" for k, v in self.given.items())


@functools.cache
def sources(chapter: str) -> tuple[list[str], int]:
    """The code of a chapter's cells, and the place of the one with its parameters (none: -1)."""
    notebook = nbformat.read(ROOT / "chapters" / f"{chapter}.ipynb", 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    tagged = [n for n, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])]
    return [cell.source for cell in code], tagged[0] if tagged else -1


def cases(chapter: str, share: float = 1.0) -> list[Case]:
    """What a chapter must refuse: values of every parameter, and names it has not; or a share."""
    (code, at), some = sources(chapter), random.Random(chapter)
    body = ast.parse(code[at]).body if at >= 0 else []
    own = {line.target.id: ast.literal_eval(line.value) for line in body}
    given = [{name: value} for name in own for value in WRONG]
    for name, usual in own.items():
        near = {f"{name}s", name[:-1], name.upper(), f"_{name}"} - own.keys()
        given += [{n: usual} for n in sorted(near) if n.isidentifier()]
        given += [{name: 1.5}] if type(usual) is int else []
    given += [{name: 3} for name in ("x", "pd", "charts", "lib", "ROOT") if own]
    return [Case(chapter, one) for one in given if some.random() < share]


class Trained(BaseException):
    """Something would have been trained or timed."""


def run(case: Case) -> tuple[str, str]:
    """What a chapter does with a case, in this process, where nothing trains, times or starts
    processes: what it came to, and the message.
    """
    from IPython.core.interactiveshell import InteractiveShell
    from papermill.translators import PythonTranslator

    from chapters.batch_size_is_data_parallelism import parallel_runs
    from lib.measuring import runner, sweeps

    def trained(*_, **__):
        raise Trained

    sweeps.run = runner.run = runner.write = parallel_runs.train = trained
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    code, at = sources(case.chapter)
    for source in [*code[: at + 1], PythonTranslator.codify(case.given), *code[at + 1 :]]:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            done = InteractiveShell.instance().run_cell(source)
        error = done.error_before_exec or done.error_in_exec
        if error is not None:
            return (TRAINS, "") if isinstance(error, Trained) else verdict(case, error)
    return RAN, ""


def verdict(case: Case, error: BaseException) -> tuple[str, str]:
    """What an error amounts to, and its message."""
    text = str(error)
    if not isinstance(error, ValueError) or "\n" in text.strip():
        return "raw error", f"{type(error).__name__}: {text}"
    if "no record is kept of" in text:
        return LACKING, text
    if not re.search("must be|allowed|did you mean", text):
        return "not said what is allowed", text
    named = [name for name in case.given if re.search(rf"(^|; |, | with | and ){name}\b", text)]
    if not named:
        return "names another field", text
    given = [case.given[name] for name in named]
    spelt = [told for one in given for told in (str(one), repr(one), *str(one).split())]  # or an entry
    return (REFUSED if any(told[:100] in text for told in spelt) else "value not named"), text


def within(case: Case, pipe) -> None:
    """`run` in a process of its own, which reports by the pipe."""
    sys.stdout = sys.stderr = io.StringIO()
    try:
        pipe.send(run(case))
    except BaseException as error:
        pipe.send(("raw error", f"{type(error).__name__}: {error}"))
    os._exit(0)


def outcome(case: Case) -> tuple[Case, str, str]:
    """A case, what it came to, and the message: run in a fork, which has all imported."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=within, args=(case, theirs))
    child.start()
    theirs.close()
    told = ("hang", f"more than {PATIENCE} s")
    with contextlib.suppress(EOFError):
        told = ours.recv() if ours.poll(PATIENCE) else told
    child.kill()
    child.join()
    return case, *told


def outcomes(todo: list[Case]) -> Iterator[tuple[Case, str, str]]:
    """The outcome of every case, in order, two at a time."""
    warm()
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(outcome, todo)


@functools.cache
def warm() -> None:
    """What all cases share is read and imported once."""
    import altair  # noqa: F401
    import papermill.translators  # noqa: F401
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    for file in (ROOT / "lib").rglob("*.py"):
        if file.stem not in ("__init__", "__main__"):
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.showtraceback = lambda *_, **__: None  # slow


def main() -> None:
    """The command line: counts, and all that is not refused by name."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Wrong parameters.")
    parser.add_argument("chapters", nargs="*", default=[], choices=[*NAMES, []])
    parser.add_argument("--share", type=float, default=1.0, help="of the cases")
    chosen = parser.parse_args()
    counts = Counter()
    for chapter in chosen.chapters or NAMES:
        for case, kind, message in outcomes(cases(chapter, chosen.share)):
            counts[kind] += 1
            if kind != REFUSED:
                print(f"{kind}: {case}\n    {message[-300:]}", flush=True)
    print(f"{counts[REFUSED]} of {counts.total()} refused by name: {dict(counts)}")
    sys.exit(counts[REFUSED] != counts.total())


if __name__ == "__main__":
    main()
