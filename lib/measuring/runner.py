"""The one runner of all that is measured: a job for each that is missing, a bar, and their records.

Whatever is stopped goes on when it is called again: what has a record is left alone.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import joblib
import pandas as pd
from tqdm import tqdm

from lib import Stopped
from lib.records import store

# Jobs side by side: one thread each, so that more than there are cores gain nothing
MOST = 4 * (os.cpu_count() or 1)
KILLED = "a worker process was killed, possibly for lack of memory (try fewer jobs)"
PAGE = 9.0  # seconds of an idle core for a page's start and figures, part of its minutes
SIGNALS = [s for s in signal.Signals if s.name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")]


def began() -> float:
    """When a page began, of which the modules load, less what its figures will take."""
    # Of a busy core a process has a share; Windows does not tell.  A minute is to leave some time.
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return time.time() - PAGE * min(3.0, max(1.0, load / (os.cpu_count() or 1)))


def run(
    todo: Sequence,
    measure: Callable[..., object],
    title: str,
    units: str,
    jobs: int = 1,
    **options,
) -> None:
    """Measure each of `todo`, so many side by side, under one progress bar; nothing is shown where
    there is nothing to do.

    Args:
        measure: a function of a module, called as measure(what, **options) in whatever process; it
            writes the record.
        title, units: of the bar.

    Wrapped in `joblib.parallel_config(backend="dask")` they run on a cluster of several threads;
    Dask lets a call that a worker has begun go on to its end.

    Raises:
        Stopped: which says what is kept, where Ctrl-C ends it.
        BrokenProcessPool: where the system has ended a worker.
    """
    if not todo:
        return
    calls = [joblib.delayed(measure)(what, **options) for what in todo]
    if jobs != 1:
        calls = [joblib.delayed(_for_parent)(os.getpid(), call) for call in calls]
    parallel = joblib.Parallel(
        n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs + 1", batch_size=1
    )
    # A notebook or a log keeps every line of the bar
    intervals = {"mininterval": 0.1 if sys.stderr.isatty() else 10.0, "miniters": 0}
    with _Bar(total=len(todo), desc=title, unit=units, **intervals) as bar, _listening(bar):
        try:
            with contextlib.closing(parallel(calls)) as results:
                for _ in results:
                    bar.update()
        except KeyboardInterrupt as stop:
            done = f"{bar.n} of {len(todo)} that were missing ({units}) are finished and kept"
            message = f"stopped; {done}; run the same call again to continue"
            # The kernel's sockets are closed under it, of which it would write a traceback
            logging.getLogger("IPKernelApp").setLevel(logging.CRITICAL)
            _tell_terminal(f"\n{message}\n")
            raise Stopped(message) from stop
    _tell_terminal("\n")


def _for_parent(parent: int, call: tuple) -> None:
    """Make a call; in a process that joblib has started for `parent`, as one that ends with it."""
    if multiprocessing.current_process().name.startswith("LokyProcess"):
        _end_with(parent)
    function, arguments, named = call
    function(*arguments, **named)


@functools.cache
def _end_with(parent: int) -> None:
    """End this process soon after its parent, whose death by a signal nobody tells it of."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Bar(tqdm):
    """A progress bar; a notebook's goes to the terminal as well."""

    def display(self, msg=None, pos=None):
        _tell_terminal(f"\r{self if msg is None else msg}")
        return super().display(msg, pos)


def _tell_terminal(text: str) -> None:
    """Write where a notebook was started from: papermill shows nothing of what it writes."""
    terminal = getattr(sys.stderr, "_original_stdstream_copy", None)  # of ipykernel's streams
    if isinstance(terminal, int):
        with contextlib.suppress(OSError):
            os.write(terminal, text.encode())


@contextlib.contextmanager
def _listening(bar: tqdm) -> Iterator[None]:
    """Herein the bar shows beside it what the search of this process logs of its steps."""

    def emit(record: logging.LogRecord) -> None:
        bar.set_postfix_str(record.getMessage(), refresh=False)
        bar.update(0)

    log, handler = logging.getLogger("lib.training"), logging.Handler()
    handler.emit = emit
    log.propagate = False  # a notebook would print every line
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)


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


@contextlib.contextmanager
def stoppable(
    kept: Callable[[], str], again: str, minutes: float | None = None
) -> Iterator[None]:
    """For a command: Ctrl-C, SIGTERM or a closed terminal ends what runs herein with one line and
    the usual exit status; the end of so many minutes, with one line alone.

    An OSError, which names its file, and a worker's death are told in one line, too.  Whoever calls
    from a notebook gets the exceptions themselves.

    Args:
        kept: says what is there by then.
        again: the command that goes on.
    """
    received: list[str] = []

    def stop(number: int, _) -> None:
        received.append(signal.Signals(number).name)
        raise KeyboardInterrupt

    # Those that are ignored, as SIGHUP is under nohup, stay so.
    heard = [s for s in SIGNALS if signal.getsignal(s) != signal.SIG_IGN]
    before = {s: signal.signal(s, stop) for s in heard}
    if minutes:
        signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    # Of a worker that got the signal, too, perhaps the worker's death
    except BaseException as error:
        for s in before:
            signal.signal(s, signal.SIG_IGN)  # the end is on its way
        if not received and not isinstance(error, OSError | BrokenProcessPool):
            raise
        why = KILLED if isinstance(error, BrokenProcessPool) else error
        why = f"stopped by {received[0]}" if received else why
        in_time = received[:1] == ["SIGALRM"]  # at the end of the minutes
        stream = sys.stdout if in_time else sys.stderr
        print(f"{why}; {kept()}; to continue: {again}", file=stream)
        if not in_time:
            sys.exit(128 + signal.Signals[received[0]] if received else 1)
    finally:
        if minutes:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for s, handler in before.items():
            signal.signal(s, handler)
