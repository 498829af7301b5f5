"""What every chapter does with parameters it was not made for: hundreds of values of each, wrong ones and right ones.

python -m tests.fuzz                                # all chapters, all cases: about a quarter of an hour on two cores
python -m tests.fuzz hardware theory --share 0.1    # two chapters, every tenth case

A case sets one parameter or two, where papermill would, and runs the chapter's cells in a process of its own with a limit of
time and memory, in which nothing is trained.  It must be refused, by a message that names what was set, its value and what is
allowed, or run to its end, or to a message that says what is missing.  Whatever else happens is listed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import importlib
import io
import json
import math
import multiprocessing.connection
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything computes: a process that was forked must not wait for threads

import nbformat

from lib import ROOT
from lib.records import store

SECONDS, PATIENCE, BYTES = 90, 400, 8 * 2**30  # limits of a case: of computing, of waiting for it, of memory
NAMES = sorted(file.stem for file in (ROOT / "chapters").glob("*.ipynb"))
REFUSED, RAN, LACKING, TRAINS = "refused", "ran", "lacking", "would train"
RIGHT = (REFUSED, RAN, LACKING, TRAINS)
WEIRD = [None, True, [], [1], {}, {"a": 1}, "", " ", "\n", "x", "x" * 100_000, "ünïcode ☃", "NaN", "0 x", "-", "None"]
NUMBERS = [0, -0.0, -1, 1, 2, 3, 0.5, 1.0, 1.5, -0.1, 10**9, 10**400, 1e9, 1e300, -1e300, math.nan, math.inf, -math.inf]
LISTS = ["1 1", "1, 2", "0 0.0", "1 x", "-1 1", "nan", "inf 1", "1e400", "1 " * 5000, " ".join(map(str, range(5000))), "1;2"]
TEXTS = ["digits-mlp digits-mlp", "digits-mlp x", "top-k top-k", "top-k x", "digits mlp", "DIGITS-MLP", "digits-mlp ", "../x"]
BAD = defaultdict(lambda: NUMBERS + WEIRD)
RECORDS = 4  # of which the parameters are tried
PAIRS = 12  # of each kind: two right values, one wrong one, two of them
OWN = ["no.py:f", ".py:", "x.py:", "chapters/own/next_letter.py:no", "chapters/own/next_letter.py", "a" * 5000 + ".py:f", "\0.py:f"]
GOOD = {
    "workload": ["digits-cnn", "digits-mlp-168", "mnist-simple-cnn", "mnist-fnn-3", "cifar-10-resnet-8",
                 "chapters/own/next_letter.py:next_letter"],
    "workloads_shown": ["digits-mlp", "digits-mlp-168", "mnist-fnn-3", "mnist-fnn-3 mnist-lenet-5"],
    "algorithm": ["sgd", "momentum", "nesterov"], "methods": ["all", "sgd adam", "momentum"], "searches": [1, 3],
    "budget": ["cached", "smoke"], "sparsities": [0, 0.9, "0 0.9", "0.9 0.5", "0 0.95", "0.99"], "sparsity": [0.0, 0.5, 0.9, 0.95],
    "batch_sizes": [16, "16 64", "64 16", "1 2 4", "1024", "4 8 16 32 64 128"], "batch_size": [1, 16, 64, 512, 1024],
    "densities": [1, "0.01 0.001", 0.1], "density": [0.001, 0.01, 0.5, 1.0], "trials": [1, 4, 16, 32, 99, 4096],
    "replicates": [1, 2, 9], "seeds": [1, 2], "points": [1, 16, 2], "repeats": [1, 2], "masks": [1, 2],
    "base": [1, 64], "compressor": ["gaussian-k", "rand-k", "dgc-k", "dense"], "compressors": ["top-k", "rand-k", "dense"],
    "device": ["measured", "entered"], "family": ["all"], "normalise": ["none"], "workers_max": [2], "dimensions": [1, 10, 100],
    "noise": [0.1, 4.0, 1e-3], "target": [0.1, 1e-4, 2.0], "steps": [16, 1600], "entries": [1, 10, 1000],
    "peers": [1, 12, 100], "speed": [1.0, 4e3], "spread": [0.0, 2.0], "departures": [0.0, 10.0], "latency": [0.5, 1000.0],
    "micro_batch": [4, 16], "bandwidth": [1e6, 1.25e9], "goal_error": [0.05, 0.1], "readout_error": [0.4, 1.0, 0.01],
    "goal": [0.04, 0.1], "local_steps": [1, 80], "staleness": [1, 15, 31],
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A chapter and what is set in it; wrong: whether it must be refused (None where either will do)."""

    chapter: str
    given: dict
    wrong: bool | None = None

    def __str__(self):
        return f"{self.chapter} {', '.join(f'{name}={shortly(value)}' for name, value in self.given.items())}"


