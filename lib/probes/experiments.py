"""The experiments that several chapters read."""

from __future__ import annotations

from collections.abc import Sequence

from lib.measuring import paper_scale
from lib.measuring.experiment import Experiment
from lib.probes import portraits, running_noise, timings, tracks, unseen


def _steps_and_methods() -> Sequence:
    from lib.probes import method_times, step_times  # bring PyTorch, which is slow to import

    return (*step_times.PLANNED, *method_times.PLANNED)


def _along(name: str, plan) -> Experiment:
    told = (
        f"Train the fastest trials of {name} again; record the gradient's noise and smoothness "
        "along them, into data/tracks/."
    )
    return Experiment(told, tracks.FOLLOWED, "trials", plan)


EXPERIMENTS = {
    **{f"noise-along-{name}": _along(name, plan) for name, plan in tracks.ALL.items()},
    "gradient-histograms": Experiment(
        "Record what gradients look like before they are compressed, into data/portraits/.",
        portraits.GALLERY,
        "histograms",
    ),
    "test-errors": Experiment(
        "Train winners again and record their errors on unseen images, into data/unseen/.",
        unseen.UNSEEN,
        "sets of winners",
    ),
    "noise-scale": Experiment(
        "Train with two worker processes that estimate the gradient's noise as they go, into "
        "data/running/.",
        running_noise.JOBS,
        "jobs",
        alone=True,
    ),
    "paper-scale": Experiment(
        "Search the papers' own networks on a graphics processor, the most wanted first, into "
        "data/paper-scale/.",
        paper_scale.PAPER_SCALE,
        "searches",
        alone=True,
        on_device=True,
    ),
    "timings": timings.experiment("training steps and methods", _steps_and_methods),
}
