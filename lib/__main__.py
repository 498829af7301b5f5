"""The command line of the book: `python -m lib --help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from lib.measuring import sweeps
from lib.measuring.collection import Collection
from lib.measuring.jobs import MOST, number, stoppable
from lib.probes import (
    branch_runs,
    path_runs,
    paths,
    portraits,
    pruned_layers,
    replays,
    running_noise,
    timings,
    track_runs,
    tracks,
    unseen,
)
from lib.probes import delays as late_gradients
from lib.probes import folds as out_of_fold
from lib.probes import ngrams as ngram_models
from lib.records import on_record, results
from lib.studies import plans
from lib.systems import boolean_readout, growing, halves, subnetworks

ABOUT = """\
Measure what the book is made of.  A study is a named grid of searches: a workload, a training method, a sparsity and a
batch size each, with a hundred trials or so.  Every search that is done is one file under data/, from which the chapters
are built; only what has no file is measured.

To stop, press Ctrl-C at any time: what is done is kept, and so is, every five minutes, the state of a search under way.
The same command goes on from there.
"""
STARTS = """\
to begin with:
  python -m lib status              what is measured, and what is missing
  python -m lib run digits          train what this study lacks
  python -m lib run --help          all studies
"""
EXAMPLES = {
    "run": "python -m lib run mnist --jobs 2\n  python -m lib run mnist --device cuda",
    "status": "python -m lib status",
    "follow": "python -m lib follow digits --jobs 2",
    "replay": "python -m lib replay digits --sample 20\n  python -m lib replay mnist --sample 2 --longest 300",
}




@dataclass(frozen=True)
class Kind:
    """A command that measures what the book plans of one kind.

    about: what it does, a sentence.  measured: a `Collection`, or a module of that form.  left: what is to be done, after a
    number.  side_by_side: what runs so if several jobs are asked for; "" where one must not disturb the other.  planned:
    None, what `measured` says.
    """

    about: str
    measured: Collection | ModuleType
    left: str
    side_by_side: str = ""
    planned: Callable[[], Sequence] | None = None

    def __call__(self, chosen: argparse.Namespace) -> None:
        planned = (self.planned or self.measured.planned)()
        jobs = {"jobs": chosen.jobs} if self.side_by_side else {}
        again = f"python -m lib {chosen.command}" + "".join(f" --{name} {value}" for name, value in jobs.items())
        with stoppable(_kept(planned, self.measured.missing), again):
            _say(chosen.command, self.measured.missing(planned), planned, self.left)
            self.measured.run(planned, **jobs)


def _timings() -> Sequence:
    import torch  # slow to import, as are those that bring it

    from lib.probes import framework_times, message_times, method_times, step_times

    on_a_gpu = message_times.ON_A_GPU if torch.cuda.is_available() else ()
    return (*step_times.PLANNED, *method_times.PLANNED, *message_times.PLANNED, *on_a_gpu, *framework_times.PLANNED)


KINDS = {
    "retrace": Kind("Train the fastest trials again and record where their gradients point, into data/paths/.",
                    path_runs, "paths to retrace", "paths", paths.planned),
    "portray": Kind("Record what gradients look like before they are compressed, into data/portraits/.",
                    portraits.GALLERY, "portraits to make", "portraits"),
    "folds": Kind("Record which training images networks get wrong that have not seen them, into data/folds/.",
                  out_of_fold.FOLDS, "sets to train", "sets"),
    "listen": Kind("Train with two worker processes that estimate the gradient's noise as they go, into data/running/.",
                   running_noise.JOBS, "jobs to listen to"),
    "push": Kind("Train with worker processes that do not wait for each other and record how late their gradients are, into "
                 "data/delays/.", late_gradients.DELAYS, "jobs to run"),
    "ngrams": Kind("Record how well n-gram models predict the texts, into data/ngrams/.", ngram_models.NGRAMS, "texts to count"),
    "branch": Kind("Continue a run of the language model from several steps with batches of several sizes, into data/branches/.",
                   branch_runs.BRANCHES, "branches to train", "branches"),
    "layers": Kind("Record which layers of the language model lose their weights when it is pruned, into data/layers/.",
                   pruned_layers.LAYERS, "networks to prune"),
    "unseen": Kind("Train winners again and record their errors on unseen images, into data/unseen/.", unseen.UNSEEN,
                   "sets of winners to train", "sets of winners"),
    "subnetworks": Kind("Train disjoint parts of a network, a worker each, into data/subnetworks/.",
                        subnetworks.SUBNETWORKS, "searches to run", "searches"),
    "growing": Kind("Train networks that grow wider as they go, into data/growing/.",
                    growing.GROWING, "searches to run", "searches"),
    "halves": Kind("Train the two halves of a network one after the other, into data/halves/.",
                   halves.HALVES, "searches to run", "searches"),
    "flip": Kind("Train Boolean readouts by flips of their weights, into data/flips/.",
                 boolean_readout.READOUTS, "sets of runs", "sets of runs"),
    "time": Kind("Time training steps, compressors and collectives, into data/timings/; leave the machine alone meanwhile.",
                 timings.TIMINGS, "sets to take", planned=_timings),
}  # fmt: skip


def usable(device: str) -> str:
    """A device on a command line.  Raises ArgumentTypeError if torch cannot compute on it."""
    import torch  # slow to import, and needed to train only

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:  # of a torch built without CUDA
        reason = str(error).partition("\n")[0]
        raise argparse.ArgumentTypeError(f"{device!r} is not allowed; torch cannot compute there ({reason})") from None
    return device


def sample(text: str) -> int:
    """How many searches to replay, on a command line.  Raises ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= replays.MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be a whole number from 1 to {replays.MOST}")
    return int(text)


