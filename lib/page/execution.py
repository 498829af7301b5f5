"""Runs the chapters for a build, each in a process forked from the build's.

That process has imported what chapters import and has read the records, so chapters need not; it
judges claims while chapters that need no verdict run.  A chapter that fails here, or prints, is
left to myst-nb, which runs it in a kernel and reports it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.managers import BaseManager
from multiprocessing.process import BaseProcess
from pathlib import Path

from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat.v4 import new_output
from threadpoolctl import threadpool_limits
from traitlets.config import Config

from lib import ROOT
from lib.page import vega

FORK = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
# Chapters that take long and need no verdict: started while records are read and claims judged
EARLY = "explore hardware".split()
# The longest of the others, started first, or else one core would wait for the other at the end
FIRST = """
learning_rates theory which_method three_regimes status sparsity disputed limits steps_to_result
smoothness
""".split()


def side_by_side(folder: Path, timeout: int, read: Callable, judge: Callable) -> None:
    """Run the chapters whose outputs are not in the cache in this folder, one per core, and cache
    their outputs there.

    Args:
        timeout: seconds for each.
        read: called by this process before any chapter runs.
        judge: called by this process while EARLY chapters run, before all others.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core per chapter
    cache = get_cache(folder)
    for page in [ROOT / "intro.md", *ROOT.glob("chapters/*.ipynb")]:
        reader = "nbformat" if page.suffix == ".ipynb" else "myst_nb_md"
        cache.add_nb_to_project(str(page), read_data={"name": reader, "type": "plugin"})
    waiting = {Path(page.uri).stem: page.pk for page in cache.list_unexecuted()}
    # A fork is only safe if this process has a single thread, and not on macOS
    if not waiting or sys.platform != "linux" or threading.active_count() > 1:
        return
    for file in ROOT.glob("chapters/*/*.py"):
        if file.parent.name != "own":
            importlib.import_module(f"chapters.{file.parent.name}.{file.stem}")
    read()
    gc.freeze()  # else garbage collection in a fork writes to shared memory, and so copies it
    cores = os.cpu_count() or 1
    # One process draws the charts of all chapters, since Vega takes half a second to start
    with _Drawing(ctx=FORK) as drawing:
        vega.svg = lambda spec: drawing.svg(spec)._getvalue()
        early = [waiting.pop(name) for name in EARLY if name in waiting]
        arguments = early, folder, timeout, max(cores - 1, 1)
        running = FORK.Process(target=_run_each, args=arguments)
        running.start()
        judge()
        gc.freeze()
        first = [waiting.pop(name) for name in FIRST if name in waiting]
        _run_each([*first, *waiting.values()], folder, timeout, cores, running)


class _Drawing(BaseManager):
    """A process that draws charts for others."""


_Drawing.register("svg", vega.svg)


def _run_each(
    waiting: list[int], folder: Path, timeout: int, cores: int, *running: BaseProcess
) -> None:
    """Run chapters, by their numbers in the cache, in this order; running: processes that already
    occupy a core.
    """
    processes = {process.sentinel: process for process in running}
    while waiting or processes:
        while waiting and len(processes) < cores:
            process = FORK.Process(target=_run, args=(waiting.pop(0), folder, timeout))
            process.start()
            processes[process.sentinel] = process
        for sentinel in wait(list(processes)):
            processes.pop(sentinel).join()


def _run(page: int, folder: Path, timeout: int) -> None:
    """Run a chapter in this process and cache its outputs."""
    signal.alarm(timeout)  # ends this process
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # also of the processes that the chapter starts
        os.dup2(silent, stream)
    cache = get_cache(folder)
    # It might delete, as the oldest, what another process has just added
    cache.truncate_caches = lambda: None
    project = cache.get_project_notebook(page)
    os.chdir(Path(project.uri).parent)
    with threadpool_limits(1):
        if _fill(project.nb):
            cache.cache_notebook_bundle(CacheBundleIn(project.nb, project.uri), overwrite=True)


def _fill(notebook) -> bool:
    """Run the cells of a notebook and add their outputs to it, as a kernel would; returns whether
    none failed or printed.
    """
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.display_pub = CapturingDisplayPublisher()
    shown = shell.display_pub.outputs
    shell.display_trap.hook = CapturingDisplayHook(shell, shown)
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    for count, cell in enumerate(cells, 1):
        shown.clear()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            done = shell.run_cell(cell.source, store_history=True)
        if not done.success or printed.getvalue():
            return False
        cell.execution_count = count
        contents = ({key: output[key] for key in ("data", "metadata")} for output in shown)
        cell.outputs = [new_output("display_data", **content) for content in contents]
    return True
