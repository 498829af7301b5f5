"""What Shi et al. (2019) prove of Top-k, and whether vectors from training meet the condition of
their proof.
"""

from lib.claims.claim import Change, claim
from lib.claims.names import DEPENDENT, fed, most_vectors


@claim(
    "T3",
    "Vectors meet the condition of the tighter bound",
    chapter="contraction",
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
        )
    ],
)
def convex_profiles():
    shapes = fed()
    return most_vectors(shapes.bell, shapes.workload)
