"""The claim on spiking networks, and its rule; of the paper we read the abstract."""

import math

from chapters.spiking import experiments, findings
from lib.claims.claim import claim, ratio
from lib.wording import brief


@claim(
    "U1",
    "Spiking networks are sparsely active",
    chapter="spiking",
    paper="Training spiking networks asks for sparse operations. (Theirs: on an IPU, for energy and throughput, which are not "
    "measured here.)",
    source="Sun et al. 2022, abstract",
    rule="At the goal, the share of its 8 time steps in which a unit fires is below 0.8 times the share of examples for which "
    "a rectifier is on, in the mean over batch sizes from 4 to 1,024; five searches.",
    below=0.8,
    since="2026-11-27",
    fixed=True,
)
def rate_over_rectifiers():
    rows = experiments.SPIKES.results()
    effect = findings.over(rows, "rate") if len(rows) else None
    if not effect:
        return []
    summed = brief(experiments.TIME * math.exp(effect.value))
    note = f"in all, a unit fires {summed} times for every time that a rectifier is on"
    return [ratio("MLP on digits, 8 time steps", effect, note=note)]
