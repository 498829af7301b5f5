"""Starts processes on this machine that form a torch.distributed group, and ends them in time.

Scripts (but not notebooks) must call `launch` below `if __name__ == "__main__":`, as usual with
Python's multiprocessing.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

MOST_WORKERS = 256
MOST_EXAMPLES = 2**20  # in a batch
# Windows has no fork
START = "forkserver" if "forkserver" in mp.get_all_start_methods() else "spawn"


def launch(work: Callable, workers: int, timeout: float, *arguments):
    """Run `work(rank, *arguments)` in `workers` processes, with one thread each, that form a gloo
    group; returns the result of process 0.

    work: a module-level function that returns tensors, numbers and strings, or lists and
    dictionaries of them.  timeout: seconds for the whole call, including the start.

    Raises RuntimeError with the traceback of a worker that failed, TimeoutError when time is up; no
    worker outlives the call.
    """
    deadline = time.monotonic() + timeout
    if START == "forkserver":
        # The server imports PyTorch once; workers are copies of it, started in milliseconds
        mp.get_context(START).set_forkserver_preload(["torch", "torch._dynamo"])
    with tempfile.TemporaryDirectory() as folder:
        options = {"nprocs": workers, "join": False, "daemon": True, "start_method": START}
        context = mp.start_processes(
            _worker, (workers, folder, timeout, work, arguments), **options
        )
        try:
            while not context.join(max(0.0, deadline - time.monotonic()), grace_period=2.0):
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"{workers} workers did not finish within {timeout=} s")
        except (mp.ProcessRaisedException, mp.ProcessExitedException) as error:
            raise RuntimeError(f"a worker failed: {error}") from None
        finally:
            for process in context.processes:
                if process.is_alive():
                    process.kill()
                process.join()
        return torch.load(Path(folder, "result"), weights_only=True)


def _worker(rank, workers, folder, timeout, work, arguments):
    """What process `rank` does; rank 0 leaves the result in `folder`."""
    # Gloo announces its connections on standard output
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    torch.set_num_threads(1)
    if sys.platform in ("linux", "darwin"):  # loopback: the machine's name need not resolve
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    # The caller times out first, even on a busy machine
    longest = timedelta(seconds=2 * timeout + 10)
    dist.init_process_group("gloo", Path(folder, "store").as_uri(), longest, workers, rank)
    # In a function: a model that outlives the process group can hang the process
    result = work(rank, *arguments)
    if rank == 0:
        torch.save(result, Path(folder, "result"))
    dist.barrier()  # no process leaves while others wait for what it has sent
    dist.destroy_process_group()