def longest(text: str) -> float:
    """How many seconds a search may have taken to be replayed, on a command line.  Raises ArgumentTypeError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be a positive number of seconds")
    return seconds


def run(chosen: argparse.Namespace) -> None:
    """Train the searches of a study that have no record, into data/, and say what is measured."""
    study = plans.study(chosen.study)
    again = f"python -m lib run {chosen.study} --jobs {chosen.jobs} --device {chosen.device}"
    with stoppable(lambda: results.kept(study), again):
        _say(study.name, results.missing(study), study.cells, "cells to train")
        sweeps.run(study, jobs=chosen.jobs, device=chosen.device)
    status(chosen)


def status(_: argparse.Namespace) -> None:
    """Say what is measured and what is missing, a line per study."""
    print(on_record.status().to_string(index=False, float_format="{:.2f}".format))


def follow(chosen: argparse.Namespace) -> None:
    """Train the fastest trials of a study again and measure smoothness and gradient noise along them, into data/tracks/."""
    planned = (tracks.TRACKS | tracks.TWINS | tracks.APART)[chosen.tracks]()
    again = f"python -m lib follow {chosen.tracks} --jobs {chosen.jobs}"
    with stoppable(_kept(planned, track_runs.missing), again):
        _say(chosen.tracks, track_runs.missing(planned), planned, "tracks to follow")
        track_runs.run(planned, jobs=chosen.jobs)


def replay(chosen: argparse.Namespace) -> None:
    """Measure searches on record again, into data/replays/, and say how many come out as they were."""
    what = replays.Replay(chosen.study, chosen.sample, longest=chosen.longest)
    limits = f"--sample {chosen.sample} --longest {chosen.longest:g}"
    again = f"python -m lib replay {chosen.study} {limits} --jobs {chosen.jobs}"
    with stoppable(lambda: "nothing is kept of a replay that is stopped", again):
        replays.run(what, jobs=chosen.jobs)
    print(replays.summary().to_string(index=False))


def _say(name: str, todo: Sequence, planned: Sequence, what: str) -> None:
    print(f"{name}: {len(todo) or 'none'} of {len(planned)} {what}")


def _kept(planned: Sequence, missing: Callable[[Sequence], list]) -> Callable[[], str]:
    return lambda: f"{len(planned) - len(missing(planned))} of {len(planned)} are in data/"


def parser() -> argparse.ArgumentParser:
    """All commands with their arguments."""
    top = argparse.ArgumentParser(
        prog="python -m lib", description=ABOUT, epilog=STARTS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")

    def command(call: Callable[[argparse.Namespace], None], more: str = "", side_by_side: str = "", name: str = ""
                ) -> argparse.ArgumentParser:  # fmt: skip
        name, about = name or call.__name__, call.about if name else call.__doc__
        example = EXAMPLES.get(name, f"python -m lib {name}" + " --jobs 2" * bool(side_by_side))
        epilog = f"for example:\n  {example}\n{more}"
        added = commands.add_parser(
            name, help=about[0].lower() + about[1:].rstrip("."), description=about, epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        if side_by_side:
            added.add_argument("--jobs", type=number, default=1, help=f"{side_by_side} side by side, 1 to {MOST}; 1 if not given")
        added.set_defaults(call=call)
        return added

    listed = "".join(f"  {name:<22} {study.title} ({len(study.cells)} searches)\n" for name, study in plans.STUDIES.items())
    runner = command(run, f"\nstudies:\n{listed}", "searches")
    runner.add_argument("study", choices=list(plans.STUDIES), metavar="STUDY", help="one of the studies below")
    runner.add_argument("--device", type=usable, default="cpu", help='"cpu" (if not given), "cuda", "cuda:1", ...')
    command(status)
    named = list(tracks.TRACKS | tracks.TWINS | tracks.APART)
    followed = command(follow, side_by_side="tracks")
    followed.add_argument("tracks", choices=named, metavar="TRACKS", help=f"one of {', '.join(named)}")
    for name, kind in KINDS.items():
        command(kind, side_by_side=kind.side_by_side, name=name)
    replayed = command(replay, f"\nstudies:\n{listed}", "searches")
    replayed.add_argument("study", choices=list(plans.STUDIES), metavar="STUDY", help="one of the studies below")
    replayed.add_argument("--sample", type=sample, default=20, help="how many searches, drawn at random; 20 if not given")
    most = "seconds that a search on record may have taken; 600 if not given"
    replayed.add_argument("--longest", type=longest, default=600.0, metavar="SECONDS", help=most)
    return top


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    chosen = parser().parse_args(arguments)
    chosen.call(chosen)


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a terminal may know fewer signs than the titles of studies hold
    sys.exit(main())
