"""A sweep killed at random moments and resumed until it is done: its tables must be those of an undisturbed one.

python -m tests.kills 100     # kills; prints how many there were and whether every table is the same
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import threading
from pathlib import Path

import torch
from tqdm import tqdm

from lib.engine import checkpoint
from lib.measuring import machine, sweeps
from lib.records import store
from lib.studies.search import Search
from lib.studies.study import Study

FEEDBACK = {"workers": 4, "compressor": "rand-k", "density": 0.01, "feedback": True}
SAVE_EVERY = 0.05  # seconds
LONGEST = 300.0  # seconds that the rest of the sweep may take


def small() -> Study:
    """Cells of every kind: to a goal and to a budget, dense and sparse, with and without sparse messages."""
    cells = [
        Search("digits-cnn", 64, "nesterov", 0.9, trials=12, hits=4, max_steps=300),
        Search("digits-mlp", 64, trials=6, stop="budget", max_steps=300, checks="every-100"),
        Search("digits-mlp", 64, trials=6, stop="budget", max_steps=300, messages=FEEDBACK),
        Search("digits-mlp", 256, trials=20, hits=10, max_steps=300),
        Search("digits-mlp", 32, "sgd", 0.5, trials=20, hits=20, max_steps=400),
    ]
    return Study("small", "", tuple(cells))


def tables(folder: Path) -> dict[Path, str]:
    """Each record's table, without the line that says when and how fast it was measured."""
    return {file.relative_to(folder): file.read_text(encoding="utf-8").partition("\n")[2] for file in sorted(folder.rglob("*.csv"))}


def _sweep(folder: Path) -> None:
    checkpoint.SAVE_EVERY = SAVE_EVERY
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    sweeps.run(small(), folder)


def killed(folder: Path, kills: int, seed: int = 0) -> int:
    """Run the small sweep to its end, killed this many times, each within half a second.

    Returns how many kills left a cell with a state to resume from.  Whenever the sweep ends before the last kill, it restarts
    in the next folder of `folder`.  Raises AssertionError unless every record is whole at all times and every table is that
    of a sweep that was not killed.
    """
    moments, done, attempt, resumed = random.Random(seed), 0, 0, 0
    torch.set_num_threads(1)  # a fork of a process with threads may hang
    tqdm.monitor_interval = 0
    tqdm.set_lock(threading.RLock())  # its own is shared with forks, and a killed one may hold it
    sweeps.run(small(), folder / "whole")
    expected, place = tables(folder / "whole"), folder / "killed-0"
    while True:
        process = multiprocessing.get_context("fork").Process(target=_sweep, args=(place,))
        process.start()
        process.join(moments.uniform(0, 0.5) if done < kills else LONGEST)
        if process.exitcode is None:
            process.kill()
            process.join()
            assert done < kills, f"{place}: the sweep hangs"
            done += 1
            for file in place.rglob("*.csv"):
                store.read(file)
            resumed += bool(list(place.rglob("batch-*.part")))
        else:
            assert process.exitcode == 0 and tables(place) == expected, f"{place}: not the tables of a sweep that was not killed"
            assert not list(place.rglob("batch-*.part")), "the state of a finished cell was left"
            if done >= kills:
                return resumed
            attempt += 1
            place = folder / f"killed-{attempt}"


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__.partition("\n")[0])
    parser.add_argument("kills", type=int, nargs="?", default=20)
    chosen = parser.parse_args(arguments)
    machine.use_one_core()
    with tempfile.TemporaryDirectory() as folder:
        resumed = killed(Path(folder), chosen.kills)
    print(f"{chosen.kills} kills, after {resumed} of them a cell went on from its state: every table is the same")


if __name__ == "__main__":
    main()
