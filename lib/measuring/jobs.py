"""Jobs: measurements side by side, and a stop that says in one line what is kept and how to go on."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool

import joblib
from joblib.parallel import get_active_backend

from lib import require

# Jobs side by side: one thread each, so that more than there are cores gain nothing
MOST = 4 * (os.cpu_count() or 1)
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
KILLED = "a worker process was killed, perhaps for want of memory (fewer jobs take less)"


class WorkerDied(RuntimeError):
    """A worker process that ended without a word, as the system ends what takes too much memory."""


def each(calls: Iterable, jobs: int = 1) -> Iterator:
    """What each of the calls (`joblib.delayed`) returns, as soon as it does; whoever stops asking
    ends those under way.

    Wrapped in `joblib.parallel_config(backend="dask")` they run on the cluster, however many
    threads it has; Dask lets a call that a worker has begun go on to its end.  Raises ValueError
    for a number of jobs that is not allowed, and WorkerDied.
    """
    require(
        type(jobs) is int and (jobs == -1 or 1 <= jobs <= MOST),
        "jobs",
        jobs,
        f"a whole number from 1 to {MOST}, or -1",
    )
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
            f"{KILLED}; what is finished is kept, and the same call goes on from there"
        ) from None


def number(text: str) -> int:
    """How many jobs, on a command line.  Raises ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        allowed = f"a whole number from 1 to {MOST} (four for every processor)"
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be {allowed}")
    return int(text)


@contextlib.contextmanager
def stoppable(kept: Callable[[], str], again: str) -> Iterator[None]:
    """For a command: Ctrl-C, SIGTERM or a closed terminal ends what runs herein with one line and
    the usual exit status.

    kept: says what is there by then; again: the command that goes on.  An OSError, which names its
    file, and a worker's death are told in one line, too.  Whoever calls from a notebook gets the
    exceptions themselves.
    """
    received: list[int] = []

    def stop(number: int, _) -> None:
        received.append(number)
        raise KeyboardInterrupt

    # Those that are ignored, as SIGHUP is under nohup, stay so.
    before = {s: signal.signal(s, stop) for s in SIGNALS if signal.getsignal(s) != signal.SIG_IGN}
    try:
        yield
    except (
        BaseException
    ) as error:  # of a worker that got the signal, too, perhaps the worker's death
        for s in before:
            signal.signal(s, signal.SIG_IGN)  # the end is on its way
        if not received and not isinstance(error, OSError | WorkerDied):
            raise
        reason = KILLED if isinstance(error, WorkerDied) else str(error)
        what = f"stopped by {signal.Signals(received[0]).name}" if received else reason
        print(f"{what}; {kept()}; to go on: {again}", file=sys.stderr)
        sys.exit(128 + received[0] if received else 1)
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
