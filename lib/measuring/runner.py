"""The one runner of all that is measured: a job for each that is missing, a bar, and their records.

Whatever is stopped goes on when it is called again: what has a record is left alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import joblib
import pandas as pd
from joblib.parallel import get_active_backend
from tqdm import tqdm

from lib import Stopped, require
from lib.records import store

# Jobs side by side: one thread each, so that more than there are cores gain nothing
MOST = 4 * (os.cpu_count() or 1)
KILLED = "a worker process was killed, possibly for lack of memory (try fewer jobs)"
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class WorkerDied(RuntimeError):
    """A worker process that ended without a word, as the system ends what takes too much memory."""


def run(
    todo: Sequence, measure: Callable[..., object], title: str, unit: str, jobs: int = 1, **options
) -> None:
    """Measure each of `todo`, so many side by side, under one progress bar; nothing is shown where
    there is nothing to do.

    Args:
        measure: a function of a module, called as measure(what, **options) in whatever process; it
            writes the record.
        title, unit: of the bar.

    Raises:
        ValueError: for a number of jobs that is not allowed.
        Stopped: which says what is kept, where Ctrl-C ends it.
    """
    if not todo:
        return
    calls = (joblib.delayed(measure)(what, **options) for what in todo)
    # A notebook or a log keeps every line of the bar
    pause = 0.1 if sys.stderr.isatty() else 5.0
    with _Bar(total=len(todo), desc=title, unit=unit, mininterval=pause) as bar:
        try:
            with _Progress(bar):
                for _ in each(calls, jobs):
                    bar.update()
        except KeyboardInterrupt as stop:
            done = f"{bar.n} of {len(todo)} that were missing ({unit}s) are finished and kept"
            told = f"stopped; {done}; run the same call again to continue"
            # The kernel's sockets are closed under it, of which it would write a traceback
            logging.getLogger("IPKernelApp").setLevel(logging.CRITICAL)
            _tell_terminal(f"\n{told}\n")
            raise Stopped(told) from stop
    _tell_terminal("\n")


class _Bar(tqdm):
    """A progress bar; a notebook's goes to the terminal as well."""

    def display(self, msg=None, pos=None):
        _tell_terminal(f"\r{self if msg is None else msg}")
        return super().display(msg, pos)


class _Progress(logging.Handler):
    """While entered, shows beside a bar what the search of this process logs of its steps."""

    LOG = logging.getLogger("lib.training")

    def __init__(self, bar: tqdm):
        super().__init__()
        self.bar = bar
        self.began = self.shown = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        # A notebook or a log keeps every line: in all some hundred of a search that takes hours
        if now - self.shown >= max(1.0, self.bar.mininterval, (now - self.began) / 100):
            self.shown = now
            self.bar.set_postfix_str(record.getMessage())

    def __enter__(self) -> None:
        self.LOG.propagate = False  # a notebook would print every line
        self.LOG.setLevel(logging.INFO)
        self.LOG.addHandler(self)

    def __exit__(self, *_) -> None:
        self.LOG.removeHandler(self)
        self.LOG.setLevel(logging.NOTSET)
        self.bar.set_postfix_str("", refresh=False)


def each(calls: Iterable, jobs: int = 1) -> Iterator:
    """What each of the calls (`joblib.delayed`) returns, as soon as it does; whoever stops asking
    ends those under way.

    Wrapped in `joblib.parallel_config(backend="dask")` they run on the cluster, however many
    threads it has; Dask lets a call that a worker has begun go on to its end.

    Raises:
        ValueError: for a number of jobs that is not allowed.
        WorkerDied: where the system has ended one.
    """
    fine = type(jobs) is int and (jobs == -1 or 1 <= jobs <= MOST)
    require(fine, "jobs", jobs, f"a whole number from 1 to {MOST}, or -1")
    backend, _ = get_active_backend()
    if hasattr(backend, "client"):  # joblib would run everything here if the cluster had one thread
        threads = backend.effective_n_jobs
        backend.effective_n_jobs = lambda n: max(2, threads(n))
    parallel = joblib.Parallel(
        n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs + 1", batch_size=1
    )
    try:
        with contextlib.closing(parallel(calls)) as results:
            yield from results
    except BrokenProcessPool:
        raise WorkerDied(
            f"{KILLED}; finished work is kept; run the same call again to continue"
        ) from None


def write(
    file: Path,
    what: object,
    take: Callable[[], pd.DataFrame],
    precision: str | None = None,
    device: str = "cpu",
    **more,
) -> Path:
    """Take a measurement in this process, with one thread, and write its record; returns the file.

    Args:
        precision: of its arithmetic, None where the table tells several apart.
        device: where it is taken.
        more: what else the first line says.

    Raises:
        OSError: naming the file, before anything is measured, if its folder cannot be written.
    """
    # Brings PyTorch, which is slow to import, and most chapters only read
    from lib.measuring import machine

    machine.use_one_core()
    store.prepare(file)
    began = time.perf_counter()
    table = take()
    seconds = time.perf_counter() - began
    about = machine.provenance(machine.origin(device, precision), seconds, **more)
    store.write(file, what, table, about)
    return file


# --- stopping -------------------------------------------------------------------------------------


def _tell_terminal(text: str) -> None:
    """Write where a notebook's process was started from: papermill itself shows nothing of what a
    notebook writes.
    """
    terminal = getattr(sys.stderr, "_original_stdstream_copy", None)  # of ipykernel's streams
    if isinstance(terminal, int):
        with contextlib.suppress(OSError):
            os.write(terminal, text.encode())


@contextlib.contextmanager
def stoppable(kept: Callable[[], str], again: str) -> Iterator[None]:
    """For a command: Ctrl-C, SIGTERM or a closed terminal ends what runs herein with one line and
    the usual exit status.

    An OSError, which names its file, and a worker's death are told in one line, too.  Whoever calls
    from a notebook gets the exceptions themselves.

    Args:
        kept: says what is there by then.
        again: the command that goes on.
    """
    received: list[int] = []

    def stop(number: int, _) -> None:
        received.append(number)
        raise KeyboardInterrupt

    # Those that are ignored, as SIGHUP is under nohup, stay so.
    before = {s: signal.signal(s, stop) for s in SIGNALS if signal.getsignal(s) != signal.SIG_IGN}
    try:
        yield
    # Of a worker that got the signal, too, perhaps the worker's death
    except BaseException as error:
        for s in before:
            signal.signal(s, signal.SIG_IGN)  # the end is on its way
        if received:
            what = f"stopped by {signal.Signals(received[0]).name}"
        elif isinstance(error, OSError | WorkerDied):
            what = KILLED if isinstance(error, WorkerDied) else str(error)
        else:
            raise
        print(f"{what}; {kept()}; to continue: {again}", file=sys.stderr)
        sys.exit(128 + received[0] if received else 1)
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


@contextlib.contextmanager
def within(minutes: float | None) -> Iterator[None]:
    """End what runs herein after so many minutes, as Ctrl-C would, and go on after it; None: never.

    Raises ValueError where the system has no alarm clock, as Windows has none.
    """
    if minutes is None:
        yield
        return
    able = "left out on a system without SIGALRM"
    require(hasattr(signal, "SIGALRM"), "minutes", minutes, able)
    rang = []

    def over(*_) -> None:
        rang.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    except KeyboardInterrupt:
        if not rang:
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
