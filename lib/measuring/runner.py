"""Runs all measurements: a job for each one missing, a progress bar, and records.

After a stop, the same call continues: measurements that have a record are left alone.
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

# Jobs in parallel, one thread each; more than there are cores gain nothing
MOST = 4 * (os.cpu_count() or 1)
KILLED = "a worker process was killed, possibly for lack of memory (try fewer jobs)"
PAGE = 9.0  # seconds of an idle core for a page's start and figures; they count as its minutes
SIGNALS = [s for s in signal.Signals if s.name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")]


def began() -> float:
    """When the page that now loads its modules began, minus the time that its figures will take."""
    # On a busy core a process gets a share; Windows has no load.  A minute should leave some time.
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
    """Measure each of `todo`, `jobs` in parallel, under one progress bar; show nothing if there is
    nothing to do.

    Args:
        measure: a module-level function, called as measure(what, **options) in any process; it
            writes the record.
        title, units: of the bar.

    Within `joblib.parallel_config(backend="dask")`, jobs run on a cluster of several threads; Dask
    lets calls that have begun run to their end.

    Raises:
        Stopped: on Ctrl-C; it says what is kept.
        BrokenProcessPool: if the system has killed a worker.
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
            done = f"{bar.n} of {len(todo)} missing {units} are finished and kept"
            message = f"stopped; {done}; run the same call again to continue"
            # The kernel's sockets are closed under it, for which it would print a traceback
            logging.getLogger("IPKernelApp").setLevel(logging.CRITICAL)
            _tell_terminal(f"\n{message}\n")
            raise Stopped(message) from stop
    _tell_terminal("\n")


def _for_parent(parent: int, call: tuple) -> None:
    """Make a call; a process that joblib started for `parent` will also end with it."""
    if multiprocessing.current_process().name.startswith("LokyProcess"):
        _end_with(parent)
    function, arguments, named = call
    function(*arguments, **named)


@functools.cache
def _end_with(parent: int) -> None:
    """End this process soon after its parent, of whose death by a signal it is not notified."""

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
    """Write to the terminal from which a notebook was started: papermill shows no output."""
    terminal = getattr(sys.stderr, "_original_stdstream_copy", None)  # of ipykernel's streams
    if isinstance(terminal, int):
        with contextlib.suppress(OSError):
            os.write(terminal, text.encode())


@contextlib.contextmanager
def _listening(bar: tqdm) -> Iterator[None]:
    """Within the block, the bar also shows the steps logged by the search in this process."""

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
        precision: of its arithmetic, None if the table distinguishes several.
        device: where it is taken.
        more: further entries of the first line.

    Raises:
        OSError: naming the file, before anything is measured, if its folder cannot be written.
    """
    # Imports PyTorch, which is slow; most chapters only read
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
    """For commands: Ctrl-C, SIGTERM or a closed terminal ends the block with one line and the usual
    exit status; when the minutes are over, it ends with the line only.

    An OSError, which names its file, and the death of a worker are also reported in one line.
    Callers from a notebook get the exceptions themselves.

    Args:
        kept: returns what has been saved by then, in words.
        again: the command that continues.
    """
    received: list[str] = []

    def stop(number: int, _) -> None:
        received.append(signal.Signals(number).name)
        raise KeyboardInterrupt

    # Ignored signals, such as SIGHUP under nohup, stay ignored.
    heard = [s for s in SIGNALS if signal.getsignal(s) != signal.SIG_IGN]
    before = {s: signal.signal(s, stop) for s in heard}
    if minutes:
        signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    # Perhaps the death of a worker that got the signal, too
    except BaseException as error:
        for s in before:
            signal.signal(s, signal.SIG_IGN)  # the end is on its way
        if not received and not isinstance(error, OSError | BrokenProcessPool):
            raise
        why = KILLED if isinstance(error, BrokenProcessPool) else error
        why = f"stopped by {received[0]}" if received else why
        in_time = received[:1] == ["SIGALRM"]  # the minutes are over
        stream = sys.stdout if in_time else sys.stderr
        print(f"{why}; {kept()}; to continue: {again}", file=stream)
        if not in_time:
            sys.exit(128 + signal.Signals[received[0]] if received else 1)
    finally:
        if minutes:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for s, handler in before.items():
            signal.signal(s, handler)
