"""The one runner of cells, tracks, portraits and timings: a job for each that is missing, a bar,
and their records.

Whatever is stopped goes on when it is called again: what has a record is left alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import joblib
import pandas as pd
from tqdm import tqdm

from lib import Stopped
from lib.measuring.jobs import each
from lib.records import store


def run(
    todo: Sequence, measure: Callable[..., object], title: str, unit: str, jobs: int = 1, **options
) -> None:
    """Measure each of `todo`, so many side by side, under one progress bar; nothing is shown where
    there is nothing to do.

    measure: a function of a module, called as measure(what, reports, **options) in whatever
    process; it writes the record, and a `Reporter` of the folder `reports` shows how far it is.
    title, unit: of the bar.  Raises ValueError for a number of jobs that is not allowed, and
    Stopped, which says what is kept, where Ctrl-C ends it.
    """
    if not todo:
        return
    with tempfile.TemporaryDirectory() as reports, _Display(title, unit, len(todo), reports) as bar:
        calls = (joblib.delayed(measure)(what, reports, **options) for what in todo)
        try:
            for _ in each(calls, jobs):
                bar.update()
        except KeyboardInterrupt as stop:
            done = f"{bar.bar.n} of {len(todo)} that were missing ({unit}s) are done and kept"
            told = f"stopped; {done}; the same call goes on from there"
            _tell_terminal(told)
            raise Stopped(told) from stop


def _tell_terminal(text: str) -> None:
    """Write a line where a notebook's process was started from: papermill, which ends, shows nothing
    of what comes from the notebook any more.
    """
    terminal = getattr(sys.stderr, "_original_stdstream_copy", None)  # of ipykernel's streams
    if isinstance(terminal, int):
        # Its sockets are closed under it, of which it would write a traceback
        logging.getLogger("IPKernelApp").setLevel(logging.CRITICAL)
        with contextlib.suppress(OSError):
            os.write(terminal, f"\n{text}\n".encode())


def write(
    file: Path,
    what: object,
    take: Callable[[], pd.DataFrame],
    precision: str | None = None,
    device: str = "cpu",
    **more,
) -> Path:
    """Take a measurement in this process, with one thread, and write its record; returns the file.

    precision: of its arithmetic, None where the table tells several apart; device: where it is
    taken; more: what else the first line says. Raises OSError naming the file, before anything is
    measured, if its folder cannot be written.
    """
    # Brings PyTorch, which is slow to import, and most chapters only read
    from lib.measuring import (
        machine,
    )

    machine.use_one_core()
    store.prepare(file)
    began = time.perf_counter()
    table = take()
    store.write(
        file,
        what,
        table,
        machine.provenance(machine.origin(device, precision), time.perf_counter() - began, **more),
    )
    return file


# --- progress -------------------------------------------------------------------------------------


class Reporter:
    """Writes a job's progress to a file of its process in a folder, at most twice a second; None:
    nowhere.
    """

    def __init__(self, folder: str | None):
        self.file = folder and Path(folder) / str(os.getpid())
        self.next = 0.0

    def __call__(self, step: int, alive: int | None = None, best: float = math.inf) -> None:
        """step: reached; alive: trials that still train; best: error so far."""
        now = time.monotonic()
        if self.file and now >= self.next:
            self.next = now + 0.5
            with contextlib.suppress(OSError):
                self.file.write_text(
                    json.dumps([step, alive, None if math.isinf(best) else float(best)]),
                    encoding="utf-8",
                )


def told(step: int, alive: int | None, best: float | None) -> str:
    """A report in words."""
    more = "" if alive is None else f", {alive} alive"
    return f"step {step:,}{more}" + ("" if best is None else f", error {best:.3f}")


class _Display(contextlib.AbstractContextManager):
    """A progress bar: how many are done, the time left, and how far those under way are.

    A terminal writes one line again every second.  A notebook or a log keeps every line: there, a
    twentieth of the time that has passed lies between two, and five seconds at least.
    """

    def __init__(self, title: str, unit: str, count: int, reports: str):
        self.terminal = sys.stderr.isatty()
        self.bar = tqdm(
            total=count, desc=title, unit=unit, mininterval=0.1 if self.terminal else 5.0
        )
        self.reports, self.done = Path(reports), threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        began, pause = time.monotonic(), 1.0 if self.terminal else 5.0
        while not self.done.wait(pause):
            now = []
            for file in sorted(self.reports.glob("*")):
                with contextlib.suppress(OSError, ValueError):
                    now.append(told(*json.loads(file.read_text(encoding="utf-8"))))
            self.bar.set_postfix_str(" | ".join(now))
            if not self.terminal:
                pause = self.bar.mininterval = max(5.0, (time.monotonic() - began) / 20)

    def update(self) -> None:
        self.bar.update()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        if self.bar.n == self.bar.total:  # nothing is under way any more
            self.bar.set_postfix_str("", refresh=False)
        self.bar.close()
