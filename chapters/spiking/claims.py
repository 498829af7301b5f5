"""The claim on spiking networks, and what is measured of it; of the paper we read the abstract."""

import math

from chapters.spiking import experiments, findings
from lib.claims.claim import finding, ratio
from lib.wording import brief


@finding(
    "U1",
    "Spiking networks are sparsely active",
    chapter="spiking",
    paper="Training spiking networks asks for sparse operations. (Theirs: on an IPU, for energy and throughput, which are not "
    "measured here.)",
    source="Sun et al. 2022, abstract",
    shown="The share of 8 time steps in which a unit fires over the share of examples for "
    "which a rectifier is on, at the goal, in the mean over batch sizes from 4 to "
    "1,024.",
)
def rate_over_rectifiers():
    rows = experiments.SPIKES.results()
    effect = findings.over(rows, "rate") if len(rows) else None
    if not effect:
        return []
    summed = brief(experiments.TIME * math.exp(effect.value))
    note = f"in all, a unit fires {summed} times for every time that a rectifier is on"
    return [ratio("MLP on digits, 8 time steps", effect, note=note)]
