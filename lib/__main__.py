"""The command line of the book: `python -m lib --help`."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from tqdm import tqdm

from lib import ROOT, BookError, fields, whole
from lib.measuring import codes, sweeps
from lib.measuring.experiment import Collection
from lib.measuring.runner import MOST, stoppable
from lib.probes import portraits, replays, timings, tracks, unseen
from lib.records import archive, results, searches, store
from lib.records.store import DATA
from lib.studies import plans
from lib.studies.study import Study

ABOUT = """\
Run the measurements behind this book. A study is a named grid of searches; each search trains one
workload with one training method, sparsity and batch size about a hundred times. An experiment
measures something else, such as gradients, timings or late workers. Results are saved under data/,
and the chapters are built from them. Whatever has already been measured is skipped.

Press Ctrl-C to stop at any time. Finished searches are kept, and a search that is still running is
saved every few minutes. Run the same command again to continue.
"""
STARTS = """\
getting started:
  python -m lib status              show what has been measured and what is missing
  python -m lib list                list all studies and experiments
  python -m lib run digits          run the missing searches of one study
"""
OF_SEVERAL = {  # experiments that several chapters use, by name
    **{f"noise-along-{name}": tracked for name, tracked in tracks.TRACKS.items()},
    "gradient-histograms": portraits.GALLERY,
    "test-errors": unseen.UNSEEN,
    "timings": timings.TIMINGS,
}


def gathered() -> dict[str, Collection]:
    """All experiments by name: those that several chapters read, and those in the file
    experiments.py of any chapter that has one.
    """
    experiments = dict(OF_SEVERAL)
    for file in sorted(ROOT.glob("chapters/*/experiments.py")):
        module = importlib.import_module(f"chapters.{file.parent.name}.experiments")
        experiments |= module.EXPERIMENTS
    return experiments


EXPERIMENTS = gathered()


# --- arguments ------------------------------------------------------------------------------------


def of_kind(kind: Any) -> Callable[[str], Any]:
    """A function that reads a number of a kind of `lib.fields`, or raises ArgumentTypeError."""

    def read(text: str) -> Any:
        try:
            return fields.check("number", text, Annotated[kind, Field(strict=False)])
        except ValueError as error:
            raise argparse.ArgumentTypeError(error) from None

    return read


def usable(device: str) -> str:
    """A device on the command line; raises ArgumentTypeError unless PyTorch can use it."""
    import torch  # slow to import, and only needed to train

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:  # the latter if torch was built without CUDA
        why = f"PyTorch cannot use this device ({str(error).splitlines()[0]})"
        raise argparse.ArgumentTypeError(f"{device!r} is not allowed; {why}") from None
    return device


# --- commands -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Searches:
    """The searches of a study, as an experiment."""

    study: Study
    device: str = "cpu"

    units, alone, on_device = "searches", False, True

    def planned(self) -> Sequence:
        return self.study.searches

    def missing(self) -> list:
        return results.missing(self.study)

    def run(self, jobs: int) -> None:
        sweeps.run(self.study, jobs=jobs, device=self.device)


def run(chosen: argparse.Namespace) -> None:
    name, study = chosen.name, plans.STUDIES.get(chosen.name)
    experiment = Searches(study) if study else EXPERIMENTS[name]
    if experiment.alone and chosen.jobs > 1:
        allowed = f"1 for {name}, which must run alone"
        chosen.refuse(f"--jobs: {chosen.jobs} is not allowed; it must be {allowed}")
    if experiment.on_device:
        experiment = replace(experiment, device=chosen.device)
    elif chosen.device != "cpu":
        allowed = f"'cpu': {name} chooses its device"
        chosen.refuse(f"--device: {chosen.device!r} is not allowed; it must be {allowed}")
    count = len(experiment.planned())

    def kept() -> str:
        return f"{count - len(experiment.missing())} of {count} are saved in data/"

    with stoppable(kept, chosen.again, chosen.minutes):
        _say(name, experiment)
        experiment.run(jobs=chosen.jobs)
    if study:
        print(_searched())


def listed(_: argparse.Namespace) -> None:
    print("studies:")
    for study in plans.STUDIES.values():
        print(f"  {study.name:<26} {study.title} ({len(study.searches)} searches)")
    print("experiments:")
    for name, experiment in EXPERIMENTS.items():
        print(f"  {name:<26} {experiment.help}")


def status(_: argparse.Namespace) -> None:
    print(_searched())
    for name, experiment in EXPERIMENTS.items():
        _say(name, experiment)


def unlisted(_: argparse.Namespace) -> None:
    kinds = {(c.name, type(what)) for c in EXPERIMENTS.values() for what in c.planned()}
    print(*(codes.unlisted(kinds) or ["nothing is missing"]), sep="\n")


def export(chosen: argparse.Namespace) -> None:
    curves = importlib.import_module("chapters.explore.explorer").exported()
    with whole(chosen.file) as stream:
        stream.write(curves.to_csv(index=False).encode())
    print(f"{chosen.file}: {len(curves)} points; the page Explore explains the columns")


def verify(chosen: argparse.Namespace) -> None:
    replay = replays.Replay(chosen.study, chosen.sample, longest=chosen.longest)
    with stoppable(lambda: "an interrupted verification saves nothing", chosen.again):
        replays.run(replay, jobs=chosen.jobs)
    print(replays.summary().to_string(index=False))


def pack(chosen: argparse.Namespace) -> None:
    files = [f for f in DATA.glob("*/*/*/sparsity-*/batch-*.csv") if f.parents[3].name != "own"]
    for file in files:
        store.head(file)  # raises for a file that is not a record
    for folder in tqdm(sorted({f.parents[2] for f in files}), "archive", unit="workload"):
        archive.pack(folder)
    searches.rebuild()


def _say(name: str, experiment: Collection | Searches) -> None:
    todo, planned = len(experiment.missing()), len(experiment.planned())
    line = f"{name}: {todo or 'none'} of {planned} {experiment.units} to measure"
    if todo and isinstance(experiment, Collection) and (others := len(experiment.outdated())):
        line += f"; {planned - todo} are measured by this code, {others} by other code"
    print(line)


def _searched() -> str:
    return results.status().to_string(index=False, float_format="{:.2f}".format)


COMMANDS = {  # not from docstrings, which `python -OO` removes
    "run": (
        run,
        "run the missing part of a study or an experiment and save the results in data/",
    ),
    "list": (listed, "list all studies and experiments with a short description of each"),
    "status": (
        status,
        "show what has been measured and what is missing, one line for each study and experiment",
    ),
    "archive": (
        pack,
        "pack the records of searches under data/ into one archive for each workload, without loss",
    ),
    "export": (
        export,
        "write all curves drawn on the pages, with their fits, to a CSV file",
    ),
    "codes": (unlisted, "show what data/codes.yaml lacks after a change of measuring code"),
    "verify": (
        verify,
        "repeat recorded searches, save the results in data/replays/, and report how many agree",
    ),
}


# --- the parser -----------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands and their arguments."""
    top = argparse.ArgumentParser(
        prog="python -m lib",
        description=ABOUT,
        epilog=STARTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND", title="commands")
    adds = {}
    for name, (call, does) in COMMANDS.items():
        description = f"{does[0].upper()}{does[1:]}."
        command = commands.add_parser(name, help=does, description=description)
        command.set_defaults(call=call, refuse=command.error)
        adds[name] = command.add_argument
    add, choices = adds["run"], [*plans.STUDIES, *EXPERIMENTS]
    names = "a study or an experiment; 'list' shows their names"
    add("name", choices=choices, metavar="NAME", help=names)
    add("--device", type=usable, default="cpu", help='"cpu" (default), "cuda", "cuda:1", ...')
    most = "stop after this many minutes and keep unfinished work (default: run to the end)"
    add("--minutes", type=of_kind(fields.Number("(0, 10000]")), help=most)
    adds["export"]("file", type=Path, help="file to write, such as curves.csv")
    add, names = adds["verify"], "a study; 'list' shows their names"
    add("study", choices=[*plans.STUDIES], metavar="STUDY", help=names)
    sample = "number of searches, drawn at random (default: 20)"
    add("--sample", type=of_kind(fields.Count(replays.MOST)), default=20, help=sample)
    most = "skip searches that originally took longer than this (default: 600)"
    longest = of_kind(fields.POSITIVE)
    add("--longest", type=longest, default=600.0, metavar="SECONDS", help=most)
    jobs = f"number of parallel processes, 1 to {MOST} (default: 1)"
    for add in (adds["run"], adds["verify"]):
        add("--jobs", type=of_kind(fields.Whole(1, MOST)), default=1, help=jobs)
    return top


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command given on the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        chosen = parser().parse_args(arguments)
        chosen.again = shlex.join(["python", "-m", "lib", *arguments])
        chosen.call(chosen)
    except BookError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    # A terminal's encoding may lack characters in the titles of studies
    sys.stdout.reconfigure(errors="replace")
    sys.exit(main())