def shortly(value: object) -> str:
    text = f"int of {value.bit_length()} bits" if type(value) is int and value.bit_length() > 999 else repr(value)
    return text if len(text) < 60 else f"{text[:50]}…{len(text)}"


@functools.cache
def sources(chapter: str) -> tuple[list[str], int]:
    """The code of a chapter's cells, and the number of the one with its parameters (none: -1)."""
    code = [c for c in nbformat.read(ROOT / "chapters" / f"{chapter}.ipynb", 4).cells if c.cell_type == "code"]
    tagged = [n for n, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])]
    return [cell.source for cell in code], tagged[0] if tagged else -1


def defaults(chapter: str) -> dict:
    """A chapter's parameters as its cell has them."""
    code, at = sources(chapter)
    body = ast.parse(code[at]).body if at >= 0 else []
    return {line.target.id: ast.literal_eval(line.value) for line in body}


def cases(chapter: str, seed: int = 0, share: float = 1.0) -> list[Case]:
    """What is tried of a chapter: every value of every parameter, unknown names, and pairs drawn by chance."""
    own, found, some = defaults(chapter), [], random.Random(f"{chapter} {seed}")
    for name, usual in own.items():
        listed = isinstance(usual, str) and (name.endswith("s") or name == "workloads_shown")
        named = isinstance(usual, str) and not re.match(r"[\d.]", usual)
        for value in WEIRD:
            found.append(Case(chapter, {name: value}, True))
        for value in NUMBERS + (LISTS if listed and not named else []):
            odd = isinstance(value, float) and not math.isfinite(value)
            odd |= type(usual) is int and type(value) is not int or named
            found.append(Case(chapter, {name: value}, True if odd else None))
        for value in TEXTS + OWN if named else []:
            found.append(Case(chapter, {name: value}, None))
        found += [Case(chapter, {name: value}, False) for value in GOOD.get(name, []) if value != usual]
        near = (f"{name}s", name[:-1], name.upper(), f"_{name}", name.replace("_", ""), f"{name}1")
        found += [Case(chapter, {n: usual}, True) for n in near if n not in own and n.isidentifier()]
    unknown = ("x", "pd", "charts", "book", "budgets", "Study", "lib", "cores", "ROOT") if own else ()
    found += [Case(chapter, {name: 3}, True) for name in unknown]
    kinds = {name: [v for v in GOOD.get(name, []) if v != usual] or [usual] for name, usual in own.items()}
    for _ in range(PAIRS if len(own) > 1 else 0):
        for first, second, wrong in ((kinds, kinds, False), (BAD, kinds, None), (BAD, BAD, None)):
            a, b = some.sample(list(own), 2)
            found.append(Case(chapter, {a: some.choice(first[a]), b: some.choice(second[b])}, wrong))
    found += [Case(chapter, {}, False), *measured(chapter, some)]
    if "budget" in own:  # and what is wrong must be refused before anything is trained
        found += [Case(chapter, {**c.given, "budget": "full"}, c.wrong) for c in found
                  if c.wrong and "budget" not in c.given and some.random() < 0.1]  # fmt: skip
    return [case for case in found if some.random() < share or not case.given]


