"""The command line of the book: `python -m lib --help`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tqdm import tqdm

from lib import ROOT, fields
from lib.measuring import sweeps
from lib.measuring.experiment import Experiment
from lib.measuring.runner import MOST, stoppable
from lib.probes import experiments, replays
from lib.records import archive, on_record, results, store
from lib.records.store import DATA
from lib.studies import plans

ABOUT = """\
Measure what the book is made of.  A study is a named grid of searches: a workload, a training method, a sparsity and a
batch size each, with a hundred trials or so.  An experiment measures something else: gradients, timings, late workers.
What is done lies in files under data/, from which the chapters are built; only what has no file is measured.

To stop, press Ctrl-C at any time: what is done is kept, and so is, every few minutes, the state of a search under way.
The same command goes on from there.
"""
STARTS = """\
to begin with:
  python -m lib status              what is measured, and what is missing
  python -m lib list                all studies and experiments
  python -m lib run digits          train what this study lacks
"""
EXAMPLES = {
    "run": "python -m lib run mnist --jobs 2\n  python -m lib run mnist --device cuda\n  python -m lib run trajectories",
    "list": "python -m lib list",
    "status": "python -m lib status",
    "archive": "python -m lib archive",
    "verify": "python -m lib verify digits --sample 20\n  python -m lib verify mnist --sample 2 --longest 300",
}


def gathered() -> dict[str, Experiment]:
    """All experiments by name: the instrument's own, and those of every chapter that has a file
    experiments.py.
    """
    found = dict(experiments.EXPERIMENTS)
    for file in sorted(ROOT.glob("chapters/*/experiments.py")):
        found |= importlib.import_module(f"chapters.{file.parent.name}.experiments").EXPERIMENTS
    return found


EXPERIMENTS = gathered()


# --- arguments ------------------------------------------------------------------------------------

JOBS = fields.Whole(1, MOST, " (four for every processor)")
SAMPLE = fields.Count(replays.MOST)


def of_kind(kind: Any, number: type) -> Callable[[str], Any]:
    """Reads a number of a kind of `lib.fields`; it raises ArgumentTypeError."""

    def read(text: str) -> Any:
        with suppress(ValueError):
            return fields.check("", number(text), kind)
        allowed = fields.allowed(kind)
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be {allowed}")

    return read


def usable(device: str) -> str:
    """A device on a command line.  Raises ArgumentTypeError if torch cannot compute on it."""
    import torch  # slow to import, and needed to train only

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:  # of a torch built without CUDA
        reason = str(error).partition("\n")[0]
        raise argparse.ArgumentTypeError(
            f"{device!r} is not allowed; torch cannot compute there ({reason})"
        ) from None
    return device


# --- commands -------------------------------------------------------------------------------------


def run(chosen: argparse.Namespace) -> None:
    """Measure what a study or an experiment lacks, into data/."""
    if chosen.name in EXPERIMENTS:
        _run_experiment(chosen, EXPERIMENTS[chosen.name])
        return
    study = plans.study(chosen.name)
    options = f"--jobs {chosen.jobs} --device {chosen.device}"
    again = f"python -m lib run {chosen.name} {options}"
    with stoppable(lambda: results.kept(study), again):
        _say(study.name, results.missing(study), study.cells, "cells to train")
        sweeps.run(study, jobs=chosen.jobs, device=chosen.device)
    print(_searched())


def _run_experiment(chosen: argparse.Namespace, experiment: Experiment) -> None:
    wrong = " is not allowed; it must be"
    if chosen.device != "cpu":
        allowed = f"'cpu' for {chosen.name}, which is no study"
        chosen.refuse(f"--device: {chosen.device!r}{wrong} {allowed}")
    if experiment.alone and chosen.jobs > 1:
        chosen.refuse(f"--jobs: {chosen.jobs}{wrong} 1 for {chosen.name}, which runs alone")
    options = "" if experiment.alone else f" --jobs {chosen.jobs}"
    planned = experiment.planned()

    def kept() -> str:
        return f"{len(planned) - len(experiment.missing())} of {len(planned)} are in data/"

    with stoppable(kept, f"python -m lib run {chosen.name}{options}"):
        _say(chosen.name, experiment.missing(), planned, f"{experiment.units} to measure")
        experiment.run(chosen.jobs)


def listed(_: argparse.Namespace) -> None:
    """Name all studies and experiments, each with what it is."""
    measured = {name: experiment.help for name, experiment in EXPERIMENTS.items()}
    print(_studies() + "\n" + _table("experiments", measured) + _own(), end="")


def status(_: argparse.Namespace) -> None:
    """Say what is measured and what is missing, a line per study and experiment."""
    print(_searched())
    for name, experiment in EXPERIMENTS.items():
        _say(name, experiment.missing(), experiment.planned(), f"{experiment.units} to measure")


def verify(chosen: argparse.Namespace) -> None:
    """Measure searches on record again, into data/replays/, and say how many come out as they were."""
    what = replays.Replay(chosen.study, chosen.sample, longest=chosen.longest)
    options = f"--sample {chosen.sample} --longest {chosen.longest:g} --jobs {chosen.jobs}"
    again = f"python -m lib verify {chosen.study} {options}"
    with stoppable(lambda: "nothing is kept of a verification that is stopped", again):
        replays.run(what, jobs=chosen.jobs)
    print(replays.summary().to_string(index=False))


def pack(_: argparse.Namespace) -> None:
    """Pack the records of searches under data/ into one archive per workload; nothing is lost."""
    files = [f for f in DATA.glob("*/*/*/sparsity-*/batch-*.csv") if f.parents[3].name != "own"]
    for file in files:
        results.check_file(file, DATA, store.stamp(file))
    for folder in tqdm(sorted({file.parents[2] for file in files}), "archive", unit="workload"):
        archive.pack(folder)


def _say(name: str, todo: Sequence, planned: Sequence, what: str) -> None:
    print(f"{name}: {len(todo) or 'none'} of {len(planned)} {what}")


def _searched() -> str:
    tables = [on_record.status(), on_record.status_of_own()]
    told = [t.to_string(index=False, float_format="{:.2f}".format) for t in tables if len(t)]
    return "\n\nyour own workloads and methods:\n".join(told)


def _own() -> str:
    """The reader's own, with the page that goes on with them."""
    found = on_record.status_of_own()
    if found.empty:
        return ""
    page = "papermill chapters/own_workload.ipynb OUT.ipynb -p workload NAME"
    rows = zip(found.workload, found.method, found.cells)
    lines = [f"  {name} with {method} ({cells} searches)\n" for name, method, cells in rows]
    return f"\nyour own workloads and methods, by {page}:\n" + "".join(lines)


