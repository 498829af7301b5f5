"""The experiments that several chapters read."""

from __future__ import annotations

from lib.measuring import paper_scale
from lib.measuring.experiment import Experiment
from lib.probes import portraits, step_times, timings, tracks, unseen
from lib.probes.tracks import TRACKS

EXPERIMENTS = {
    **{f"noise-along-{name}": tracks.experiment(name, plan) for name, plan in TRACKS.items()},
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
    "paper-scale": Experiment(
        "Search the papers' own networks on a graphics processor, the most wanted first, into "
        "data/paper-scale/.",
        paper_scale.PAPER_SCALE,
        "searches",
        alone=True,
        on_device=True,
    ),
    "timings": timings.experiment("training steps and methods", lambda: step_times.PLANNED),
}
