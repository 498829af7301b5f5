"""What Shi et al. (2019) say of the vector that Top-k compresses, and the rule that judges it."""

import numpy as np

from lib.claims.claim import Change, claim
from lib.claims.names import DEPENDENT, fed, most_vectors


def bell_shaped(shapes):
    """Which vectors have one peak at zero, are even, and no flatter than a semicircle.

    A semicircle's excess kurtosis is -1, its height at zero that of a normal distribution times the
    root of 2 / pi.
    """
    centred, even = shapes["mean"].abs() < 0.1 * shapes["std"], (shapes.positive - 0.5).abs() < 0.1
    return (
        centred
        & even
        & (shapes.rise < 0.02)
        & (shapes["kurtosis"] > -1)
        & (shapes.peak > (2 / np.pi) ** 0.5)
    )


@claim(
    "T1",
    "What Top-k compresses is bell-shaped around zero",
    chapter="gradients",
    paper="The vector that Top-k compresses is bell-shaped around zero, for fully connected, convolutional and recurrent networks.",
    source="Shi et al. 2019, abstract",
    rule="On over half of the networks, most vectors of a run with Top-k and feedback have one "
    "peak, a mean within a tenth of a deviation of zero, 40 to 60 % positive entries, and a "
    "kurtosis and a height at zero above a semicircle's. A bell is no normal curve: its tails are "
    "another question.",
    above=0.5,
    scale="share",
    since="2026-11-28",
    history=[
        Change(
            "2026-11-28",
            "the same conditions, with those on the mean and on the positive entries unsaid",
            "the rule could not be followed from its text; what is tested did not change",
        ),
        Change(
            "2026-11-26",
            "over half of the vectors of each kind of network, each vector counted",
            DEPENDENT,
        )
    ],
)
def bells():
    shapes = fed()
    return most_vectors(bell_shaped(shapes), shapes.workload)