def measured(chapter: str, some: random.Random) -> list[Case]:
    """The parameters of searches that are on record, a reader's own among them."""
    own, found = defaults(chapter), []
    if "workload" not in own or "batch_sizes" not in own and "batch_size" not in own:
        return []
    files = searched()
    mine = [file for file in files if "own" in file.parts]
    for file in [some.choice(mine), *some.sample(files, RECORDS)]:
        cell = store.head(file)["cell"]
        alike = [store.head(f)["cell"] for f in sorted(file.parent.glob("*.csv"))]
        sizes = sorted({c["batch_size"] for c in alike if c["trials"] == cell["trials"] and c["stop"] == cell["stop"]})
        usual = {**cell, "sparsities": f"{cell['sparsity']:g}", "batch_sizes": " ".join(map(str, sizes))}
        found.append(Case(chapter, {name: usual[name] for name in own if name in usual}, None))
    return found


@functools.cache
def searched() -> list[Path]:
    """The records of searches."""
    return sorted((ROOT / "data").glob("*/*/*/sparsity-*/batch-*.csv"))


class Trained(BaseException):
    """Something would have been trained or timed."""


def run(case: Case) -> tuple[str, str]:
    """What a chapter does with a case, in this process: what it came to, and the last line that papermill would print."""
    from papermill.translators import PythonTranslator

    forbid()
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    code, at = sources(case.chapter)
    injected = PythonTranslator.codify(case.given)
    for source in [*code[: at + 1], injected, *code[at + 1 :]] if at >= 0 else code:
        error = execute(source)
        if isinstance(error, Trained):
            return TRAINS, ""
        if error is not None:
            return verdict(case, error)
    return RAN, ""


def execute(source: str) -> BaseException | None:
    """Run a cell as a notebook does, what it displays included; returns what it raised."""
    from IPython.core.interactiveshell import InteractiveShell

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        done = InteractiveShell.instance().run_cell(source)
    return done.error_before_exec or done.error_in_exec


def forbid() -> None:
    """Let nothing train, time or start processes for minutes: a toy of a study trains, the rest raises `Trained`."""
    from lib.measuring import runner, sweeps
    from lib.probes import track_runs
    from lib.records import places
    from lib.workers import processes

    def trained(*_, **__):
        raise Trained

    train = sweeps.run
    sweeps.run = lambda study, folder=places.DATA, *a, **k: trained() if folder == places.DATA else train(study, folder, *a, **k)
    runner.write = track_runs.run = processes.train = trained


def verdict(case: Case, error: BaseException) -> tuple[str, str]:
    """What an error amounts to, and the last line of its message."""
    text = str(error)
    last = f"{type(error).__name__}: {text}".strip().splitlines()[-1]
    if not isinstance(error, ValueError) or "\n" in text.strip():
        return "raw error" if not isinstance(error, MemoryError) else "memory", last
    if "no record is kept of" in text:
        return LACKING, last
    if not re.search("must be|allowed|did you mean", text):
        return "not said what is allowed", last
    names = [name for name in case.given if re.search(rf"(^|; |, | with | and ){name}\b", text)]
    if not names:
        return "names another field", last
    return (REFUSED if any(mentions(text, case.given[name]) for name in names) else "value not named"), last


def mentions(text: str, value: object) -> bool:
    """Whether a message has a value, or the beginning of a long one; unknown names are refused whatever their value."""
    if "unknown parameter" in text or type(value) is int and value.bit_length() > 300:
        return True
    return repr(value)[:100] in text or str(value)[:100] in text or isinstance(value, (int, float)) and repr(float(value)) in text