def _studies() -> str:
    titles = {s.name: f"{s.title} ({len(s.cells)} searches)" for s in plans.STUDIES.values()}
    return _table("studies", titles)


def _table(head: str, lines: dict[str, str]) -> str:
    return f"{head}:\n" + "".join(f"  {name:<26} {told}\n" for name, told in lines.items())


# --- the parser -----------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """All commands with their arguments."""
    plain = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(
        prog="python -m lib", description=ABOUT, epilog=STARTS, formatter_class=plain
    )
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands"
    )

    def command(name: str, call: Callable, more: str = "") -> Callable:
        """Add a command; returns what adds its arguments."""
        about, epilog = call.__doc__, f"for example:\n  {EXAMPLES[name]}\n{more}"
        told = about[0].lower() + about[1:].rstrip(".")
        added = commands.add_parser(
            name, help=told, description=about, epilog=epilog, formatter_class=plain
        )
        added.set_defaults(call=call, refuse=added.error)
        return added.add_argument

    jobs = {"type": of_kind(JOBS, int), "default": 1}
    jobs["help"] = f"how many side by side, 1 to {MOST}; 1 if not given"
    add = command("run", run, "\nall names: python -m lib list\n")
    names = [*plans.STUDIES, *EXPERIMENTS]
    add("name", choices=names, metavar="NAME", help="a study or an experiment, as list has them")
    devices = '"cpu" (if not given), "cuda", "cuda:1", ...'
    add("--device", type=usable, default="cpu", help=devices)
    add("--jobs", **jobs)
    command("list", listed)
    command("status", status)
    command("archive", pack)
    add = command("verify", verify, f"\n{_studies()}")
    add("study", choices=list(plans.STUDIES), metavar="STUDY", help="one of the studies below")
    drawn = "how many searches, drawn at random; 20 if not given"
    add("--sample", type=of_kind(SAMPLE, int), default=20, help=drawn)
    most = "seconds that a search on record may have taken; 600 if not given"
    longest = of_kind(fields.POSITIVE, float)
    add("--longest", type=longest, default=600.0, metavar="SECONDS", help=most)
    add("--jobs", **jobs)
    return top


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    chosen = parser().parse_args(arguments)
    chosen.call(chosen)


if __name__ == "__main__":
    # A terminal may know fewer signs than the titles of studies hold
    sys.stdout.reconfigure(errors="replace")
    sys.exit(main())
