"""What Shi et al. (2019) say of the vector that Top-k compresses, and what they prove of Top-k."""

import numpy as np

from lib.claims.claim import Change, claim
from lib.claims.names import DEPENDENT, fed, most_vectors


def bell_shaped(shapes):
    """Which vectors have one peak at zero, are even, and no flatter than a semicircle.

    A semicircle's excess kurtosis is -1, its height at zero that of a normal distribution times the
    root of 2 / pi.
    """
    centred, even = (
        shapes["mean"].abs() < 0.1 * shapes["std"],
        (shapes.positive - 0.5).abs() < 0.1,
    )
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
        ),
    ],
)
def bells():
    shapes = fed()
    return most_vectors(bell_shaped(shapes), shapes.workload)


@claim(
    "T3",
    "Vectors meet the condition of the tighter bound",
    chapter="gradients",
    paper="What Top-k leaves of the vector's energy is at most (1 − k/d)², a tighter bound than 1 − k/d.",
    source="Shi et al. 2019, abstract",
    rule="On over half of the networks, most vectors of a run with Top-k and feedback have a "
    "sorted squared profile that is convex in all of fifty bins and ends at zero, as nearly all "
    "normal vectors of these lengths have. The bound itself follows from this, and made-up vectors "
    "of nearly any shape obey it.",
    above=0.5,
    scale="share",
    since="2026-11-28",
    history=[
        Change(
            "2026-11-28",
            "convex in all of a hundred bins, wherever it ends",
            "there, noise lets only one normal vector in ten pass; "
            "every vector on record passes in twenty bins",
        ),
        Change(
            "2026-11-26",
            "what is left stays below (1 − k/d)² for every vector and density",
            f"nearly any vector passes, "
            f"and its range over vectors and densities is no interval; {DEPENDENT}",
        ),
    ],
)
def convex_profiles():
    shapes = fed()
    return most_vectors(shapes.bell, shapes.workload)