def within(case: Case, pipe) -> None:
    """`run` in a process of its own, which writes nothing and reports by the pipe."""
    os.setsid()
    sys.stdout = sys.stderr = io.StringIO()
    try:
        pipe.send(run(case))
    except MemoryError:
        pipe.send(("memory", "MemoryError"))
    except BaseException as error:
        pipe.send(("raw error", f"{type(error).__name__}: {error}"))
    os._exit(0)


def outcomes(todo: list[Case], jobs: int = 2):
    """Every case with what it came to and its message, as they end: each a fork of this process, which has all imported."""
    warm()
    fork, running, todo = multiprocessing.get_context("fork"), {}, list(todo)
    while todo or running:
        while todo and len(running) < jobs:
            case = todo.pop(0)
            ours, theirs = fork.Pipe(duplex=False)
            child = fork.Process(target=within, args=(case, theirs))
            child.start()
            theirs.close()
            running[ours] = case, child, time.monotonic()
        for ours in multiprocessing.connection.wait(running, timeout=1):
            case, child, began = running.pop(ours)
            try:
                told = ours.recv()
            except EOFError:
                child.join()
                late = child.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
                told = ("hang", f"more than {SECONDS} s") if late else ("memory", f"ended with {child.exitcode}")
            child.join()
            yield case, *judged(case, *told), time.monotonic() - began
        for ours, (case, child, began) in list(running.items()):
            if time.monotonic() - began > PATIENCE:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, 9)
                child.join()
                del running[ours]
                yield case, "hang", f"more than {PATIENCE} s", float(PATIENCE)


def judged(case: Case, kind: str, message: str) -> tuple[str, str]:
    """`verdict`, told from what the case should have come to."""
    if case.wrong and kind in (RAN, LACKING, TRAINS):
        return "wrong, but accepted", kind
    return kind, message


@functools.cache
def warm() -> None:
    """What all cases share is read and imported once."""
    import altair  # noqa: F401
    import myst_nb  # noqa: F401
    import papermill.translators  # noqa: F401
    import torch
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from lib.measuring import sweeps
    from lib.records import on_record
    from lib.studies import plans

    for file in (ROOT / "lib").rglob("*.py"):
        if file.stem not in ("__init__", "__main__"):
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))

    torch.set_num_threads(1)
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.showtraceback = lambda *_, **__: None  # slow
    sweeps.results(on_record.gathered(**plans.USUAL))
    gc.freeze()  # or every fork copies all that is collected


def main() -> None:
    """The command line: counts per chapter, and all that is not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Wrong and right parameters for every chapter.")
    parser.add_argument("chapters", nargs="*", default=[], choices=[*NAMES, []])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of the cases")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--wrong", action="store_true", help="only what must be refused, which is quick")
    parser.add_argument("--json", type=Path, help="a file for all outcomes")
    chosen = parser.parse_args()
    counts, rest, told = {}, [], []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYTHONDIR"] = folder
        for chapter in chosen.chapters or NAMES:
            began, counts[chapter] = time.monotonic(), Counter()
            todo = [c for c in cases(chapter, chosen.seed, chosen.share) if c.wrong or not chosen.wrong]
            for case, kind, message, seconds in outcomes(todo, chosen.jobs):
                counts[chapter][kind] += 1
                told.append({"case": str(case), "kind": kind, "message": message[-500:], "seconds": round(seconds, 2)})
                if kind not in RIGHT:
                    rest.append(case)
                    print(f"{kind}: {case}\n    {message[:300]}", flush=True)
            about = f"{sum(counts[chapter].values())} in {time.monotonic() - began:.0f} s"
            print(f"{chapter}: {about}, {dict(counts[chapter])}", flush=True)
    total = sum(counts.values(), Counter())
    right = sum(total[kind] for kind in RIGHT)
    print(f"{right} of {sum(total.values())} right: {dict(total)}")
    if chosen.json:
        chosen.json.write_text(json.dumps(told, indent=0), encoding="utf-8")
    sys.exit(bool(rest))


if __name__ == "__main__":
    main()
